# SPDX-License-Identifier: Apache-2.0
"""Homographies. Points are float64 arrays (n, 2) of x, y in pixels; the centre of the first pixel is (0, 0)."""
import cv2
import numpy as np


def warp_points(homography, points):
    homogeneous = np.c_[points, np.ones(len(points))] @ homography.T
    return homogeneous[:, :2] / homogeneous[:, 2:]


def warp_image(homography, image, size, border=cv2.BORDER_CONSTANT, flags=cv2.INTER_LINEAR):
    return cv2.warpPerspective(image, homography, size, flags=flags, borderMode=border)


def rectangle(width, height):
    """The corner pixels of a picture, clockwise from the upper left."""
    return np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], np.float64)


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def inside(points, width, height, margin=0.0):
    """Which points lie in a picture, at least `margin` pixels inside its outermost pixel centres."""
    return np.all((points >= margin) & (points <= np.array([width - 1, height - 1]) - margin), axis=1)


def random_view(random, source, target, max_angle, scale, perspective, centre=None):
    """A view of size `target` = (width, height) of a picture of size `source`.

    A box of the target's size, shrunk by a scale drawn log-uniformly from `scale` = (low, high), is turned by up to
    `max_angle`, its corners are moved by up to the share `perspective` of its sides, and it is put where it fits best
    into the source, or with its middle at `centre`. Returns the homography source -> target and the middle of the
    box."""
    size = np.array(source, np.float64)
    for _ in range(12):
        zoom = np.exp(random.uniform(*np.log(scale)))
        box = np.array(target) / zoom
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * box / 2
        corners = corners + random.uniform(-perspective, perspective, (4, 2)) * box
        corners = corners @ rotation(random.uniform(-max_angle, max_angle)).T
        low, high = corners.min(0), corners.max(0)
        if np.all(high - low <= 1.08 * size):
            break
    if centre is None:
        ends = np.sort([-low, size - high], axis=0)  # where the box touches either side; crossed if it is too large
        centre = random.uniform(ends[0], ends[1])
    corners = corners + centre
    homography = cv2.getPerspectiveTransform(corners.astype(np.float32), rectangle(*target).astype(np.float32))
    return homography, corners.mean(0)


def random_warp(random, width, height, max_angle, scale, perspective, shift):
    """A homography of a picture onto one of the same size: turned, scaled, distorted and moved about its middle."""
    corners = rectangle(width, height)
    middle = corners.mean(0)
    size = np.array([width, height])
    moved = (corners - middle) * np.exp(random.uniform(*np.log(scale)))
    moved = moved + random.uniform(-perspective, perspective, (4, 2)) * size
    moved = moved @ rotation(random.uniform(-max_angle, max_angle)).T
    moved = moved + middle + random.uniform(-shift, shift, 2) * size
    return cv2.getPerspectiveTransform(corners.astype(np.float32), moved.astype(np.float32))
