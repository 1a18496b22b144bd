#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds keypoints in one photo and writes them.

    python examples/quickstart.py [PHOTO] [--out-dir DIR]

In DIR (default quickstart_out) there are then keypoints.png, the photo with its keypoints; keypoints.json, their
positions and scores; and descriptors.npy, float32 (N, 256).
"""

import argparse
from pathlib import Path

import numpy as np

import lensing

DEMO = Path(__file__).resolve().parent / "scene_1.jpg"


def main() -> None:
    parser = argparse.ArgumentParser(description="Finds keypoints in one photo and writes them.")
    parser.add_argument("photo", nargs="?", default=DEMO, type=Path)
    parser.add_argument("--out-dir", default="quickstart_out", type=Path)
    parser.add_argument("--weights", help="folder, file or Hugging Face repository; default: those of lensing")
    arguments = parser.parse_args()

    with lensing.SuperPoint.from_pretrained(arguments.weights) as model:
        features = model(arguments.photo)
    assert features.descriptors is not None
    print(len(features), "keypoints in", arguments.photo)
    print(features.keypoints[:3], features.scores[:3], features.descriptors.shape)

    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    features.draw(arguments.photo, arguments.out_dir / "keypoints.png")
    features.save(arguments.out_dir / "keypoints.json")
    np.save(arguments.out_dir / "descriptors.npy", features.descriptors)
    print("wrote keypoints.png, keypoints.json and descriptors.npy to", arguments.out_dir)


if __name__ == "__main__":
    main()
