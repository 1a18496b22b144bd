#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a running server for the keypoints of one picture and checks the answer.

    python tools/smoke_test.py --url http://127.0.0.1:20000 [--image FILE] [--save-json FILE]

Prints one line that starts with PASS, and exits 0; or one that starts with FAIL, and exits 1. Needs Python alone. With a
key (`lensing serve --api-key-file`), set LENSING_API_KEY.
"""
import argparse
import ast
import base64
import io
import json
import math
import os
import struct
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "examples" / "scene_1.jpg"
FEWEST, MOST = 200, 1024
NORM_TOLERANCE = 0.05
SECONDS = 60


class Failure(Exception):
    pass


def check(condition, problem):
    if not condition:
        raise Failure(problem)


def ask(url, path, body=None, content_type="application/json"):
    """The JSON that a path answers with 200; with a body, the request is a POST."""
    request = urllib.request.Request(url.rstrip("/") + path, data=body, headers={"Content-Type": content_type})
    if os.environ.get("LENSING_API_KEY"):
        request.add_header("Authorization", "Bearer " + os.environ["LENSING_API_KEY"])
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read(500).decode(errors="replace")
        raise Failure(f"{path}: {error.code} {text}") from None
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from None


def read_descriptors(field):
    """Rows of floats from `{"format": "npz", "key": ..., "dtype": "float16", "shape": [N, 256], "data": base64}`."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(field["data"], validate=True))) as archive:
        data = archive.read(field["key"] + ".npy")
    check(data[:8] == b"\x93NUMPY\x01\x00", "the descriptors are no NPY file of version 1.0")
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    check(header["descr"] == "<f2" and not header["fortran_order"], f"the descriptors are {header}")
    rows, columns = header["shape"]
    values = struct.unpack_from(f"<{rows * columns}e", data, 10 + length)
    check(len(data) == 10 + length + 2 * rows * columns, "the descriptors have another size than their header says")
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]


def check_answer(answer):
    """Returns the largest difference of a descriptor's length from 1."""
    count, points, scores = answer["num_keypoints"], answer["keypoints"], answer["scores"]
    width, height = answer["original_size"]["width"], answer["original_size"]["height"]
    check(FEWEST <= count <= MOST, f"{count} keypoints, expected {FEWEST} to {MOST}")
    check(len(points) == len(scores) == count, f"{len(points)} keypoints and {len(scores)} scores for a count of {count}")
    check(all(a >= b for a, b in zip(scores, scores[1:])), "the scores are not in descending order")
    check(all(0 < score <= 1 for score in scores), "a score is not in (0, 1]")
    check(all(0 <= x < width and 0 <= y < height for x, y in points), "a keypoint lies outside the picture")
    descriptors = read_descriptors(answer["descriptors"])
    check(answer["descriptors"]["shape"] == [count, 256], f"descriptors of shape {answer['descriptors']['shape']}")
    check(len(descriptors) == count and all(len(row) == 256 for row in descriptors), "the NPZ has another shape")
    worst = max(abs(1 - math.sqrt(math.fsum(value * value for value in row))) for row in descriptors)
    check(worst < NORM_TOLERANCE, f"the length of a descriptor differs from 1 by {worst:.3f}")
    return worst


def without_times(answer):
    return {key: value for key, value in answer.items() if key != "timing_ms"}


def run(url, image, save):
    health = ask(url, "/health")
    check(health["status"] == "ok", f"/health says {health['status']}")
    data = image.read_bytes()
    body = json.dumps({"image": base64.b64encode(data).decode()}).encode()
    answer = ask(url, "/predict", body)
    if save is not None:
        save.write_text(json.dumps(answer))
    worst = check_answer(answer)
    raw = ask(url, "/predict_raw", data, "application/octet-stream")
    check(without_times(raw) == without_times(answer), "/predict_raw gives another answer than /predict")
    size = answer["original_size"]
    return (f"{health['model']}: keypoints on {image.name} ({size['width']}x{size['height']}), "
            f"{answer['num_keypoints']} found, best score {answer['scores'][0]:.3f}, |1-norm| max {worst:.3f}, "
            f"forward {answer['timing_ms']['device_forward']:.1f} ms, total {answer['timing_ms']['total']:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description="Checks a running server with one picture.")
    parser.add_argument("--url", default="http://127.0.0.1:20000", help="of the server  [%(default)s]")
    parser.add_argument("--image", type=Path, default=PICTURE, metavar="FILE", help="picture to send  [examples/scene_1.jpg]")
    parser.add_argument("--save-json", type=Path, metavar="FILE", help="keep the answer of /predict here")
    arguments = parser.parse_args()
    try:
        print("PASS", run(arguments.url, arguments.image, arguments.save_json))
        return 0
    except (Failure, OSError) as failure:
        print("FAIL", failure)
    except (KeyError, IndexError, TypeError, ValueError, struct.error, zipfile.BadZipFile) as problem:
        print(f"FAIL the answer has another form: {type(problem).__name__}: {problem}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
