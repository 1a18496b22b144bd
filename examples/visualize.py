#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the strongest points of the network's score map.

    python examples/visualize.py --image PHOTO [--out media/sample.png] [--top-k 500]

Unlike a detection, this takes the best K pixels of the whole map after suppression, with no threshold and no border.
They are drawn on the 640 x 480 frame, larger for a higher score.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

import lensing

FRAME = (640, 480)
RADIUS = 4  # of suppression
COLOR = (0, 255, 255, 230)


def suppress(scores: npt.NDArray[np.float32], radius: int) -> npt.NDArray[np.float32]:
    """Keeps the pixels that are the maximum of the square around them; the others become 0."""
    highest = scores
    for axis in (0, 1):
        pads = [(radius, radius) if axis == other else (0, 0) for other in (0, 1)]
        padded = np.pad(highest, pads, constant_values=-np.inf)
        highest = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis).max(-1)
    return np.where(scores == highest, scores, np.float32(0))


def strongest(scores: npt.NDArray[np.float32], count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Positions (x, y) and scores of the `count` highest pixels above 0."""
    order = np.argsort(-scores, axis=None, kind="stable")[:count]
    values = scores.ravel()[order]
    order, values = order[values > 0], values[values > 0]
    return np.stack([order % scores.shape[1], order // scores.shape[1]], 1), values


def draw(image: Image.Image, points: npt.NDArray[np.intp], scores: npt.NDArray[np.float32]) -> Image.Image:
    picture = image.convert("RGB").resize(FRAME, Image.Resampling.BILINEAR)
    pen = ImageDraw.Draw(picture, "RGBA")
    if len(scores):
        span = max(float(scores.max() - scores.min()), 1e-9)
        for (x, y), score in zip(points.tolist(), scores.tolist(), strict=True):
            r = 2 + int(3 * (score - float(scores.min())) / span)
            pen.ellipse((x - r, y - r, x + r, y + r), outline=COLOR, width=1)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the strongest points of the network's score map.")
    parser.add_argument("--image", required=True, type=Path)
    parser.add_argument("--out", default="media/sample.png", type=Path)
    parser.add_argument(
        "--device-id", type=int, default=int(os.environ.get("DEVICE_ID") or 0), help="of a card; the CPU is used"
    )
    parser.add_argument("--top-k", type=int, default=500)
    parser.add_argument("--weights", help="folder, file or Hugging Face repository; default: those of lensing")
    arguments = parser.parse_args()

    with lensing.SuperPoint.from_pretrained(arguments.weights) as model, Image.open(arguments.image) as image:
        scores, _ = model.forward(image, return_descriptors=False)
        points, values = strongest(suppress(scores, RADIUS), arguments.top_k)
        picture = draw(image, points, values)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    picture.save(arguments.out)
    print(f"wrote {arguments.out} ({len(points)} keypoints, top-K={arguments.top_k})")


if __name__ == "__main__":
    main()
