# SPDX-License-Identifier: Apache-2.0
"""Pictures of simple shapes whose corners are known exactly.

Shapes are drawn at OVERSAMPLING times the size, without smoothing, and reduced by averaging, so that edges lie where
the geometry says to a fraction of a pixel. Later shapes hide earlier ones; hidden corners are no corners any more.
Discs, noise and empty pictures have no corners at all: they teach where to be silent."""
import cv2
import numpy as np

import geometry

OVERSAMPLING = 4
FRACTION_BITS = 4  # of OpenCV's fixed-point coordinates


class Canvas:
    """A gray picture to draw on, in oversampled pixels, with the corners that are still visible."""

    def __init__(self, random, width, height):
        self.random = random
        self.width, self.height = width * OVERSAMPLING, height * OVERSAMPLING
        self.image = np.full((self.height, self.width), int(random.integers(10, 246)), np.uint8)
        self.corners = np.zeros((0, 2))

    def point(self, margin=0.0):
        """A random place; `margin` is a share of the size."""
        low, high = margin, 1 - margin
        return self.random.uniform([low * self.width, low * self.height], [high * self.width, high * self.height])

    def colour(self, place):
        """A gray that stands out from what is at a place."""
        x, y = np.clip(place, 0, [self.width - 1, self.height - 1]).astype(int)
        behind = int(self.image[y, x])
        choices = [gray for gray in range(256) if abs(gray - behind) > 30]
        return int(self.random.choice(choices))

    def add_corners(self, points):
        self.corners = np.r_[self.corners, np.reshape(points, (-1, 2))]

    def hide(self, outline):
        """Drops the corners inside an outline."""
        contour = outline.astype(np.float32).reshape(-1, 1, 2)
        kept = [cv2.pointPolygonTest(contour, (float(x), float(y)), False) < 0 for x, y in self.corners]
        self.corners = self.corners[np.array(kept, bool)]

    def polygon(self, outline, colour, corners=True):
        self.hide(outline)
        cv2.fillPoly(self.image, [fixed_point(outline).reshape(-1, 1, 2)], colour, cv2.LINE_8, FRACTION_BITS)
        if corners:
            self.add_corners(outline[sharp(outline)])

    def line(self, start, end, thickness, colour):
        ends = fixed_point(np.array([start, end])).tolist()
        cv2.line(self.image, ends[0], ends[1], colour, thickness, cv2.LINE_8, FRACTION_BITS)

    def picture(self):
        """The reduced picture, float32 0..1, and its corners."""
        size = (self.width // OVERSAMPLING, self.height // OVERSAMPLING)
        small = cv2.resize(self.image, size, interpolation=cv2.INTER_AREA).astype(np.float32) / 255
        corners = (self.corners - (OVERSAMPLING - 1) / 2) / OVERSAMPLING  # between the centres of pixels
        return small, corners[geometry.inside(corners, *size)]


def fixed_point(points):
    return np.rint(np.asarray(points) * (1 << FRACTION_BITS)).astype(np.int32)


def sharp(outline):
    """Which vertices are corners: not nearly straight, not a needle, with sides long enough to be seen."""
    before, after = np.roll(outline, 1, 0) - outline, np.roll(outline, -1, 0) - outline
    lengths = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    cosine = np.sum(before * after, axis=1) / (lengths[0] * lengths[1] + 1e-9)
    return (np.abs(cosine) < 0.94) & (np.minimum(*lengths) > 5 * OVERSAMPLING)


def random_outline(random, middle, radius):
    """A polygon around a place: star-shaped, or a turned rectangle."""
    if random.random() < 0.35:
        outline = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [radius, radius * random.uniform(0.3, 1)] * 0.7
        return outline @ geometry.rotation(random.uniform(0, np.pi)).T + middle
    angles = np.sort(random.uniform(0, 2 * np.pi, random.integers(3, 7)))
    radii = random.uniform(0.6, 1, len(angles)) * radius
    return np.c_[np.cos(angles), np.sin(angles)] * radii[:, None] + middle


def tilted_plane(canvas, amount):
    """A homography from the unit square onto much of the canvas, as a plane seen aslant."""
    random = canvas.random
    size = np.array([canvas.width, canvas.height]) * random.uniform(0.5, 1.3)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float64)
    corners = (square - 0.5 + random.uniform(-amount, amount, (4, 2))) * size
    corners = corners @ geometry.rotation(random.uniform(0, np.pi)).T + canvas.point(0.3)
    return cv2.getPerspectiveTransform(square.astype(np.float32), corners.astype(np.float32))


