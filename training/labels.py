# SPDX-License-Identifier: Apache-2.0
"""Files of labels, and the weight of a label.

A file holds `points` (n, 3) float32, the keypoints of all crops one after the other as x, y, confidence, and `starts`
(crops + 1), where those of each crop begin and end."""
import numpy as np

DENSITY = 95  # points of a crop of 240 x 320, on average, that get a weight of 1/2 or more
LEAST = 0.2   # weights below this are left out


def save(path, labels):
    starts = np.r_[0, np.cumsum([len(points) for points in labels])]
    with open(path, "wb") as file:
        np.savez(file, points=np.concatenate(labels).astype(np.float32), starts=starts)


def load(path):
    """[(points (n, 2), weights (n))] for each crop.

    Weights say how much of the detector's probability a point deserves. They grow with the root of the confidence up to
    1, which few points reach: growing faster, the best points would all weigh the same. The same confidence weighs the
    same in all crops, so that a picture with little in it keeps few points. Being unsure thus lowers scores instead of
    making labels wrong, and scores learn to rank points by how well they are found again."""
    with np.load(path) as file:
        points, starts = file["points"], file["starts"]
    ranked = np.sort(points[:, 2])[::-1]
    half = ranked[min(len(ranked), DENSITY * (len(starts) - 1)) - 1]
    weights = np.minimum(0.5 * np.sqrt(points[:, 2] / half), 1)
    labels = []
    for start, end in zip(starts[:-1], starts[1:]):
        kept = weights[start:end] >= LEAST
        labels.append((points[start:end, :2][kept].astype(np.float64), weights[start:end][kept]))
    return labels
