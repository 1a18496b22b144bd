# SPDX-License-Identifier: Apache-2.0
"""Runs check_photos.py, which compares photos with PyTorch on the original weights: every photo with the best kernels of
this CPU, and every fifth one with the others, which take longer, each photo with one suppression radius. check_photos.py
itself, run by hand, takes all photos with all radii and any kernels."""
import os
import re
import subprocess
import sys

import pytest

PICTURES = (".jpg", ".png", ".ppm")


def kernels_in_use(program, **environment):
    """Kernel set that the program says it uses."""
    result = subprocess.run(
        [str(program), "info"], capture_output=True, text=True, env={**os.environ, "LENSING_CPU": "", **environment})
    found = re.search(r"^cpu path +(\w+)$", result.stdout, re.MULTILINE)
    return found.group(1) if found else None


@pytest.mark.parametrize("cpu", ["c", "avx2", "avx512"])
def test_photos(root, program, build_dir, test_data, cpu):
    pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
    if kernels_in_use(program, LENSING_CPU=cpu) != cpu:
        pytest.skip(f"this CPU cannot run the {cpu} kernels")
    photos = sorted(path for path in (test_data / "photos").iterdir() if path.suffix.lower() in PICTURES)
    if kernels_in_use(program) != cpu:
        photos = photos[::5]
    script = root / "tests" / "accuracy" / "check_photos.py"
    result = subprocess.run(
        [sys.executable, str(script), "--build", str(build_dir), "--spread", *map(str, photos)],
        capture_output=True,
        text=True,
        env={**os.environ, "LENSING_CPU": cpu, "LENSING_TEST_DATA": str(test_data)},
    )
    print(result.stdout)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.stdout.splitlines()[-1] == f"{len(photos)} passed, 0 failed"
