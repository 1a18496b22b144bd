# SPDX-License-Identifier: Apache-2.0
"""What a step of training sees, and how it judges descriptors."""
import numpy as np
import pytest

pytest.importorskip("cv2")
torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

import geometry  # noqa: E402
import losses  # noqa: E402
import photometry  # noqa: E402
import samples  # noqa: E402


@pytest.mark.parametrize("change", ["motion_blur", "sharpen"])
def test_blur_and_sharpening_move_nothing(change):
    """The middle of a dot stays where it is; labels do not move either."""
    y, x = np.mgrid[:31, :31]
    dot = np.exp(-((x - 15) ** 2 + (y - 15) ** 2) / 18).astype(np.float32)
    for seed in range(40):
        changed = getattr(photometry, change)(np.random.default_rng(seed), dot)
        assert not np.allclose(changed, dot, atol=1e-3)
        assert [(x * changed).sum() / changed.sum(), (y * changed).sum() / changed.sum()] == pytest.approx([15, 15], abs=0.1)


def test_sharpening_steepens_an_edge_and_keeps_flat_parts():
    edge = np.repeat(np.array([[0.3] * 16 + [0.7] * 16], np.float32), 32, 0)
    blurred = (edge + np.roll(edge, 1, 1) + np.roll(edge, -1, 1)) / 3
    sharp = photometry.sharpen(np.random.default_rng(1), blurred)
    assert np.abs(np.diff(sharp[16, 5:27])).max() > np.abs(np.diff(blurred[16, 5:27])).max() + 0.01
    assert np.allclose(sharp[:, [8, 24]], blurred[:, [8, 24]], atol=1e-3)


def test_correspondences_are_the_same_places_in_both_views():
    """Keypoints come first and weigh most; those that a view does not show are left out."""
    options = samples.Options(width=64, height=48, correspondences=40)
    first = np.array([[1, 0, -10], [0, 1, -5], [0, 0, 1.0]])
    second = np.array([[0.8, -0.2, 4], [0.2, 0.8, -7], [0, 0, 1.0]])
    keypoints = np.array([[40.0, 30], [45.5, 25.25], [500, 500]])
    shown = [np.ones((48, 64), np.uint8), np.ones((48, 64), np.uint8)]
    places, weights = samples.correspondences(np.random.default_rng(2), keypoints, first, second, shown, options)
    assert places.shape == (40, 4) and weights.tolist() == [1.0] * 2 + [samples.ANYWHERE_WEIGHT] * 38
    in_crop = [geometry.warp_points(np.linalg.inv(view), part) for view, part in
               ((first, places[:, :2]), (second, places[:, 2:]))]
    assert np.allclose(*in_crop)
    assert sorted(in_crop[0][:2].tolist()) == [pytest.approx(point) for point in keypoints[:2].tolist()]


def descriptor_map(vectors):
    """(1, 256, 1, 3): a vector for each of three cells."""
    return torch.tensor(vectors, dtype=torch.float32).T.reshape(1, -1, 1, 3)


def test_descriptor_loss_is_the_weighted_mean_of_cross_entropies():
    """The first of three places finds its partner, the second and third are alike. They lie where SuperPoint's sampling
    takes one cell alone: it has the last cell at width - 1."""
    middles = torch.tensor([[3.5 + cell * (24 - 4.5) / 2, 3.5] for cell in range(3)])
    places = torch.cat([middles, middles], 1)[None]
    first = np.zeros((3, 256))
    first[0, 0] = first[1, 1] = first[2, 1] = 1
    second = first.copy()
    second[2, 1], second[2, 2] = 0.6, 0.8
    both = torch.cat([descriptor_map(first), descriptor_map(second)])
    weights = torch.tensor([[1.0, 0.5, 0.5]])
    loss, matched = losses.descriptor_loss(both, places, weights, 8, 24)

    similar = first @ second.T / losses.TEMPERATURE
    forth = np.log(np.exp(similar).sum(1)) - np.diag(similar)
    back = np.log(np.exp(similar).sum(0)) - np.diag(similar)
    assert loss.item() == pytest.approx(weights.numpy()[0] @ (forth + back) / 2 / 2, rel=1e-4)
    assert matched.item() == pytest.approx(0.75)
    ignored, _ = losses.descriptor_loss(both, places, torch.tensor([[1.0, 0.5, 0.0]]), 8, 24)
    assert ignored.item() < 1e-6 < loss.item()


def test_places_closer_than_keypoints_can_be_are_no_negatives():
    places = torch.tensor([[10.0, 3.5], [10.0 + losses.NEIGHBOURHOOD - 0.5, 3.5]])
    places = torch.cat([places, places], 1)[None]
    same = torch.ones(2, 256, 1, 3)
    near, _ = losses.descriptor_loss(same, places, torch.ones(1, 2), 8, 24)
    places[0, 1, [0, 2]] += 1
    far, _ = losses.descriptor_loss(same, places, torch.ones(1, 2), 8, 24)
    assert near.item() == pytest.approx(0) and far.item() == pytest.approx(np.log(2))
