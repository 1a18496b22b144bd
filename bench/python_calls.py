#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs over the C library: its import, opening a model from the cache, and a call.

    python_calls.py --weights model.safetensors --library build/src/liblensing.so IMAGE

Run it with a Python that has the package installed; nothing else should run at the same time. Prints medians, and the
least and the greatest value.

A call is compared with the same call through ctypes. The time of the network is taken off both: it is the same code,
and varies by more than what is to be measured. The call of the package includes making the NumPy arrays.
"""

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lensing

REVISION = "0" * 40
IMPORT = """\
import time
start = time.perf_counter()
import {module}
print((time.perf_counter() - start) * 1e3)
"""
OPEN = """\
import time, lensing
start = time.perf_counter()
model = lensing.SuperPoint.from_pretrained(lensing.DEFAULT_REPOSITORY)
print((time.perf_counter() - start) * 1e3)
"""


def show(what: str, times: list[float]) -> None:
    print(f"{what:60} {statistics.median(times):8.3f} ms  ({min(times):.3f} to {max(times):.3f}, {len(times)} times)")


def in_fresh_processes(code: str, rounds: int, environment: dict[str, str]) -> list[float]:
    """What the code prints, each time in a process of its own."""
    command = [sys.executable, "-c", code]
    run = [subprocess.run(command, check=True, capture_output=True, text=True, env=environment) for _ in range(rounds)]
    return [float(result.stdout) for result in run]


def make_cache(folder: Path, weights: Path) -> None:
    """A Hugging Face cache with the weights as the default repository."""
    repository = folder / "hub" / ("models--" + lensing.DEFAULT_REPOSITORY.replace("/", "--"))
    snapshot = repository / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    (snapshot / "config.json").write_text('{"border_removal_distance": 4}')
    shutil.copy(weights, snapshot / "model.safetensors")


class Features(ctypes.Structure):
    """lns_features of include/lensing/features.h."""

    _fields_ = (
        ("count", ctypes.c_size_t),
        ("keypoints", ctypes.c_void_p),
        ("network_keypoints", ctypes.c_void_p),
        ("scores", ctypes.c_void_p),
        ("descriptors", ctypes.c_void_p),
        ("image_width", ctypes.c_uint32),
        ("image_height", ctypes.c_uint32),
        ("scale_x", ctypes.c_double),
        ("scale_y", ctypes.c_double),
        ("max_keypoints", ctypes.c_int32),
        ("keypoint_threshold", ctypes.c_double),
        ("nms_radius", ctypes.c_int32),
        ("border_removal_distance", ctypes.c_int32),
        ("preprocess", ctypes.c_double),
        ("forward", ctypes.c_double),
        ("postprocess", ctypes.c_double),
    )


class Options(ctypes.Structure):
    """lns_superpoint_options of include/lensing/superpoint.h."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("weights", ctypes.c_char_p),
        ("backend", ctypes.c_char_p),
        ("threads", ctypes.c_int),
        ("precision", ctypes.c_int),
        ("device_id", ctypes.c_int),
    )


class Library:
    """A model of the C library."""

    def __init__(self, path: Path, weights: Path) -> None:
        self.api = ctypes.CDLL(str(path))
        self.model = ctypes.c_void_p()
        options = Options()
        self.api.lns_superpoint_options_init(ctypes.byref(options))
        options.weights = os.fsencode(weights)
        if self.api.lns_superpoint_open(ctypes.byref(options), ctypes.byref(self.model)) != 0:
            sys.exit("the C library cannot open the weights")

    def finish(self, status: int, found: "ctypes._Pointer[Features]", start: float) -> float:
        """Milliseconds since the start without the network."""
        took = (time.perf_counter() - start) * 1e3
        if status != 0:
            sys.exit("the C library failed")
        took -= float(found.contents.forward)
        self.api.lns_features_close(ctypes.byref(found))
        return took

    def file(self, path: bytes) -> float:
        found = ctypes.POINTER(Features)()
        start = time.perf_counter()
        status = self.api.lns_superpoint_detect_file(self.model, path, None, ctypes.byref(found))
        return self.finish(status, found, start)

    def gray(self, pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> float:
        found = ctypes.POINTER(Features)()
        height, width = pixels.shape
        address = ctypes.c_void_p(pixels.ctypes.data)
        start = time.perf_counter()
        status = self.api.lns_superpoint_detect_pixels(
            self.model, address, width, height, ctypes.c_ssize_t(0), 0, None, ctypes.byref(found)
        )
        return self.finish(status, found, start)


def call(model: lensing.SuperPoint, image: lensing.ImageLike) -> float:
    """Milliseconds of a call without the network."""
    start = time.perf_counter()
    features = model(image)
    features.numpy()
    return (time.perf_counter() - start) * 1e3 - features.timing_ms["forward"]


def compare(what: str, package: Callable[[], float], library: Callable[[], float], rounds: int) -> None:
    """In turns, after some to warm up."""
    for _ in range(5):
        package()
        library()
    pairs = [(package(), library()) for _ in range(rounds)]
    show(f"{what}, package", [ours for ours, _ in pairs])
    show(f"{what}, C library", [theirs for _, theirs in pairs])
    show(f"{what}, overhead", [ours - theirs for ours, theirs in pairs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True, help="liblensing.so of the same version")
    parser.add_argument("--rounds", type=int, default=50, help="calls of each kind (default 50)")
    arguments = parser.parse_args()

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "SP_", "TT_"))}
    show("import lensing", in_fresh_processes(IMPORT.format(module="lensing"), 15, kept))
    show("import numpy, for comparison", in_fresh_processes(IMPORT.format(module="numpy"), 5, kept))
    with tempfile.TemporaryDirectory() as folder:
        make_cache(Path(folder), arguments.weights)
        show("from_pretrained(), cached", in_fresh_processes(OPEN, 15, {**kept, "HF_HOME": folder}))

    model = lensing.SuperPoint(arguments.weights)
    library = Library(arguments.library, arguments.weights)
    gray = np.random.default_rng(0).integers(0, 256, (480, 640), np.uint8)
    compare("call, 640 x 480 gray array", lambda: call(model, gray), lambda: library.gray(gray), arguments.rounds)
    path = arguments.image
    compare(f"call, {path.name}", lambda: call(model, path), lambda: library.file(os.fsencode(path)), arguments.rounds)


if __name__ == "__main__":
    main()
