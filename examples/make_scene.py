#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders the example pictures: a small town square, and a second view of the same picture under a known homography.

Writes scene_1.jpg, scene_2.jpg, scene_homography.txt (3 x 3, from pixels of scene_1 to pixels of scene_2, with (0, 0) the
centre of the first pixel) and scene_corners.txt (x y in scene_1, corners that both pictures show) beside this script.
Needs numpy and Pillow. Everything is drawn here; nothing is taken from other pictures.
"""
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 1280, 960
MARGIN = 240  # drawn around the picture, for the second view to look into
SAMPLES = 3  # drawn pixels for one of the picture, along each side
FOCAL, EYE, HORIZON = 1100.0, 7.0, 400.0  # camera: pixels, metres, row of the horizon
SUN = np.array([255, 236, 205])
HAZE = np.array([188, 205, 224])
SEED = 20240607

random = np.random.default_rng(SEED)
corners = []


def smooth_noise(width, height, cell, rng=random):
    """Values about 0 that change over `cell` pixels."""
    small = rng.standard_normal((height // cell + 2, width // cell + 2)).astype(np.float32)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC))


class Town:
    """A canvas with a pinhole camera: x to the right, y up, z into the picture, metres."""

    def __init__(self):
        self.size = ((WIDTH + 2 * MARGIN) * SAMPLES, (HEIGHT + 2 * MARGIN) * SAMPLES)
        self.image = Image.fromarray(self.sky())
        self.draw = ImageDraw.Draw(self.image)

    def sky(self):
        width, height = self.size
        rows = np.linspace(0, 1, height)[:, None, None]
        sky = np.array([92, 138, 196]) * (1 - rows) + np.array([244, 226, 205]) * rows
        y, x = np.mgrid[0:height:4, 0:width:4].astype(np.float32)
        glow = np.exp(-np.hypot(x - 0.7 * width, y - 0.34 * height) / (0.16 * width))
        small = (width // 4, height // 4)
        clouds = sum(smooth_noise(*small, cell) * cell for cell in (120, 60, 30, 15)) / 120
        clouds = np.clip(clouds * 0.6 - 0.25, 0, 1)
        grow = lambda a: np.asarray(Image.fromarray(a.astype(np.float32)).resize(self.size, Image.BICUBIC))[..., None]
        sky = sky + grow(glow) * 60
        sky = sky + (250 - sky) * grow(clouds) * 0.7
        return np.clip(sky, 0, 255).astype(np.uint8)

    def project(self, x, y, z):
        """Pixels of scene_1."""
        return WIDTH / 2 + FOCAL * x / z, HORIZON + FOCAL * (EYE - y) / z

    def polygon(self, points, colour, distance=0, mark=False):
        """A flat polygon of points in the world, paler with the distance."""
        projected = [self.project(*p) for p in points]
        haze = 1 - np.exp(-distance / 160)
        colour = np.asarray(colour) * (1 - haze) + HAZE * haze
        shift = [((x + MARGIN + 0.5) * SAMPLES - 0.5, (y + MARGIN + 0.5) * SAMPLES - 0.5) for x, y in projected]
        self.draw.polygon(shift, fill=tuple(int(c) for c in np.clip(colour, 0, 255)))
        if mark:
            corners.extend(projected)


def hills(town):
    width, _ = town.size
    for base, rough, colour in ((330, 60, (150, 172, 186)), (362, 42, (122, 150, 140)), (388, 20, (96, 126, 96))):
        ridge = smooth_noise(width, 2, 400)[0] * rough + smooth_noise(width, 2, 90)[0] * rough * 0.15
        line = [(x, (base + MARGIN) * SAMPLES - ridge[x] * SAMPLES * 0.6) for x in range(0, width, 3)]
        town.draw.polygon([*line, (width, town.size[1]), (0, town.size[1])], fill=colour)


def square(town):
    """Paving in two colours up to the horizon."""
    for z in np.arange(88, 4, -2.0):
        for x in np.arange(-70, 70, 2.0):
            light = (int(x // 2) + int(z // 2)) % 2
            colour = np.array((196, 182, 160) if light else (120, 108, 100)) + random.normal(0, 6)
            near = 10 < z < 30
            town.polygon([(x, 0, z), (x + 2, 0, z), (x + 2, 0, z + 2), (x, 0, z + 2)], colour, z, mark=near)


class Face:
    """A rectangle in the world: places on it are shares of its sides."""

    def __init__(self, origin, right, up, distance):
        self.origin, self.right, self.up = map(np.asarray, (origin, right, up))
        self.distance = distance

    def rectangle(self, town, left, bottom, right, top, colour, mark=False):
        place = lambda u, v: tuple(self.origin + u * self.right + v * self.up)
        town.polygon([place(left, bottom), place(right, bottom), place(right, top), place(left, top)], colour,
                     self.distance, mark)


def windows(town, face, columns, rows, light, glass):
    for row in range(rows):
        for column in range(columns):
            u, v = (column + 0.22) / columns, (row + 0.28) / rows
            w, h = 0.56 / columns, 0.5 / rows
            face.rectangle(town, u - 0.05 / columns, v - 0.05 / rows, u + w + 0.05 / columns, v + h + 0.05 / rows,
                           np.array((240, 234, 222)) * light)
            shade = np.array(glass) * random.uniform(0.7, 1.25) * light
            face.rectangle(town, u, v, u + w, v + h, shade, mark=True)
            face.rectangle(town, u + 0.47 * w, v, u + 0.53 * w, v + h, np.array((226, 220, 208)) * light)
            if random.random() < 0.3:
                face.rectangle(town, u, v + h * random.uniform(0.4, 0.8), u + w, v + h, np.array((216, 196, 160)) * light)


def bricks(town, face, colour, light, columns, rows):
    for row in range(rows):
        for column in range(-1, columns):
            left = max(0, (column + 0.5 * (row % 2)) / columns)
            right = min(1, (column + 0.94 + 0.5 * (row % 2)) / columns)
            if right > left:
                face.rectangle(town, left, (row + 0.05) / rows, right, (row + 0.92) / rows,
                               np.array(colour) * light * random.uniform(0.88, 1.1))


def building(town, x, z, width, depth, height, colour, columns, rows, brick=False, glass=(74, 92, 116)):
    side = x if x > 0 else x + width  # the side that the camera sees
    faces = [(Face((side, 0, z + depth), (0, 0, -depth), (0, height, 0), z), 0.66, max(2, columns * int(depth) // int(width))),
             (Face((x, 0, z), (width, 0, 0), (0, height, 0), z), 1.0, columns)]
    if x < 0 < x + width:
        faces = faces[1:]
    for face, light, count in faces:
        face.rectangle(town, 0, 0, 1, 1, np.array(colour) * light * (0.8 if brick else 1), mark=True)
        if brick:
            bricks(town, face, colour, light, count * 8, rows * 12)
        windows(town, face, count, rows, light, glass)
        face.rectangle(town, -0.02, 0.97, 1.02, 1.01, np.array((232, 224, 208)) * light)
        face.rectangle(town, 0, 0, 1, 0.03, np.array((92, 84, 80)) * light)
    if height > EYE:
        return
    town.polygon([(x, height, z), (x + width, height, z), (x + width, height, z + depth), (x, height, z + depth)],
                 np.array(colour) * 1.15, z, mark=True)


def crate(town, x, z, size, y=0.0):
    """A box with boards, seen from the front and above."""
    wood = np.array((176, 128, 76))
    side = x if x > 0 else x + size
    for face, light in ((Face((side, y, z + size), (0, 0, -size), (0, size, 0), z), 0.6),
                        (Face((x, y, z), (size, 0, 0), (0, size, 0), z), 1.0),
                        (Face((x, y + size, z), (size, 0, 0), (0, 0, size), z), 1.2)):
        face.rectangle(town, 0, 0, 1, 1, wood * light * 0.55, mark=True)
        for board in range(5):
            face.rectangle(town, 0.02, board / 5 + 0.015, 0.98, (board + 1) / 5 - 0.015,
                           wood * light * random.uniform(0.88, 1.12))
        for left in (0.02, 0.82):
            face.rectangle(town, left, 0, left + 0.16, 1, wood * light * 0.8, mark=True)


def shadow(town, x, z, width, depth, length):
    town.polygon([(x, 0.01, z), (x - length, 0.01, z - 0.35 * length), (x + width - length, 0.01, z - 0.35 * length),
                  (x + width, 0.01, z)], (84, 78, 84), z)


def billboard(town, x, z, width, height, bottom):
    """A sign with lines of made-up letters."""
    for post in (0.1, 0.86):
        Face((x + post * width, 0, z), (0.04 * width, 0, 0), (0, bottom, 0), z).rectangle(town, 0, 0, 1, 1, (70, 70, 78))
    face = Face((x, bottom, z), (width, 0, 0), (0, height, 0), z)
    face.rectangle(town, 0, 0, 1, 1, (52, 60, 84), mark=True)
    face.rectangle(town, 0.02, 0.035, 0.98, 0.965, (246, 240, 222), mark=True)
    for row, (top, size, colour) in enumerate(((0.9, 0.3, (190, 54, 44)), (0.54, 0.17, (40, 48, 70)), (0.32, 0.17, (40, 48, 70)))):
        u, pixel = 0.06, size / 7
        step = pixel * height / width
        while u + 5 * step < 0.95:
            if random.random() < 0.85 or row == 0:
                half = random.random((7, 3)) < 0.62
                half[:, 0] |= random.random() < 0.7
                letter = np.concatenate([half, half[:, 1::-1]], 1)
                for v, i in np.argwhere(letter):
                    face.rectangle(town, u + i * step, top - (v + 1) * pixel, u + (i + 1.04) * step, top - (v - 0.04) * pixel, colour)
            u += 6.3 * step


def finish(picture, exposure, rng):
    """Light, lens and sensor."""
    values = np.asarray(picture).astype(np.float32)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    falloff = 1 - 0.16 * (((x - WIDTH / 2) / WIDTH) ** 2 + ((y - HEIGHT / 2) / HEIGHT) ** 2)
    values = values * falloff[..., None] * exposure
    values += rng.normal(0, 1.6, values.shape)
    return Image.fromarray(np.clip(values + 0.5, 0, 255).astype(np.uint8))


def second_view():
    """The homography that takes the corners of scene_1 to these places of scene_2."""
    source = np.array([[0, 0], [WIDTH - 1, 0], [WIDTH - 1, HEIGHT - 1], [0, HEIGHT - 1]], float)
    target = np.array([[-95, -40], [1205, -150], [1330, 985], [10, 1075]], float)
    rows = []
    for (x, y), (u, v) in zip(source, target):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.append(np.linalg.solve(np.array(rows), target.ravel()), 1).reshape(3, 3)


def apply(homography, points):
    lifted = np.column_stack([points, np.ones(len(points))]) @ homography.T
    return lifted[:, :2] / lifted[:, 2:]


def warp(canvas, homography):
    """The canvas as the second view sees it, drawn with the same number of samples and then averaged."""
    to_canvas = np.array([[SAMPLES, 0, (MARGIN + 0.5) * SAMPLES - 0.5], [0, SAMPLES, (MARGIN + 0.5) * SAMPLES - 0.5], [0, 0, 1]])
    to_picture = np.array([[1 / SAMPLES, 0, 0.5 / SAMPLES - 0.5], [0, 1 / SAMPLES, 0.5 / SAMPLES - 0.5], [0, 0, 1]])
    back = to_canvas @ np.linalg.inv(homography) @ to_picture
    # Pillow counts from the corner of a pixel, not its centre.
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    back = half @ back @ np.linalg.inv(half)
    coefficients = (back / back[2, 2]).ravel()[:8]
    large = canvas.transform((WIDTH * SAMPLES, HEIGHT * SAMPLES), Image.PERSPECTIVE, coefficients, Image.BICUBIC)
    return large.resize((WIDTH, HEIGHT), Image.BOX)


def draw_town():
    town = Town()
    hills(town)
    square(town)
    building(town, -60, 86, 26, 14, 22, (170, 150, 140), 8, 6)
    building(town, -30, 92, 24, 14, 28, (196, 176, 150), 7, 8)
    building(town, 8, 90, 20, 14, 18, (168, 120, 104), 6, 5)
    building(town, 32, 84, 28, 16, 26, (186, 186, 178), 9, 7)
    building(town, -36, 52, 16, 18, 19, (214, 190, 150), 5, 5)
    building(town, 17, 56, 13, 20, 15, (178, 96, 78), 4, 4, brick=True)
    building(town, -24.5, 36, 11, 12, 12, (166, 86, 70), 4, 3, brick=True)
    building(town, 12.5, 37, 14, 14, 13.5, (206, 204, 190), 5, 4)
    shadow(town, -3.5, 30, 8.5, 0.2, 3.5)
    billboard(town, -3.5, 30, 8.5, 4.6, 3.0)
    for x, z, size in ((8.1, 22.6, 1.7), (-8.6, 21, 1.9), (5.4, 20, 2.3), (-5.9, 17.4, 1.3)):
        shadow(town, x, z, size, size, size)
        crate(town, x, z, size)
    crate(town, 5.8, 20.3, 1.4, 2.3)
    return town.image


def main():
    folder = Path(__file__).resolve().parent
    canvas = draw_town()
    width, height = canvas.size
    grain = 1 + sum(smooth_noise(width, height, cell) * weight for cell, weight in ((6, 0.014), (18, 0.01), (90, 0.012)))
    canvas = Image.fromarray(np.clip(np.asarray(canvas) * grain[..., None] * (SUN / 250), 0, 255).astype(np.uint8))
    canvas = canvas.filter(ImageFilter.GaussianBlur(SAMPLES * 0.35))
    box = (MARGIN * SAMPLES, MARGIN * SAMPLES, (MARGIN + WIDTH) * SAMPLES, (MARGIN + HEIGHT) * SAMPLES)
    homography = second_view()
    finish(canvas.crop(box).resize((WIDTH, HEIGHT), Image.BOX), 1.14, random).save(folder / "scene_1.jpg", quality=90)
    finish(warp(canvas, homography), 1.04, random).save(folder / "scene_2.jpg", quality=90)
    np.savetxt(folder / "scene_homography.txt", homography, fmt="%.12g")
    points = np.unique(np.round(np.array(corners), 2), axis=0)
    moved = apply(homography, points)
    inside = np.ones(len(points), bool)
    for p in (points, moved):
        inside &= (p > 20).all(1) & (p < np.array([WIDTH, HEIGHT]) - 20).all(1)
    np.savetxt(folder / "scene_corners.txt", points[inside], fmt="%.2f")


if __name__ == "__main__":
    main()
