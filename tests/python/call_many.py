# SPDX-License-Identifier: Apache-2.0
"""Calls a model many times in every way, and prints how much memory grew after the first hundred calls.

    call_many.py WEIGHTS IMAGE CALLS

Two numbers, in bytes: memory of the process, and memory that Python's objects take.
"""

import contextlib
import gc
import os
import pickle
import sys
import tracemalloc

import numpy as np

import lensing

WARM_UP = 100


def resident():
    """Memory of this process, bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def call(model, number, path, pixels):
    """One detection, and around it what else is used."""
    forms = [path, path.encode(), pixels, pixels[::-1], pixels[..., :1] / 255]
    image = forms[number % len(forms)]
    if isinstance(image, bytes):
        with open(path, "rb") as file:
            image = file.read()
    features = next(model.iter([image])) if number % 2 else model(image)
    assert features.descriptors is not None
    features.scores.sum()
    for wrong in (b"no image", np.zeros((3, 3, 2), np.uint8), None, "absent.jpg"):
        with contextlib.suppress(lensing.Error, ValueError, TypeError, OSError):
            model(wrong)
    if number % 10 == 0:
        other = pickle.loads(pickle.dumps(features))
        matches = lensing.match(features, other)
        assert len(matches.pairs) == len(matches.similarity)
        features.to_dict(descriptors=True)
        features.draw(pixels)


def main():
    weights, path, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tracemalloc.start()
    model = lensing.SuperPoint(weights)
    pixels = np.random.default_rng(1).integers(0, 256, (217, 333, 3), np.uint8)
    before = None
    for number in range(calls):
        if number == WARM_UP:
            gc.collect()
            before = resident(), tracemalloc.get_traced_memory()[0]
        if number % 50 == 0:
            lensing.SuperPoint(weights, threads=1).close()
        call(model, number, path, pixels)
    gc.collect()
    after = resident(), tracemalloc.get_traced_memory()[0]
    print(after[0] - before[0], after[1] - before[1])


main()
