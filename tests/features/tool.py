# SPDX-License-Identifier: Apache-2.0
"""Features for the tests, and the program that gives them to the library."""
import io
import os
import struct
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest


def savez(**arrays):
    """The bytes that numpy.savez() writes. The ZIP headers are Python's, and are those of today from 3.11.4 on; before,
    the test is skipped here, so what does not depend on them is to be checked first."""
    if sys.version_info < (3, 11, 4):
        pytest.skip("zipfile of this Python writes other headers; the bytes of NPZ files are not compared")
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@dataclass
class Features:
    network_keypoints: np.ndarray
    scores: np.ndarray
    descriptors: np.ndarray = None
    width: int = 640
    height: int = 480
    max_keypoints: int = 1024
    nms_radius: int = 4
    border: int = 4
    threshold: float = 0.005
    timing: tuple = field(default=(1.0, 2.0, 3.0))

    @property
    def scale(self):
        return np.array([self.width / 640, self.height / 480])

    @property
    def keypoints(self):
        return (self.network_keypoints.astype(np.float64) * self.scale).astype(np.float32)

    def write(self, path):
        has_descriptors = self.descriptors is not None
        head = struct.pack("<4I4i4d", len(self.scores), has_descriptors, self.width, self.height, self.max_keypoints,
                           self.nms_radius, self.border, 0, self.threshold, *self.timing)
        arrays = [self.network_keypoints, self.scores] + ([self.descriptors] if has_descriptors else [])
        path.write_bytes(head + b"".join(a.astype("<f4").tobytes() for a in arrays))
        return path


def random_features(count, seed=0, descriptors=True, **rest):
    random = np.random.default_rng(seed)
    cells = random.choice(640 * 480, count, replace=False)
    vectors = random.standard_normal((count, 256)).astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return Features(
        np.stack([cells % 640, cells // 640], 1).astype(np.float32).reshape(count, 2),
        np.sort(random.uniform(0.005, 1, count).astype(np.float32) ** 3)[::-1].copy(),
        vectors if descriptors else None,
        **rest,
    )


class Tool:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, **environment):
        return subprocess.run([self.path, *map(os.fspath, map(_text, arguments))], capture_output=True,
                              env={**os.environ, **environment})

    def __call__(self, *arguments, **environment):
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


def _text(argument):
    return argument if isinstance(argument, (str, bytes, os.PathLike)) else str(argument)
