# SPDX-License-Identifier: Apache-2.0
"""A model on a Blackhole card: the errors without one, with cards that do not exist (tests/blackhole/fake_cards.c); a
whole detection on the vendor's simulator when LENSING_TTSIM names it and LENSING_LONG is set: that takes minutes."""

import json
import os
import pickle
import subprocess
import sys

import pytest

import lensing
import tt_superpoint
from python.places import environment

OPEN = """
import sys, lensing, tt_superpoint
weights, folder, number = sys.argv[1], sys.argv[2], None if sys.argv[3] == "None" else int(sys.argv[3])
openings = {
    "lensing": lambda: lensing.SuperPoint(weights, backend="blackhole", device_id=number),
    "pretrained": lambda: lensing.SuperPoint.from_pretrained(weights, backend="blackhole", device_id=number),
    "tt_superpoint": lambda: tt_superpoint.SuperPoint.from_pretrained(
        folder, device=sys.argv[5], device_id=number or 0, warmup_variants="minimal"
    ),
}
device = sys.argv[5]
if device == "None":
    openings["tt_superpoint"] = lambda: tt_superpoint.SuperPoint.from_pretrained(folder, device_id=number or 0)
try:
    openings[sys.argv[4]]()
except Exception as error:
    print(type(error).__name__, isinstance(error, RuntimeError), error)
"""

WRONG = {
    "none": "UnsupportedError True no Tenstorrent card is here: /dev/tenstorrent has no devices; "
    "a card needs the driver tt-kmd",
    "wormhole": "UnsupportedError True device 0 is PCI 1e52:401e (Wormhole); Lensing runs on Blackhole, 1e52:b140",
    "old": "UnsupportedError True device 0: the driver tt-kmd 2.5.0 is too old; it must be 2.6.0 or newer",
    "busy": "OSError False device 0 is in use by another model or process of Lensing",
    "narrow": "UnsupportedError True the card has 11 Tensix columns (mask 0x07ff); Lensing needs 12",
    "gone": "OSError False device 0 does not answer; a reset, or turning the machine off and on, may help",
}


@pytest.fixture
def say(build_dir, synthetic_weights, tmp_path):
    """say(cards, opening, number, device, ...) opens a model in a process with these cards; gives what it prints."""
    library = build_dir / "tests" / "blackhole" / "fake_cards.so"
    if not library.exists():
        pytest.skip("this build has no fake_cards.so, which needs Linux and no sanitizer")
    for number in range(2):
        (tmp_path / str(number)).touch()
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(synthetic_weights)
    (folder / "config.json").write_text("{}")

    def call(cards, opening, number=None, device="blackhole", **variables):
        fakes = {"LD_PRELOAD": str(library), "LENSING_FAKE_CARDS": cards, "LENSING_FAKE_FOLDER": str(tmp_path)}
        command = [sys.executable, "-c", OPEN, synthetic_weights, folder, str(number), opening, device]
        variables = {**environment(tmp_path), **fakes, **variables}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    return call


@pytest.mark.parametrize("cards", WRONG)
def test_each_wrong_card_is_one_line(say, cards):
    assert say(cards, "lensing") == WRONG[cards]


@pytest.mark.parametrize("opening", ["pretrained", "tt_superpoint"])
def test_all_ways_to_open_one(say, opening):
    assert say("wormhole", opening) == WRONG["wormhole"]


def test_device_ids(say):
    missing = "UnsupportedError True device {} does not exist; /dev/tenstorrent has 0, 1"
    assert say("two", "lensing", 7) == missing.format(7)
    assert say("two", "pretrained", 7) == missing.format(7)
    assert say("two", "tt_superpoint", 7) == missing.format(7)
    assert say("two", "lensing", TT_DEVICE_ID="3") == missing.format(3)
    assert say("two wormhole", "lensing", 0, TT_DEVICE_ID="3") == WRONG["wormhole"]  # the argument counts
    assert say("two wormhole", "tt_superpoint", TT_DEVICE_ID="3") == WRONG["wormhole"]  # whose default is 0
    assert say("two", "lensing", TT_DEVICE_ID="x").startswith("ValueError False TT_DEVICE_ID is 'x'")


def test_no_simulator(say):
    said = say("none", "lensing", LENSING_TTSIM="/nowhere/libttsim.so")
    needed = "the simulated Blackhole card needs the library that LENSING_TTSIM names"
    assert said.startswith(f"UnsupportedError True {needed}")