def draw_polygons(canvas):
    random = canvas.random
    for _ in range(int(random.integers(1, 10))):
        middle, radius = canvas.point(), random.uniform(10, 45) * OVERSAMPLING
        if random.random() < 0.15:
            draw_disc(canvas, middle, radius)
            continue
        outline = random_outline(random, middle, radius)
        if cv2.contourArea(outline.astype(np.float32)) > 40 * OVERSAMPLING ** 2:
            canvas.polygon(outline, canvas.colour(middle))


def draw_disc(canvas, middle, radius):
    angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    axes = radius * np.array([1, canvas.random.uniform(0.4, 1)])
    outline = np.c_[np.cos(angles), np.sin(angles)] * axes
    outline = outline @ geometry.rotation(canvas.random.uniform(0, np.pi)).T + middle
    canvas.polygon(outline, canvas.colour(middle), corners=False)


def draw_discs(canvas):
    for _ in range(int(canvas.random.integers(1, 8))):
        draw_disc(canvas, canvas.point(), canvas.random.uniform(4, 40) * OVERSAMPLING)


def crossing(first, second):
    """Where two line segments cross at more than a small angle, or None."""
    (p, q), (a, b) = first, second
    u, v = q - p, b - a
    cross = u[0] * v[1] - u[1] * v[0]
    if abs(cross) < 0.2 * np.linalg.norm(u) * np.linalg.norm(v):
        return None
    t = ((a - p)[0] * v[1] - (a - p)[1] * v[0]) / cross
    s = ((a - p)[0] * u[1] - (a - p)[1] * u[0]) / cross
    return p + t * u if 0 < t < 1 and 0 < s < 1 else None


def draw_lines(canvas):
    random, drawn = canvas.random, []
    for _ in range(int(random.integers(2, 10))):
        segment = canvas.point(), canvas.point()
        if np.linalg.norm(segment[0] - segment[1]) < 20 * OVERSAMPLING:
            continue
        canvas.line(*segment, int(random.integers(1, 4)) * OVERSAMPLING, canvas.colour(segment[0]))
        canvas.add_corners(segment)
        for other in drawn:
            place = crossing(segment, other)
            if place is not None:
                canvas.add_corners(place)
        drawn.append(segment)


def draw_star(canvas):
    random = canvas.random
    middle, count = canvas.point(0.25), int(random.integers(3, 7))
    angles = np.arange(count) * 2 * np.pi / count + random.uniform(0, 2 * np.pi) + random.uniform(-0.25, 0.25, count)
    colour, thickness = canvas.colour(middle), int(random.integers(1, 4)) * OVERSAMPLING
    canvas.add_corners(middle)
    for angle in angles:
        end = middle + np.array([np.cos(angle), np.sin(angle)]) * random.uniform(15, 60) * OVERSAMPLING
        canvas.line(middle, end, thickness, colour)
        canvas.add_corners(end)


