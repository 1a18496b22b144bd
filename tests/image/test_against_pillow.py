# SPDX-License-Identifier: Apache-2.0
"""Decoding compared with Pillow, byte for byte.

Expected is channel 0 of PIL.Image.open(file).convert("RGB"). Files are written with Pillow, or by hand where Pillow cannot
write them (*_files.py). The build folder is that of conftest.py. Needs the newest Pillow, and NumPy.
"""
import random

import numpy as np
import pytest
from PIL import Image, ImageOps, features

from image.bmp_files import bmp, bmp_files
from image.comparison import Decoder, check, decode_with_pillow, difference
from image.exif import exif
from image.gif_files import gif_files
from image.jpeg_files import jpeg_files
from image.pictures import picture, save
from image.png_files import png, png_files
from image.pnm_files import pnm_files
from image.tiff_files import tiff_files, tiff_raw
from image.webp_files import webp_files


# ---- Every kind of file ------------------------------------------------------------------------------


def test_jpeg(decoder, tmp_path, capsys):
    check(decoder, tmp_path, jpeg_files(), capsys, "JPEG")


def test_png(decoder, tmp_path, capsys):
    check(decoder, tmp_path, png_files(), capsys, "PNG")


@pytest.mark.skipif(not features.check("webp"), reason="Pillow without WebP")
def test_webp(decoder, tmp_path, capsys):
    check(decoder, tmp_path, webp_files(), capsys, "WebP")


@pytest.mark.skipif(not features.check("libtiff"), reason="Pillow without libtiff")
def test_tiff(decoder, tmp_path, capsys):
    check(decoder, tmp_path, tiff_files(), capsys, "TIFF")


def test_gif(decoder, tmp_path, capsys):
    check(decoder, tmp_path, gif_files(), capsys, "GIF")


def test_bmp(decoder, tmp_path, capsys):
    check(decoder, tmp_path, bmp_files(), capsys, "BMP")


def test_pnm(decoder, tmp_path, capsys):
    check(decoder, tmp_path, pnm_files(), capsys, "PNM")


def test_photos(decoder, test_data, tmp_path, capsys):
    photos = [path for path in sorted((test_data / "photos").iterdir()) if path.suffix.lower() not in (".txt", ".md")]
    assert photos
    check(decoder, tmp_path, [(path.name, path) for path in photos], capsys, "photos")


# ---- Truncation and damage --------------------------------------------------------------------------


def samples():
    yield "JPEG", save(picture("RGB", 90, 60), "JPEG")
    yield "JPEG 4:4:4", save(picture("RGB", 90, 60), "JPEG", subsampling=0)
    yield "JPEG progressive", save(picture("RGB", 90, 60), "JPEG", progressive=True)
    yield "JPEG CMYK", save(picture("CMYK", 50, 40), "JPEG")
    yield "PNG RGB", save(picture("RGB", 40, 30), "PNG")
    yield "PNG palette", save(picture("P", 60, 50), "PNG")
    yield "PNG interlaced", png(30, 20, 8, 6, 1, pieces=4, after=[(b"tEXt", b"k\0value")])
    yield "GIF", save(picture("P", 60, 50), "GIF")
    yield "BMP", save(picture("P", 30, 20), "BMP")
    yield "BMP RGB", bmp(30, 20, 24)
    yield "PGM", b"P5 30 20 255\n" + random.Random(1).randbytes(600)
    yield "WebP", save(picture("RGB", 60, 50), "WEBP")
    yield "WebP lossless", save(picture("RGBA", 30, 20), "WEBP", lossless=True)


def test_truncated(decoder, tmp_path, capsys):
    files = []
    for name, data in samples():
        step = max(1, min(97, len(data) // 60))
        files += [(f"{name} cut to {size}", data[:size]) for size in range(0, len(data), step)]
        files += [(f"{name} cut by {count}", data[:-count]) for count in range(1, 14)]
    check(decoder, tmp_path, files, capsys, "truncated")


def test_trailing_zeros_and_text(decoder, tmp_path, capsys):
    files = []
    for name, data in samples():
        files += [(f"{name} + zeros", data + bytes(70000)), (f"{name} + text", data + b"text" * 20000)]
    check(decoder, tmp_path, files, capsys, "with more behind")


def test_damage_never_crashes(decoder, tmp_path, capsys):
    """Flipped bits: only that there is an answer, and how often it is Pillow's."""
    numbers = random.Random(9)
    same = total = 0
    everything = list(samples()) + [("TIFF", save(picture("RGB", 40, 30), "TIFF", compression="tiff_lzw"))]
    for _, data in everything:
        for _ in range(60):
            damaged = bytearray(data)
            for _ in range(numbers.randint(1, 4)):
                damaged[numbers.randrange(len(damaged))] ^= 1 << numbers.randrange(8)
            path = tmp_path / "damaged"
            path.write_bytes(damaged)
            got = decoder.decode(path)
            total += 1
            same += difference(decode_with_pillow(path), got) is None
    with capsys.disabled():
        print(f"\ndamaged: {total} files, Pillow's answer for {same}", end=" ")
    assert same >= 0.95 * total


# ---- Orientation ------------------------------------------------------------------------------------


def upright(path):
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image.convert("RGB")))[..., 0]


def test_exif_is_applied_when_asked(decoder_program, decoder, tmp_path, capsys):
    turning = Decoder(decoder_program, "--exif", "apply")
    count = 0
    for kind in ("JPEG", "PNG", "WEBP", "TIFF"):
        for orientation in range(10):
            for big in (False, True):
                path = tmp_path / f"{kind}{orientation}{big}"
                image = picture("RGB", 70, 131)
                if kind == "TIFF":
                    path.write_bytes(tiff_raw(70, 131, 8, 3, 2, orientation=orientation, big=big))
                else:
                    options = {"lossless": True} if kind == "WEBP" else {}
                    image.save(path, kind, exif=exif(orientation, big), **options)
                assert difference(decode_with_pillow(path), decoder.decode(path)) is None, path.name
                assert difference(upright(path), turning.decode(path)) is None, path.name
                count += 1
    for data in (exif(6, kind=4), exif(6, count=2), exif(6)[:20], exif(6)[:12], b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff"):
        path = tmp_path / "odd.jpg"
        picture("RGB", 30, 20).save(path, exif=data)
        assert turning.decode(path).shape == (20, 30)
        count += 1
    turning.close()
    with capsys.disabled():
        print(f"\nEXIF: {count} files", end=" ")
