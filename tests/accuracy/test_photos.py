# SPDX-License-Identifier: Apache-2.0
"""Runs check_photos.py, which compares photos with PyTorch on the original weights: every photo with the best kernels of
this CPU, and every fifth one with the others, which take longer, each photo with one suppression radius. check_photos.py
itself, run by hand, takes all photos with all radii and any kernels. And check_bf16.py on every third photo."""
import os
import re
import subprocess
import sys

import pytest

PICTURES = (".jpg", ".png", ".ppm")


def info(program, fact, **environment):
    """A line of what the program says about this machine; None when it is not there."""
    result = subprocess.run(
        [str(program), "info"], capture_output=True, text=True, env={**os.environ, "LENSING_CPU": "", **environment})
    found = re.search(rf"^{fact} +(.+)$", result.stdout, re.MULTILINE)
    return found.group(1) if found else None


def photos_of(test_data):
    return sorted(path for path in (test_data / "photos").iterdir() if path.suffix.lower() in PICTURES)


def run_check(root, build_dir, test_data, script, *arguments, cpu=""):
    """Runs a script of this folder; its lines."""
    result = subprocess.run(
        [sys.executable, str(root / "tests" / "accuracy" / script), "--build", str(build_dir), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "LENSING_CPU": cpu, "LENSING_TEST_DATA": str(test_data)},
    )
    print(result.stdout)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout.splitlines()


@pytest.mark.parametrize("cpu", ["c", "avx2", "avx512"])
def test_photos(root, program, build_dir, test_data, cpu):
    pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
    if info(program, "cpu path", LENSING_CPU=cpu) != cpu:
        pytest.skip(f"this CPU cannot run the {cpu} kernels")
    photos = photos_of(test_data)
    if info(program, "cpu path") != cpu:
        photos = photos[::5]
    lines = run_check(root, build_dir, test_data, "check_photos.py", "--spread", *photos, cpu=cpu)
    assert lines[-1] == f"{len(photos)} passed, 0 failed"


def test_bf16(root, program, build_dir, test_data):
    pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
    if "avx512_bf16" not in (info(program, "cpu features") or "").split():
        pytest.skip("this CPU has no AVX512_BF16")
    photos = photos_of(test_data)[::3]
    lines = run_check(root, build_dir, test_data, "check_bf16.py", *photos)
    assert lines[-1] == "passed" and len(lines) == len(photos) + 3
