# SPDX-License-Identifier: Apache-2.0
"""How well keypoints are found again: SuperPoint weights, run by Lensing, and OpenCV's detectors, on the same pairs.

    python bench/evaluate.py --data FOLDER [--program build/lensing] [--weights NAME=FILE ...] [--opencv sift,orb,akaze]
                             [--reference NAME] [--quick] [--json FILE] [--merge FILE ...]

FOLDER/photos holds photos and HPatches sequences (hpatches_SEQUENCE_N.ppm, hpatches_SEQUENCE_H_1_N.txt). Pairs are the
first picture of each sequence with the others, and synthetic views of every photo, easy, medium and hard. All
contenders get the same pictures of 480 x 640, and keep their best 500 points; SuperPoint with suppression radius 4 and
threshold 0.005. Matches are mutual nearest neighbours, homographies OpenCV's RANSAC at 3 pixels.

Prints a table of means with 95 % bootstrap intervals over pairs, for the HPatches pairs, each level, and all
synthetic pairs, and the ratios to the reference, pair by pair. Wrong matches are parted by what went wrong. For
weights it also counts the keypoints above the threshold in the photos, and in empty pictures. --json keeps every
single value; --merge adds the contenders of such a file to the tables without running them again. --quick takes a few
of the pairs."""
import argparse
import json
import math
import pathlib
import sys
import tempfile
import time

import numpy as np
from PIL import Image

from evaluation import detectors, metrics, pairs

LIMIT = 500
MEASURES = {"repeatability": ("repeatability", 3), "localisation": ("localisation px", 2),
            "matching_accuracy": ("matching acc.", 3), "correct_matches": ("correct", 1),
            "homography_1px": ("H 1 px", 3), "homography_3px": ("H 3 px", 3), "homography_5px": ("H 5 px", 3)}
WRONG = {"wrong_near": "3 to 6 px off", "wrong_unseen": "no point there", "wrong_confused": "another taken"}
EMPTY_GRAYS = (0, 16, 128, 255)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/lensing"))
    parser.add_argument("--weights", action="append", default=[], metavar="NAME=FILE",
                        help="may be given several times; weights without a descriptor head are measured as a detector")
    parser.add_argument("--opencv", default="", metavar="NAMES", help="of sift, orb, akaze, with commas")
    parser.add_argument("--reference", metavar="NAME", help="print ratios to this contender")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="HPatches and 18 synthetic pairs")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--merge", type=pathlib.Path, action="append", default=[], metavar="FILE")
    arguments = parser.parse_args()
    for name in filter(None, arguments.opencv.split(",")):
        if name not in detectors.OpenCV.NAMES:
            parser.error(f"--opencv {name}: not one of {', '.join(detectors.OpenCV.NAMES)}")
    for entry in arguments.weights:
        name, _, path = entry.partition("=")
        if not name or not pathlib.Path(path).exists():
            parser.error(f"--weights {entry}: expected NAME=FILE with a file that exists")
    return arguments


def make_pairs(photos, quick):
    synthetic = pairs.synthetic_pairs(photos, per_level=1, every=3) if quick else pairs.synthetic_pairs(photos)
    return pairs.hpatches_pairs(photos) + synthetic


def evaluate(contender, all_pairs):
    """The measures of every pair, by measure. Every different picture is looked at once."""
    pictures, index_of = [], {}
    for pair in all_pairs:
        for picture in (pair.first, pair.second):
            if index_of.setdefault(picture.tobytes(), len(pictures)) == len(pictures):
                pictures.append(picture)
    features = contender.features(pictures, LIMIT)
    rows = [metrics.measure(features[index_of[pair.first.tobytes()]], features[index_of[pair.second.tobytes()]], pair)
            for pair in all_pairs]
    return {name: [row[name] for row in rows] for name in rows[0]}


def count_keypoints(contender, photos):
    with tempfile.TemporaryDirectory() as folder:
        empty = [pathlib.Path(folder) / f"{gray}.png" for gray in EMPTY_GRAYS]
        for gray, path in zip(EMPTY_GRAYS, empty):
            Image.new("L", (pairs.WIDTH, pairs.HEIGHT), gray).save(path)
        return {"photos": contender.counts(pairs.photo_files(photos)), "empty": contender.counts(empty)}


