# SPDX-License-Identifier: Apache-2.0
"""TIFF files: what Pillow writes, and by hand what it cannot."""
import struct
import zlib

import numpy as np

from image.pictures import picture, save


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
