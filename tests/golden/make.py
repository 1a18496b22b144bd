# SPDX-License-Identifier: Apache-2.0
"""Writes the expected results that the C tests of src/superpoint compare with; README.md says what is in them.

Needs PyTorch and NumPy; takes about a minute. Score maps are made of the numbers of synthetic.py, so that
tests/unit/superpoint/test_postprocess.c can make the same ones.
"""

import pathlib
import struct

import numpy as np
import torch

import reference
import synthetic

FOLDER = pathlib.Path(__file__).resolve().parent
RADII = (0, 1, 3, 4, 8, 12, 32)
THRESHOLDS = (0.0, 0.005, 0.015)
LIMITS = (-1, 0, 5, 1024)
COUNTS = (0, 1, 2, 4, 5, 6, 1023, 1024, 1025)
MAP_STREAM = 2000

KINDS = ("random", "ties", "plateaus", "constant", "sparse", "border", "threshold", "counts")


def bits_to_float(bits):
    return bits.astype(np.uint32).view(np.float32)


def score_map(kind, variant):
    """Score map of a kind; `variant` is the number of points for "counts", else 0."""
    y, x = np.mgrid[0:480, 0:640]
    u = synthetic.numbers(MAP_STREAM + KINDS.index(kind), 480 * 640).reshape(480, 640)
    low = (u & np.uint64(0xFFFF)).astype(np.int64)
    random = (u >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    if kind == "random":
        return random * np.float32(0.03125)
    if kind == "ties":
        return (low % 16).astype(np.float32) * np.float32(1 / 512)
    if kind == "plateaus":
        return (low.flatten()[y // 5 * 92 + x // 7] % 32).astype(np.float32) * np.float32(1 / 1024)
    if kind == "constant":
        return np.full((480, 640), 0.01, np.float32)
    if kind == "sparse":
        return np.where(low % 997 == 0, random, np.float32(0))
    if kind == "border":
        distance = np.minimum(np.minimum(x, 639 - x), np.minimum(y, 479 - y))
        return random * np.where((distance < 6) & (low % 4 == 0), np.float32(1), np.float32(0.03125))
    if kind == "threshold":
        base = np.where(low & 8, np.float32(0.005), np.float32(0.015)).view(np.uint32).astype(np.int64)
        return np.where(low & 16, bits_to_float(base + low % 5 - 2), np.float32(0))
    scores = np.zeros((480, 640), np.float32)
    for i in range(variant):
        scores[4 + 8 * (i // 78), 4 + 8 * (i % 78)] = np.float32(0.02) + np.float32(i * 7919 % 64) * np.float32(1 / 4096)
    return scores


def digest(pixels, scores):
    """Number that depends on every keypoint and its place."""
    with np.errstate(over="ignore"):
        keys = scores.view(np.uint32).astype(np.uint64) << np.uint64(32) | pixels.astype(np.uint64)
        places = 2 * np.arange(len(keys), dtype=np.uint64) + np.uint64(1)
        return int(np.sum(synthetic.mix(keys) * places, dtype=np.uint64))


def selection_cases():
    for kind in KINDS:
        for variant in COUNTS if kind == "counts" else (0,):
            scores = score_map(kind, variant)
            for radius in (0, 4) if kind == "counts" else RADII:
                suppressed = reference.suppress(scores, radius)
                for t, threshold in enumerate(THRESHOLDS):
                    for limit in LIMITS:
                        pixels, values = reference.select(suppressed, limit, threshold)
                        yield kind, variant, radius, t, limit, len(pixels), digest(pixels, values)


def write_selection():
    lines = []
    for kind, variant, radius, t, limit, count, number in selection_cases():
        lines.append(f"    {{MAP_{kind.upper()}, {variant}, {radius}, {t}, {limit}, {count}, 0x{number:x}U}},")
    kinds = ", ".join("MAP_" + kind.upper() for kind in KINDS)
    return f"""
enum {{ {kinds} }};

static const struct {{
    int kind, variant, radius, threshold, limit;
    uint32_t count;
    uint64_t digest;
}} selection_cases[] = {{
""" + "\n".join(lines) + "\n};\n"


SAMPLE_X = (0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 319, 320, 321, 634, 635, 636, 637, 638, 639)
SAMPLE_Y = (0, 3, 4, 240, 475, 476, 479)
SAMPLE_STREAM = 3000
SAMPLE_STEP = 37  # every so-many-th number of each descriptor is kept


def write_samples():
    planes = synthetic.spread(SAMPLE_STREAM, 60 * 80 * 256, 1).reshape(60, 80, 256)
    pixels = [y * 640 + x for y in SAMPLE_Y for x in SAMPLE_X]
    descriptors = reference.sample(planes, pixels)
    lines = []
    for pixel, descriptor in zip(pixels, descriptors):
        numbers = ", ".join(float(v).hex() + "F" for v in descriptor[::SAMPLE_STEP])
        lines.append(f"    {{{pixel}, {{{numbers}}}}},")
    return f"""
enum {{ SAMPLE_STEP = {SAMPLE_STEP}, SAMPLE_NUMBERS = {len(descriptors[0][::SAMPLE_STEP])} }};

static const struct {{
    uint32_t pixel;
    float numbers[SAMPLE_NUMBERS];
}} sample_cases[] = {{
""" + "\n".join(lines) + "\n};\n"


def write_network():
    scores, descriptors = reference.network(synthetic.weights(), synthetic.frame())
    keypoints = reference.postprocess(scores, descriptors)
    cells = np.arange(200) * 24
    channels = np.stack([descriptors.reshape(-1, 256)[cell, j % 4 :: 4] for j, cell in enumerate(cells)])
    count, described = len(keypoints.pixels), 32
    with open(FOLDER / "network.bin", "wb") as file:
        file.write(b"LNSGOLD1" + struct.pack("<6I", 37, len(scores.flatten()[::37]), 24, len(cells), count, described))
        file.write(scores.flatten()[::37].astype("<f4").tobytes())
        file.write(channels.astype("<f4").tobytes())
        file.write(keypoints.pixels.astype("<u4").tobytes())
        file.write(keypoints.scores.astype("<f4").tobytes())
        file.write(keypoints.descriptors[:described].astype("<f4").tobytes())


def main():
    torch.set_num_threads(1)
    write_network()
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tests/golden/make.py. */\n"
    (FOLDER / "postprocess_golden.h").write_text(head + write_selection() + write_samples())


if __name__ == "__main__":
    main()
