# SPDX-License-Identifier: Apache-2.0
"""Truncated, flipped and otherwise damaged pictures: no crash, no hang, no sanitizer report, bounded memory.

LENSING_MUTATIONS says how many damaged files to try (default 2,000; `make robustness` tries 20,000). LENSING_SEED picks
another set of them, LENSING_DETECT_EVERY how many files that still decode share one whole detection (default 200). When
a case fails, the output names it; `detect_many --seed S --first N --cases 1 --save FILE PICTURE...` repeats it.
"""
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

MUTATIONS = int(os.environ.get("LENSING_MUTATIONS", "2000"))
DETECT_EVERY = int(os.environ.get("LENSING_DETECT_EVERY", "200"))
SEED = int(os.environ.get("LENSING_SEED", "1"))
STATUS_NAMES = {"ok", "corrupt", "format", "limit", "unsupported"}

# Name, mode, and how Pillow saves it.
PICTURES = [
    ("baseline.jpg", "RGB", {"quality": 85}),
    ("progressive.jpg", "RGB", {"quality": 85, "progressive": True}),
    ("gray.jpg", "L", {"quality": 85}),
    ("cmyk.jpg", "CMYK", {"quality": 85}),
    ("restart.jpg", "RGB", {"quality": 85, "restart_marker_rows": 1}),
    ("rgb.png", "RGB", {}),
    ("rgba.png", "RGBA", {}),
    ("gray_alpha.png", "LA", {}),
    ("palette.png", "P", {}),
    ("bits.png", "1", {}),
    ("gray16.png", "I;16", {}),
    ("lossy.webp", "RGB", {"quality": 80}),
    ("lossless.webp", "RGBA", {"lossless": True}),
    ("raw.tif", "RGB", {}),
    ("lzw.tif", "RGB", {"compression": "tiff_lzw"}),
    ("deflate.tif", "L", {"compression": "tiff_adobe_deflate"}),
    ("jpeg.tif", "RGB", {"compression": "jpeg"}),
    ("fax.tif", "1", {"compression": "group4"}),
    ("palette.gif", "P", {}),
    ("rgb.bmp", "RGB", {}),
    ("palette.bmp", "P", {}),
    ("rgb.ppm", "RGB", {}),
    ("gray.pgm", "L", {}),
    ("bits.pbm", "1", {}),
]


def scene(width=120, height=90):
    """A picture with edges, a gradient and noise, so that every coder has something to do."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[0:height, 0:width]
    base = np.where((x // 15 + y // 15) % 2, 200, 40) + x // 4
    channels = [base, base[::-1], np.full_like(base, 128)]
    noise = random.integers(0, 24, (height, width, 3))
    return Image.fromarray(np.clip(np.stack(channels, -1) + noise, 0, 255).astype(np.uint8))


def convert(picture, mode):
    if mode == "I;16":
        return Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    return picture.convert(mode)


@pytest.fixture(scope="module")
def pictures(root, tmp_path_factory):
    """Whole files of every format, small because each is decoded many times, and the example pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    picture = scene()
    for name, mode, options in PICTURES:
        convert(picture, mode).save(folder / name, **options)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(folder / "exif.jpg", exif=exif)
    return sorted(folder.iterdir()) + sorted((root / "examples").glob("*.jpg"))


def damage(sanitizer_build_dir, weights, pictures, first, cases):
    """Output of one run of the helper as a dictionary of numbers."""
    command = [sanitizer_build_dir / "tests" / "robustness" / "detect_many", "--seed", SEED, "--first", first]
    command += ["--cases", cases, "--weights", weights, "--detect-every", DETECT_EVERY, *pictures]
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "halt_on_error=1:abort_on_error=1:detect_leaks=1",
        "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    }
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr[-6000:]
    return {name: int(value) for name, value in (line.split() for line in result.stdout.splitlines())}


def test_whole_files_decode(sanitizer_build_dir, pictures):
    """Without this, damaged files could be refused for a reason that has nothing to do with the damage."""
    helper = sanitizer_build_dir / "tests" / "robustness" / "detect_many"
    for picture in pictures:
        result = subprocess.run([str(helper), "--whole", str(picture)], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[0] == "ok 1", (picture.name, result.stdout)


def test_damaged_files(sanitizer_build_dir, synthetic_weights, pictures):
    workers = min(os.cpu_count() or 1, 4)
    share = -(-MUTATIONS // workers)
    with ThreadPoolExecutor(workers) as pool:
        runs = [
            pool.submit(damage, sanitizer_build_dir, synthetic_weights, pictures, worker * share, share)
            for worker in range(workers)
        ]
        results = [run.result() for run in runs]
    total = {name: sum(result.get(name, 0) for result in results) for name in set().union(*results)}
    print("\ndamaged files:", ", ".join(f"{name} {total[name]}" for name in sorted(total) if name != "peak_rss_mb"))
    print("peak memory of a process:", max(result["peak_rss_mb"] for result in results), "MB")
    seen = set(total) - {"detected", "peak_rss_mb"}
    assert seen <= STATUS_NAMES, "damage gives no other status"
    assert sum(total[name] for name in seen) == workers * share
    assert total["ok"] > 0 and total["corrupt"] > 0 and total["detected"] > 0
