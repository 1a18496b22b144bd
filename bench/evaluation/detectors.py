# SPDX-License-Identifier: Apache-2.0
"""What is evaluated: SuperPoint weights, run by the program `lensing`, and OpenCV's detectors.

Each takes a list of pictures (height, width) uint8 and returns a list of metrics.Features, with at most `limit`
points."""
import json
import pathlib
import subprocess
import tempfile

import cv2
import numpy as np
from PIL import Image
from safetensors.numpy import load_file, save_file

from . import metrics

DESCRIPTOR_HEAD = {"conv_descriptor_a": (256, 128, 3, 3), "conv_descriptor_b": (256, 256, 1, 1)}


class Lensing:
    """SuperPoint by `lensing detect`: what is measured is what is shipped, not another implementation of it."""

    def __init__(self, program, weights, threads):
        self.program, self.threads = program, threads
        self.folder = tempfile.TemporaryDirectory(prefix="lensing-evaluate-")
        self.weights, self.describes = self.complete(pathlib.Path(weights))

    def complete(self, weights):
        """The file to run, and whether it has descriptors. Those of a detector alone are filled with something."""
        tensors = load_file(weights) if weights.is_file() else {}
        if not tensors or any(name.startswith("descriptor_decoder.") for name in tensors):
            return weights, True
        for name, shape in DESCRIPTOR_HEAD.items():
            tensors[f"descriptor_decoder.{name}.weight"] = np.zeros(shape, np.float32)
            tensors[f"descriptor_decoder.{name}.bias"] = np.ones(shape[0], np.float32)
        completed = pathlib.Path(self.folder.name) / "completed.safetensors"
        save_file(tensors, completed)
        return completed, False

    def run(self, *arguments):
        command = [self.program, "detect", "--weights", self.weights, "--threads", self.threads, "--quiet",
                   "--keypoint-threshold", "0.005", "--nms-radius", "4", *arguments]
        return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout

    def features(self, pictures, limit):
        with tempfile.TemporaryDirectory(dir=self.folder.name) as name:
            folder = pathlib.Path(name)
            (folder / "in").mkdir()
            (folder / "out").mkdir()
            for index, picture in enumerate(pictures):
                Image.fromarray(picture).save(folder / "in" / f"{index:06d}.png", compress_level=1)
            self.run("--max-keypoints", limit, "--format", "npz", "--output", folder / "out", folder / "in")
            return [self.read(folder / "out" / f"{index:06d}.png.npz") for index in range(len(pictures))]

    def read(self, path):
        with np.load(path) as file:
            return metrics.Features(file["keypoints"].astype(float), file["descriptors"] if self.describes else None)

    def counts(self, files):
        """Number of keypoints above the threshold in image files, whatever their size."""
        output = self.run("--max-keypoints", -1, "--format", "json", "--no-descriptors", *files)
        return [json.loads(line)["num_keypoints"] for line in output.splitlines()]


class OpenCV:
    """One of OpenCV's detectors with its own descriptors; the strongest points by its own measure."""

    NAMES = ("sift", "orb", "akaze")

    def __init__(self, name):
        self.name = name

    def make(self, limit):
        if self.name == "sift":
            return cv2.SIFT_create(nfeatures=limit)
        if self.name == "orb":
            return cv2.ORB_create(nfeatures=limit)
        # A lower threshold than OpenCV's 0.001, so that there are 500 points to choose from as with the others.
        return cv2.AKAZE_create(threshold=1e-4)

    def features(self, pictures, limit):
        detector = self.make(limit)
        found = []
        for picture in pictures:
            points, descriptors = detector.detectAndCompute(picture, None)
            order = np.argsort([-point.response for point in points], kind="stable")[:limit]
            places = np.array([points[index].pt for index in order], float).reshape(-1, 2)
            found.append(metrics.Features(places, descriptors[order] if len(order) else np.zeros((0, 1), np.uint8)))
        return found
