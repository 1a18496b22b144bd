# SPDX-License-Identifier: Apache-2.0
"""The example pictures really show the same scene under the homography beside them."""
import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def scene(root):
    folder = root / "examples"
    pictures = [np.asarray(Image.open(folder / f"scene_{i}.jpg").convert("L")).astype(np.float64) for i in (1, 2)]
    return pictures, np.loadtxt(folder / "scene_homography.txt"), np.loadtxt(folder / "scene_corners.txt")


def apply(homography, points):
    lifted = np.column_stack([points, np.ones(len(points))]) @ homography.T
    return lifted[:, :2] / lifted[:, 2:]


def sample(picture, points):
    """Bilinear."""
    x, y = points[:, 0], points[:, 1]
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = x - left, y - top
    return ((picture[top, left] * (1 - fx) + picture[top, left + 1] * fx) * (1 - fy)
            + (picture[top + 1, left] * (1 - fx) + picture[top + 1, left + 1] * fx) * fy)


def similarity(pictures, homography, corners, offset=(0, 0)):
    """Mean correlation of the patches around all corners, the second ones taken at the places that are said to match."""
    grid = np.stack(np.meshgrid(np.arange(-6, 7), np.arange(-6, 7)), -1).reshape(-1, 2)
    values = []
    for corner in corners:
        first = sample(pictures[0], corner + grid)
        second = sample(pictures[1], apply(homography, corner + grid) + offset)
        if first.std() > 8:
            values.append(np.corrcoef(first, second)[0, 1])
    return np.mean(values), len(values)


def test_homography_maps_corners(scene):
    pictures, homography, corners = scene
    value, used = similarity(pictures, homography, corners)
    assert used > 500 and value > 0.95
    for offset in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        assert similarity(pictures, homography, corners, offset)[0] < value - 0.02


def test_pictures(root, scene):
    pictures, _, corners = scene
    for i, picture in enumerate(pictures, 1):
        assert picture.shape == (960, 1280) and picture.min() >= 0 and picture.std() > 30
        assert (root / "examples" / f"scene_{i}.jpg").stat().st_size < 400_000
    assert (corners >= 0).all() and (corners < [1280, 960]).all()
