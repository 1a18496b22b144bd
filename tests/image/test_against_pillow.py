# SPDX-License-Identifier: Apache-2.0
"""Decoding compared with Pillow, byte for byte.

Expected is channel 0 of PIL.Image.open(file).convert("RGB"). Files are written with Pillow, or by hand where Pillow cannot
write them. The build folder is that of conftest.py. Needs the newest Pillow, and NumPy.
"""
import io
import os
import random
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

warnings.simplefilter("ignore")
random.seed(1)


# ---- The two decoders -----------------------------------------------------------------------------


def decode_with_pillow(path):
    """The R plane, or the exception."""
    try:
        # From memory: given a path, Pillow 13 maps uncompressed gray TIFF with swapped sides when it is to be turned.
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            return np.asarray(image.convert("RGB"))[..., 0]
    except Exception as error:  # whatever it is: compared is that there is one
        return error


class Decoder:
    """The helper program, asked for one file after the other."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen(
            [program, *options, "--many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def decode(self, path):
        """The R plane, or a string with status and message."""
        self.process.stdin.write(os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode(errors="replace").rstrip("\n")
        assert answer, f"the decoder crashed on {path}: {self.process.stderr.read().decode(errors='replace')}"
        if not answer.startswith("ok "):
            return answer.removeprefix("error ")
        width, height = (int(number) for number in answer.split()[1:3])
        return np.frombuffer(self.process.stdout.read(width * height), np.uint8).reshape(height, width)

    def close(self):
        self.process.stdin.close()
        complaints = self.process.stderr.read().decode(errors="replace")
        assert self.process.wait() == 0, complaints
        assert complaints == "", "the library printed something"


@pytest.fixture(scope="session")
def decoder_program(build_dir):
    return build_dir / "tests" / "image" / "decode_plane"


@pytest.fixture
def plain_decoder_program(decoder_program):
    """The program without sanitizers, whose memory says nothing."""
    if b"__asan_init" in decoder_program.read_bytes():
        pytest.skip("memory is not measured in a build with sanitizers")
    return decoder_program


@pytest.fixture
def decoder(decoder_program):
    made = Decoder(decoder_program)
    yield made
    made.close()


def difference(expected, got):
    """None when both agree, else what differs."""
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        if expected.shape != got.shape:
            return f"size {got.shape}, expected {expected.shape}"
        wrong = int((expected != got).sum())
        return f"{wrong} of {expected.size} pixels differ" if wrong else None
    if isinstance(expected, np.ndarray):
        return f"an error ({got}), expected a picture"
    if isinstance(got, np.ndarray):
        return f"a picture, expected an error ({expected!r})"
    return None


def check(decoder, folder, files, capsys, title):
    """Compares all of files, a list of (name, bytes or path). A name that starts with "beyond" says that Pillow cannot read
    the file, or some versions cannot, and Lensing can."""
    failures = []
    errors = 0
    for number, (name, content) in enumerate(files):
        path = content
        if isinstance(content, bytes):
            path = folder / f"{number:04}"
            path.write_bytes(content)
        expected = decode_with_pillow(path)
        errors += not isinstance(expected, np.ndarray)
        got = decoder.decode(path)
        wrong = difference(expected, got)
        if name.startswith("beyond") and isinstance(expected, Exception) and isinstance(got, np.ndarray):
            wrong = None
        if wrong:
            failures.append(f"{name}: {wrong}")
        if isinstance(content, bytes):
            path.unlink()
    with capsys.disabled():
        print(f"\n{title}: {len(files)} files, of which {errors} are errors to Pillow", end=" ")
    assert not failures, f"{len(failures)} of {len(files)}:\n" + "\n".join(failures[:40])


# ---- Pictures -------------------------------------------------------------------------------------


def noise(width, height, channels=3, seed=0):
    """Smooth shapes with noise: every predictor and every coefficient has something to do."""
    random_numbers = np.random.default_rng(seed + width * 31 + height)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for channel in range(channels):
        wave = 127 + 100 * np.sin(x / (5 + channel) + seed) * np.cos(y / (7 - channel % 4) + channel)
        planes.append(wave + random_numbers.normal(0, 12, (height, width)))
    stacked = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    return stacked[..., 0] if channels == 1 else stacked


MODES = {"1": 1, "L": 1, "LA": 2, "P": 3, "RGB": 3, "RGBA": 4, "CMYK": 4, "I;16": 1, "I": 1, "F": 1}
SIZES = [(1, 1), (1, 9), (9, 1), (2, 3), (3, 2), (5, 5), (7, 16), (8, 8), (16, 17), (17, 33), (64, 48), (65, 47), (130, 70)]


def picture(mode, width=33, height=21, seed=0):
    channels = MODES[mode]
    pixels = noise(width, height, channels, seed)
    if mode == "1":
        return Image.fromarray(pixels).convert("1")
    if mode == "P":
        return Image.fromarray(pixels).quantize(200)
    if mode in ("I;16", "I", "F"):
        scaled = pixels.astype(np.int32) * 5 - 300
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        return Image.fromarray(np.clip(scaled, 0, None).astype(kind) if mode == "I;16" else (scaled * 0.7).astype(kind))
    return Image.fromarray(pixels, mode) if mode == "CMYK" else Image.fromarray(pixels)


def save(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


# ---- JPEG -----------------------------------------------------------------------------------------


def jpeg_with_adobe(data, transform):
    """Puts an Adobe marker in front, dropping one that is there."""
    at = data.find(b"\xff\xee\x00\x0eAdobe")
    if at >= 0:
        data = data[:at] + data[at + 16 :]
    return data[:2] + b"\xff\xee\x00\x0eAdobe" + struct.pack(">HHHB", 100, 0, 0, transform) + data[2:]


def jpeg_sampled(width, height, factors, seed=0, restart=0):
    """A baseline JPEG of DC coefficients only, with any sampling factors (h, v) for each component."""
    numbers = random.Random(seed)
    most_h = max(h for h, _ in factors)
    most_v = max(v for _, v in factors)
    out = b"\xff\xd8"
    out += b"\xff\xdb" + struct.pack(">HB", 67, 0) + bytes([7] + [3] * 63)
    out += b"\xff\xc0" + struct.pack(">HBHHB", 8 + 3 * len(factors), 8, height, width, len(factors))
    for number, (h, v) in enumerate(factors):
        out += bytes([number + 1, h << 4 | v, 0])
    # Every DC difference has 8 bits: code 0. The one AC code means "end of block".
    out += b"\xff\xc4" + struct.pack(">HB", 2 + 17 + 1, 0x00) + bytes([1] + [0] * 15) + bytes([7])
    out += b"\xff\xc4" + struct.pack(">HB", 2 + 17 + 1, 0x10) + bytes([1] + [0] * 15) + bytes([0])
    if restart:
        out += b"\xff\xdd" + struct.pack(">HH", 4, restart)
    out += b"\xff\xda" + struct.pack(">HB", 6 + 2 * len(factors), len(factors))
    out += b"".join(bytes([number + 1, 0]) for number in range(len(factors))) + b"\0\x3f\0"
    columns = -(-width // (8 * most_h))
    rows = -(-height // (8 * most_v))
    blocks = [h * v for h, v in factors]
    if len(factors) == 1:
        columns, rows, blocks = -(-width // 8), -(-height // 8), [1]
    bits = ""
    last = [0] * len(factors)
    units = columns * rows
    for unit in range(units):
        for component, count in enumerate(blocks):
            for _ in range(count):
                wanted = numbers.randint(-140, 140)
                step = wanted - last[component]
                step = max(64, min(127, step)) if step >= 0 else min(-64, max(-127, step))
                last[component] += step
                bits += "0" + format(step if step > 0 else step + 127, "07b") + "0"
        if restart and (unit + 1) % restart == 0 and unit + 1 < units:
            bits += "1" * (-len(bits) % 8)
            bits += "M"
            last = [0] * len(factors)
    data = b""
    marker = 0
    for part in bits.split("M"):
        part += "1" * (-len(part) % 8)
        data += int(part, 2).to_bytes(len(part) // 8, "big").replace(b"\xff", b"\xff\0") if part else b""
        data += bytes([0xFF, 0xD0 + marker % 8])
        marker += 1
    return out + data[:-2] + b"\xff\xd9"


def jpeg_files():
    files = []
    for mode in ("L", "RGB", "CMYK"):
        for width, height in SIZES:
            for options in ({}, {"progressive": True}, {"quality": 30}, {"quality": 98, "optimize": True}):
                files.append((f"{mode} {width}x{height} {options}", save(picture(mode, width, height), "JPEG", **options)))
    for sampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
        for width, height in SIZES:
            for progressive in (False, True):
                data = save(picture("RGB", width, height, 3), "JPEG", subsampling=sampling, progressive=progressive)
                files.append((f"{sampling} {width}x{height} progressive {progressive}", data))
    for restart in (1, 2, 5):
        data = save(picture("RGB", 100, 80), "JPEG", restart_marker_blocks=restart)
        files.append((f"restart {restart}", data))
    files.append(("not transformed", save(picture("RGB"), "JPEG", keep_rgb=True)))
    for mode, transforms in (("RGB", (0, 1, 2)), ("CMYK", (0, 2, 1))):
        for transform in transforms:
            for progressive in (False, True):
                data = save(picture(mode, 40, 30), "JPEG", progressive=progressive)
                files.append((f"{mode} as Adobe {transform}", jpeg_with_adobe(data, transform)))
    pairs = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4)]
    for first in pairs:
        for others in pairs:
            for width, height in ((37, 41), (3, 5), (65, 16)):
                data = jpeg_sampled(width, height, [first, others, others], seed=width)
                files.append((f"factors {first} {others} {width}x{height}", data))
    for cb, cr in (((1, 1), (2, 2)), ((2, 2), (1, 1)), ((1, 2), (2, 1)), ((2, 1), (1, 2))):
        files.append((f"Cb {cb} Cr {cr}", jpeg_sampled(45, 39, [(2, 2), cb, cr])))
    files.append(("factors that do not divide", jpeg_sampled(45, 39, [(3, 1), (2, 1), (2, 1)])))
    for factors in ((1, 1), (2, 2), (1, 4), (3, 3)):
        files.append((f"gray {factors}", jpeg_sampled(45, 39, [factors])))
    for last in ((1, 1), (2, 2)):
        files.append((f"four components {last}", jpeg_sampled(45, 39, [(2, 2), (1, 1), (1, 1), last])))
    files.append(("two components", jpeg_sampled(20, 20, [(1, 1), (1, 1)])))
    files.append(("restarts by hand", jpeg_sampled(64, 64, [(2, 1), (1, 1), (1, 1)], restart=3)))
    data = save(picture("RGB", 60, 50), "JPEG")
    files.append(("trailing bytes", data + b"xyz" * 100))
    files.append(("no end marker", data[:-2]))
    files.append(("12 bits", data.replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c")))
    files.append(("lossless", data.replace(b"\xff\xc0", b"\xff\xc3")))
    files.append(("height 0", data.replace(struct.pack(">HH", 50, 60), struct.pack(">HH", 0, 60))))
    return files


def test_jpeg(decoder, tmp_path, capsys):
    check(decoder, tmp_path, jpeg_files(), capsys, "JPEG")


# ---- PNG ------------------------------------------------------------------------------------------


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def filter_row(row, above, distance, kind):
    def paeth(a, b, c):
        guess = a + b - c
        return min((abs(guess - a), 0, a), (abs(guess - b), 1, b), (abs(guess - c), 2, c))[2]

    out = bytearray([kind])
    for i, value in enumerate(row):
        left = row[i - distance] if i >= distance else 0
        corner = above[i - distance] if i >= distance else 0
        guess = (0, left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[kind]
        out.append((value - guess) & 255)
    return bytes(out)


def png_pixels(width, height, depth, colour, interlaced, filters=(0, 1, 2, 3, 4), seed=0):
    """Filtered rows of random pixels."""
    numbers = random.Random(seed)
    bits = CHANNELS[colour] * depth
    out = b""
    for x0, y0, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        columns = len(range(x0, width, dx))
        above = bytes((columns * bits + 7) // 8)
        for number, _ in enumerate(range(y0, height, dy)):
            if columns == 0:
                continue
            row = bytes(min(255, int(abs(numbers.gauss(0, 90)))) for _ in range((columns * bits + 7) // 8))
            out += filter_row(row, above, (bits + 7) // 8, filters[number % len(filters)])
            above = row
    return out


def png(width, height, depth, colour, interlaced=0, chunks=(), pixels=None, level=6, pieces=1, after=(), **options):
    if pixels is None:
        pixels = png_pixels(width, height, depth, colour, interlaced, **options)
    out = b"\x89PNG\r\n\x1a\n"
    out += png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
    for name, data in chunks:
        out += png_chunk(name, data)
    stream = zlib.compress(pixels, level) if isinstance(pixels, (bytes, bytearray)) else pixels[0]
    size = -(-len(stream) // pieces)
    for i in range(pieces):
        out += png_chunk(b"IDAT", stream[i * size : (i + 1) * size])
    for name, data in after:
        out += png_chunk(name, data)
    return out + png_chunk(b"IEND", b"")


def palette(count, seed=0):
    numbers = random.Random(seed)
    return bytes(numbers.randrange(256) for _ in range(3 * count))


def png_files():
    files = []
    kinds = [(d, c) for c, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))) for d in depths]
    for depth, colour in kinds:
        for interlaced in (0, 1):
            for width, height in ((1, 1), (2, 2), (3, 9), (8, 8), (13, 7), (33, 20)):
                chunks = [(b"PLTE", palette(1 << depth))] if colour == 3 else []
                data = png(width, height, depth, colour, interlaced, chunks)
                files.append((f"{depth} bits, colour {colour}, interlaced {interlaced}, {width}x{height}", data))
        for kind in range(5):
            chunks = [(b"PLTE", palette(1 << depth))] if colour == 3 else []
            data = png(19, 11, depth, colour, 0, chunks, filters=(kind,), seed=kind)
            files.append((f"{depth} bits, colour {colour}, filter {kind}", data))
    for name, depth, colour, value in (
        ("gray", 8, 0, b"\0\x40"), ("gray 16", 16, 0, b"\1\2"), ("gray 1", 1, 0, b"\0\1"), ("gray 2", 2, 0, b"\0\2"),
        ("RGB", 8, 2, b"\0\1\0\2\0\3"), ("RGB 16", 16, 2, b"\0\1\0\2\0\3"), ("too short", 8, 2, b"\0\1"), ("gray, empty", 8, 0, b""),
    ):
        files.append((f"tRNS {name}", png(9, 9, depth, colour, 0, [(b"tRNS", value)])))
    for alpha in (b"\0", b"\xff\0\xff", bytes(range(16)), b""):
        files.append((f"tRNS palette {alpha}", png(9, 9, 4, 3, 0, [(b"PLTE", palette(16)), (b"tRNS", alpha)])))
    for count in (0, 1, 3, 200, 256, 257, 300):
        files.append((f"palette of {count} for 8 bits", png(20, 20, 8, 3, 0, [(b"PLTE", palette(count))])))
    files.append(("no palette", png(20, 20, 8, 3)))
    files.append(("a palette for RGB", png(20, 20, 8, 2, 0, [(b"PLTE", palette(4))])))
    for gamma in (45455, 100000, 0):
        files.append((f"gAMA {gamma}", png(9, 9, 8, 2, 0, [(b"gAMA", struct.pack(">I", gamma))])))
    for name, least in ((b"gAMA", 4), (b"cHRM", 32), (b"sRGB", 1), (b"pHYs", 9), (b"acTL", 8)):
        for length in (0, least - 1, least, least + 3):
            files.append((f"{name} of {length}", png(9, 9, 8, 2, 0, [(name, bytes(length))])))
            files.append((f"{name} of {length} behind", png(9, 9, 8, 2, 0, after=[(name, bytes(length))])))
    for data in (b"", b"k", b"k\0", b"k\0\0", b"k\0\1abc", b"k\0\0" + zlib.compress(b"text"), b"k\0\0broken"):
        for name in (b"zTXt", b"iCCP", b"tEXt", b"iTXt"):
            files.append((f"{name} {data}", png(9, 9, 8, 2, 0, [(name, data)])))
            files.append((f"{name} {data} behind", png(9, 9, 8, 2, 0, after=[(name, data)])))
    for pieces in (2, 3, 50):
        files.append((f"{pieces} IDAT", png(40, 30, 8, 6, pieces=pieces)))
    files.append(("large pieces", png(700, 400, 8, 6, level=0, pixels=b"".join(
        b"\0" + random.randbytes(2800) for _ in range(400)))))
    rows = png_pixels(10, 8, 8, 2, 0)
    for cut in (0, 1, 30, 31, 62, 100, 247):
        files.append((f"data ends cleanly after {cut}", png(10, 8, 8, 2, pixels=rows[:cut])))
        files.append((f"data ends cleanly after {cut}, interlaced", png(10, 8, 8, 2, 1, pixels=png_pixels(10, 8, 8, 2, 1)[:cut])))
    files.append(("more data than rows", png(10, 8, 8, 2, pixels=rows + b"surplus" * 9)))
    stream = zlib.compress(rows)
    for name, broken in (("checksum", stream[:-1] + b"\0"), ("middle", stream[:60] + b"\xff\xff\xff" + stream[63:]),
                         ("header", b"\0\0" + stream[2:]), ("no checksum", stream[:-4]), ("empty", b"")):
        files.append((f"stream with broken {name}", png(10, 8, 8, 2, pixels=(broken,))))
    for kind in (5, 255):
        files.append((f"filter {kind}", png(10, 8, 8, 2, pixels=bytes([kind]) + rows[1:])))
    good = png(10, 8, 8, 2, chunks=[(b"gAMA", bytes(4)), (b"teSt", b"abc")], after=[(b"tEXt", b"k\0v")])
    for name in (b"IHDR", b"gAMA", b"teSt", b"IDAT", b"tEXt", b"IEND"):
        at = good.index(name)
        end = at + 4 + struct.unpack(">I", good[at - 4 : at])[0]
        files.append((f"wrong checksum of {name}", good[:end] + b"\0\0\0\0" + good[end + 4 :]))
        files.append((f"broken name of {name}", good[:at] + b"\1" + good[at + 1 :]))
        files.append((f"length of {name} too large", good[: at - 4] + b"\x7f\0\0\0" + good[at:]))
    files.append(("trailing bytes", good + b"xyz" * 99))
    header = struct.pack(">IIBBBBB", 10, 8, 8, 2, 0, 0, 0)
    for name, at, value in (("depth", 8, 3), ("depth 0", 8, 0), ("colour", 9, 5), ("colour 7", 9, 7), ("compression", 10, 1),
                            ("filter", 11, 1), ("interlace", 12, 2), ("width 0", 3, 0), ("height 0", 7, 0)):
        changed = header[:at] + bytes([value]) + header[at + 1 :]
        files.append((f"IHDR with another {name}", good.replace(png_chunk(b"IHDR", header), png_chunk(b"IHDR", changed))))
    files.append(("short IHDR", good.replace(png_chunk(b"IHDR", header), png_chunk(b"IHDR", header[:9]))))
    files.append(("no IHDR", good.replace(png_chunk(b"IHDR", header), b"")))
    files.append(("no IDAT", b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IEND", b"")))
    for x, y, width, height, sequence in ((0, 0, 10, 8, 0), (2, 1, 5, 4, 0), (2, 1, 9, 4, 0), (0, 0, 0, 4, 0), (0, 0, 10, 8, 1)):
        control = struct.pack(">IIIIIHHBB", sequence, width, height, x, y, 1, 10, 0, 0)
        chunks = [(b"acTL", struct.pack(">II", 2, 0)), (b"fcTL", control)]
        for interlaced in (0, 1):
            data = png(10, 8, 8, 2, interlaced, chunks, pixels=png_pixels(max(width, 1), height, 8, 2, interlaced))
            files.append((f"animation {x} {y} {width} {height} {sequence} {interlaced}", data))
    control = png_chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 10, 8, 0, 0, 1, 10, 0, 0))
    smaller = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0))
    files.append(("a second, smaller IHDR behind an fcTL", good[:33] + control + smaller + good[33:]))
    files.append(("a second, smaller IHDR", good[:33] + smaller + good[33:]))
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        for width, height in SIZES:
            files.append((f"Pillow {mode} {width}x{height}", save(picture(mode, width, height), "PNG")))
    return files


def test_png(decoder, tmp_path, capsys):
    check(decoder, tmp_path, png_files(), capsys, "PNG")


# ---- WebP -----------------------------------------------------------------------------------------


def webp_files():
    files = []
    for mode in ("RGB", "RGBA"):
        for width, height in SIZES:
            for options in ({"quality": 20}, {"quality": 80}, {"quality": 95, "method": 6}, {"lossless": True},
                            {"lossless": True, "exact": True}):
                files.append((f"{mode} {width}x{height} {options}", save(picture(mode, width, height), "WEBP", **options)))
    frames = [picture("RGBA", 40, 30, seed) for seed in range(3)]
    for options in ({}, {"lossless": True}, {"allow_mixed": True}, {"background": (9, 8, 7, 255)}):
        data = save(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=50, **options)
        files.append((f"animation {options}", data))
        # The first frame moved to the right and down on a larger canvas.
        at = data.index(b"VP8X") + 8
        canvas = data[: at + 4] + struct.pack("<I", 59)[:3] + struct.pack("<I", 49)[:3] + data[at + 10 :]
        frame = canvas.index(b"ANMF") + 8
        moved = canvas[:frame] + struct.pack("<I", 3)[:3] + struct.pack("<I", 4)[:3] + canvas[frame + 6 :]
        files.append((f"animation on a larger canvas {options}", moved))
        outside = canvas[:frame] + struct.pack("<I", 30)[:3] + canvas[frame + 3 :]
        files.append((f"frame outside {options}", outside))
    data = save(picture("RGB", 50, 40), "WEBP", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    files.append(("EXIF", data))
    files.append(("trailing bytes", data + b"xyz" * 30))
    at = data.index(b"VP8X") + 12
    files.append(("another canvas", data[:at] + b"\5\0\0" + data[at + 3 :]))
    return files


@pytest.mark.skipif(not features.check("webp"), reason="Pillow without WebP")
def test_webp(decoder, tmp_path, capsys):
    check(decoder, tmp_path, webp_files(), capsys, "WebP")


# ---- TIFF -----------------------------------------------------------------------------------------


def tiff(entries, data, big=False, large=False):
    """A file of one page: entries of (tag, type, values), with `data` at offset 8 (16 in a BigTIFF)."""
    e = ">" if big else "<"
    sizes = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 16: "Q"}
    start = 16 if large else 8
    body = data + b"\0" * (len(data) % 2)
    directory_at = start + len(body)
    entry_size = 20 if large else 12
    extra_at = directory_at + (8 if large else 2) + entry_size * len(entries) + (8 if large else 4)
    directory, extra = b"", b""
    for tag, kind, values in sorted(entries):
        packed = b"".join(struct.pack(e + sizes[kind], v) for v in values)
        field = 8 if large else 4
        directory += struct.pack(e + ("HHQ" if large else "HHI"), tag, kind, len(values))
        if len(packed) <= field:
            directory += packed.ljust(field, b"\0")
        else:
            directory += struct.pack(e + ("Q" if large else "I"), extra_at + len(extra))
            extra += packed + b"\0" * (len(packed) % 2)
    mark = b"MM" if big else b"II"
    if large:
        head = mark + struct.pack(e + "HHHQ", 43, 8, 0, directory_at)
        return head + body + struct.pack(e + "Q", len(entries)) + directory + bytes(8) + extra
    head = mark + struct.pack(e + "HI", 42, directory_at)
    return head + body + struct.pack(e + "H", len(entries)) + directory + bytes(4) + extra


def tiff_raw(width, height, bits, samples, photometric, *, big=False, large=False, extra=None, sample_format=None, fill=None,
             planar=1, tile=None, strip=None, compression=1, orientation=None, predictor=None, colormap=None, seed=0, levels=256):
    """Random samples of any kind; compression 1, 8 (deflate) or 32946."""
    numbers = np.random.default_rng(seed)
    planes = samples if planar == 2 else 1
    inside = 1 if planar == 2 else samples
    columns, rows = tile if tile else (width, strip or height)
    across = -(-width // columns)
    down = -(-height // rows)
    row_bytes = (columns * inside * bits + 7) // 8
    start = 16 if large else 8
    data, offsets, counts = b"", [], []
    for _ in range(planes):
        for piece in range(across * down):
            lines = rows if tile else min(rows, height - piece * rows)
            raw = numbers.integers(0, levels, row_bytes * lines, dtype=np.uint8).tobytes()
            if bits == 16 and sample_format != [3]:
                values = (numbers.integers(-300, 700, row_bytes * lines // 2) & 0xFFFF).astype(">u2" if big else "<u2")
                raw = values.tobytes() if samples == 1 else raw
            if bits == 32:
                kind = "f4" if sample_format == [3] else "i4"
                values = (numbers.normal(100, 150, row_bytes * lines // 4)).astype((">" if big else "<") + kind)
                raw = values.tobytes()
            packed = zlib.compress(raw) if compression != 1 else raw
            offsets.append(start + len(data))
            counts.append(len(packed))
            data += packed
    entries = [(256, 4, [width]), (257, 4, [height]), (258, 3, [bits] * samples), (259, 3, [compression]),
               (262, 3, [photometric]), (277, 3, [samples]), (284, 3, [planar])]
    if tile:
        entries += [(322, 4, [columns]), (323, 4, [rows]), (324, 4, offsets), (325, 4, counts)]
    else:
        entries += [(273, 4, offsets), (278, 4, [rows]), (279, 4, counts)]
    if extra is not None:
        entries.append((338, 3, extra))
    if sample_format is not None:
        entries.append((339, 3, sample_format * samples))
    if fill is not None:
        entries.append((266, 3, [fill]))
    if orientation is not None:
        entries.append((274, 3, [orientation]))
    if predictor is not None:
        entries.append((317, 3, [predictor]))
    if colormap is not None:
        entries.append((320, 3, colormap))
    return tiff(entries, data, big, large)


def tiff_files():
    files = []

    def add(name, *arguments, **options):
        files.append((f"{name} {arguments} {options}", tiff_raw(*arguments, **options)))

    for big in (False, True):
        for compression in (1, 8):
            common = {"big": big, "compression": compression}
            for bits in (1, 2, 4, 8):
                for photometric in (0, 1):
                    add("gray", 37, 23, bits, 1, photometric, strip=5, **common)
                    no_pillow = "beyond " if (bits, photometric, compression) == (8, 0, 1) else ""
                    add(no_pillow + "gray, bits reversed", 37, 23, bits, 1, photometric, strip=5, fill=2, **common)
                    add("gray, tiles", 37, 23, bits, 1, photometric, tile=(16, 16), **common)
                colours = np.random.default_rng(bits).integers(0, 65536, 3 << bits).tolist()
                add("palette", 37, 23, bits, 1, 3, strip=7, colormap=colours, **common)
                add("beyond palette, bits reversed", 37, 23, bits, 1, 3, strip=7, colormap=colours, fill=2, **common)
            # Of compressed big-endian files Pillow takes these samples in the wrong byte order.
            has_order = not big or compression == 1
            for photometric in (0, 1):
                add("gray 16", 37, 23, 16, 1, photometric, **common)
                add("unsigned 32", 37, 23, 32, 1, photometric, **common)
                if not has_order:
                    continue
                add("float", 37, 23, 32, 1, photometric, sample_format=[3], **common)
                add("int 32", 37, 23, 32, 1, photometric, sample_format=[2], **common)
            if has_order:
                add("signed 16", 37, 23, 16, 1, 1, sample_format=[2], **common)
            add("signed 8", 37, 23, 8, 1, 1, sample_format=[2], **common)
            add("12 bits", 37, 23, 12, 1, 1, strip=4, levels=20, **common)
            add("12 bits", 36, 23, 12, 1, 1, strip=4, levels=20, **common)
            colours = np.random.default_rng(3).integers(0, 65536, 768).tolist()
            add("palette and alpha", 37, 23, 8, 2, 3, colormap=colours, extra=[2], **common)
            add("palette and more", 37, 23, 8, 2, 3, colormap=colours, extra=[0], **common)
            add("gray and alpha", 37, 23, 8, 2, 1, extra=[2], **common)
            for bits in (8, 16):
                add("RGB", 37, 23, bits, 3, 2, strip=6, **common)
                add("RGB, tiles", 37, 23, bits, 3, 2, tile=(16, 32), **common)
                for extra in ([0], [1], [2], None):
                    add("RGB and one more", 37, 23, bits, 4, 2, extra=extra, **common)
                add("CMYK", 37, 23, bits, 4, 5, strip=6, **common)
            for extra in ([0, 0], [1, 0], [2, 0]):
                add("RGB and two more", 37, 23, 8, 5, 2, extra=extra, **common)
                add("RGB and three more", 37, 23, 8, 6, 2, extra=extra + [0], **common)
            add("CMYK and one more", 37, 23, 8, 5, 5, extra=[0], **common)
            add("RGB in planes", 37, 23, 8, 3, 2, strip=6, planar=2, **common)
            add("CMYK in planes", 37, 23, 8, 4, 5, strip=6, planar=2, **common)
            add("RGB in planes and tiles", 37, 23, 8, 3, 2, tile=(16, 16), planar=2, **common)
            add("CMYK in planes and tiles", 37, 23, 8, 4, 5, tile=(16, 16), planar=2, **common)
            add("RGBA in planes", 37, 23, 8, 4, 2, planar=2, extra=[2], **common)
            add("beyond RGBX in planes", 37, 23, 8, 4, 2, planar=2, extra=[0], **common)
            for orientation in range(0, 10):
                add("orientation", 37, 23, 8, 1, 1, orientation=orientation, **common)
            if not big:
                add("one large strip", 3000, 1900, 8, 3, 2, levels=3, **common)
            add("one pixel", 1, 1, 8, 3, 2, **common)
            add("one column", 1, 40, 1, 1, 1, **common)
            add("beyond BigTIFF" if big else "BigTIFF", 37, 23, 8, 3, 2, large=True, **common)
            add("unknown photometric", 37, 23, 8, 1, 32803, **common)
            add("64 bits", 37, 23, 64, 1, 1, sample_format=[3], **common)
        for bits in (8, 16):
            add("RGB in planes", 37, 23, bits, 3, 2, strip=6, planar=2, big=big, compression=8)
            add("CMYK in planes", 37, 23, bits, 4, 5, strip=6, planar=2, big=big, compression=8)
            add("RGBa in planes", 37, 23, bits, 4, 2, planar=2, extra=[1], big=big, compression=8)
            for samples, photometric in ((1, 1), (3, 2)):
                add("predictor", 37, 23, bits, samples, photometric, predictor=2, big=big, compression=8)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"):
        for compression in ("raw", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "lzma", "zstd", "jpeg",
                            "group3", "group4", "tiff_ccitt"):
            for width, height in ((1, 1), (40, 30), (33, 101)):
                try:
                    data = save(picture(mode, width, height), "TIFF", compression=compression)
                except (OSError, ValueError, RuntimeError):
                    continue  # this compression is not for this mode
                files.append((f"Pillow {mode} {compression} {width}x{height}", data))
    for quality in (30, 90):
        files.append((f"JPEG as YCbCr {quality}", save(picture("RGB", 100, 60).convert("YCbCr"), "TIFF", compression="jpeg",
                                                       quality=quality)))
    first, second = picture("RGB", 20, 10), picture("L", 30, 30)
    files.append(("two pages", save(first, "TIFF", save_all=True, append_images=[second])))
    data = save(first, "TIFF")
    files.append(("trailing bytes", data + b"xyz" * 30))
    return files


@pytest.mark.skipif(not features.check("libtiff"), reason="Pillow without libtiff")
def test_tiff(decoder, tmp_path, capsys):
    check(decoder, tmp_path, tiff_files(), capsys, "TIFF")


# ---- GIF ------------------------------------------------------------------------------------------


def lzw(indices, bits, clear_every=0):
    """GIF's compression; with `clear_every` the table is cleared so often."""
    clear, end = 1 << bits, (1 << bits) + 1
    out, filled, codes = 0, 0, []
    table = {bytes([i]): i for i in range(clear)}
    size, following, string = bits + 1, clear + 2, b""
    codes.append((clear, size))
    for number, index in enumerate(indices):
        longer = string + bytes([index])
        if longer in table:
            string = longer
            continue
        codes.append((table[string], size))
        if following < 4096:
            table[longer] = following
            following += 1
            if following - 1 == 1 << size and size < 12:
                size += 1
        string = bytes([index])
        if clear_every and number % clear_every == clear_every - 1:
            codes.append((table[string], size))
            codes.append((clear, size))
            table = {bytes([i]): i for i in range(clear)}
            size, following, string = bits + 1, clear + 2, b""
    if string:
        codes.append((table[string], size))
    codes.append((end, size))
    for code, width in codes:
        out |= code << filled
        filled += width
    return out.to_bytes((filled + 7) // 8, "little")


def gif(screen, frame, *, colours=None, local=None, interlaced=False, transparent=None, bits=8, background=0, indices=None,
        extensions=b"", version=b"89a", block=255, clear_every=0, ending=b"\0;", seed=0):
    numbers = random.Random(seed)
    x, y, width, height = frame
    out = b"GIF" + version + struct.pack("<HHBBB", *screen, (0x80 | (len(colours) // 3).bit_length() - 2) if colours else 0,
                                         background, 0)
    out += colours or b""
    out += extensions
    if transparent is not None:
        out += b"!\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
    flags = (0x80 | (len(local) // 3).bit_length() - 2) if local else 0
    out += b"," + struct.pack("<HHHHB", x, y, width, height, flags | (0x40 if interlaced else 0)) + (local or b"")
    if indices is None:
        indices = [min(int(abs(numbers.gauss(0, 1 << bits >> 1))), (1 << bits) - 1) for _ in range(width * height)]
    data = lzw(indices, bits, clear_every)
    out += bytes([bits])
    for i in range(0, len(data), block):
        piece = data[i : i + block]
        out += bytes([len(piece)]) + piece
    return out + ending


def gif_files():
    files = []
    gray = bytes(v for i in range(256) for v in (i, i, i))
    for bits in (2, 3, 4, 7, 8):
        for interlaced in (False, True):
            for width, height in ((1, 1), (3, 2), (7, 5), (20, 33), (90, 70)):
                data = gif((width, height), (0, 0, width, height), colours=palette(1 << bits), bits=bits, interlaced=interlaced)
                files.append((f"{bits} bits, interlaced {interlaced}, {width}x{height}", data))
    for height in range(1, 12):
        files.append((f"interlaced, {height} rows", gif((4, height), (0, 0, 4, height), colours=palette(256), interlaced=True)))
    for frame in ((0, 0, 20, 20), (3, 4, 10, 5), (0, 0, 40, 10), (15, 15, 10, 10), (25, 0, 5, 5), (0, 0, 0, 5)):
        for transparent in (None, 0, 7, 250):
            for colours, local in ((palette(256), None), (None, palette(256, 1)), (palette(256), palette(64, 2)), (None, None),
                                   (gray, None), (palette(256), gray), (gray, palette(256)), (palette(4), None), (None, gray)):
                data = gif((20, 20), frame, colours=colours, local=local, transparent=transparent, background=5, bits=6)
                files.append((f"frame {frame}, transparent {transparent}", data))
    for options in ({"version": b"87a"}, {"block": 1}, {"block": 17}, {"clear_every": 50}, {"ending": b""}, {"ending": b"\0"},
                    {"ending": b"\0;trailing" * 40}):
        files.append((str(options), gif((50, 40), (0, 0, 50, 40), colours=palette(256), **options)))
    for extension in (b"!\xfe\x03abc\x02de\0", b"!\xff\x0bNETSCAPE2.0\x03\1\0\0\0", b"!\xff\x0bNETSCAPE2.0\0\0", b"!\xf9\0\0",
                      b"!\xf9\2\1\0\0", b"!\xf9\4\1\0\0", b"!\x01\x0c" + bytes(12) + b"\2hi\0", b"!\x77\0\0", b"junk", b";"):
        files.append((f"extension {extension}", gif((9, 9), (0, 0, 9, 9), colours=palette(256), extensions=extension)))
    for count in (0, 40, 80, 82, 100):
        files.append((f"{count} of 81 pixels", gif((9, 9), (0, 0, 9, 9), colours=palette(256), indices=[5] * count)))
    for bits in (0, 1, 12, 13):
        changed = bytearray(gif((9, 9), (0, 0, 9, 9), colours=palette(256), bits=8))
        changed[13 + 768 + 10] = bits
        files.append((f"codes of {bits} bits", bytes(changed)))
    for mode in ("1", "L", "P", "RGB"):
        for width, height in SIZES:
            files.append((f"Pillow {mode} {width}x{height}", save(picture(mode, width, height), "GIF")))
    frames = [picture("P", 30, 20, seed) for seed in range(3)]
    files.append(("animation", save(frames[0], "GIF", save_all=True, append_images=frames[1:])))
    return files


def test_gif(decoder, tmp_path, capsys):
    check(decoder, tmp_path, gif_files(), capsys, "GIF")


# ---- BMP ------------------------------------------------------------------------------------------


def bmp(width, height, bits, *, header=40, compression=0, colours=0, table=b"", masks=None, pixels=None, offset=None, seed=0):
    numbers = random.Random(seed)
    stride = ((width * bits + 31) >> 3) & ~3
    if pixels is None:
        pixels = numbers.randbytes(stride * abs(height))
    info = struct.pack("<I", header)
    if header == 12:
        info += struct.pack("<HHHH", width, height, 1, bits)
    else:
        info += struct.pack("<iiHHIIIIII", width, height, 1, bits, compression, len(pixels), 2835, 2835, colours, 0)
        info += b"".join(struct.pack("<I", m) for m in masks or ())
        info = info.ljust(header, b"\0") if header > 40 else info
    at = 14 + len(info) + len(table) if offset is None else offset
    return b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + info + table + pixels


def colour_table(count, size=4, seed=0):
    numbers = random.Random(seed)
    return b"".join(numbers.randbytes(3) + b"\0" * (size - 3) for _ in range(count))


def gray_table(count, size=4):
    return b"".join(bytes([i % 256] * 3) + b"\0" * (size - 3) for i in range(count))


def bmp_files():
    files = []
    for bits in (1, 4, 8):
        for width, height in ((1, 1), (7, 5), (8, -8), (33, 20), (31, -9)):
            files.append((f"{bits} bits {width}x{height}", bmp(width, height, bits, table=colour_table(1 << bits))))
        for count in (1, 2, 3, 1 << bits):
            for table in (colour_table(count), gray_table(count), b"\0\0\0\0\xff\xff\xff\0" * (count // 2)):
                files.append((f"{bits} bits, {count} colours", bmp(13, 9, bits, colours=count, table=table)))
        for count in (256, 257, 300, 65536, 65537):
            for table in (colour_table(count), gray_table(count)):
                files.append((f"{bits} bits, {count} colours", bmp(13, 9, bits, colours=count, table=table)))
        files.append((f"{bits} bits, offset at the palette", bmp(13, 9, bits, table=colour_table(1 << bits), offset=54)))
        files.append((f"{bits} bits, no offset", bmp(13, 9, bits, table=colour_table(1 << bits), offset=0)))
        files.append((f"{bits} bits, OS/2", bmp(13, 9, bits, header=12, table=colour_table(1 << bits, 3))))
        files.append((f"{bits} bits, OS/2, gray", bmp(13, 9, bits, header=12, table=gray_table(1 << bits, 3))))
    for bits in (16, 24, 32):
        for width, height in ((1, 1), (7, 5), (8, -8), (33, 20)):
            files.append((f"{bits} bits {width}x{height}", bmp(width, height, bits)))
        files.append((f"{bits} bits, OS/2", bmp(13, 9, bits, header=12)))
    layouts = [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF00, 0xFF, 0),
               (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000, 0xFF000000), (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
               (0xFF000000, 0xFF00, 0xFF, 0xFF0000), (0, 0, 0, 0), (0xF800, 0x7E0, 0x1F, 0), (0x7C00, 0x3E0, 0x1F, 0),
               (0xF00, 0xF0, 0xF, 0), (0x3FF00000, 0xFFC00, 0x3FF, 0)]
    for masks in layouts:
        for bits in (8, 16, 24, 32):
            for header in (40, 52, 56, 64, 108, 124):
                used = masks[:3] if header in (40, 52) else masks
                table = colour_table(256) if bits == 8 else b""
                data = bmp(13, 9, bits, header=header, compression=3, masks=used, table=table)
                files.append((f"{bits} bits, masks {[hex(m) for m in masks]}, header {header}", data))
    for header in (13, 16, 41, 48, 200):
        files.append((f"header of {header}", bmp(13, 9, 24, header=max(header, 40)).replace(struct.pack("<I", 40), struct.pack("<I", header), 1)))
    for bits in (0, 2, 15, 64):
        files.append((f"{bits} bits", bmp(13, 9, bits)))
    for compression in (4, 5, 6, 77):
        files.append((f"compression {compression}", bmp(13, 9, 24, compression=compression)))
    # Run lengths: whole ones, cut ones, jumps, ends of rows and of the bitmap at all places.
    numbers = random.Random(5)
    for compression, bits in ((1, 8), (2, 4), (1, 4), (2, 8), (1, 1), (1, 24)):
        table = colour_table(1 << bits) if bits <= 8 else b""
        for case in range(60):
            pixels, rows = b"", 0
            while rows < 8:
                kind = numbers.randrange(10)
                if kind < 4:
                    pixels += bytes([numbers.randint(1, 9), numbers.randrange(256)])
                elif kind < 7:
                    count = numbers.randint(3, 12)
                    size = count if compression == 1 else (count + 1) // 2
                    pixels += bytes([0, count]) + numbers.randbytes(size) + b"\0" * (size % 2)
                elif kind < 9 or case % 3:
                    pixels += b"\0\0"
                    rows += 1
                else:
                    pixels += bytes([0, 2, numbers.randrange(3), numbers.randrange(2)])
            pixels += (b"\0\0" * 9, b"", b"\0\1", b"\x09\x33" * 40)[case % 4]
            height = 8 if case % 5 else -8
            data = bmp(11, height, bits, compression=compression, table=table, pixels=pixels)
            files.append((f"run lengths {compression}, {bits} bits, case {case}", data))
    for table in (gray_table(256), gray_table(2)):
        data = bmp(11, 3, 8, compression=1, colours=len(table) // 4, table=table, pixels=b"\x0b\1\0\0\x0b\2\0\0\x0b\0\0\1")
        files.append(("run lengths in gray", data))
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        for width, height in SIZES:
            files.append((f"Pillow {mode} {width}x{height}", save(picture(mode, width, height), "BMP")))
    files.append(("width 0", bmp(0, 5, 24)))
    files.append(("trailing bytes", bmp(13, 9, 24) + b"xyz" * 10))
    return files


def test_bmp(decoder, tmp_path, capsys):
    check(decoder, tmp_path, bmp_files(), capsys, "BMP")


# ---- PNM ------------------------------------------------------------------------------------------


def pnm_files():
    files = []
    numbers = random.Random(7)
    for width, height in ((1, 1), (8, 3), (13, 7), (33, 20)):
        bitmap = numbers.randbytes((width + 7) // 8 * height)
        files.append((f"P4 {width}x{height}", b"P4 %d %d\n" % (width, height) + bitmap))
        digits = [b"01"[i : i + 1] for i in (numbers.randrange(2) for _ in range(width * height))]
        for between in (b"", b" ", b"\n", b" # note 7\n"):
            files.append((f"P1 {width}x{height} {between}", b"P1\n%d %d\n" % (width, height) + between.join(digits) + b"\n"))
        for kind, channels in ((5, 1), (6, 3)):
            for highest in (1, 2, 15, 100, 254, 255, 256, 1000, 1023, 4095, 65534, 65535):
                size = 2 if highest > 255 else 1
                count = width * height * channels
                head = b"P%d\n%d %d\n%d\n" % (kind, width, height, highest)
                values = [numbers.randint(0, highest) for _ in range(count)]
                raw = b"".join(v.to_bytes(size, "big") for v in values)
                files.append((f"P{kind} {width}x{height} {highest}", head + raw))
                files.append((f"P{kind} {width}x{height} {highest}, any bytes", head + numbers.randbytes(count * size)))
                low = b"".join(min(v, 260).to_bytes(size, "big") for v in values) if size == 2 else raw
                files.append((f"P{kind} {width}x{height} {highest}, low", head + low))
                plain = b"P%d\n%d %d\n%d\n" % (kind - 3, width, height, highest)
                files.append((f"P{kind - 3} {width}x{height} {highest}", plain + b" ".join(b"%d" % v for v in values) + b"\n"))
                files.append((f"P{kind - 3} {width}x{height} {highest}, no end", plain + b"\n".join(b"%d" % v for v in values)))
    head_variants = [b"P5 3 2 255 ", b"P5\n#c\n3 2\n255\n", b"P5\n3 #c\r2\n255\n", b"P5\n3\t2\x0b255\x0c", b"P5\n1#c\n3 2\n255\n",
                     b"P5 3 2 0255 ", b"P5 3 2 0 ", b"P5 3 2 65536 ", b"P5 0 2 255 ", b"P5 3 x 255 ", b"P5 -3 2 255 ",
                     b"P5 33333333333 2 255 ", b"P5", b"P5 ", b"P5 3", b"P5 3 2", b"P5x3 2 255 ", b"P7 3 2 255 ", b"P53 2 255 "]
    for head in head_variants:
        files.append((f"header {head}", head + b"abcdef" * 20))
    for body in (b"1 2 3 4 5 6", b"1 2 3 4 5", b"1 2 3 4 5 256", b"1 2 3 4 5 x", b"1 2 3 4 5 6 7 8", b"1 2 #x\n3 4 5 6", b"1 2 3 4 5 6 zzz ",
                 b"1 2 3 4 5 -6", b"1 2 3 4 5 12345678901", b"1 2 3 4 5 0000000006", b"1 2 3 4 5 6#", b"1 2 3 4 1#\n2 6\n"):
        files.append((f"P2 {body}", b"P2 3 2 255\n" + body))
    for body in (b"101010", b"10101", b"1010102", b"101010 # x", b"1 0 1 0 1 0 1 1", b"10#\n1010", b"101010x", b"1010x"):
        files.append((f"P1 {body}", b"P1 3 2\n" + body))
    for mode, kind in (("1", "pbm"), ("L", "pgm"), ("RGB", "ppm"), ("I;16", "pgm")):
        for width, height in SIZES:
            files.append((f"Pillow {mode} {width}x{height}", save(picture(mode, width, height), "PPM")))
    return files


def test_pnm(decoder, tmp_path, capsys):
    check(decoder, tmp_path, pnm_files(), capsys, "PNM")


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
    yield "PGM", b"P5 30 20 255\n" + random.randbytes(600)
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


# ---- Options and messages ---------------------------------------------------------------------------


def exif(orientation, big=False, kind=3, count=1):
    e = ">" if big else "<"
    head = (b"MM" if big else b"II") + struct.pack(e + "HI", 42, 8)
    value = struct.pack(e + "HH", orientation, 0)
    return b"Exif\0\0" + head + struct.pack(e + "HHHI", 1, 0x112, kind, count) + value + bytes(4)


def upright(path):
    from PIL import ImageOps

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
                            capture_output=True, text=True, timeout=10)
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
    result = subprocess.run([decoder_program, path], capture_output=True, text=True, timeout=5)
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


def test_photos(decoder, test_data, tmp_path, capsys):
    photos = [path for path in sorted((test_data / "photos").iterdir()) if path.suffix.lower() not in (".txt", ".md")]
    assert photos
    check(decoder, tmp_path, [(path.name, path) for path in photos], capsys, "photos")
