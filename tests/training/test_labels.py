# SPDX-License-Identifier: Apache-2.0
"""From detections to targets: places keep their fractions of a pixel, and weights mean what they say."""
import numpy as np
import pytest

pytest.importorskip("cv2")
torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

import adaptation  # noqa: E402
import geometry  # noqa: E402
import labels  # noqa: E402
import losses  # noqa: E402
import samples  # noqa: E402
import shapes  # noqa: E402


def test_gather_averages_detections_in_the_picture():
    """Two places in 40 warped copies, with noise of half a pixel: one seen in all, the other in every second one."""
    random = np.random.default_rng(1)
    crop = np.zeros((240, 320), np.uint8)
    true = np.array([[100.45, 80.55], [200.5, 150.45]])
    copies = adaptation.warped_copies(random, crop, 40)
    detections = []
    for index, (_, homography) in enumerate(copies):
        points = geometry.warp_points(homography, true + random.normal(0, 0.5, true.shape))[:1 + index % 2]
        points = points[geometry.inside(points, 320, 240, adaptation.BORDER)]
        detections.append((points, np.ones(len(points), np.float32)))
    found = adaptation.gather(crop, copies, detections)
    found = found[np.argsort(-found[:, 2])][:2]
    assert np.abs(found[:, :2] - true).max() < 0.3
    # Of a Gaussian with s = 0.5 pixels in x and y, about 1 / (1 + s^2 / PRECISION^2) agree with its middle.
    assert found[0, 2] == pytest.approx(0.59, rel=0.2) and found[1, 2] == pytest.approx(found[0, 2] / 2, rel=0.25)


def test_scattered_detections_agree_less():
    """Ten detections exactly at one keypoint, ten a pixel beside another, five exactly at a third."""
    keypoints = np.array([[10.0, 10.0], [50.0, 10.0], [90.0, 10.0]])
    beside = keypoints[1] + np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0.6, 0.8]] * 2)
    points = np.r_[np.repeat(keypoints[:1], 10, 0), beside, np.repeat(keypoints[2:], 5, 0)]
    agreed = adaptation.agreement(keypoints, points, np.ones(25))
    assert np.allclose(agreed, [10, 10 * np.exp(-0.5 / adaptation.PRECISION ** 2), 5])


def test_label_weights_are_half_at_the_wanted_density(tmp_path):
    """Two crops with 2 DENSITY points together above a confidence of 0.2, and more below."""
    count = labels.DENSITY
    strong = np.c_[np.zeros((2 * count, 2)), np.linspace(0.9, 0.2, 2 * count)]
    weak = np.c_[np.zeros((50, 2)), np.linspace(0.19, 0.01, 50)]
    labels.save(tmp_path / "labels.npz", [strong, weak])
    (_, first), (_, second) = labels.load(tmp_path / "labels.npz")
    assert first.max() == 1 and first.min() == pytest.approx(0.5)
    assert second.max() == pytest.approx(0.5 * np.sqrt(0.19 / 0.2)) and second.min() >= labels.LEAST


def test_target_lies_where_the_point_is():
    """The mean of a target's pixels is the point, also on the border of two cells; its sum is the weight."""
    point = np.array([[39.6, 24.3]])
    target = samples.target_map(point, np.array([0.7]), 80, 64, 0.6)
    y, x = np.mgrid[:64, :80]
    assert target.sum() == pytest.approx(0.7)
    assert np.allclose([(x * target).sum() / 0.7, (y * target).sum() / 0.7], point[0], atol=0.05)
    assert target[24, 40] == target.max() and target[24, 39] > 0.1


def test_cell_targets_are_probabilities():
    """A cell with one point of weight 0.7, one with two of weight 1, and empty ones."""
    places, weights = np.array([[4.0, 4.0], [12.0, 2.0], [12.0, 6.0]]), np.array([0.7, 1.0, 1.0])
    target = samples.target_map(places, weights, 24, 8, 0.3)
    cells = losses.cell_targets(torch.from_numpy(target)[None])[0, :, 0]
    assert torch.allclose(cells.sum(0), torch.ones(3))
    assert cells[64].tolist() == pytest.approx([0.3, 0, 1], abs=1e-4)
    assert cells[2 * 8 + 4, 1] == pytest.approx(0.5, abs=0.02)


def test_corners_of_shapes_lie_on_their_edges():
    """A square from 10.25 to 30.75: the gray of the pixels that its edge cuts says where the edge is."""
    canvas = shapes.Canvas(np.random.default_rng(1), 48, 40)
    canvas.image[:] = 0
    low, high = 10.25, 30.75
    outline = np.array([[low, low], [high, low], [high, high], [low, high]]) * shapes.OVERSAMPLING + 1.5
    canvas.polygon(outline, 255)
    picture, corners = canvas.picture()
    assert np.allclose(np.sort(corners.ravel()), [low] * 4 + [high] * 4)
    # Area = (side)^2 when a pixel stands for the square about its centre; drawing includes the outline itself.
    assert np.sqrt(picture.sum()) == pytest.approx(high - low, abs=0.3)


def test_hidden_corners_are_no_corners():
    canvas = shapes.Canvas(np.random.default_rng(1), 48, 40)
    small = np.array([[10, 10], [18, 10], [18, 18], [10, 18]]) * shapes.OVERSAMPLING
    large = np.array([[5, 5], [30, 5], [30, 30], [5, 30]]) * shapes.OVERSAMPLING
    canvas.polygon(small, 200)
    canvas.polygon(large, 100)
    assert len(canvas.picture()[1]) == 4
