# SPDX-License-Identifier: Apache-2.0
"""mypy --strict and ruff find nothing in the package, and what users write has the types that the package promises."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

USE = """\
import io
import pathlib

import lensing
import numpy as np

model: lensing.SuperPoint = lensing.SuperPoint.from_pretrained(revision="main", threads=2)
pixels = np.zeros((480, 640, 3), np.uint8)
paths: list[str] = ["a.jpg"]
with model:
    reveal_type(model("photo.jpg"))
    reveal_type(model(pathlib.Path("photo.jpg"), max_keypoints=5, bgr=True))
    reveal_type(model(pixels))
    reveal_type(model(b"bytes"))
    reveal_type(model(io.BytesIO()))
    reveal_type(model(["a.jpg", pixels]))
    reveal_type(model(paths))
    reveal_type(model(("a.jpg", b"bytes"), num_workers=2, exif="apply"))
    reveal_type(model.iter(pixels for _ in range(3)))
    reveal_type(model.match("a.jpg", model("b.jpg"), ratio=0.8, nms_radius=3))
features = model("photo.jpg")
reveal_type(features.keypoints)
reveal_type(features.descriptors)
reveal_type(features.image_size)
reveal_type(features.timing_ms["forward"])
reveal_type(lensing.match(features, features).pairs)
model(5)
model("photo.jpg", max_keypoint=5)
model("photo.jpg", exif="turn")
lensing.SuperPoint(precision="fp64")
features.save("a.json", format="csv")
"""
FLOATS = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.floating[numpy._typing._nbit_base._32Bit]]]"
TYPES = [
    *["lensing._features.Features"] * 5,
    *["list[lensing._features.Features]"] * 3,
    "typing.Iterator[lensing._features.Features]",
    "lensing._matches.Matches",
    FLOATS,
    f"{FLOATS} | None",
    "tuple[int, int]",
    "float",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.unsignedinteger[numpy._typing._nbit_base._32Bit]]]",
]
ERRORS = [*["call-overload"] * 4, "arg-type", "arg-type"]


def tool(name):
    """The program, of this environment or on PATH."""
    path = Path(sysconfig.get_path("scripts")) / name
    found = str(path) if path.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed")
    return found


def test_mypy_finds_nothing(root, tmp_path):
    command = [tool("mypy"), "--python-executable", sys.executable, "--cache-dir", str(tmp_path)]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_ruff_finds_nothing(root):
    for command in (["check", "--no-cache"], ["format", "--no-cache", "--check"]):
        result = subprocess.run([tool("ruff"), *command, "."], cwd=root, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr


def test_types_that_users_see(tmp_path):
    """The package that is installed says that it has types, and says these."""
    (tmp_path / "use.py").write_text(USE)
    package = Path(importlib.util.find_spec("lensing").origin).parent
    assert (package / "py.typed").exists()
    command = [tool("mypy"), "--strict", "--python-executable", sys.executable, "--cache-dir", str(tmp_path / "cache")]
    result = subprocess.run([*command, "use.py"], cwd=tmp_path, capture_output=True, text=True, env=_search(package))
    lines = [line for line in result.stdout.splitlines() if line.startswith("use.py:")]
    revealed = [line.split("Revealed type is ")[1].strip('"') for line in lines if "Revealed type" in line]
    assert revealed == TYPES, result.stdout
    codes = [line.rsplit("[", 1)[1].rstrip("]") for line in lines if ": error: " in line]
    assert codes == ERRORS, result.stdout


def _search(package):
    """Where mypy looks, when the package is on sys.path and not installed."""
    installed = Path(sysconfig.get_path("purelib")) in package.parents
    return os.environ if installed else {**os.environ, "MYPYPATH": str(package.parent)}
