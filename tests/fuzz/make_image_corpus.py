# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/image: small pictures of every format to start fuzzing from.

Run by hand; needs Pillow and NumPy. The files come from the lists of tests/image/*_files.py: a few of every
kind, chosen by size and name.
"""
import hashlib
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from image.bmp_files import bmp_files  # noqa: E402
from image.exif import exif  # noqa: E402
from image.gif_files import gif_files  # noqa: E402
from image.jpeg_files import jpeg_files  # noqa: E402
from image.pictures import picture  # noqa: E402
from image.png_files import png_files  # noqa: E402
from image.pnm_files import pnm_files  # noqa: E402
from image.tiff_files import tiff_files  # noqa: E402
from image.webp_files import webp_files  # noqa: E402

TARGET = HERE / "corpus" / "image"
FILES = {"jpeg": jpeg_files, "png": png_files, "webp": webp_files, "tiff": tiff_files, "gif": gif_files, "bmp": bmp_files,
         "pnm": pnm_files}
LARGEST = 1500
BUDGET = 25000  # bytes a format


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for name, make_files in FILES.items():
        files = [data for _, data in make_files() if len(data) <= LARGEST]
        files.sort(key=lambda data: hashlib.sha256(data).digest())
        total = 0
        for data in files:
            if total + len(data) <= BUDGET and total < BUDGET - 1000:
                (TARGET / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
                total += len(data)
    for orientation in (3, 6):
        picture("RGB", 20, 12).save(TARGET / f"jpeg-turned-{orientation}", "JPEG", exif=exif(orientation))
    print(sum(path.stat().st_size for path in TARGET.iterdir()), "bytes in", len(list(TARGET.iterdir())), "files")


if __name__ == "__main__":
    main()
