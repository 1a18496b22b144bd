# SPDX-License-Identifier: Apache-2.0
"""The program on Tenstorrent cards that do not exist: tests/blackhole/fake_cards.c is loaded into it in place of a driver."""
import json
import os
import subprocess

import pytest

NO_CARD = "no Tenstorrent card is here: /dev/tenstorrent has no devices; a card needs the driver tt-kmd"
WRONG = {
    "none": NO_CARD,
    "wormhole": "device 0 is PCI 1e52:401e (Wormhole); Lensing runs on Blackhole, 1e52:b140",
    "old": "device 0: the driver tt-kmd 2.5.0 is too old; it must be 2.6.0 or newer",
    "busy": "device 0 is in use by another model or process of Lensing",
    "narrow": "the card has 11 Tensix columns (mask 0x07ff); Lensing needs 12",
    "gone": "device 0 does not answer; a reset, or turning the machine off and on, may help",
}


@pytest.fixture
def run(program, build_dir, tmp_path, synthetic_weights):
    library = build_dir / "tests" / "blackhole" / "fake_cards.so"
    if not library.exists():
        pytest.skip("this build has no fake_cards.so, which needs Linux and no sanitizer")
    photo = tmp_path / "photo.pgm"
    photo.write_bytes(b"P5 64 48 255\n" + bytes(range(64)) * 48)

    def call(cards, *arguments, **environment):
        folder = tmp_path / cards.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        for number in range(2 if "two" in cards else 1):
            (folder / str(number)).touch()
        (folder / "by-id").mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if k not in ("TT_DEVICE_ID", "LENSING_TTSIM")}
        environment = {
            **kept, "LD_PRELOAD": str(library), "LENSING_FAKE_CARDS": cards, "LENSING_FAKE_FOLDER": str(folder),
            "SP_WEIGHTS_DIR": "", "HF_MODEL": str(synthetic_weights), **environment,
        }
        done = subprocess.run(
            [program, *(str(photo) if a == "PHOTO" else a for a in arguments)],
            env=environment, capture_output=True, text=True, timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.mark.parametrize("cards", WRONG)
def test_each_wrong_card_is_one_line(run, cards):
    code, out, err = run(cards, "detect", "--backend", "blackhole", "PHOTO")
    assert (code, out, err) == (5, "", f"lensing: {WRONG[cards]}\n")


def test_device_ids(run):
    missing = "lensing: device {} does not exist; /dev/tenstorrent has 0, 1\n"
    assert run("two", "detect", "--backend", "blackhole", "PHOTO", "--device-id", "7") == (5, "", missing.format(7))
    assert run("two", "detect", "--backend", "blackhole", "PHOTO", TT_DEVICE_ID="3") == (5, "", missing.format(3))
    code, out, err = run("two wormhole", "detect", "--backend", "blackhole", "PHOTO", "--device-id", "0", TT_DEVICE_ID="3")
    assert (code, err) == (5, f"lensing: {WRONG['wormhole']}\n")  # the option counts
    code, out, err = run("wormhole", "detect", "--backend", "blackhole", "PHOTO", TT_DEVICE_ID="")
    assert (code, err) == (5, f"lensing: {WRONG['wormhole']}\n")  # empty is not set
    for wrong in ("x", "-1", "1.5", "99999999999999"):
        code, out, err = run("good", "detect", "--backend", "blackhole", "PHOTO", TT_DEVICE_ID=wrong)
        assert (code, out) == (2, "")
        assert err == f"lensing: TT_DEVICE_ID must be the N of a card /dev/tenstorrent/N, but is '{wrong}'\n"
    code, out, err = run("good", "detect", "--backend", "blackhole", "PHOTO", "--device-id", "-1")
    assert (code, err.count("\n")) == (2, 1)


def test_the_cpu_does_not_ask_for_cards(run):
    code, out, err = run("gone", "detect", "PHOTO", TT_DEVICE_ID="x")
    assert (code, err) == (0, "")


def test_info_lists_cards(run):
    code, out, err = run("two busy", "info", "--json")
    assert (code, err) == (0, "")
    first, second = json.loads(out)["cards"]
    assert first == {
        "id": 0, "kind": "Blackhole", "bus": "0000:03:00.0", "driver": "2.6.0", "firmware": "19.5.0.0", "columns": 12,
        "clock_mhz": 1350, "temperature": 41.5, "in_use": True, "problem": None,
    }
    assert (second["id"], second["bus"], second["in_use"], second["problem"]) == (1, "0000:04:00.0", False, None)
    code, out, err = run("two busy", "info")
    assert "card 0        Blackhole at 0000:03:00.0, driver 2.6.0, firmware 19.5.0.0, 12 columns, 1350 MHz, 41.5 C, in use\n" in out
    assert out.count("\ncard ") == 2
    assert "\ncards         none\n" in run("none", "info")[1]


@pytest.mark.parametrize("cards", ["wormhole", "old", "narrow", "gone"])
def test_info_says_why_a_card_cannot_be_used(run, cards):
    card = json.loads(run(cards, "info", "--json")[1])["cards"][0]
    assert card["problem"] == WRONG[cards]
    code, out, err = run(cards, "info")
    assert f"cannot be used: {WRONG[cards]}\n" in out
    assert (code, err) == (0, "")


def test_selftest(run):
    code, out, err = run("good", "blackhole-selftest", "--json")
    steps = {step["step"]: step for step in map(json.loads, out.splitlines())}
    assert list(steps) == [
        "reset", "open", "firmware", "tiles", "memory", "dram", "multicast", "host", "cores", "speed",
        "convolution", "network",
    ]
    outcomes = {name: step["outcome"] for name, step in steps.items()}
    assert outcomes["reset"] == "skipped"
    passed = ("open", "firmware", "tiles", "memory", "dram", "multicast", "speed")
    assert {outcomes[name] for name in passed} == {"passed"}
    # This card has no way to the memory of the program, and computes nothing.
    assert (outcomes["host"], outcomes["cores"]) == ("failed", "failed")
    for name in ("convolution", "network"):
        assert (steps[name]["outcome"], steps[name]["detail"]) == ("skipped", "no program runs on the cores")
    assert (code, err) == (5, "")
    code, out, err = run("busy", "blackhole-selftest")
    assert (code, err) == (5, "")
    assert "FAILED   open " in out and WRONG["busy"] in out
    assert run("good", "blackhole-selftest", "x")[0] == 2
