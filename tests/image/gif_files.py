# SPDX-License-Identifier: Apache-2.0
"""GIF files: what Pillow writes, and by hand what it cannot."""
import random
import struct

from image.pictures import SIZES, picture, save
from image.png_files import palette


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
