#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matches the keypoints of two photos and draws the pairs.

python examples/match.py [FIRST SECOND] [--out matches.png]
"""

import argparse
from pathlib import Path

import lensing

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description="Matches the keypoints of two photos and draws the pairs.")
    parser.add_argument("photos", nargs="*", default=[HERE / "scene_1.jpg", HERE / "scene_2.jpg"], type=Path)
    parser.add_argument("--out", default="matches.png", type=Path)
    parser.add_argument("--ratio", default=1.0, type=float, help="largest ratio of the nearest to the second distance")
    parser.add_argument("--weights", help="folder, file or Hugging Face repository; default: those of lensing")
    arguments = parser.parse_args()
    if len(arguments.photos) != 2:
        parser.error("two photos are needed")

    first, second = arguments.photos
    with lensing.SuperPoint.from_pretrained(arguments.weights) as model:
        matches = model.match(first, second, ratio=arguments.ratio)
    for (x1, y1), (x2, y2), similarity in list(zip(*matches.keypoints, matches.similarity, strict=True))[:5]:
        print(f"({x1:.1f}, {y1:.1f}) is ({x2:.1f}, {y2:.1f}), similarity {similarity:.3f}")
    matches.draw(first, second, arguments.out)
    print(f"wrote {arguments.out} ({len(matches)} matches)")


if __name__ == "__main__":
    main()
