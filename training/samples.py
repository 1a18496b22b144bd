# SPDX-License-Identifier: Apache-2.0
"""What one step of training sees: pairs of views of crops, and pictures of shapes, with targets for both heads.

A batch depends on nothing but seed and step, so that training can stop and go on as if it had not."""
import dataclasses

import cv2
import numpy as np
import torch

import geometry
import photometry
import shapes
from network import CELL

FEWEST = 30            # pairs with fewer are drawn again
MARGIN = 3             # pixels: correspondences keep away from borders
ANYWHERE_WEIGHT = 0.2  # of a correspondence that is no keypoint, in the descriptor's loss


@dataclasses.dataclass
class Options:
    """How views are made."""

    width: int = 160
    height: int = 120
    pairs: int = 8
    shapes: int = 4
    max_angle: float = 0.6     # of the second view; one pair in seven is turned by up to WIDE_ANGLE instead
    wide_angle: float = 1.6
    strength: float = 0.8      # of photometric changes
    softness: float = 0.6      # pixels: standard deviation of a label
    correspondences: int = 128  # of one pair, for the descriptor


def target_map(points, weights, width, height, softness):
    """The share of its cell's probability that each pixel should get, (height, width) float32.

    A point's weight is spread over the pixels around it by a Gaussian about its true place, fractions included. What
    lies across the border of a cell goes to the next cell, so a point between two cells is expected of both in part,
    where a hard label would call one of two nearly equal answers wrong."""
    reach = 2
    padded = np.zeros((height + 2 * reach, width + 2 * reach), np.float32)
    steps = np.arange(-reach, reach + 1)
    kept = geometry.inside(points, width, height)
    points, weights = points[kept], weights[kept]
    pixels = np.rint(points).astype(int)
    along = [np.exp(-((pixels[:, axis, None] + steps - points[:, axis, None]) ** 2) / (2 * softness ** 2))
             for axis in (0, 1)]
    bumps = along[1][:, :, None] * along[0][:, None, :]
    bumps *= (weights / bumps.sum((1, 2)))[:, None, None]
    rows = pixels[:, 1, None, None] + reach + steps[None, :, None]
    columns = pixels[:, 0, None, None] + reach + steps[None, None, :]
    np.add.at(padded, (rows, columns), bumps)
    return padded[reach:-reach, reach:-reach]


def view(crop, homography, options, border):
    """The crop through a homography, float32 0..1, and which of its pixels show the crop."""
    size = (options.width, options.height)
    picture = geometry.warp_image(homography, crop.astype(np.float32) * np.float32(1 / 255), size, border)
    shown = np.zeros(crop.shape, np.uint8)
    shown[2:-2, 2:-2] = 1
    return picture, geometry.warp_image(homography, shown, size, flags=cv2.INTER_NEAREST)


def whole_cells(shown):
    height, width = shown.shape
    return shown.reshape(height // CELL, CELL, width // CELL, CELL).min((1, 3)).astype(bool)


def correspondences(random, points, to_first, to_second, shown, options):
    """Places (k, 4) that both views show, in the first and in the second: keypoints, then random ones; and their weights
    (k). Only keypoints are ever matched, but other places teach what a picture has besides."""
    width, height, most = options.width, options.height, options.correspondences
    first = geometry.warp_points(to_first, random.permutation(points)) if len(points) else np.zeros((0, 2))
    first = np.r_[first, random.uniform([MARGIN, MARGIN], [width - 1 - MARGIN, height - 1 - MARGIN],
                                        (3 * most, 2))]
    second = geometry.warp_points(to_second @ np.linalg.inv(to_first), first)
    both = np.c_[first, second]
    weights = np.where(np.arange(len(both)) < len(points), 1, ANYWHERE_WEIGHT)
    kept = geometry.inside(first, width, height, MARGIN) & geometry.inside(second, width, height, MARGIN)
    both, weights = both[kept], weights[kept]
    pixels = np.rint(both).astype(int)
    kept = (shown[0][pixels[:, 1], pixels[:, 0]] > 0) & (shown[1][pixels[:, 3], pixels[:, 2]] > 0)
    return both[kept][:most], weights[kept][:most]


def random_pair(random, crop, points, options):
    """Two views of a crop: their homographies, pictures, what of them shows the crop, and correspondences()."""
    source, target = crop.shape[::-1], (options.width, options.height)
    first, middle = geometry.random_view(random, source, target, 0.15, (0.75, 1.25), 0.05)
    angle = options.max_angle if random.random() < 6 / 7 else options.wide_angle
    near = middle + random.uniform(-0.22, 0.22, 2) * target
    second, _ = geometry.random_view(random, source, target, angle, (0.62, 1.7), 0.16, near)
    border = cv2.BORDER_REFLECT_101 if random.random() < 0.3 else cv2.BORDER_CONSTANT
    views = [view(crop, homography, options, border) for homography in (first, second)]
    pictures = [photometry.degrade(random, picture, options.strength) for picture, _ in views]
    shown = [mask for _, mask in views]
    return (first, second), pictures, shown, correspondences(random, points, first, second, shown, options)


def batch(random, crops, labels, options):
    """One step's tensors. First views come first, then second ones, then shapes; n = 2 pairs + shapes.

    pictures (n, 1, h, w), targets (n, h, w) as of target_map(), valid (n, h / 8, w / 8) cells that count, places
    (pairs, options.correspondences, 4) and their weights (pairs, options.correspondences), 0 where none is."""
    size = (options.width, options.height)
    sides = [[], []]
    places = np.zeros((options.pairs, options.correspondences, 4), np.float32)
    place_weights = np.zeros((options.pairs, options.correspondences), np.float32)
    for index in range(options.pairs):
        for _ in range(4):
            chosen = random.integers(len(crops))
            points, weights = labels[chosen]
            homographies, pictures, shown, (both, importance) = random_pair(random, crops[chosen], points, options)
            if len(both) >= FEWEST:
                break
        places[index, :len(both)], place_weights[index, :len(both)] = both, importance
        for side, homography, picture, mask in zip(sides, homographies, pictures, shown):
            moved = geometry.warp_points(homography, points) if len(points) else points
            target = target_map(moved, weights, *size, options.softness)
            side.append((picture, target, whole_cells(mask)))
    drawn = []
    for _ in range(options.shapes):
        picture, corners = shapes.random_picture(random, *size)
        target = target_map(corners, np.ones(len(corners)), *size, options.softness)
        picture = photometry.degrade(random, picture, 0.6)
        drawn.append((picture, target, np.ones((size[1] // CELL, size[0] // CELL), bool)))
    pictures, targets, valid = (np.stack(part) for part in zip(*sides[0], *sides[1], *drawn))
    return tuple(map(torch.from_numpy, (pictures[:, None], targets, valid, places, place_weights)))


class Batches(torch.utils.data.Dataset):
    """The batches of a stage by step."""

    def __init__(self, crops, labels, options, seed, steps):
        self.crops, self.labels, self.options, self.seed, self.steps = crops, labels, options, seed, steps

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        cv2.setNumThreads(1)
        return batch(np.random.default_rng((self.seed, step)), self.crops, self.labels, self.options)
