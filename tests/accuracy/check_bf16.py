# SPDX-License-Identifier: Apache-2.0
"""Every photo of LENSING_TEST_DATA/photos: the network in bfloat16 against PyTorch in float32, on the original weights.

    LENSING_TEST_DATA=FOLDER check_bf16.py [--build BUILD] [--threads N] [PHOTO...]

The reference is that of check_photos.py. Prints one line a photo, the mean and the worst; the last line is "passed" or
"failed", and the exit code is 1 when it failed. Without LENSING_TEST_DATA it prints SKIP.

Measures: Pearson correlation of the score maps before suppression and of the descriptor maps, and F1 of keypoints: the
500 highest scores of each map after suppression with radius 4, without threshold and border; a point is found when the
other list has one within 2 pixels along both axes.

Passes when over all photos the means are at least 0.9991, 0.9992 and 0.985, and for every photo the correlations are at
least 0.998 and 0.9985.
"""

import argparse
import pathlib
import sys

import numpy as np
import torch

from check_photos import ROOT, Library, find_files, read_frame, reference, reference_maps

MEASURES = ("score correlation", "descriptor correlation", "F1")
MEAN_AT_LEAST = np.array([0.9991, 0.9992, 0.985])
EACH_AT_LEAST = np.array([0.998, 0.9985, 0.0])
RADIUS, POINTS, TOLERANCE = 4, 500, 2


def correlation(a, b):
    return np.corrcoef(a.flatten().astype(np.float64), b.flatten().astype(np.float64))[0, 1]


def best_points(scores):
    """x and y of the highest scores after suppression."""
    suppressed = reference.suppress(scores.copy(), RADIUS).numpy().flatten()
    pixels = np.argsort(-suppressed, kind="stable")[:POINTS]
    return np.stack([pixels % reference.WIDTH, pixels // reference.WIDTH], 1)


def found(points, others):
    """Share of the points that have one of the others near them."""
    distances = np.abs(points[:, None] - others[None]).max(2)
    return np.mean(distances.min(1) <= TOLERANCE)


def f1(mine, theirs):
    precision, recall = found(mine, theirs), found(theirs, mine)
    return 2 * precision * recall / max(precision + recall, 1e-9)


def measure(library, weights, path):
    _, frame = read_frame(path)
    scores, descriptors = reference_maps(weights, path, frame)
    _, my_frame, my_scores, my_descriptors = library.photo(path)
    if not np.array_equal(frame, my_frame):
        sys.exit(f"{path}: the frame differs from Pillow's")
    return np.array([correlation(scores, my_scores), correlation(descriptors, my_descriptors),
                     f1(best_points(my_scores), best_points(scores))])


def line(figures):
    return ", ".join(f"{name} {value:.6f}" for name, value in zip(MEASURES, figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="*", type=pathlib.Path, metavar="PHOTO")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    weights, photos = find_files(arguments.photos)
    if weights is None:
        print("SKIP: LENSING_TEST_DATA is not set")
        return 0
    torch.set_num_threads(1)
    library, all_figures, good = Library(arguments.build, weights, arguments.threads, "bf16"), [], True
    for path in photos:
        figures = measure(library, weights, path)
        passed = bool((figures >= EACH_AT_LEAST).all())
        good &= passed
        all_figures.append(figures)
        print(f"{'ok' if passed else 'FAIL'} {path.name}: {line(figures)}", flush=True)
    library.close()
    mean = np.mean(all_figures, 0)
    good &= bool((mean >= MEAN_AT_LEAST).all())
    print(f"mean of {len(photos)} photos: {line(mean)}")
    print(f"worst: {line(np.min(all_figures, 0))}")
    print("passed" if good else "failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
