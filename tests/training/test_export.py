# SPDX-License-Identifier: Apache-2.0
"""The file that export.py writes: float16, rounded by PyTorch, and what the rounding does to features."""
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402

import network  # noqa: E402


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Weights as a stage hands them on."""
    torch.manual_seed(7)
    path = tmp_path_factory.mktemp("stage") / "weights.safetensors"
    save_file(network.SuperPoint().state_dict(), path)
    return path


@pytest.fixture
def export(root, stage, tmp_path):
    def run(name, *options, weights=stage):
        command = [sys.executable, root / "training" / "export.py", weights, tmp_path / name, *options]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        return tmp_path / name, result

    return run


def detect(program, weights, picture, out):
    subprocess.run([program, "detect", "--weights", weights, "--max-keypoints", "500", "--output", out, picture], check=True)
    with np.load(out) as found:
        return {tuple(point): (score, descriptor) for point, score, descriptor in
                zip(found["keypoints"], found["scores"], found["descriptors"])}


def test_float16_is_the_rounded_float32(export):
    half, float32 = export("half.safetensors")[0], export("float32.safetensors", "--float32")[0]
    expected = load_file(float32)
    rounded = load_file(half)
    assert {name: value.dtype for name, value in expected.items()} == dict.fromkeys(rounded, torch.float32)
    for name, value in rounded.items():
        assert value.dtype == torch.float16 and torch.equal(value, expected[name].half())
    assert half.stat().st_size <= 2.7e6
    with safetensors.safe_open(half, "pt") as file:
        assert file.metadata()["license"] == "Apache-2.0"


def test_rounding_hardly_changes_features(program, export, tmp_path):
    Image.fromarray(np.random.default_rng(8).integers(0, 256, (480, 640), np.uint8)).save(tmp_path / "picture.png")
    half = detect(program, export("half.safetensors")[0], tmp_path / "picture.png", tmp_path / "half.npz")
    float32 = detect(program, export("f.safetensors", "--float32")[0], tmp_path / "picture.png", tmp_path / "f.npz")
    common = half.keys() & float32.keys()
    assert len(float32) == 500 and len(common) >= 0.98 * 500
    differences = [half[point][0] - float32[point][0] for point in common]
    assert 0 < np.abs(differences).max() < 1e-3  # the bound is that of this test; equal scores would be no rounding
    assert min(half[point][1] @ float32[point][1] for point in common) > 0.9999


def test_values_beyond_float16_are_refused(export, stage, tmp_path):
    tensors = load_file(stage)
    tensors["keypoint_decoder.conv_score_b.bias"][3] = 1e5
    save_file(tensors, tmp_path / "large.safetensors")
    out, result = export("out.safetensors", weights=tmp_path / "large.safetensors")
    assert result.returncode == 1 and "keypoint_decoder.conv_score_b.bias has values beyond" in result.stderr
    assert not out.exists()
    out, result = export("out.safetensors", "--float32", weights=tmp_path / "large.safetensors")
    assert result.returncode == 0 and out.exists()