def test_the_environment_of_tt_superpoint(say):
    assert say("old", "tt_superpoint", device="None", LENSING_BACKEND="blackhole") == WRONG["old"]
    assert say("old", "tt_superpoint", device="None", LENSING_BACKEND="") == ""
    assert say("old", "tt_superpoint", device="None") == ""
    assert say("old", "tt_superpoint", device="cpu", LENSING_BACKEND="blackhole") == ""
    said = say("old", "tt_superpoint", device="None", LENSING_BACKEND="tpu")
    assert said == "ValueError False LENSING_BACKEND is 'tpu'; it must be 'cpu' or 'blackhole'"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"backend": "cuda"}, ValueError, "backend is 'cuda'; it must be 'cpu' or 'blackhole'"),
        ({"backend": None}, ValueError, "backend is None"),
        ({"backend": "blackhole", "device_id": -1}, ValueError, "device_id is -1; it must be 0 to"),
        ({"device_id": 2**31}, ValueError, "device_id is 2147483648"),
        ({"device_id": "0"}, TypeError, "device_id is '0'; it must be an integer"),
    ],
)
def test_wrong_arguments(synthetic_weights, arguments, kind, words):
    with pytest.raises(kind, match=words):
        lensing.SuperPoint(synthetic_weights, **arguments)


def test_on_the_cpu(model, synthetic_weights, photo):
    """What is said of a card when there is none; the number of one means nothing."""
    assert (model.info["backend"], model.info["device"]) == ("cpu", "cpu")
    with lensing.SuperPoint(synthetic_weights, device_id=3) as other:
        features = other(photo)
    assert features.device_nms is False
    assert pickle.loads(pickle.dumps(features)).device_nms is False
    assert tt_superpoint.SuperPointOutput(features).device_nms is False


def test_results_keep_where_suppression_ran(model, photo):
    """Results as a card gives them, made of those of the CPU."""
    make, arguments = model(photo).__reduce__()
    features = make(*arguments[:-1], {**arguments[-1], "device_nms": True})
    assert features.device_nms is True
    assert pickle.loads(pickle.dumps(features)).device_nms is True
    out = pickle.loads(pickle.dumps(tt_superpoint.SuperPointOutput(features)))
    assert out.device_nms is True and out.to_dict()["device_nms"] is True


SIMULATED = """
import json, pickle, sys, lensing, tt_superpoint
with tt_superpoint.SuperPoint.from_pretrained(sys.argv[1], device="blackhole", warmup_variants="minimal") as model:
    out = model(sys.argv[2])
    kept = pickle.loads(pickle.dumps(out))
    print(json.dumps({
        "config": {name: model.config[name] for name in ("backend", "device", "precision", "device_config")},
        "repr": repr(model), "info": model._model.info, "out": out.to_dict(), "kept": kept.device_nms,
        "network_keypoints": out._features.network_keypoints.tolist(),
    }))
"""


@pytest.mark.skipif(
    not (os.environ.get("LENSING_TTSIM") and os.environ.get("LENSING_LONG")),
    reason="LENSING_TTSIM or LENSING_LONG is not set; nothing was detected on the simulated card",
)
def test_on_the_simulator(program, synthetic_weights, photo, tmp_path):
    """Near to what the CPU finds with the same weights, and said to be the card's."""
    (tmp_path / "model.safetensors").symlink_to(synthetic_weights)
    (tmp_path / "config.json").write_text("{}")
    done = subprocess.run([sys.executable, "-c", SIMULATED, tmp_path, photo], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["config"] == {
        "backend": "blackhole",
        "device": "simulator",
        "precision": "bf16",
        "device_config": {"dispatch": "resident", "num_command_queues": 1, "compute_grid": "12x10"},
    }
    assert told["repr"].endswith(", bf16, simulator>")
    assert 1 <= told["info"]["threads"] <= 4 and told["info"]["cpu_path"] == ""
    assert told["out"]["device_nms"] is True and told["kept"] is True
    with lensing.SuperPoint(synthetic_weights) as cpu:
        expected = cpu(photo).network_keypoints
    mine, theirs = {tuple(point) for point in told["network_keypoints"]}, {tuple(point) for point in expected.tolist()}
    assert len(mine & theirs) > 0.8 * len(theirs)
