# SPDX-License-Identifier: Apache-2.0
"""The server with a Blackhole card: what it says of it, and how it fails without one.

Where a network has to run, the program is tests/blackhole/lensing_made_up, whose card is made up: its network is that of
the CPU. Where cards are missing or wrong, tests/blackhole/fake_cards.c is loaded into the program in place of a driver.
"""
import re
import subprocess

import pytest

from running import TIME_LIMIT, Server, clean_environment, encoded, picture
from test_life import check_refused_start, failed_start

SERVING_PATH = [
    "traced", "device_nms", "custom_kernel", "compute_grid", "device_keypoints", "device_resize", "host_zero_copy_io",
    "device_softmax", "device_descriptor_l2norm", "fused", "fused_stages", "nms_radius_traced", "device_nms_radii",
    "wide_page_upload", "rms_norm_l2", "row_major_outputs", "trace_region_size", "note",
]


@pytest.fixture(scope="module")
def made_up(build_dir):
    program = build_dir / "tests" / "blackhole" / "lensing_made_up"
    if not program.exists():
        pytest.skip("this build has no lensing_made_up, which needs Linux")
    return program


@pytest.fixture
def cards(build_dir, tmp_path):
    """cards(words) is an environment with these cards, see fake_cards.c."""
    library = build_dir / "tests" / "blackhole" / "fake_cards.so"
    if not library.exists():
        pytest.skip("this build has no fake_cards.so, which needs Linux and no sanitizer")
    for number in range(2):
        (tmp_path / str(number)).touch()
    return lambda words: {
        "LD_PRELOAD": str(library), "LENSING_FAKE_CARDS": words, "LENSING_FAKE_FOLDER": str(tmp_path),
        "LENSING_TTSIM": "",
    }


def facts(server):
    return server.get("/health").json["device"], server.get("/info").json


def test_says_which_card_runs(made_up, weights):
    with Server(made_up, weights, "--backend", "blackhole", "--device-id", 3, env={"TT_DEVICE_ID": "5"}) as server:
        server.wait_until_ready()
        device, info = facts(server)
        log = server.log()
    assert device == {"arch": "blackhole", "id": 3, "open": True}
    assert info["hardware"] == "Tenstorrent Blackhole /dev/tenstorrent/3, single chip (mesh 1x1)"
    assert info["device_config"] == {"dispatch": "resident", "num_command_queues": 1, "compute_grid": "12x10"}
    path = info["serving_path"]
    assert list(path) == SERVING_PATH
    assert path["device_nms"] is True and path["compute_grid"] == "12x10"
    assert path["device_nms_radii"] == "1 to 8 on the card; 0 and 9 to 32 on the CPU"
    assert "/dev/tenstorrent/3" in path["note"]
    assert "[superpoint] Opening device 3 (backend=blackhole, /dev/tenstorrent/3)\n" in log
    assert "[superpoint] Device open: blackhole, compute grid 12x10\n" in log


def test_the_same_keys_and_types_as_on_the_cpu(made_up, server, weights):
    def shape(value):
        return {k: shape(v) for k, v in value.items()} if isinstance(value, dict) else type(value)

    with Server(made_up, weights, "--backend", "blackhole") as card:
        card.wait_until_ready()
        for target in ("/health", "/info"):
            mine, theirs = card.get(target).json, server.get(target).json
            assert shape(mine) == shape(theirs)
            assert list(mine) == list(theirs)


def test_says_that_a_card_is_simulated(made_up, weights):
    """The device is in the words of the library; the card that is made up does not load what is named."""
    with Server(made_up, weights, "--backend", "blackhole", env={"LENSING_TTSIM": "libttsim.so"}) as server:
        server.wait_until_ready()
        device, info = facts(server)
    assert device == {"arch": "blackhole simulator", "id": 0, "open": True}
    assert info["hardware"] == "Tenstorrent Blackhole, simulated: there is no card"
    assert "on a simulated Blackhole card" in info["serving_path"]["note"]


def test_launchers_choose_by_the_environment(made_up, weights):
    env = {"LENSING_BACKEND": "blackhole", "TT_DEVICE_ID": "5", "LENSING_TTSIM": ""}
    with Server(made_up, weights, env=env) as server:
        device, info = facts(server.wait_until_ready())
    assert device == {"arch": "blackhole", "id": 5, "open": True}
    assert "/dev/tenstorrent/5" in info["hardware"]
    with Server(made_up, weights, "--backend", "cpu", env=env) as server:  # the option counts
        device, info = facts(server.wait_until_ready())
    assert device["arch"] not in ("blackhole", "blackhole simulator") and device["id"] == 5
    assert info["hardware"].startswith("CPU (")
    code, log = failed_start(made_up, weights, env={"LENSING_BACKEND": "tpu"})
    check_refused_start(code, log, "ValueError: LENSING_BACKEND='tpu' is not cpu or blackhole")


