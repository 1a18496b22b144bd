# SPDX-License-Identifier: Apache-2.0
"""JPEG files: what Pillow writes, and by hand what it cannot."""
import random
import struct

from image.pictures import SIZES, picture, save


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
