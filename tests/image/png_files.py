# SPDX-License-Identifier: Apache-2.0
"""PNG files: what Pillow writes, and by hand what it cannot."""
import random
import struct
import zlib

from image.pictures import SIZES, picture, save


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
    numbers = random.Random(1)
    files.append(("large pieces", png(700, 400, 8, 6, level=0, pixels=b"".join(
        b"\0" + numbers.randbytes(2800) for _ in range(400)))))
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
