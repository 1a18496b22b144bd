# SPDX-License-Identifier: Apache-2.0
"""Files that are too large, or want to be, are refused with a clear message, and decoding takes little memory."""
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from image.bmp_files import bmp
from image.comparison import Decoder
from image.gif_files import gif
from image.jpeg_files import jpeg_sampled
from image.pictures import picture, save
from image.png_files import palette, png, png_chunk


def test_limits(decoder_program, tmp_path):
    limited = Decoder(decoder_program, "--max-pixels", "600")
    for name, fits, exceeds in (
        ("JPEG", save(picture("RGB", 30, 20), "JPEG"), save(picture("RGB", 31, 20), "JPEG")),
        ("PNG", save(picture("RGB", 30, 20), "PNG"), save(picture("RGB", 31, 20), "PNG")),
        ("WebP", save(picture("RGB", 30, 20), "WEBP"), save(picture("RGB", 31, 20), "WEBP")),
        ("GIF", save(picture("P", 30, 20), "GIF"), save(picture("P", 31, 20), "GIF")),
        ("TIFF", save(picture("RGB", 30, 20), "TIFF"), save(picture("RGB", 31, 20), "TIFF")),
        ("BMP", bmp(30, 20, 24), bmp(31, 20, 24)),
        ("PNM", b"P5 30 20 255\n" + bytes(600), b"P5 31 20 255\n" + bytes(620)),
    ):
        (tmp_path / "fits").write_bytes(fits)
        (tmp_path / "exceeds").write_bytes(exceeds)
        assert isinstance(limited.decode(tmp_path / "fits"), np.ndarray), name
        answer = limited.decode(tmp_path / "exceeds")
        assert answer.startswith("limit ") and "31 x 20" in answer and "600" in answer and name in answer, answer
    limited.close()


BOMBS = {
    "PNG": lambda: b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 20000, 20000, 8, 2, 0, 0, 0)),
    "JPEG": lambda: jpeg_sampled(64, 64, [(1, 1)]).replace(struct.pack(">HH", 64, 64), struct.pack(">HH", 64250, 64250)),
    "GIF": lambda: gif((65535, 65535), (0, 0, 9, 9), colours=palette(4)),
    "BMP": lambda: bmp(9, 9, 24).replace(struct.pack("<ii", 9, 9), struct.pack("<ii", 60000, 60000)),
    "PNM": lambda: b"P2 60000 60000 255 1",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs_are_refused_by_default(plain_decoder_program, tmp_path, kind):
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[kind]())
    result = subprocess.run(["/usr/bin/env", "bash", "-c", 'ulimit -v 400000; exec "$0" "$1"', plain_decoder_program, path],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and result.stderr.startswith("limit: "), result.stderr


def test_text_bombs_take_no_memory(plain_decoder_program, tmp_path):
    """Chunks that would inflate to 256 MB are not inflated."""
    bomb = zlib.compress(bytes(1 << 28), 9)
    path = tmp_path / "bomb.png"
    path.write_bytes(png(9, 9, 8, 2, 0, [(b"zTXt", b"k\0\0" + bomb), (b"iCCP", b"k\0\0" + bomb)]))
    assert peak_memory(plain_decoder_program, path) < 60e6


def test_scan_bombs_are_refused(decoder_program, tmp_path):
    data = save(picture("L", 64, 64), "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    path = tmp_path / "scans.jpg"
    path.write_bytes(data[:start] + data[start:-2] * 10000 + b"\xff\xd9")
    result = subprocess.run([decoder_program, path], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "more than 256 scans" in result.stderr


def peak_memory(program, path):
    """Largest resident size of one decoding, bytes."""
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
    return int(subprocess.run([sys.executable, "-c", code, program, path], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name, image, kind, options", [
    ("12 megapixels", (4000, 3000), "JPEG", {}),
    ("12 megapixels", (4000, 3000), "PNG", {}),
    ("flat, 100 megapixels", (10000, 10000), "PNG", {}),
])
def test_memory_is_one_plane(plain_decoder_program, tmp_path, name, image, kind, options):
    path = tmp_path / "large"
    Image.new("RGB", image, (10, 200, 30)).save(path, kind, **options)
    plane = image[0] * image[1]
    assert peak_memory(plain_decoder_program, path) < plane + path.stat().st_size + 20e6


def test_messages(decoder_program, tmp_path):
    for content, status, words in (
        (b"", "format", "an empty file is no image of a known format (JPEG, PNG, WebP, TIFF, GIF, BMP, PNM)"),
        (b"hello", "format", "is no image of a known format (JPEG, PNG"),
        (save(picture("RGB"), "JPEG")[:400], "corrupt", "truncated JPEG"),
        (b"P5 3 2 70000 ", "corrupt", "70000"),
    ):
        path = tmp_path / "odd"
        path.write_bytes(content)
        result = subprocess.run([decoder_program, path], capture_output=True, text=True)
        assert result.returncode == 1
        assert result.stderr.startswith(f"{status}: ") and words in result.stderr and str(path) in result.stderr, result.stderr
    result = subprocess.run([decoder_program, tmp_path / "missing.png"], capture_output=True, text=True)
    assert result.stderr.startswith("io: ") and "missing.png" in result.stderr
