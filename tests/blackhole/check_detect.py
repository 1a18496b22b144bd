#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lensing detect --backend blackhole` against PyTorch in float32, on the original weights and real photos.

    LENSING_TTSIM=LIBRARY LENSING_TEST_DATA=FOLDER check_detect.py [--build BUILD] [--runs N] [PHOTO...]

Where check_card.py asks the network for its maps, this sees what a user of the program gets. Without PHOTO the three of
check_card.py are taken. The weights are given with a config.json that keeps keypoints at the edge, so that nothing of a map
is lost. Two commands detect in all photos, and each takes minutes a photo on the simulator:

- all pixels: radius 0, no threshold, no limit. Their scores are the map, and the descriptors at one pixel of each cell of
  8 x 8 stand for the map of descriptors;
- all keypoints: radius 4, where the card suppresses. They must be those that the reference finds in the first command's
  scores, with the same scores and in the same order. With --runs this command is given so many times, and its arrays must
  be the same bytes.

Passes when for every photo the correlations with float32 are at least 0.997 and 0.999 (of the cells' descriptors, and of
those of the keypoints), F1 of the 500 best keypoints, as in check_bf16.py, is at least 0.9879, and the keypoints are those
of the reference. Without one of the variables it prints SKIP. The last line is "passed" or "failed", and the exit code is 1
when it failed. --backend cpu rehearses the check without a card.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

from check_card import AT_LEAST, PHOTOS  # noqa: E402

RADIUS, BEST = 4, 500


def detect(arguments, folder, radius, photos):
    """The arrays of each photo, in their order, and the seconds that all took."""
    output = folder / f"radius-{radius}"
    output.mkdir(exist_ok=True)
    command = [arguments.build / "lensing", "detect", "--backend", arguments.backend, "-w", folder, "-f", "npz", "-q",
               "--nms-radius", str(radius), "--keypoint-threshold", "0", "-n", "-1", "-o", f"{output}/", *photos]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stderr}")
    seconds = time.monotonic() - start
    arrays = []
    for photo in photos:
        file = output / f"{photo.name}.npz"
        with np.load(file) as loaded:
            arrays.append(dict(loaded))
        file.unlink()
    return arrays, seconds


def pixels_of(found, reference):
    """Pixels of the frame, y * 640 + x, of keypoints, which are in pixels of the photo."""
    width, height = found["image_size"]
    x = np.rint(found["keypoints"][:, 0] * (reference.WIDTH / width)).astype(np.int64)
    y = np.rint(found["keypoints"][:, 1] * (reference.HEIGHT / height)).astype(np.int64)
    return y * reference.WIDTH + x


def map_of(found, reference):
    """The score map, and which pixels have a descriptor: one of each cell, and its place in `found`."""
    pixels = pixels_of(found, reference)
    scores = np.zeros(reference.WIDTH * reference.HEIGHT, np.float32)  # a pixel that is not there has the score 0
    scores[pixels] = found["scores"]
    middle = np.flatnonzero((pixels % reference.CELL == 4) & (pixels // reference.WIDTH % reference.CELL == 4))
    return scores.reshape(reference.HEIGHT, reference.WIDTH), pixels[middle], found["descriptors"][middle]


def check(weights, path, everything, keypoints, check_photos, check_bf16):
    """Figures and faults of one photo."""
    reference = check_photos.reference
    scores, descriptors = check_photos.reference_maps(weights, path, check_photos.read_frame(path)[1])
    my_scores, middle, my_descriptors = map_of(everything, reference)
    pixels = pixels_of(keypoints, reference)
    expected = reference.postprocess(my_scores, None, -1, 0.0, RADIUS, border=0)
    best = np.stack([pixels[:BEST] % reference.WIDTH, pixels[:BEST] // reference.WIDTH], 1)
    figures = np.array([
        check_bf16.correlation(scores, my_scores),
        min(check_bf16.correlation(reference.sample(descriptors, middle), my_descriptors),
            check_bf16.correlation(reference.sample(descriptors, pixels), keypoints["descriptors"])),
        check_bf16.f1(best, check_bf16.best_points(scores)),
    ])
    faults = [] if (figures >= AT_LEAST).all() else ["too far from float32"]
    if not np.array_equal(pixels, expected.pixels) or not np.array_equal(keypoints["scores"], expected.scores):
        faults.append(f"{len(pixels)} keypoints are not the {len(expected.pixels)} of the same scores")
    lengths = np.abs(np.linalg.norm(keypoints["descriptors"], axis=1) - 1).max()
    if not lengths < 1e-2:
        faults.append(f"a descriptor's length differs from 1 by {lengths:.2e}")
    return figures, len(pixels), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="*", type=pathlib.Path, metavar="PHOTO")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--backend", choices=("blackhole", "cpu"), default="blackhole")
    arguments = parser.parse_args()
    simulated = arguments.backend == "cpu" or os.environ.get("LENSING_TTSIM")
    if not simulated or not os.environ.get("LENSING_TEST_DATA"):
        print("SKIP: LENSING_TTSIM or LENSING_TEST_DATA is not set, nothing was detected on the simulated card")
        return 0
    import check_bf16
    import check_photos

    weights, found = check_photos.find_files(arguments.photos)
    photos = arguments.photos or [path for path in found if path.name in PHOTOS]
    good = bool(photos)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.safetensors").symlink_to(weights.resolve())
        (folder / "config.json").write_text(json.dumps({"border_removal_distance": 0}))
        keypoints, seconds = detect(arguments, folder, RADIUS, photos)
        print(f"radius {RADIUS}: {len(photos)} photos in {seconds:.0f} s", flush=True)
        for run in range(1, arguments.runs):
            again, _ = detect(arguments, folder, RADIUS, photos)
            same = all(a[key].tobytes() == b[key].tobytes() for a, b in zip(keypoints, again) for key in a)
            good &= same
            print(f"run {run + 1}: {'the same bytes' if same else 'DIFFERENT BYTES'}", flush=True)
        everything, seconds = detect(arguments, folder, 0, photos)
        print(f"radius 0: {len(photos)} photos in {seconds:.0f} s", flush=True)
    for path, all_pixels, points in zip(photos, everything, keypoints):
        figures, count, faults = check(weights, path, all_pixels, points, check_photos, check_bf16)
        print(f"{'FAIL' if faults else 'ok'} {path.name}: {check_bf16.line(figures)}, {count} keypoints", flush=True)
        for fault in faults:
            print(f"  {fault}")
        good &= not faults
    print("passed" if good else "failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
