# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of bench/blackhole_model.py on cases counted by hand."""
import json
import math
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import blackhole_model as model  # noqa: E402


def layer(name):
    return next(one for one in model.LAYERS if one.name == name)


def test_products_are_those_of_the_network():
    """Without padding, a product of 8 x 16 by 16 x 16 is 2,048 multiplications. The padding: biases, the ring that the
    first layer computes itself, its 9 channels in 16 and twice, and overlapping jobs."""
    macs = {
        "conv1b": 480 * 640 * 64 * 64 * 9, "conv2a": 240 * 320 * 64 * 64 * 9, "conv3a": 120 * 160 * 64 * 128 * 9,
        "conv4a": 60 * 80 * 128 * 128 * 9, "score b": 60 * 80 * 256 * 65, "descriptor b": 60 * 80 * 256 * 256,
    }  # fmt: skip
    for name, count in macs.items():
        one = layer(name)
        assert count / 2048 <= one.mvmuls * 120 <= count / 2048 * 1.35, name


def test_a_layer_by_hand():
    one = layer("conv1b")  # 64 x 40 pixels in jobs of 32 x 2, 9 taps of 4 planes and a bias
    assert (one.jobs, one.steps, one.groups) == (40, 37, [4])
    assert one.mvmuls == 40 * 37 * 8 * 4
    best = model.Model("best", {})
    cycles, unit = best.layer(one)
    assert unit == "matrix"
    # 37 steps of 2 phases of 32 products and a push, and a push at the end of each step; and the ends of the pipeline.
    assert cycles == pytest.approx(40 * 37 * (2 * 33 + 1) + best.pack(one, 4, 64, 2) + 4096 / best["unpack"], abs=40)
    assert best.pack(one, 4, 64, 2) == 2 * 4 * 49 + 1 * 4 * 11 + 16 * 64 * 2 / 64


def test_last_jobs_overlap():
    one = layer("conv3a")  # 16 x 10 pixels in jobs of 16 x 4
    assert (one.jobs, one.groups) == (3, [4, 4])
    assert layer("score b").groups == [4, 1]  # 65 channels
    assert layer("conv1a").jobs == math.ceil(66 * 42 / 64)


def test_a_ring_by_hand():
    best = model.Model("best", {})
    # 4 planes: a run above and below, one pixel at each side of 20 rows, and 4 corners.
    reads = 4 * (2 + 2 * 20 + 4)
    assert best.ring(4, 20) == reads * 20 + 8 * 20 + 195 + 231
    # Two pixels around 40 rows: two rows above and two below, in three reads each.
    assert best.ring(1, 40, 2) == (4 * 3 + 2 * 40) * 20 + 8 * 20 + 195 + 231


def test_the_cores_by_hand():
    """Instructions, and what is waited for: 4 cycles for a load that is used at once, 1 for a sum."""
    best, worst = model.Model("best", {}), model.Model("worst", {})
    assert best.image() == 18555 + 11 * 3 * 5 * 4
    assert worst.image() == 18555 + 11 * 68 * 7
    assert best.scores() == 20895 + 10 * 17 * 4 + 640
    assert worst.keypoints() == pytest.approx(12225 + 12225 / 11 * (7 + 4))


def test_descriptors_travel_while_keypoints_are_found():
    cycles, rows = model.breakdown("best", {})
    names = [name for name, _, _ in rows]
    first, last = names.index("score a"), names.index("keypoints")
    meanwhile = sum(value for _, value, _ in rows[first : last + 1])
    rest = dict((name, value) for name, value, _ in rows)[model.REST]
    assert rest > 0 and rest + meanwhile == pytest.approx(cycles.host(model.descriptor_bytes()))
    fast = model.breakdown("best", {"pcie": 1000})[1]
    assert dict((name, value) for name, value, _ in fast)[model.REST] == 0


def test_transfers():
    assert model.frame_bytes() == 480 * 640
    assert model.descriptor_bytes() == 60 * 80 * 256 * 2
    best = model.Model("best", {})
    assert best.us(best.host(48510)) == pytest.approx(1 + 1)  # 48.51 GB/s, and 1 us there and back


def test_totals():
    for case in ("best", "worst"):
        cycles, rows = model.breakdown(case, {})
        assert len({name for name, _, _ in rows}) == len(rows)
        assert all(value > 0 for _, value, _ in rows)
        assert model.total_us(case) == pytest.approx(sum(cycles.us(value) for _, value, _ in rows))
    assert model.total_us("best", model.HOST) == pytest.approx(model.total_us("best") - 11.7 - 17.3 - 229.7)
    assert model.total_us("best") < model.total_us("worst", (), model.ONE_PACKER) < model.total_us("worst")
    best, worst = model.breakdown("best", {})[1], model.breakdown("worst", {})[1]
    assert all(low <= high for (_, low, _), (_, high, _) in zip(best, worst))
    assert model.mvmul_us() < model.total_us("best")
    assert model.mvmul_us(tiles=60) == pytest.approx(2 * model.mvmul_us())


def test_every_constant_has_its_source():
    for name, constant in model.CONSTANTS.items():
        assert len(constant.source) > 10 and constant.unit, name


def test_the_program_prints_what_it_computes():
    script = [sys.executable, str(ROOT / "bench" / "blackhole_model.py")]
    facts = json.loads(subprocess.run([*script, "--json"], capture_output=True, check=True).stdout)
    assert facts["best_us"] == pytest.approx(model.total_us("best"))
    assert sum(step["us"] for step in facts["steps"]["worst"]) == pytest.approx(facts["worst_us"])
    text = subprocess.run(script, capture_output=True, check=True, text=True).stdout
    assert f"{model.total_us('best'):.1f}" in text and "target: 650 us" in text
    constants = subprocess.run([*script, "--constants"], capture_output=True, check=True, text=True).stdout
    assert len(constants.splitlines()) == len(model.CONSTANTS)
