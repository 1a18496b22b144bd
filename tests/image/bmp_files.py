# SPDX-License-Identifier: Apache-2.0
"""BMP files: what Pillow writes, and by hand what it cannot."""
import random
import struct

from image.pictures import SIZES, picture, save


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
