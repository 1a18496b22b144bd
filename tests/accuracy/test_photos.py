# SPDX-License-Identifier: Apache-2.0
"""Runs check_photos.py, which compares every photo with PyTorch on the original weights, for each kernel set."""
import os
import subprocess
import sys

import pytest


def can_run(program, cpu):
    result = subprocess.run([str(program), "info"], capture_output=True, env={**os.environ, "LENSING_CPU": cpu})
    return result.returncode == 0


@pytest.mark.parametrize("cpu", ["c", "avx2", "avx512"])
def test_photos(root, program, build_dir, test_data, cpu):
    pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
    if not can_run(program, cpu):
        pytest.skip(f"this CPU cannot run the {cpu} kernels")
    script = root / "tests" / "accuracy" / "check_photos.py"
    result = subprocess.run(
        [sys.executable, str(script), "--build", str(build_dir)],
        capture_output=True,
        text=True,
        env={**os.environ, "LENSING_CPU": cpu, "LENSING_TEST_DATA": str(test_data)},
    )
    print(result.stdout)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.stdout.splitlines()[-1].endswith(" 0 failed")
