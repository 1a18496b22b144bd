# SPDX-License-Identifier: Apache-2.0
"""PNM files: what Pillow writes, and by hand what it cannot."""
import random

from image.pictures import SIZES, picture, save


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
