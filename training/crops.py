# SPDX-License-Identifier: Apache-2.0
"""Cuts the photos into crops and adds procedural pictures.

    python training/crops.py FOLDER [--procedural N]

Reads FOLDER/photos, writes FOLDER/crops.npy: (n, 240, 320) uint8. Large photos give more crops than small ones; parts
without detail are left out. Gray is a random mixture of the three channels for each crop, since the network of Lensing
is given the red one and other programs feed it luminance."""
import argparse
import pathlib

import cv2
import numpy as np

import textures

WIDTH, HEIGHT = 320, 240
LARGEST_SIDE = 1600   # photos are reduced to this before cropping: what lies beyond is noise of the camera
MAX_CROPS = 40        # from one photo
DETAIL_BLOCK = 40     # pixels; a block counts as detailed if it holds a corner
DETAIL_CORNER = 1e-3  # smaller eigenvalue of the structure tensor, picture 0..1
DETAIL_SHARE = 0.4


def read_photo(path):
    photo = cv2.imread(str(path), cv2.IMREAD_COLOR)
    scale = LARGEST_SIDE / max(photo.shape)
    return photo if scale >= 1 else cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def detailed(crop):
    corners = cv2.cornerMinEigenVal(crop.astype(np.float32) / 255, 3)
    blocks = corners.reshape(HEIGHT // DETAIL_BLOCK, DETAIL_BLOCK, WIDTH // DETAIL_BLOCK, DETAIL_BLOCK).max((1, 3))
    return (blocks > DETAIL_CORNER).mean() >= DETAIL_SHARE


def random_crop(random, photo):
    rows, columns = photo.shape[:2]
    largest = min(rows / HEIGHT, columns / WIDTH)  # source pixels for one of the crop
    scale = np.exp(random.uniform(0, np.log(largest))) if largest > 1 else largest
    height, width = int(HEIGHT * scale), int(WIDTH * scale)
    y, x = random.integers(rows - height + 1), random.integers(columns - width + 1)
    gray = photo[y:y + height, x:x + width] @ random.dirichlet([1, 1, 1])
    how = cv2.INTER_AREA if scale > 1 else cv2.INTER_CUBIC
    crop = cv2.resize(gray.astype(np.float32), (WIDTH, HEIGHT), interpolation=how)
    crop = np.clip(crop, 0, 255).astype(np.uint8)
    return crop[:, ::-1] if random.random() < 0.5 else crop


def crops_of(random, photo):
    """Four crops for each piece as large as a crop, of those tried that have detail."""
    count = int(np.clip(4 * photo.shape[0] * photo.shape[1] / (HEIGHT * WIDTH), 3, MAX_CROPS))
    found = []
    for _ in range(2 * count):
        crop = random_crop(random, photo)
        if len(found) < count and detailed(crop):
            found.append(crop)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--procedural", type=int, default=800, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    crops = []
    for path in sorted((arguments.folder / "photos").iterdir()):
        crops += crops_of(random, read_photo(path))
    photographic = len(crops)
    for _ in range(arguments.procedural):
        crops.append(textures.random_picture(random, HEIGHT, WIDTH, crops[:photographic]))
    np.save(arguments.folder / "crops.npy", np.array(crops))
    print(f"{photographic} crops of photos, {arguments.procedural} procedural pictures")


if __name__ == "__main__":
    main()
