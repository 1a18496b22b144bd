# SPDX-License-Identifier: Apache-2.0
"""The measures of bench/evaluate.py on cases made by hand, where the right answer is plain."""
import numpy as np
import pytest

from bench.evaluation import metrics

IDENTITY = np.eye(3)
SHIFT = np.array([[1.0, 0, 10], [0, 1, 0], [0, 0, 1]])  # ten pixels to the right


def points(*places):
    return np.array(places, float).reshape(-1, 2)


def pair_of(homography, width=100, height=80):
    picture = np.zeros((height, width), np.uint8)
    return metrics.Pair("made by hand", "test", picture, picture, homography)


def test_warp_points_divides_by_the_third_coordinate():
    homography = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 4]])
    assert np.allclose(metrics.warp_points(homography, points((6, 8))), [[3, 4]])


def test_detection_of_the_same_points():
    same = points((10, 10), (50, 40), (99, 79))
    assert metrics.detection(same, same, IDENTITY, 100, 80) == (1.0, 0.0)


def test_detection_counts_from_both_sides():
    """Two points against one: 1 of 2 found again one way, 1 of 1 the other; both at a distance of 2."""
    first, second = points((10, 10), (50, 40)), points((12, 10))
    assert metrics.detection(first, second, IDENTITY, 100, 80) == pytest.approx((2 / 3, 2.0))


def test_detection_stops_at_three_pixels():
    first = points((10, 10), (50, 40))
    assert metrics.detection(first, points((13, 10), (50, 43.1)), IDENTITY, 100, 80) == pytest.approx((0.5, 3.0))


def test_detection_leaves_out_what_the_other_picture_does_not_show():
    """x = 95 goes to 105, outside; x = 5 of the second comes from -5. What is left is found exactly."""
    first, second = points((20, 20), (95, 20)), points((30, 20), (5, 20))
    assert metrics.detection(first, second, SHIFT, 100, 80) == (1.0, 0.0)


def test_detection_without_shared_points_says_nothing():
    repeatability, localisation = metrics.detection(points((95, 20)), points((5, 20)), SHIFT, 100, 80)
    assert np.isnan(repeatability) and np.isnan(localisation)


def test_detection_against_no_points_is_zero():
    repeatability, localisation = metrics.detection(points((20, 20)), points(), IDENTITY, 100, 80)
    assert repeatability == 0 and np.isnan(localisation)


def test_mutual_matches():
    """Both of the first are nearest to the same of the second, which is nearest to only one of them."""
    first, second = np.float32([[0, 0], [0, 3]]), np.float32([[0, 2], [9, 9]])
    assert metrics.mutual_matches(first, second).tolist() == [[1, 0]]


def test_binary_descriptors_are_compared_by_bits():
    """As numbers 0x7F and 0x80 are neighbours; as bits all eight differ."""
    first, second = np.uint8([[0x7F]]), np.uint8([[0x80], [0x0F]])
    assert metrics.distances(first, second).tolist() == [[8, 3]]


def test_matches_of_nothing():
    assert metrics.mutual_matches(np.zeros((0, 4)), np.zeros((3, 4))).shape == (0, 2)


def test_corner_error_is_the_mean_over_corners():
    """Twice as large about the origin: corners move by 0, 99, 79 and the length of (99, 79)."""
    doubled = np.diag([2.0, 2, 1])
    expected = (0 + 99 + 79 + np.hypot(99, 79)) / 4
    assert metrics.corner_error(doubled, IDENTITY, 100, 80) == pytest.approx(expected)
    assert metrics.corner_error(SHIFT, IDENTITY, 100, 80) == pytest.approx(10)
    assert metrics.corner_error(None, IDENTITY, 100, 80) == np.inf


def test_wrong_matches_by_what_went_wrong():
    """Of eight matches three are right, one is 4 pixels off, two have no point at their place, two have another one."""
    expected = points(*((10 * x, 10) for x in range(8)))
    matched = expected.copy()
    matched[3] += [0, 4]
    matched[4], matched[5] = (0, 50), (0, 60)
    matched[6], matched[7] = (0, 70), (0, 75)
    seen = np.r_[matched, expected[6:] + [0, 2]]
    assert metrics.wrong_matches(expected, matched, seen) == \
        {"wrong_near": 1 / 8, "wrong_unseen": 2 / 8, "wrong_confused": 2 / 8}
    assert set(metrics.wrong_matches(points(), points(), seen).values()) == {0.0}


def test_measure():
    """Five points with descriptors that pair them up; four lie where they should, one 4 pixels off."""
    pytest.importorskip("cv2")
    first = points((10, 10), (70, 12), (60, 70), (15, 65), (40, 40))
    second = first + [10, 0]
    second[4] += [0, 4]
    descriptors = np.eye(5, dtype=np.float32)
    row = metrics.measure(metrics.Features(first, descriptors), metrics.Features(second, descriptors), pair_of(SHIFT))
    assert row["repeatability"] == pytest.approx(0.8)
    assert row["localisation"] == pytest.approx(0)
    assert row["matching_accuracy"] == pytest.approx(0.8)
    assert row["correct_matches"] == 4
    assert [row[f"homography_{reach}px"] for reach in (1, 3, 5)] == [1, 1, 1]
    assert [row[f"wrong_{kind}"] for kind in ("near", "unseen", "confused")] == pytest.approx([0.2, 0, 0])


def test_measure_of_a_homography_between_one_and_three_pixels():
    """All matches two pixels off in the same direction: correct, but so is the estimate off by two."""
    pytest.importorskip("cv2")
    first = points((10, 10), (70, 12), (60, 70), (15, 65), (40, 40))
    descriptors = np.eye(5, dtype=np.float32)
    second = metrics.Features(first + [12, 0], descriptors)
    row = metrics.measure(metrics.Features(first, descriptors), second, pair_of(SHIFT))
    assert row["matching_accuracy"] == 1 and row["localisation"] == pytest.approx(2)
    assert [row[f"homography_{reach}px"] for reach in (1, 3, 5)] == [0, 1, 1]


def test_measure_of_a_detector_alone():
    row = metrics.measure(metrics.Features(points((5, 5)), None), metrics.Features(points((5, 5)), None),
                          pair_of(IDENTITY))
    assert set(row) == {"repeatability", "localisation"}


def test_measure_with_nothing_found():
    nothing = metrics.Features(points(), np.zeros((0, 256), np.float32))
    row = metrics.measure(nothing, nothing, pair_of(IDENTITY))
    assert row["matching_accuracy"] == 0 and row["correct_matches"] == 0 and row["homography_5px"] == 0


def test_summary():
    """NaN is left out; all values alike have an interval of no width; two values have one between them."""
    assert metrics.summary([2.0, np.nan, 2.0]) == {"mean": 2.0, "interval": [2.0, 2.0]}
    both = metrics.summary([0.0, 1.0] * 50)
    assert both["mean"] == 0.5
    # The standard error of 100 fair coins is 0.05, and 95 % lie within 1.96 of them.
    assert both["interval"] == pytest.approx([0.4, 0.6], abs=0.021)


def test_ratio_resamples_pairs_together():
    """Every pair has twice the reference's value, so the ratio is certain however much the values vary."""
    reference = np.arange(1.0, 20.0)
    ratio = metrics.ratio(2 * reference, reference)
    assert [ratio["mean"], *ratio["interval"]] == pytest.approx([2.0, 2.0, 2.0])
