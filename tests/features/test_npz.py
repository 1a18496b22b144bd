# SPDX-License-Identifier: Apache-2.0
"""NPZ and float16 against numpy, base64 against Python, byte for byte."""
import base64

import numpy as np
import pytest

from tool import random_features, savez


@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 99, 1000, 1024, 20000])
@pytest.mark.parametrize("descriptors", [True, False])
def test_same_bytes_as_savez(tool, tmp_path, count, descriptors):
    features = random_features(count, seed=count, descriptors=descriptors, width=4032, height=3024)
    tool("npz", features.write(tmp_path / "f"), tmp_path / "out.npz")
    arrays = {"keypoints": features.keypoints, "scores": features.scores}
    if descriptors:
        arrays["descriptors"] = features.descriptors
    arrays["image_size"] = np.array([4032, 3024], np.int64)
    with np.load(tmp_path / "out.npz") as loaded:
        assert list(loaded) == list(arrays)
        for name, array in arrays.items():
            assert loaded[name].dtype == array.dtype and np.array_equal(loaded[name], array)
    assert (tmp_path / "out.npz").read_bytes() == savez(**arrays)


def test_texts_are_numpys(tool, tmp_path):
    features = random_features(3, seed=4)
    tool("npz", features.write(tmp_path / "f"), tmp_path / "out.npz", "folder/été.safetensors", "CC0-1.0")
    arrays = {"keypoints": features.keypoints, "scores": features.scores, "descriptors": features.descriptors,
              "image_size": np.array([features.width, features.height], np.int64),
              "weights": np.array("folder/été.safetensors".encode()), "weights_license": np.array(b"CC0-1.0")}
    assert (tmp_path / "out.npz").read_bytes() == savez(**arrays)
    tool("npz", features.write(tmp_path / "f"), tmp_path / "out.npz", "", "")
    with np.load(tmp_path / "out.npz") as loaded:
        assert "weights" not in loaded and "weights_license" not in loaded


@pytest.fixture(params=["c", "avx2"])
def kernels(request, monkeypatch):
    """Both kernel sets; a CPU without AVX2 has C twice."""
    monkeypatch.setenv("LENSING_CPU", request.param)


def test_half(tool, tmp_path, kernels):
    """Every float16, the middle between each two, and their neighbours; random bits; special values."""
    halves = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves[-1] = 65536
    middles = (halves[:-1] + halves[1:]) / 2
    random = np.random.default_rng(5).integers(0, 2**32, 1000000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([halves, middles, np.nextafter(middles, np.float32(np.inf)),
                             np.nextafter(middles, np.float32(0)), random[~np.isnan(random)],
                             np.float32([np.inf, 3.4e38, 1e-45, 0])])
    values = np.concatenate([values, -values]).astype("<f4")
    (tmp_path / "in").write_bytes(values.tobytes())
    tool("half", tmp_path / "in", tmp_path / "out")
    got = np.fromfile(tmp_path / "out", "<u2")
    with np.errstate(over="ignore"):
        assert np.array_equal(got, values.astype(np.float16).view(np.uint16))


def test_half_nan(tool, tmp_path, kernels):
    np.array([np.nan, -np.nan], "<f4").tofile(tmp_path / "in")
    tool("half", tmp_path / "in", tmp_path / "out")
    assert np.isnan(np.fromfile(tmp_path / "out", "<f2")).all()


def test_base64(tool, tmp_path, kernels):
    """Every length up to some vectors; every value of 6 bits at every place."""
    values = np.random.default_rng(3).integers(0, 256, 400, np.uint8)
    sextets = "".join(f"{(place + value) % 64:06b}" for place in range(4) for value in range(64))
    data = values.tobytes() + int(sextets, 2).to_bytes(len(sextets) // 8, "big")
    (tmp_path / "in").write_bytes(data)
    lines = tool("base64", tmp_path / "in").splitlines()
    assert len(lines) == len(data) + 1
    assert [n for n, line in enumerate(lines) if line != base64.b64encode(data[:n]).decode()] == []
