# SPDX-License-Identifier: Apache-2.0
"""The `lensing` program, from which the tests take what they expect."""

import io
import subprocess

import numpy as np
from PIL import Image


def equal(found, expected):
    """found == expected, without what pytest would make of large values."""
    return bool(found == expected)


def same(features, expected):
    """Whether features have the same bytes as arrays of the program, and no others."""
    found = features.numpy()
    return found.keys() == expected.keys() - {"image_size", "weights", "weights_license"} and all(
        array.dtype == np.float32
        and array.shape == expected[name].shape
        and array.tobytes() == expected[name].tobytes()
        for name, array in found.items()
    )


class Program:
    """The program with weights, and a folder for its files."""

    def __init__(self, path, weights, folder):
        self.path, self.weights, self.folder = str(path), str(weights), folder

    def run(self, command, *arguments):
        """What it writes to standard output."""
        line = [self.path, command, *map(str, arguments), "-w", self.weights]
        return subprocess.run(line, check=True, capture_output=True).stdout

    def detect(self, path, *options):
        """The arrays of an NPZ file."""
        data = self.run("detect", path, "--format", "npz", "-q", *options)
        with np.load(io.BytesIO(data)) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def detect_pixels(self, pixels, *options):
        """The same for an array of bytes, (H, W) or (H, W, 3)."""
        path = self.folder / "pixels.png"
        Image.fromarray(pixels).save(path)
        return self.detect(path, *options)