def draw_checkerboard(canvas):
    random = canvas.random
    columns, rows = random.integers(3, 9, 2)
    plane = tilted_plane(canvas, 0.2)
    x, y = np.meshgrid(np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1))
    grid = geometry.warp_points(plane, np.c_[x.ravel(), y.ravel()]).reshape(rows + 1, columns + 1, 2)
    colours = random.choice(256, 2, replace=False)
    if abs(int(colours[0]) - int(colours[1])) < 40:
        colours = np.array([30, 220])
    for i in range(rows):
        for j in range(columns):
            square = np.array([grid[i, j], grid[i, j + 1], grid[i + 1, j + 1], grid[i + 1, j]])
            jitter = int(random.integers(-12, 13))
            colour = int(np.clip(int(colours[(i + j) % 2]) + jitter, 0, 255))
            canvas.polygon(square, colour, corners=False)
    canvas.corners = np.zeros((0, 2))
    canvas.add_corners(grid.reshape(-1, 2))


def draw_stripes(canvas):
    random = canvas.random
    plane = tilted_plane(canvas, 0.2)
    edges = np.r_[0, np.cumsum(random.uniform(0.5, 1.5, random.integers(3, 12)))]
    edges = edges / edges[-1]
    above, below = (geometry.warp_points(plane, np.c_[edges, np.full(len(edges), y)]) for y in (0.0, 1.0))
    colour = int(random.integers(0, 256))
    for i in range(len(edges) - 1):
        colour = (colour + int(random.integers(50, 206))) % 256  # unlike the last stripe
        canvas.polygon(np.array([above[i], above[i + 1], below[i + 1], below[i]]), colour, corners=False)
    canvas.corners = np.zeros((0, 2))
    canvas.add_corners(np.r_[above, below])


def draw_box(canvas):
    """A box in parallel projection: three faces, seven corners."""
    random = canvas.random
    middle = canvas.point(0.3)
    angles = random.uniform(0, 2 * np.pi) + np.array([0, 2, 4]) * np.pi / 3 + random.uniform(-0.3, 0.3, 3)
    sides = np.c_[np.cos(angles), np.sin(angles)] * random.uniform(12, 50, (3, 1)) * OVERSAMPLING
    # Four grays apart from one another, the background's among them.
    grays = (int(canvas.image[0, 0]) + 64 * random.permutation([1, 2, 3]) + random.integers(-15, 16, 3)) % 256
    for i in range(3):
        first, second = sides[i], sides[(i + 1) % 3]
        face = np.array([middle, middle + first, middle + first + second, middle + second])
        canvas.polygon(face, int(grays[i]), corners=False)
    around = [sides[i] for i in range(3)] + [sides[i] + sides[(i + 1) % 3] for i in range(3)]
    canvas.add_corners(middle)
    canvas.add_corners(middle + np.array(around))


def draw_noise(canvas):
    """Noise as fine as pixels: nothing to find."""
    random = canvas.random
    height, width = canvas.height // OVERSAMPLING, canvas.width // OVERSAMPLING
    noise = random.normal(canvas.image[0, 0], random.uniform(5, 60), (height, width))
    noise = np.clip(noise, 0, 255).astype(np.uint8)
    canvas.image[:] = cv2.resize(noise, (canvas.width, canvas.height), interpolation=cv2.INTER_NEAREST)


def draw_nothing(canvas):
    """A gradient, or plain gray."""
    ramp = canvas.random.uniform(-100, 100) * canvas.random.integers(0, 2)
    row = np.clip(canvas.image[0, 0] + np.linspace(0, ramp, canvas.width), 0, 255)
    canvas.image[:] = row.astype(np.uint8)


KINDS = {draw_polygons: 0.34, draw_lines: 0.14, draw_star: 0.08, draw_checkerboard: 0.16, draw_stripes: 0.07,
         draw_box: 0.1, draw_discs: 0.05, draw_noise: 0.03, draw_nothing: 0.03}


def random_picture(random, width, height):
    """A picture (height, width) float32 0..1 and its corners (n, 2)."""
    canvas = Canvas(random, width, height)
    kinds = list(KINDS)
    kinds[random.choice(len(kinds), p=list(KINDS.values()))](canvas)
    return canvas.picture()
