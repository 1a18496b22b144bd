# SPDX-License-Identifier: Apache-2.0
"""Pairs of pictures with true homographies: HPatches sequences, and views made of single photos.

All pictures are 480 x 640 and hold what Lensing gives its network: the red channel, resized by Pillow's bilinear
filter."""
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image

from . import metrics

WIDTH, HEIGHT = 640, 480
SUFFIXES = {".jpg", ".jpeg", ".png", ".ppm"}
FINEST = 2  # views are made at up to this many times the resolution, and averaged down


class Level(NamedTuple):
    """How far the second view goes from the first; all are drawn uniformly, or log-uniformly for the scale."""

    angle: float        # degrees to either side
    scale: tuple        # least and greatest
    perspective: float  # shift of each corner, in shares of the sides
    exposure: float     # 1: contrast by up to e^-0.7 or e^0.4, gamma e^+-0.5, brightness +-0.2
    blur: float         # greatest standard deviation, pixels
    noise: float        # greatest standard deviation, of 0..1
    quality: tuple      # of JPEG


LEVELS = {
    "easy": Level(10, (0.85, 1.2), 0.05, 0.4, 0.6, 0.005, (80, 95)),
    "medium": Level(30, (0.7, 1.45), 0.1, 0.7, 1.0, 0.015, (50, 85)),
    "hard": Level(60, (0.55, 1.8), 0.16, 1.0, 1.6, 0.03, (25, 60)),
}


def photo_files(folder):
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def red_channel(path):
    return Image.open(path).convert("RGB").getchannel(0)


def resized(picture, width=WIDTH, height=HEIGHT):
    return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))


def scaling(from_size, to_size):
    """The homography of a resize: pixels are squares, and their edges are scaled."""
    x, y = to_size[0] / from_size[0], to_size[1] / from_size[1]
    return np.array([[x, 0, x / 2 - 0.5], [0, y, y / 2 - 0.5], [0, 0, 1]])


def hpatches_pairs(folder):
    """The first picture of every sequence with each other one. Sides that are not 4:3 are squeezed, as by Lensing."""
    pairs = []
    for path in sorted(folder.glob("hpatches_*_H_1_*.txt")):
        sequence, _, number = path.stem.partition("_H_1_")
        pictures = [red_channel(folder / f"{sequence}_{index}.ppm") for index in ("1", number)]
        first, second = (scaling(picture.size, (WIDTH, HEIGHT)) for picture in pictures)
        homography = second @ np.loadtxt(path) @ np.linalg.inv(first)
        kind = "hpatches illumination" if sequence.startswith("hpatches_i_") else "hpatches viewpoint"
        pairs.append(metrics.Pair(f"{sequence} 1-{number}", kind, *map(resized, pictures), homography))
    return pairs


def middle(picture):
    """The largest part of 4:3 in the middle."""
    width = min(picture.width, picture.height * WIDTH // HEIGHT)
    height = min(picture.height, picture.width * HEIGHT // WIDTH)
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))


def random_homography(random, level):
    """From the frame to a view of it: scaled, distorted, turned and moved about the middle."""
    size = np.array([WIDTH, HEIGHT])
    corners = np.array([[0, 0], [WIDTH - 1, 0], [WIDTH - 1, HEIGHT - 1], [0, HEIGHT - 1]], float)
    centre = corners.mean(0)
    angle = np.deg2rad(random.uniform(-level.angle, level.angle))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = (corners - centre) * np.exp(random.uniform(*np.log(level.scale)))
    moved = (moved + random.uniform(-level.perspective, level.perspective, (4, 2)) * size) @ turn.T
    moved += centre + random.uniform(-0.08, 0.08, 2) * size
    return cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))


def change_light(random, picture, level):
    """Exposure, blur, noise and JPEG, in the order in which a camera adds them. uint8 in and out."""
    strength = level.exposure
    light = cv2.GaussianBlur(picture.astype(np.float32) / 255, (0, 0), random.uniform(0.01, level.blur))
    light = light ** np.exp(random.uniform(-0.5, 0.5) * strength)
    gain, shift = np.exp(random.uniform(-0.7, 0.4) * strength), random.uniform(-0.2, 0.2) * strength
    light = (light - light.mean()) * gain + light.mean() + shift
    light += random.standard_normal(light.shape) * random.uniform(0, level.noise)
    data = np.rint(np.clip(light, 0, 1) * 255).astype(np.uint8)
    quality = int(random.integers(level.quality[0], level.quality[1] + 1))
    return cv2.imdecode(cv2.imencode(".jpg", data, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_GRAYSCALE)


def synthetic_pair(random, path, level_name):
    """The middle of a photo, and a view of it that is made from the photo at its own resolution, up to FINEST times the
    frame's. Beyond the photo's edge it is mirrored, so that there is no black border to find."""
    level = LEVELS[level_name]
    photo = middle(red_channel(path))
    width, height = min(photo.width, FINEST * WIDTH), min(photo.height, FINEST * HEIGHT)
    homography = random_homography(random, level)
    fine = (FINEST * WIDTH, FINEST * HEIGHT)
    to_fine = scaling((WIDTH, HEIGHT), fine) @ homography @ scaling((width, height), (WIDTH, HEIGHT))
    view = cv2.warpPerspective(resized(photo, width, height), to_fine, fine, flags=cv2.INTER_LINEAR,
                               borderMode=cv2.BORDER_REFLECT_101)
    view = cv2.resize(view, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    return metrics.Pair(path.stem, level_name, resized(photo), change_light(random, view, level), homography)


def synthetic_pairs(folder, per_level=8, every=1, seed=20261130):
    """`per_level` pairs of each level from every `every`-th photo. A pair depends on photo, level and seed alone."""
    pairs = []
    for index, path in enumerate(photo_files(folder)):
        if index % every:
            continue
        for level in LEVELS:
            for number in range(per_level):
                random = np.random.default_rng((seed, index, list(LEVELS).index(level), number))
                pair = synthetic_pair(random, path, level)
                pairs.append(pair._replace(name=f"{pair.name} {level} {number}"))
    return pairs
