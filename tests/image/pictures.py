# SPDX-License-Identifier: Apache-2.0
"""What the files of the tests show."""
import io

import numpy as np
from PIL import Image


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
