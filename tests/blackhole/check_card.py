#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network on the simulated Blackhole card against PyTorch in float32, on the original weights and real photos.

    LENSING_TTSIM=LIBRARY LENSING_TEST_DATA=FOLDER check_card.py [--build BUILD] [--runs N] [PHOTO...]

Each photo takes minutes. Without PHOTO three of LENSING_TEST_DATA/photos are taken. With --runs the card computes every
photo so many times, and the bytes must be the same. Measures as in tests/accuracy/check_bf16.py. Passes when for every
photo the correlations are at least 0.997 and 0.999, and F1 is at least 0.9879. Without one of the variables it prints
SKIP. The last line is "passed" or "failed", and the exit code is 1 when it failed.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

AT_LEAST = (0.997, 0.999, 0.9879)
PHOTOS = ("skimage_camera.png", "hpatches_v_dogman_1.ppm", "lightglue_DSC_0410.JPG")


def make_card(check_photos):
    class Card(check_photos.Library):
        """The program card_maps, running."""

        def __init__(self, build, weights):
            self.milliseconds = 0.0
            command = [build / "tests" / "blackhole" / "card_maps", weights]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def photo(self, path):
            answer = super().photo(path)
            self.milliseconds = float(self.take("<f8", 1)[0])
            return answer

    return Card


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="*", type=pathlib.Path, metavar="PHOTO")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    if not os.environ.get("LENSING_TTSIM") or not os.environ.get("LENSING_TEST_DATA"):
        print("SKIP: LENSING_TTSIM or LENSING_TEST_DATA is not set, no photo was computed on the simulated card")
        return 0
    import check_bf16
    import check_photos

    weights, found = check_photos.find_files(arguments.photos)
    photos = arguments.photos or [path for path in found if path.name in PHOTOS]
    card = make_card(check_photos)(arguments.build, weights)
    good = True
    for path in photos:
        figures = check_bf16.measure(card, weights, path)
        passed = bool((figures >= AT_LEAST).all())
        seconds = card.milliseconds / 1000
        if arguments.runs > 1:
            first = [answer.tobytes() for answer in card.photo(path)]
            same = all([answer.tobytes() for answer in card.photo(path)] == first for _ in range(arguments.runs - 1))
            print(f"{path.name}: {arguments.runs} runs, {'the same bytes' if same else 'DIFFERENT BYTES'}", flush=True)
            passed &= same
        good &= passed
        print(f"{'ok' if passed else 'FAIL'} {path.name}: {check_bf16.line(figures)}, {seconds:.0f} s", flush=True)
    card.close()
    print("passed" if good and photos else "failed")
    return 0 if good and photos else 1


if __name__ == "__main__":
    sys.exit(main())
