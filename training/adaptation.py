# SPDX-License-Identifier: Apache-2.0
"""Homographic adaptation: keypoints of a picture as the places that a detector finds again in many warped copies of it.

Detections keep their fractions of a pixel all the way: each is mapped back into the picture as a point, and a keypoint
is the weighted mean of the detections around a peak of their density. Averaging n detections divides the noise of their
positions by the root of n; averaging warped score maps instead, as in the SuperPoint paper, blurs them by the
interpolation and rounds to whole pixels."""
import cv2
import numpy as np

import geometry

BORDER = 5           # pixels: detections this close to a border of a warped copy are the border's, not the picture's
SPREAD = 1.0         # pixels: standard deviation of the window around a detection that counts as the same place
PRECISION = 0.6      # pixels: standard deviation of the window around a keypoint in which detections agree with it
DISTANCE = 4         # pixels: least distance of keypoints, as in the suppression of non-maxima
LEAST = 0.02         # keypoints of less confidence are left out
FEWEST_VIEWS = 0.25  # of the copies must show a place, else its confidence is counted as if so many had


def warped_copies(random, crop, count):
    """The crop and count - 1 warps of it: [(picture float32 0..1, homography crop -> picture)]."""
    height, width = crop.shape
    picture = crop.astype(np.float32) / 255
    copies = [(picture, np.eye(3))]
    while len(copies) < count:
        homography = geometry.random_warp(random, width, height, 0.8, (0.7, 1.5), 0.12, 0.1)
        copy = geometry.warp_image(homography, picture, (width, height), cv2.BORDER_REFLECT_101)
        copy = copy * np.float32(random.uniform(0.7, 1.1)) + np.float32(random.uniform(-0.05, 0.1))
        copy += random.standard_normal(copy.shape, dtype=np.float32) * np.float32(random.uniform(0, 0.02))
        copies.append((np.clip(copy, 0, 1), homography))
    return copies


def splat(shape, points, weights):
    """Adds weights, and weighted positions, to the pixels nearest to the points: three maps."""
    pixels = np.rint(points).astype(int)
    maps = np.zeros((3, *shape), np.float32)
    for plane, values in zip(maps, (weights, weights * points[:, 0], weights * points[:, 1])):
        np.add.at(plane, (pixels[:, 1], pixels[:, 0]), values)
    return maps


def agreement(keypoints, points, weights):
    """The weights of the points around each keypoint, added up: those that lie exactly there count in full, others by a
    Gaussian of their distance. Places that are found again, but scattered, thus get less."""
    agreed = np.zeros(len(keypoints))
    for first in range(0, len(keypoints), 64):
        part = keypoints[first:first + 64]
        squares = ((part[:, None] - points[None]) ** 2).sum(2)
        agreed[first:first + 64] = np.exp(-squares / (2 * PRECISION ** 2)) @ weights
    return agreed


def gather(crop, copies, detections):
    """Keypoints (n, 3) float32: x, y, confidence. @param detections (points, weights 0..1) for each copy.

    The confidence is the agreement() of the detections at a place over the number of copies that show it: with weights
    of 1 and no scatter the share of copies in which it was found."""
    height, width = crop.shape
    total = np.zeros((3, height, width), np.float32)
    all_points, all_weights = [], []
    views = np.zeros((height, width), np.float32)
    frame = np.zeros((height, width), np.float32)
    frame[BORDER:-BORDER, BORDER:-BORDER] = 1
    for (_, homography), (points, weights) in zip(copies, detections):
        back = np.linalg.inv(homography)
        views += geometry.warp_image(back, frame, (width, height))
        points = geometry.warp_points(back, points)
        kept = geometry.inside(points, width, height)
        total += splat((height, width), points[kept], weights[kept])
        all_points.append(points[kept])
        all_weights.append(weights[kept])
    weight, x, y = (cv2.GaussianBlur(plane, (0, 0), SPREAD) for plane in total)
    views = np.maximum(views, FEWEST_VIEWS * len(copies))
    # A detection alone has a peak of 1 / (2 pi SPREAD^2) in the blurred map.
    density = weight * (2 * np.pi * SPREAD ** 2) / views
    window = np.ones((2 * DISTANCE + 1, 2 * DISTANCE + 1), np.uint8)
    rows, columns = np.nonzero((density == cv2.dilate(density, window)) & (density > LEAST))
    found = np.c_[x[rows, columns], y[rows, columns]] / weight[rows, columns, None]
    confidence = agreement(found, np.concatenate(all_points), np.concatenate(all_weights)) / views[rows, columns]
    kept = geometry.inside(found, width, height, 2) & (confidence > LEAST)
    return np.c_[found, confidence][kept].astype(np.float32)
