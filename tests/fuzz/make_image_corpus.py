# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/image: small pictures of every format to start fuzzing from.

Run by hand; needs Pillow and NumPy. The files come from the matrix of tests/image/test_against_pillow.py: a few of every
kind, chosen by size and name.
"""
import hashlib
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "image")]

import test_against_pillow as matrix  # noqa: E402

TARGET = HERE / "corpus" / "image"
LARGEST = 1500
BUDGET = 25000  # bytes a format


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for name in ("jpeg", "png", "webp", "tiff", "gif", "bmp", "pnm"):
        files = [data for _, data in getattr(matrix, f"{name}_files")() if len(data) <= LARGEST]
        files.sort(key=lambda data: hashlib.sha256(data).digest())
        total = 0
        for data in files:
            if total + len(data) <= BUDGET and total < BUDGET - 1000:
                (TARGET / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
                total += len(data)
    for orientation in (3, 6):
        matrix.picture("RGB", 20, 12).save(TARGET / f"jpeg-turned-{orientation}", "JPEG", exif=matrix.exif(orientation))
    print(sum(path.stat().st_size for path in TARGET.iterdir()), "bytes in", len(list(TARGET.iterdir())), "files")


if __name__ == "__main__":
    main()
