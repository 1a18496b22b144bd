# SPDX-License-Identifier: Apache-2.0
"""Pairs of bench/evaluate.py: what their homographies say must be what their pictures show."""
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("cv2")

from bench.evaluation import metrics, pairs  # noqa: E402


@pytest.fixture
def photos(tmp_path):
    """A folder with one photo of 960 x 640: a white disc of radius 30 on black, right of its middle."""
    y, x = np.mgrid[:640, :960]
    disc = ((x - 560) ** 2 + (y - 300) ** 2 <= 30 ** 2) * np.uint8(255)
    Image.fromarray(disc).save(tmp_path / "disc.png")
    return tmp_path


def middle_of_white(picture):
    weights = np.where(picture > int(picture.max()) // 2, 1.0, 0.0)
    y, x = np.mgrid[:picture.shape[0], :picture.shape[1]]
    return np.array([(x * weights).sum(), (y * weights).sum()]) / weights.sum()


def test_synthetic_pairs_follow_their_homographies(photos):
    made = pairs.synthetic_pairs(photos, per_level=3)
    assert [pair.group for pair in made] == ["easy"] * 3 + ["medium"] * 3 + ["hard"] * 3
    for pair in made:
        assert pair.first.shape == pair.second.shape == (480, 640)
        expected = metrics.warp_points(pair.homography, middle_of_white(pair.first)[None])[0]
        if metrics.in_picture(expected[None] + [[-60, -60]], 640, 480) and \
                metrics.in_picture(expected[None] + [[60, 60]], 640, 480):
            assert np.linalg.norm(middle_of_white(pair.second) - expected) < 2.5, pair.name


def test_the_frame_of_a_photo_is_its_middle(photos):
    """853 x 640 of 960 x 640, from column 53; centre 560.5 - 53 in squares of 640 / 853."""
    pair = pairs.synthetic_pairs(photos, per_level=1)[0]
    expected = np.array([(560.5 - 53) * 640 / 853, 300.5 * 480 / 640]) - 0.5
    assert np.linalg.norm(middle_of_white(pair.first) - expected) < 0.3


def test_same_pairs_every_time(photos):
    first, second = (pairs.synthetic_pairs(photos, per_level=1) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.second, b.second) and np.array_equal(a.homography, b.homography)


def test_hpatches_homographies_are_scaled_to_the_frame(tmp_path):
    """A sequence of 320 x 240 shifted by 8 pixels: 16 in the frame."""
    random = np.random.default_rng(1)
    wide = random.integers(0, 256, (240, 328), np.uint8)
    Image.fromarray(wide[:, 8:]).convert("RGB").save(tmp_path / "hpatches_v_made_1.ppm")
    Image.fromarray(wide[:, :-8]).convert("RGB").save(tmp_path / "hpatches_v_made_2.ppm")
    (tmp_path / "hpatches_v_made_H_1_2.txt").write_text("1 0 8\n0 1 0\n0 0 1\n")
    pair, = pairs.hpatches_pairs(tmp_path)
    assert pair.group == "hpatches viewpoint"
    assert np.allclose(pair.homography, [[1, 0, 16], [0, 1, 0], [0, 0, 1]])
    assert np.array_equal(pair.first[:, 8:608], pair.second[:, 24:624])


def test_scaling_moves_edges_to_edges():
    """The left edge is at -0.5 whatever the size, the right one at size - 0.5."""
    homography = pairs.scaling((320, 200), (640, 500))
    edges = metrics.warp_points(homography, np.array([[-0.5, -0.5], [319.5, 199.5]]))
    assert np.allclose(edges, [[-0.5, -0.5], [639.5, 499.5]])
