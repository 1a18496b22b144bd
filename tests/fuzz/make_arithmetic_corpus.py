# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/resize and corpus/postprocess: sizes, rules and values to start fuzzing from. Run by hand in this folder."""
import struct
from pathlib import Path

HERE = Path(__file__).parent / "corpus"


def resize(width, height, to_width, to_height, pixels):
    return struct.pack("<4H", width - 1, height - 1, to_width - 1, to_height - 1) + pixels


def postprocess(max_keypoints, radius, border, threshold, scores):
    count = (max_keypoints + 1).to_bytes(3, "little")
    return count + bytes([radius, border]) + struct.pack("<f", threshold) + struct.pack(f"<{len(scores)}f", *scores)


RESIZE = {
    "one-pixel": resize(1, 1, 400, 400, b"\x80"),
    "to-one-pixel": resize(400, 399, 1, 1, bytes(range(256))),
    "same": resize(17, 19, 17, 19, bytes(range(200))),
    "larger": resize(33, 21, 320, 240, b"\x00\xff\x10\x80\x7f"),
    "smaller": resize(399, 301, 64, 48, b"\xff\x00\x00"),
    "row": resize(400, 1, 7, 3, bytes(range(0, 250, 7))),
    "column": resize(1, 400, 3, 7, bytes(range(0, 250, 7))),
    "white": resize(311, 200, 160, 120, b"\xff"),
}
NAN, INFINITY = float("nan"), float("inf")
POSTPROCESS = {
    "peaks": postprocess(1024, 4, 4, 0.005, [i * 37 % 101 / 101 for i in range(211)]),
    "ties": postprocess(100, 4, 4, 0.005, [0.5]),
    "all": postprocess(-1, 0, 0, 0.0, [i * 29 % 97 / 97 for i in range(101)]),
    "none": postprocess(0, 4, 4, 0.0, [0.1, 0.9]),
    "wide": postprocess(50, 32, 20, 0.1, [i * 53 % 89 / 89 for i in range(307)]),
    "not-numbers": postprocess(500, 3, 1, 0.2, [NAN, 0.3, INFINITY, -INFINITY, NAN, 0.9, 1e-45, -0.0]),
    "large-border": postprocess(10, 2, 240, 0.0, [0.1, 0.2, 0.3]),
    "threshold-infinite": postprocess(10, 2, 4, INFINITY, [INFINITY, 0.2]),
}
for folder, files in (("resize", RESIZE), ("postprocess", POSTPROCESS)):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (HERE / folder / name).write_bytes(content)