def test_each_answer_says_where_suppression_ran(made_up, server, weights):
    """Radii 1 to 8 are the card's, 0 and 9 to 32 the CPU's. Keypoints are those of the CPU, whose network this is."""
    data = encoded(picture())
    with Server(made_up, weights, "--backend", "blackhole") as card:
        card.wait_until_ready()
        for radius in (0, 1, 4, 8, 9, 32):
            target = f"/predict_raw?nms_radius={radius}&return_descriptors=false"
            mine, theirs = card.post(target, data).json, server.post(target, data).json
            assert mine["serving_path"] == {"traced": False, "device_nms": 1 <= radius <= 8}
            assert theirs["serving_path"] == {"traced": False, "device_nms": False}
            assert mine["num_keypoints"] > 0
            assert (mine["keypoints"], mine["scores"]) == (theirs["keypoints"], theirs["scores"])


def test_a_card_that_hangs(made_up, weights):
    """The first run warms up. After a failure the card is not asked again, and the server says why."""
    data = encoded(picture())
    env = {"LENSING_MADE_UP_FAILS": "3", "LENSING_TTSIM": ""}
    with Server(made_up, weights, "--backend", "blackhole", env=env) as server:
        server.wait_until_ready()
        assert server.post("/predict_raw", data).status == 200
        assert server.get("/ready").status == 200 and facts(server)[0]["open"] is True
        assert server.post("/predict_raw", data).status == 500
        assert server.get("/ready").status == 503 and facts(server)[0]["open"] is False
        assert server.post("/predict_raw", data).status == 500
        assert server.stop() == 0
        assert "tile (4, 7) of the card did not finish a request in time" in server.log()
        assert "/dev/tenstorrent/0 failed before; open the model again" in server.log()


def test_a_card_that_fails_in_the_warm_up(made_up, weights):
    env = {"LENSING_MADE_UP_FAILS": "1"}
    check_refused_start(*failed_start(made_up, weights, "--backend", "blackhole", env=env), "tile (4, 7) of the card")


def test_a_card_that_another_program_resets(made_up, weights):
    """The driver takes the windows away: SIGBUS, which ends the server with a line."""
    env = {"LENSING_MADE_UP_LOST": "2", "LENSING_TTSIM": ""}
    with Server(made_up, weights, "--backend", "blackhole", env=env) as server:
        server.wait_until_ready()
        try:
            assert server.post("/predict_raw", encoded(picture())) is None
        except ConnectionError:
            pass
        assert server.wait() == 1
        assert server.log().splitlines()[-1] == (
            "ERROR:    RuntimeError: the card was reset by another program while in use (SIGBUS)"
        )


def test_a_reset_while_the_program_detects(made_up, weights, tmp_path):
    photo, output = tmp_path / "photo.png", tmp_path / "out.json"
    photo.write_bytes(encoded(picture()))
    command = [made_up, "detect", "--backend", "blackhole", "-w", weights, "-o", output, photo]
    env = clean_environment(LENSING_MADE_UP_LOST="1")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT)
    assert done.returncode == 5
    assert done.stderr == "lensing: the card was reset by another program, or a file shrank, while in use (SIGBUS)\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photo.png"]


WRONG = {
    "none": "no Tenstorrent card is here: /dev/tenstorrent has no devices; a card needs the driver tt-kmd",
    "wormhole": "device 0 is PCI 1e52:401e (Wormhole); Lensing runs on Blackhole, 1e52:b140",
    "old": "device 0: the driver tt-kmd 2.5.0 is too old; it must be 2.6.0 or newer",
    "busy": "device 0 is in use by another model or process of Lensing (CHIP_IN_USE)",
    "narrow": "the card has 11 Tensix columns (mask 0x07ff); Lensing needs 12",
    "gone": "device 0 does not answer; a reset, or turning the machine off and on, may help",
}


@pytest.mark.parametrize("words", WRONG)
def test_does_not_start_without_a_card(program, weights, cards, words):
    code, log = failed_start(program, weights, "--backend", "blackhole", env=cards(words))
    check_refused_start(code, log)
    assert f"ERROR:    RuntimeError: {WRONG[words]}\n" in log


def test_does_not_start_with_a_wrong_number(program, weights, cards):
    code, log = failed_start(program, weights, "--backend", "blackhole", "--device-id", 7, env=cards("two"))
    check_refused_start(code, log, "RuntimeError: device 7 does not exist; /dev/tenstorrent has 0, 1")
    code, log = failed_start(program, weights, "--backend", "blackhole", env={**cards("two"), "TT_DEVICE_ID": "-1"})
    check_refused_start(code, log, "TT_DEVICE_ID is '-1'")
    code, log = failed_start(program, weights, "--device-id", -1)
    assert code == 2 and len(log.splitlines()) <= 2, log


def test_does_not_start_without_the_simulator(program, weights):
    code, log = failed_start(program, weights, "--backend", "blackhole", env={"LENSING_TTSIM": "/nowhere/libttsim.so"})
    check_refused_start(code, log, "LENSING_TTSIM", "/nowhere/libttsim.so")
    assert re.search(r"^ERROR:    RuntimeError: the simulated Blackhole card needs the library", log, re.M)
