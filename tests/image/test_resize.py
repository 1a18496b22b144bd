# SPDX-License-Identifier: Apache-2.0
"""lns_plane_resize() and every kernel set against Pillow's BILINEAR resize on mode L, byte for byte.

Pillow resizes along x first and rounds to bytes after each pass; newer versions begin with y when the height shrinks much
more (from 12.2 on for pictures 100 times as tall as wide, from 13.0 on for many more), which changes some pixels by one.
Lensing always begins with x. So the reference is two calls of Pillow, one for each axis, which no version can turn around;
where the height does not shrink, and for sizes of landscape photos, one call must give the same.

The build folder is that of conftest.py. Needs Pillow and NumPy.
"""

import struct
import subprocess

import numpy as np
import pytest
from PIL import Image

PUBLIC = 255

Image.MAX_IMAGE_PIXELS = None

LANDSCAPE = [(1600, 900), (333, 217), (4032, 3024), (640, 900), (1920, 1080), (1600, 480), (6000, 4000)]

# Usual sizes, one-pixel sides, sides about the width of a vector, and the largest sides of a JPEG.
TO_FRAME = LANDSCAPE + [
    (640, 480), (64, 48), (1, 1), (3024, 4032),
    (65535, 1), (1, 65535), (65535, 8), (8, 65535), (2, 2), (2, 3000), (7, 7), (15, 15), (16, 16), (17, 17), (639, 479),
    (641, 481), (1280, 960), (1281, 961), (2048, 1536), (2049, 1537), (200000, 3), (3, 200000),
]
OTHERS = [
    ((640, 480), (1, 1)), ((640, 480), (65535, 1)), ((640, 480), (1, 65535)), ((1, 1), (5, 3)), ((3, 5), (3, 1000)),
    ((5, 3), (1000, 3)), ((100, 100), (100, 100)), ((1, 100), (1, 7)), ((100, 1), (7, 1)), ((31, 33), (33, 31)),
    # Beyond 2^24 pixels a side does not fit single precision, in which Pillow holds it.
    (((1 << 24) + 3, 1), (640, 2)), ((1, (1 << 24) + 3), (2, 480)),
]


def random_pairs(count):
    rng = np.random.default_rng(20240607)
    for i in range(count):
        small, large = [(40, 40), (700, 700), (3000, 2000), (6000, 4000)][min(i % 16 // 4, 3)], (800, 600)
        first = tuple(int(rng.integers(1, side + 1)) for side in small)
        second = tuple(int(rng.integers(1, side + 1)) for side in ((40, 40) if i % 16 == 0 else large))
        if i % 8 == 3:
            second = (first[0], second[1])
        if i % 8 == 5:
            second = (second[0], first[1])
        if i % 8 == 6 and first[0] * first[1] <= 700 * 700:
            first, second = second, first
        yield first, second


PAIRS = [(size, (640, 480)) for size in TO_FRAME] + OTHERS + list(random_pairs(360))


def plane(size, seed):
    """Noise, noise of black and white, white, or a ramp."""
    width, height = size
    rng = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 3:
        return np.full((height, width), 255, np.uint8)
    if kind == 4:
        return (np.arange(height)[:, None] * 3 + np.arange(width)).astype(np.uint8)
    noise = rng.integers(0, 256, (height, width), np.uint8)
    return noise if kind < 2 else np.where(noise < 128, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def program_path(build_dir):
    return build_dir / "tests" / "image" / "resize_plane"


@pytest.fixture(scope="module")
def levels(program_path):
    names = subprocess.run([program_path, "--levels"], check=True, capture_output=True, text=True).stdout.split()
    print("kernel sets:", names)
    return list(range(len(names)))


@pytest.fixture(scope="module")
def helper(program_path):
    with subprocess.Popen([program_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.stdin.close()
        assert process.wait() == 0


def resize(process, pixels, size, level, bands):
    height, width = pixels.shape
    process.stdin.write(struct.pack("<6I", width, height, *size, level, bands))
    process.stdin.write(pixels.tobytes())
    process.stdin.flush()
    return np.frombuffer(process.stdout.read(size[0] * size[1]), np.uint8).reshape(size[1], size[0])


@pytest.mark.parametrize("index", range(len(PAIRS)), ids=lambda i: "%dx%d-%dx%d" % (PAIRS[i][0] + PAIRS[i][1]))
def test_equals_pillow(helper, levels, index):
    size, new_size = PAIRS[index]
    pixels = plane(size, index)
    picture = Image.fromarray(pixels)
    wide = picture.resize((new_size[0], size[1]), Image.Resampling.BILINEAR)
    expected = np.asarray(wide.resize(new_size, Image.Resampling.BILINEAR))
    if new_size[1] >= size[1] or (size in LANDSCAPE and new_size == (640, 480)):
        assert np.array_equal(expected, np.asarray(picture.resize(new_size, Image.Resampling.BILINEAR)))
    for level in levels + [PUBLIC]:
        for bands in (1, 3) if level != PUBLIC else (1,):
            got = resize(helper, pixels, new_size, level, bands)
            assert np.array_equal(got, expected), (
                f"kernel set {level}, {bands} bands: {np.count_nonzero(got != expected)} pixels differ"
            )
