# SPDX-License-Identifier: Apache-2.0
"""Measures of a detector and descriptor on a pair of pictures with a known homography.

Points are (n, 2) arrays of x, y in pixels, the centre of the first pixel at (0, 0)."""
from typing import NamedTuple

import numpy as np

REACH = 3.0              # pixels: a point this near to where it should be counts as found, a match as correct
NEAR_MISS = 6.0          # pixels: a wrong match this near to where it should be is a near miss
HOMOGRAPHY_REACH = (1, 3, 5)


class Features(NamedTuple):
    points: np.ndarray              # (n, 2)
    descriptors: np.ndarray | None  # (n, d) float32, compared by distance, or uint8, by number of different bits


class Pair(NamedTuple):
    name: str
    group: str
    first: np.ndarray       # (height, width) uint8
    second: np.ndarray      # of the same size
    homography: np.ndarray  # from the first picture to the second


def warp_points(homography, points):
    warped = np.c_[points, np.ones(len(points))] @ homography.T
    return warped[:, :2] / warped[:, 2:]


def in_picture(points, width, height):
    return np.all((points >= 0) & (points <= [width - 1, height - 1]), axis=1)


def detection(first, second, homography, width, height):
    """Repeatability and localisation error of points.

    Only points whose place lies in both pictures count. Repeatability is the share of them, from both pictures, that
    have a point of the other picture within REACH; the localisation error is the mean distance of those to the nearest
    one, in pixels of the second picture. NaN: nothing to judge by."""
    moved = warp_points(homography, first)
    seen_first = moved[in_picture(moved, width, height)]
    back = warp_points(np.linalg.inv(homography), second)
    seen_second = second[in_picture(back, width, height)]
    total = len(seen_first) + len(seen_second)
    if total == 0:
        return np.nan, np.nan
    if len(seen_first) == 0 or len(seen_second) == 0:
        return 0.0, np.nan
    distances = np.linalg.norm(seen_first[:, None] - seen_second[None], axis=2)
    nearest = np.r_[distances.min(1), distances.min(0)]
    found = nearest[nearest <= REACH]
    return len(found) / total, found.mean() if len(found) else np.nan


def distances(first, second):
    """Squared Euclidean distances of float descriptors, Hamming distances of binary ones."""
    if first.dtype == np.uint8:
        a, b = (np.unpackbits(part, axis=1).astype(np.float32) for part in (first, second))
    else:
        a, b = first.astype(np.float64), second.astype(np.float64)
    return (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T


def mutual_matches(first, second):
    """Indices (n, 2) of descriptors that are each other's nearest."""
    if len(first) == 0 or len(second) == 0:
        return np.zeros((0, 2), int)
    table = distances(first, second)
    forth, back = table.argmin(1), table.argmin(0)
    own = np.flatnonzero(back[forth] == np.arange(len(first)))
    return np.c_[own, forth[own]]


def corner_error(estimate, homography, width, height):
    """Mean distance of where two homographies put the corners of a picture; infinite without an estimate."""
    if estimate is None:
        return np.inf
    corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], float)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.linalg.norm(warp_points(estimate, corners) - warp_points(homography, corners), axis=1).mean()
    return error if np.isfinite(error) else np.inf


def estimate_homography(first, second):
    """RANSAC with a fixed start; None when it finds none."""
    import cv2  # only here, so that the other measures need nothing but NumPy

    if len(first) < 4:
        return None
    return cv2.findHomography(first, second, cv2.RANSAC, REACH, maxIters=5000, confidence=0.9999)[0]


def wrong_matches(expected, matched, points):
    """Shares of the matches that are wrong, by what went wrong. All arrays are (n, 2), in the second picture: where the
    first picture's points should be, where their partners are, and all points.

    near: the partner lies within NEAR_MISS of the place; unseen: no point lies within REACH of the place, so that none
    could have been right; confused: one does, but another was taken."""
    if len(expected) == 0:
        return {"wrong_near": 0.0, "wrong_unseen": 0.0, "wrong_confused": 0.0}
    error = np.linalg.norm(expected - matched, axis=1)
    seen = np.linalg.norm(expected[:, None] - points[None], axis=2).min(1) <= REACH
    far = error > NEAR_MISS
    return {"wrong_near": ((error > REACH) & ~far).mean(), "wrong_unseen": (far & ~seen).mean(),
            "wrong_confused": (far & seen).mean()}


def measure(first, second, pair):
    """All measures of one pair by name."""
    height, width = pair.first.shape
    repeatability, localisation = detection(first.points, second.points, pair.homography, width, height)
    row = {"repeatability": repeatability, "localisation": localisation}
    if first.descriptors is None:
        return row
    matches = mutual_matches(first.descriptors, second.descriptors)
    here, there = first.points[matches[:, 0]], second.points[matches[:, 1]]
    expected = warp_points(pair.homography, here)
    correct = np.linalg.norm(expected - there, axis=1) <= REACH
    row["matching_accuracy"] = correct.mean() if len(correct) else 0.0
    row["correct_matches"] = float(correct.sum())
    row |= wrong_matches(expected, there, second.points)
    error = corner_error(estimate_homography(here, there), pair.homography, width, height)
    for reach in HOMOGRAPHY_REACH:
        row[f"homography_{reach}px"] = float(error <= reach)
    return row


# ---- Over pairs ------------------------------------------------------------------------------------


def mean(values):
    """Mean along the last axis of what is not NaN; NaN when nothing is left."""
    known = ~np.isnan(values)
    count = known.sum(-1)
    return np.where(count > 0, np.where(known, values, 0).sum(-1) / np.maximum(count, 1), np.nan)


def resamples(count, draws=2000, seed=1):
    """Indices (draws, count) of pairs, drawn with replacement."""
    return np.random.default_rng(seed).integers(count, size=(draws, count))


def interval(samples):
    """The middle 95 % of bootstrap samples."""
    samples = samples[np.isfinite(samples)]
    return [float(value) for value in np.percentile(samples, [2.5, 97.5])] if len(samples) else [np.nan, np.nan]


def summary(values):
    """Mean over pairs and its interval."""
    values = np.asarray(values, float)
    return {"mean": float(mean(values)), "interval": interval(mean(values[resamples(len(values))]))}


def ratio(values, reference):
    """Ratio of two means over the same pairs, resampled together, and its interval."""
    values, reference = np.asarray(values, float), np.asarray(reference, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = resamples(len(values))
        samples = mean(values[drawn]) / mean(reference[drawn])
        return {"mean": float(mean(values) / mean(reference)), "interval": interval(samples)}
