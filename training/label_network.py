# SPDX-License-Identifier: Apache-2.0
"""Labels by the network: what it finds again in warped copies of a crop.

    python training/label_network.py FOLDER --weights FILE --output FILE [--warps N] [--minutes M]

FILE of --weights is the weights.safetensors of a stage. Every 200 crops the labels so far are kept beside the output,
and the same command goes on from them."""
import argparse
import math
import pathlib
import time

import cv2
import numpy as np
import torch

import adaptation
import labels
import photometry
from network import load, score_map
from train import write

KEEP_EVERY = 200
BATCH = 8          # copies at a time
REACH = 1          # pixels around a maximum that share its score
LEAST_SCORE = 0.01
STRENGTH = 0.7     # of the photometric changes of every second copy


@torch.no_grad()
def scores(network, pictures):
    """Score maps (n, height, width) float32 tensor."""
    return score_map(network.score_logits(network.features(torch.from_numpy(pictures)[:, None])))


def peaks(maps):
    """Maxima of score maps: [(points (k, 2), weights (k))].

    The position is the mean of the pixels around the maximum, weighted with their scores: the network was taught to
    share a point's probability among them according to where between them it lies. The weight is their sum."""
    window, width = np.ones((2 * adaptation.DISTANCE + 1,) * 2, np.uint8), maps.shape[2]
    border = adaptation.BORDER
    found = []
    steps = range(-REACH, REACH + 1)
    for scores_ in maps.numpy():
        maxima = (scores_ == cv2.dilate(scores_, window)) & (scores_ > LEAST_SCORE)
        rows, columns = (places + border for places in np.nonzero(maxima[border:-border, border:-border]))
        flat = scores_.ravel()
        around = np.stack([flat[(rows + y) * width + columns + x] for y in steps for x in steps], 1)
        offsets = np.array([(x, y) for y in steps for x in steps], np.float64)
        weights = around.sum(1)
        points = np.c_[columns, rows] + around @ offsets / weights[:, None]
        found.append((points, np.minimum(weights, 1)))
    return found


def label(network, crop, random, warps):
    copies = adaptation.warped_copies(random, crop, warps)
    pictures = np.stack([photometry.degrade(random, picture, STRENGTH) if index % 2 else picture
                         for index, (picture, _) in enumerate(copies)])
    detections = []
    for first in range(0, warps, BATCH):
        detections += peaks(scores(network, pictures[first:first + BATCH]))
    return adaptation.gather(crop, copies, detections)


def read_finished(path):
    if not path.exists():
        return []
    with np.load(path) as file:
        return np.split(file["points"], file["starts"][1:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--warps", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this long, to be continued")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(1)
    crops = np.load(arguments.folder / "crops.npy", mmap_mode="r")
    network = load(arguments.weights, crops).eval()
    unfinished = arguments.output.with_suffix(".unfinished.npz")
    found = read_finished(unfinished)
    start = time.monotonic()
    for index in range(len(found), len(crops)):
        random = np.random.default_rng((arguments.seed, index))
        found.append(label(network, crops[index], random, arguments.warps))
        if len(found) % KEEP_EVERY == 0:
            write(unfinished, lambda path: labels.save(path, found))
            print(f"{len(found)} of {len(crops)} crops, {np.mean([len(points) for points in found]):.0f} points each, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
            if time.monotonic() - start > 60 * arguments.minutes:
                return
    write(arguments.output, lambda path: labels.save(path, found))
    unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
