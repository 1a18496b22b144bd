# SPDX-License-Identifier: Apache-2.0
"""The first labels, without any network: corners that stay corners in warped copies of a crop.

    python training/label_corners.py FOLDER [--warps N] [--processes N]

Reads FOLDER/crops.npy, writes FOLDER/labels_corners.npz. Corners are maxima of the smaller eigenvalue of the structure
tensor (Shi and Tomasi), moved to where the edges around them meet to a fraction of a pixel."""
import argparse
import multiprocessing
import pathlib
import time

import cv2
import numpy as np

import adaptation
import labels

MOST = 300          # corners of one copy
QUALITY = 0.012     # of the strongest corners' response
LEAST = 2e-4        # response, for pictures with nothing in them
REFINE_WINDOW = 3   # pixels to each side that vote on where edges meet
FARTHEST_MOVE = 1.5


def corners(picture):
    """Points (n, 2) of a float32 picture."""
    response = cv2.cornerMinEigenVal(cv2.GaussianBlur(picture, (0, 0), 0.8), 5, 3)
    strongest = np.partition(response.ravel(), -20)[-20]
    maxima = response == cv2.dilate(response, np.ones((7, 7), np.uint8))
    maxima &= response > max(QUALITY * strongest, LEAST)
    border = adaptation.BORDER
    inner = np.zeros_like(maxima)
    inner[border:-border, border:-border] = maxima[border:-border, border:-border]
    rows, columns = np.nonzero(inner)
    order = np.argsort(-response[rows, columns])[:MOST]
    return refine(picture, np.c_[columns[order], rows[order]].astype(np.float32))


def refine(picture, points):
    if len(points) == 0:
        return points.astype(np.float64)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 10, 0.02)
    window = (REFINE_WINDOW, REFINE_WINDOW)
    bytes_ = np.clip(picture * 255, 0, 255).astype(np.uint8)
    moved = cv2.cornerSubPix(bytes_, points.reshape(-1, 1, 2).copy(), window, (-1, -1), stop).reshape(-1, 2)
    # Where no edges meet, as on blobs, the equations have no good solution; the maximum then stands.
    astray = np.linalg.norm(moved - points, axis=1) > FARTHEST_MOVE
    return np.where(astray[:, None], points, moved).astype(np.float64)


def label(task):
    crop, seed, warps = task
    cv2.setNumThreads(1)
    copies = adaptation.warped_copies(np.random.default_rng(seed), crop, warps)
    found = [corners(picture) for picture, _ in copies]
    return adaptation.gather(crop, copies, [(points, np.ones(len(points), np.float32)) for points in found])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--warps", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=2)
    arguments = parser.parse_args()
    crops = np.load(arguments.folder / "crops.npy")
    tasks = ((crop, (arguments.seed, index), arguments.warps) for index, crop in enumerate(crops))
    start = time.monotonic()
    found = []
    with multiprocessing.Pool(arguments.processes) as pool:
        for points in pool.imap(label, tasks, chunksize=8):
            found.append(points)
            if len(found) % 200 == 0:
                print(f"{len(found)} of {len(crops)} crops, {time.monotonic() - start:.0f} s", flush=True)
    labels.save(arguments.folder / "labels_corners.npz", found)
    print(f"{len(found)} crops, {np.mean([len(points) for points in found]):.0f} points each, "
          f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