def contenders(arguments):
    for entry in arguments.weights:
        name, _, path = entry.partition("=")
        yield name, detectors.Lensing(arguments.program, path, arguments.threads)
    for name in filter(None, arguments.opencv.split(",")):
        yield name, detectors.OpenCV(name)


def run(arguments):
    """{"pairs": [[name, group]], "contenders": {name: {"measures", "seconds", "counts"}}}"""
    photos = arguments.data / "photos"
    all_pairs = make_pairs(photos, arguments.quick)
    result = {"pairs": [[pair.name, pair.group] for pair in all_pairs], "contenders": {}}
    for path in arguments.merge:
        other = json.loads(path.read_text())
        if other["pairs"] != result["pairs"]:
            raise SystemExit(f"{path}: made from other pairs")
        result["contenders"].update(other["contenders"])
    for name, contender in contenders(arguments):
        start = time.monotonic()
        entry = {"measures": evaluate(contender, all_pairs)}
        if isinstance(contender, detectors.Lensing):
            entry["counts"] = count_keypoints(contender, photos)
        entry["seconds"] = time.monotonic() - start
        result["contenders"][name] = entry
        print(f"{name}: {entry['seconds']:.0f} s", file=sys.stderr, flush=True)
    return result


# ---- Tables ----------------------------------------------------------------------------------------


def groups(result):
    """(title, indices of its pairs), the levels of the synthetic pairs also together."""
    names = [group for _, group in result["pairs"]]
    single = [(group, [i for i, name in enumerate(names) if name == group]) for group in dict.fromkeys(names)]
    synthetic = [i for i, name in enumerate(names) if name in pairs.LEVELS]
    return [*single, ("synthetic", synthetic), ("all", list(range(len(names))))]


def shown(statistic, digits):
    low, high = statistic["interval"]
    if math.isnan(statistic["mean"]):
        return "-"
    return f"{statistic['mean']:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def table(title, header, rows):
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def report(result, reference):
    header = ["", *(title for title, _ in MEASURES.values())]
    for title, indices in groups(result):
        rows, relative = [], []
        for name, entry in result["contenders"].items():
            measures = entry["measures"]
            rows.append([name, *(shown(metrics.summary(np.array(measures[key], float)[indices]), digits)
                                 if key in measures else "-" for key, (_, digits) in MEASURES.items())])
            base = result["contenders"].get(reference, {}).get("measures", {})
            if base and name != reference:
                relative.append([name, *(shown(metrics.ratio(np.array(measures[key], float)[indices],
                                                             np.array(base[key], float)[indices]), 3)
                                         if key in measures and key in base else "-" for key in MEASURES)])
        table(f"{title}: {len(indices)} pairs", header, rows)
        if relative:
            table(f"{title}: ratio to {reference}", header, relative)
        report_wrong_matches(title, result, indices)
    report_counts(result, reference)


def report_wrong_matches(title, result, indices):
    rows = []
    for name, entry in result["contenders"].items():
        measures = entry["measures"]
        if all(key in measures for key in WRONG):
            rows.append([name, *(shown(metrics.summary(np.array(measures[key], float)[indices]), 3) for key in WRONG)])
    if rows:
        table(f"{title}: wrong matches, as shares of all matches", ["", *WRONG.values()], rows)


def report_counts(result, reference):
    counted = {name: entry["counts"] for name, entry in result["contenders"].items() if "counts" in entry}
    rows = []
    for name, counts in counted.items():
        relative = "-"
        if reference in counted:
            ratios = np.array(counts["photos"]) / np.maximum(counted[reference]["photos"], 1)
            relative = f"{np.sum(counts['photos']) / np.sum(counted[reference]['photos']):.2f}, " \
                       f"{ratios.min():.2f}-{ratios.max():.2f}"
        rows.append([name, f"{np.mean(counts['photos']):.0f}", relative, str(max(counts["empty"]))])
    if rows:
        header = ["", "mean of photos", f"to {reference}: all, least-most", "most of empty pictures"]
        table("Keypoints above 0.005", header, rows)


def main():
    arguments = read_arguments()
    result = run(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(result))
    report(result, arguments.reference)


if __name__ == "__main__":
    main()
