# SPDX-License-Identifier: Apache-2.0
"""Procedural pictures with detail like that of photos and of things made by people: dead leaves, writing, bricks,
clouds.

They stand beside the photos, and their keypoints are found in the same way. Pictures are (height, width) uint8."""
import string

import cv2
import numpy as np

import geometry

FONTS = (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_PLAIN, cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_COMPLEX,
         cv2.FONT_HERSHEY_TRIPLEX, cv2.FONT_HERSHEY_COMPLEX_SMALL, cv2.FONT_HERSHEY_SCRIPT_SIMPLEX)


def clouds(random, height, width):
    """Noise of all scales, each half as wide as the last and weaker; mean 0, deviation 1, float32."""
    total = np.zeros((height, width), np.float32)
    weight, fading, size = 1.0, random.uniform(0.4, 0.9), int(random.integers(2, 5))
    while size < max(height, width):
        noise = random.standard_normal((min(height, size), min(width, size)), dtype=np.float32)
        total += np.float32(weight) * cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
        weight *= fading
        size *= 2
    total -= total.mean()
    return total / (total.std() + np.float32(1e-6))


def leaf_outline(random, radius):
    kind = random.random()
    if kind < 0.4:
        angles = np.sort(random.uniform(0, 2 * np.pi, random.integers(3, 7)))
        return np.c_[np.cos(angles), np.sin(angles)] * radius
    if kind < 0.7:
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [radius, radius * random.uniform(0.2, 1)] * 0.7
    else:
        angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        corners = np.c_[np.cos(angles), np.sin(angles)] * [radius, radius * random.uniform(0.4, 1)]
    return corners @ geometry.rotation(random.uniform(0, np.pi)).T


def dead_leaves(random, height, width, photos):
    """Shapes of all sizes over one another, plain, shaded, or cut out of a photo: edges and occlusion."""
    image = np.full((height, width), random.integers(0, 256), np.uint8)
    for _ in range(int(random.integers(120, 400))):
        radius = min(90.0, random.uniform(2.8, 5.6) / (random.random() ** 0.55 + 1e-3))  # many small, few large
        outline = leaf_outline(random, radius) + random.uniform([0, 0], [width, height])
        low = np.clip(np.floor(outline.min(0)) - 1, 0, [width, height]).astype(int)
        high = np.clip(np.ceil(outline.max(0)) + 2, 0, [width, height]).astype(int)
        columns, rows = high - low
        if columns < 3 or rows < 3:
            continue
        mask = np.zeros((rows, columns), np.uint8)
        points = np.rint((outline - low) * 16).astype(np.int32).reshape(-1, 1, 2)
        cv2.fillPoly(mask, [points], 255, cv2.LINE_AA, 4)
        part = image[low[1]:high[1], low[0]:high[0]]
        fill = leaf_filling(random, rows, columns, photos).astype(np.float32)
        part[:] = part + (fill - part) * (mask / np.float32(255))
    return image


def leaf_filling(random, rows, columns, photos):
    if len(photos) and random.random() < 0.45:
        photo = photos[random.integers(len(photos))]
        if photo.shape[0] >= rows and photo.shape[1] >= columns:
            y, x = random.integers(photo.shape[0] - rows + 1), random.integers(photo.shape[1] - columns + 1)
            return photo[y:y + rows, x:x + columns]
    ramp = random.uniform(-50, 50) * np.linspace(-0.5, 0.5, columns)
    return np.tile(np.clip(random.uniform(0, 255) + ramp, 0, 255), (rows, 1))


def writing(random, height, width):
    """Lines of random letters in several sizes, as on pages and signs."""
    image = np.full((height, width), random.integers(0, 256), np.uint8)
    ink = (int(image[0, 0]) + int(random.integers(70, 186))) % 256
    letters = np.array(list(string.ascii_letters + string.digits + "    .,-:;"))
    y = 0
    while y < height:
        font, scale = FONTS[random.integers(len(FONTS))], float(np.exp(random.uniform(np.log(0.4), np.log(2.2))))
        thickness = int(random.integers(1, 3 if scale < 1 else 4))
        step = int(30 * scale * random.uniform(0.9, 1.4)) + 4
        y += step
        text = "".join(random.choice(letters, int(width / (10 * scale)) + 2))
        cv2.putText(image, text, (int(random.integers(-20, 30)), y), font, scale, ink, thickness, cv2.LINE_AA)
    return image


def bricks(random, height, width):
    """Rows of bricks or tiles, each with a gray of its own."""
    image = np.full((height, width), random.integers(0, 256), np.uint8)
    rows, columns = int(random.integers(10, 40)), int(random.integers(14, 70))
    joint, base, spread = int(random.integers(1, 4)), random.uniform(40, 215), random.uniform(5, 60)
    offset = random.choice([0.0, 0.5])  # tiles or bricks
    for i, top in enumerate(range(0, height, rows)):
        for left in range(-int(columns * offset * (i % 2)), width, columns):
            gray = int(np.clip(base + random.uniform(-spread, spread), 0, 255))
            cv2.rectangle(image, (left, top), (left + columns - joint - 1, top + rows - joint - 1), gray, -1)
    return image


def aslant(random, image):
    """The picture seen from a random side, and rough and unevenly lit as surfaces are."""
    height, width = image.shape
    homography, _ = geometry.random_view(random, (width, height), (width, height), np.pi, (0.8, 1.6), 0.12)
    image = geometry.warp_image(homography, image, (width, height), cv2.BORDER_REFLECT_101)
    rough = clouds(random, height, width) * random.uniform(2, 20)
    return np.clip(image + rough, 0, 255).astype(np.uint8)


def random_picture(random, height, width, photos):
    kind = random.random()
    if kind < 0.6:
        return dead_leaves(random, height, width, photos)
    if kind < 0.8:
        return aslant(random, writing(random, height, width))
    return aslant(random, bricks(random, height, width))
