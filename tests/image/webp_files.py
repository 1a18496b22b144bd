# SPDX-License-Identifier: Apache-2.0
"""WebP files, as Pillow writes them."""
import struct

from image.pictures import SIZES, picture, save


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
