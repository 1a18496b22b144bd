# SPDX-License-Identifier: Apache-2.0
"""From the network's outputs to keypoints and descriptors, in NumPy."""
import numpy as np

HEIGHT, WIDTH, CELL, BORDER = 480, 640, 8, 4


def score_map(scores):
    """(65, 60, 80), softmax done, to (480, 640): the last channel says that a cell has no keypoint."""
    return scores[:-1].reshape(CELL, CELL, HEIGHT // CELL, WIDTH // CELL).transpose(2, 0, 3, 1).reshape(HEIGHT, WIDTH)


def window_maximum(values, radius):
    """The largest value in the square of 2 * radius + 1 pixels around each pixel: rows first, then columns."""
    for _ in range(2):
        padded = np.pad(values, ((radius, radius), (0, 0)), constant_values=-np.inf)
        result = padded[:len(values)].copy()
        for shift in range(1, 2 * radius + 1):
            np.maximum(result, padded[shift:shift + len(values)], out=result)
        values = np.ascontiguousarray(result.T)
    return values


def select(scores, radius, threshold, count):
    """Pixels that are the largest around and above the threshold: (N, 2) as x, y, and N scores, best first. `count`: at
    most so many, -1 for all."""
    keep = scores > np.float32(threshold)
    if radius > 0:
        keep &= scores == window_maximum(scores, radius)
    keep[:BORDER] = keep[-BORDER:] = keep[:, :BORDER] = keep[:, -BORDER:] = False
    y, x = np.nonzero(keep)
    values = scores[y, x]
    order = np.argsort(-values, kind="stable")[:count if count >= 0 else None]
    return np.stack([x[order], y[order]], axis=1), values[order]


def sample(descriptors, points):
    """Bilinear, from the (256, 60, 80) map at (N, 2) points; rows of the (N, 256) result have length 1."""
    cells = descriptors.transpose(1, 2, 0)
    rows, columns = cells.shape[:2]
    x = (points[:, 0] - CELL / 2 + 0.5) / (WIDTH - CELL / 2 - 0.5) * (columns - 1)
    y = (points[:, 1] - CELL / 2 + 0.5) / (HEIGHT - CELL / 2 - 0.5) * (rows - 1)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    result = np.zeros((len(points), cells.shape[2]), np.float32)
    for column, row in ((left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)):
        weight = (1 - np.abs(x - column)) * (1 - np.abs(y - row))
        weight[(column < 0) | (column >= columns) | (row < 0) | (row >= rows)] = 0
        result += (weight.astype(np.float32)[:, None]
                   * cells[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)])
    return result / np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-12)
