# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run and print the lines that scripts look for. What they measure is not judged here."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from python import places
from python.test_examples import load


def test_first_calls(root, synthetic_weights, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in (1, 2):
        (photos / f"{number}.jpg").symlink_to(root / "examples" / f"scene_{number}.jpg")
    command = [sys.executable, root / "bench" / "bench_first_call.py", photos]
    options = ["--weights", synthetic_weights, "--images", "2", "--passes", "1", "--repetitions", "2"]
    options += ["plane-640x480", "list-of-4-jpeg"]
    environment = places.environment(tmp_path / "hub")
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    number = r"\d+\.\d ms \(\d+\.\d\d\)"
    lines = done.stdout.splitlines()
    for line, name in zip(lines[2:], ("plane-640x480", "list-of-4-jpeg"), strict=True):
        assert re.fullmatch(rf"\| {name} \| \d\.\d\d s \| {number} \| {number} \| - \| \d+\.\d ms \|", line)


def test_benchmark(root, synthetic_weights, tmp_path):
    pytest.importorskip("torch")
    for name in ("run_benchmark.sh", "benchmark.py"):
        shutil.copy(root / "bench" / name, tmp_path / name)
    options = ["--weights", synthetic_weights, "--results", "results.tsv", "--description", "a test"]
    environment = {**places.environment(tmp_path / "hub"), "PYTHON": sys.executable, "SP_N_ITER": "1"}
    for kind, more in (("random", []), ("photo", ["--image", root / "examples" / "scene_1.jpg"])):
        command = [tmp_path / "run_benchmark.sh", *options, *more]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        assert (tmp_path / "run.log").read_text() == done.stdout
        told = dict(line.split("=") for line in done.stdout.splitlines())
        assert told["input_kind"] == kind
        for name in ("", "_compute_only", "_e2e", "_match_paper"):
            assert re.fullmatch(r"\d+\.\d{4} fps", told["inference_speed" + name])
        assert told["peak_dram"] == "0"
        assert float(told["descriptor_norm_max_dev"]) < 1e-3
        if "accuracy" in told:
            assert float(told["accuracy"]) > 99.99
            assert float(told["keypoint_f1@500_tol2"]) > 0.99
    lines = (tmp_path / "results.tsv").read_text().splitlines()
    assert lines[0] == "commit\tgen_speed\taccuracy\tstatus\tdescription"
    assert [line.split("\t")[3:] for line in lines[1:]] == [["keep", "a test"]] * 2
    failed = subprocess.run([tmp_path / "run_benchmark.sh", "--weights", "/nonexistent"], env=environment)
    assert failed.returncode == 1


def test_parts_of_the_benchmark(root):
    module = load(root / "bench" / "benchmark.py")
    random = np.random.default_rng(1)
    a, b = random.random((2, 30, 40)).astype(np.float32)
    assert module.correlation(a, b) == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], abs=1e-6)
    assert module.correlation(a, 0 * a) == 1.0
    points = np.array([[10, 10], [20, 20]])
    assert module.near(points, np.array([[12, 8]])) == 0.5
    assert module.near(points, np.array([[13, 10], [20, 18]])) == 0.5


def test_samples_of_the_benchmark(root):
    torch = pytest.importorskip("torch")
    module = load(root / "bench" / "benchmark.py")
    random = np.random.default_rng(2)
    descriptors = random.standard_normal((60, 80, 256)).astype(np.float32)
    points = np.stack([random.integers(0, 640, 200), random.integers(0, 480, 200)], 1)
    grid = (torch.from_numpy(points).float() - 4 + 0.5) / torch.tensor([635.5, 475.5]) * 2 - 1
    sampled = torch.nn.functional.grid_sample(
        torch.from_numpy(descriptors).permute(2, 0, 1)[None], grid[None, None], align_corners=True
    )[0, :, 0].T
    expected = torch.nn.functional.normalize(sampled, dim=1).numpy()
    assert np.abs(module.sample(descriptors, points) - expected).max() < 1e-4
