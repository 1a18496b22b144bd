# SPDX-License-Identifier: Apache-2.0
"""Every photo of LENSING_TEST_DATA/photos: the library against PyTorch in float32, on the original weights.

    LENSING_TEST_DATA=FOLDER check_photos.py [--build BUILD] [--threads N] [--spread] [PHOTO...]

LENSING_CPU chooses the kernel set. The reference is tests/golden/reference.py on the photo as Pillow reads and resizes it;
its maps are kept in a temporary folder. Prints one line a photo and one for the worst of all; the last line is
"N passed, M failed", counting photos, and the exit code is 1 when one failed. Without LENSING_TEST_DATA it prints SKIP.

A photo passes when
  - its frame equals Pillow's byte for byte,
  - no score of the map differs by more than 2e-5, the Pearson correlation of the maps is at least 0.999999, and the cosine
    of every pair of descriptors, of the map and of keypoints, is at least 0.99999,
  - for every nms_radius (with --spread: for one of them, the next for the next photo), threshold and max_keypoints the
    keypoints are the same pixels, except where the decision was between scores within 1e-6 of each other: at the
    threshold, at the cut of max_keypoints, or inside the window. Such cases are counted.
"""

import argparse
import hashlib
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import reference  # noqa: E402

RADII = (0, 1, 3, 4, 8, 12, 32)
THRESHOLDS = (0.0, 0.005, 0.015)
LIMITS = (-1, 0, 5, 1024)
NEAR = 1e-6
MAX_SCORE_DIFFERENCE = 2e-5
MIN_COSINE = 0.99999
MIN_CORRELATION = 0.999999
SUFFIXES = {".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".webp", ".tif", ".tiff", ".bmp", ".gif"}
BORDER = 4


class Library:
    """The program dump_maps, running."""

    def __init__(self, build, weights, threads, precision="fp32"):
        command = [build / "tests" / "accuracy" / "dump_maps", weights, str(threads), precision]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(os.fsencode(line) + b"\n")
        self.process.stdin.flush()

    def take(self, dtype, *shape):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        data = self.process.stdout.read(size)
        if len(data) != size:
            sys.exit(f"dump_maps ended early with code {self.process.wait()}")
        return np.frombuffer(data, dtype).reshape(shape)

    def photo(self, path):
        self.ask(f"photo {path}")
        size = self.take("<u4", 2)
        return size, self.take("u1", 480, 640), self.take("<f4", 480, 640), self.take("<f4", 60, 80, 256)

    def detect(self, radius, threshold, limit):
        self.ask(f"detect {radius} {threshold!r} {limit}")
        count = int(self.take("<u4", 1)[0])
        frame_points, photo_points = self.take("<f4", count, 2), self.take("<f4", count, 2)
        return frame_points, photo_points, self.take("<f4", count), self.take("<f4", count, 256)

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"dump_maps failed with code {self.process.returncode}")


def read_frame(path):
    """Size of the photo, and R resized along x, then along y: two calls, so that no version of Pillow turns the order."""
    picture = Image.open(path).convert("RGB").getchannel(0)
    wide = picture.resize((640, picture.height), Image.Resampling.BILINEAR)
    return picture.size, np.asarray(wide.resize((640, 480), Image.Resampling.BILINEAR))


def reference_maps(weights_path, path, frame):
    """Maps of the reference, from the temporary folder if they are there."""
    script = (ROOT / "tests" / "golden" / "reference.py").read_bytes()
    weights_state = f"{weights_path} {weights_path.stat().st_size} {weights_path.stat().st_mtime_ns}".encode()
    key = hashlib.sha256(script + weights_state + frame.tobytes()).hexdigest()[:24]
    folder = pathlib.Path(tempfile.gettempdir()) / "lensing-reference-maps"
    folder.mkdir(exist_ok=True)
    file = folder / f"{path.stem}-{key}.npz"
    if not file.exists():
        scores, descriptors = reference.network(reference.load_safetensors(weights_path), frame)
        partial = folder / f"{file.stem}.{os.getpid()}.tmp.npz"
        np.savez(partial, scores=scores, descriptors=descriptors)
        partial.rename(file)
    with np.load(file) as maps:
        return maps["scores"], maps["descriptors"]


def cosines(first, second):
    def dots(a, b):
        return np.einsum("...i,...i->...", a, b).astype(np.float64)

    return dots(first, second) / np.sqrt(dots(first, first) * dots(second, second))


def near_tie(scores, pixel, radius):
    """Whether the place of a pixel as the maximum of its window hangs on scores within NEAR of each other."""
    y, x = divmod(int(pixel), 640)
    window = scores[max(0, y - radius) : y + radius + 1, max(0, x - radius) : x + radius + 1].astype(np.float64)
    return np.count_nonzero(np.abs(window - scores[y, x]) <= NEAR) > 1 and window.max() <= scores[y, x] + NEAR


def excused(scores, pixels, kept, radius, threshold, cut):
    """Which of the differing pixels were decided between scores within NEAR. kept: whether the reference has the pixel;
    cut: scores of the last that it kept and of the first that max_keypoints made it drop, or None."""
    values = scores.flatten()[pixels].astype(np.float64)
    allowed = np.abs(values - np.float64(np.float32(threshold))) <= NEAR
    if cut is not None:
        allowed |= np.abs(values - np.where(kept, cut[1], cut[0])) <= NEAR
    return allowed | np.array([near_tie(scores, pixel, radius) for pixel in pixels], bool)


class Result:
    """Figures of one photo, or the worst of several."""

    def __init__(self):
        self.settings = self.differing = self.excused = self.unexcused = self.keypoints = 0
        self.score = self.keypoint_score = 0.0
        self.correlation = self.cosine = self.keypoint_cosine = 1.0
        self.faults = []

    def add(self, other):
        for name in ("settings", "differing", "excused", "unexcused", "keypoints"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.score = max(self.score, other.score)
        self.keypoint_score = max(self.keypoint_score, other.keypoint_score)
        self.correlation = min(self.correlation, other.correlation)
        self.cosine = min(self.cosine, other.cosine)
        self.keypoint_cosine = min(self.keypoint_cosine, other.keypoint_cosine)

    def require(self, condition, fault):
        if not condition:
            self.faults.append(fault)

    def line(self):
        return (
            f"score diff {self.score:.2e} (keypoints {self.keypoint_score:.2e}), PCC {self.correlation:.9f}, "
            f"cosine {self.cosine:.8f} (keypoints {self.keypoint_cosine:.8f}), {self.settings} settings, "
            f"{self.keypoints} keypoints, {self.differing} differ: {self.excused} by near ties, {self.unexcused} not"
        )


def judge_difference(mine, theirs, scores, radius, threshold, cut):
    """Pixels that only one of two lists has, and which of them are allowed."""
    differing = np.setxor1d(mine, theirs)
    allowed = excused(scores, differing, np.isin(differing, theirs), radius, threshold, cut)
    if cut is not None:
        # An allowed pixel that only one list has pushes the last of the other list across the cut.
        count = np.count_nonzero(allowed)
        tails = np.concatenate([pixels[len(pixels) - min(count, len(pixels)) :] for pixels in (mine, theirs)])
        allowed |= np.isin(differing, tails)
    return differing, allowed


def compare_keypoints(result, mine, theirs, scores, radius, threshold, cut, label):
    frame_points, _, my_scores, my_descriptors = mine
    pixels = (frame_points[:, 1] * 640 + frame_points[:, 0]).astype(np.int64)
    differing, allowed = judge_difference(pixels, theirs.pixels, scores, radius, threshold, cut)
    result.settings += 1
    result.keypoints += len(pixels)
    result.differing += len(differing)
    result.excused += int(np.count_nonzero(allowed))
    result.unexcused += int(np.count_nonzero(~allowed))
    if len(differing):
        print(f"  {label}: {len(pixels)} keypoints, reference {len(theirs.pixels)}, pixels {differing[:8].tolist()}")
    result.require(allowed.all(), f"{label}: {np.count_nonzero(~allowed)} keypoints differ")
    result.require(len(np.unique(pixels)) == len(pixels), f"{label}: a keypoint appears twice")
    order = np.lexsort((pixels, -my_scores))
    result.require(np.array_equal(order, np.arange(len(pixels))), f"{label}: wrong order")
    _, a, b = np.intersect1d(pixels, theirs.pixels, return_indices=True)
    if np.array_equal(pixels, theirs.pixels):
        a = b = slice(None)  # the same order, usually: no need to copy
    if len(pixels[a]):
        result.keypoint_score = max(result.keypoint_score, float(np.abs(my_scores[a] - theirs.scores[b]).max()))
        both = cosines(my_descriptors[a], theirs.descriptors[b])
        result.keypoint_cosine = min(result.keypoint_cosine, float(both.min()))


def check_maps(result, scores, descriptors, my_scores, my_descriptors):
    result.score = float(np.abs(scores.astype(np.float64) - my_scores).max())
    result.correlation = float(np.corrcoef(scores.flatten().astype(np.float64), my_scores.flatten())[0, 1])
    result.cosine = float(cosines(descriptors, my_descriptors).min())


def check_photo(library, weights, path, radii):
    result = Result()
    size, frame = read_frame(path)
    scores, descriptors = reference_maps(weights, path, frame)
    my_size, my_frame, my_scores, my_descriptors = library.photo(path)
    result.require(tuple(my_size) == size, f"size {tuple(my_size)}, Pillow says {size}")
    result.require(np.array_equal(frame, my_frame), f"{np.count_nonzero(frame != my_frame)} pixels of the frame differ")
    check_maps(result, scores, descriptors, my_scores, my_descriptors)
    for radius in radii:
        # Sorted by falling score, so that every threshold and every limit is a beginning of the whole list.
        everything = reference.postprocess(scores, descriptors, -1, 0.0, radius, BORDER)
        for threshold, limit in itertools.product(THRESHOLDS, LIMITS):
            label = f"nms_radius {radius} threshold {threshold} max_keypoints {limit}"
            count = int(np.count_nonzero(everything.scores > np.float32(threshold)))
            cut = everything.scores[limit - 1 : limit + 1].astype(np.float64) if 0 < limit < count else None
            count = count if limit < 0 else min(count, limit)
            theirs = reference.Keypoints(*(part[:count] for part in everything))
            mine = library.detect(radius, threshold, limit)
            compare_keypoints(result, mine, theirs, scores, radius, threshold, cut, label)
            scaled = mine[0] * (np.array(size, np.float64) / (640, 480))
            result.require(np.allclose(mine[1], scaled, rtol=1e-6), f"{label}: keypoints of the photo are not scaled")
    result.require(max(result.score, result.keypoint_score) <= MAX_SCORE_DIFFERENCE, "scores differ too much")
    result.require(result.correlation >= MIN_CORRELATION, "correlation of the score maps too low")
    result.require(min(result.cosine, result.keypoint_cosine) >= MIN_COSINE, "descriptors differ too much")
    return result


def find_files(photos):
    """The weights of LENSING_TEST_DATA and its photos, or those that are given; None and [] without that folder."""
    data = os.environ.get("LENSING_TEST_DATA")
    if not data:
        return None, []
    found = sorted(path for path in pathlib.Path(data, "photos").iterdir() if path.suffix.lower() in SUFFIXES)
    return pathlib.Path(data, "weights", "superpoint_magicleap_v1.safetensors"), photos or found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="*", type=pathlib.Path, metavar="PHOTO")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--spread", action="store_true", help="one nms_radius for each photo, in turn")
    arguments = parser.parse_args()
    weights, photos = find_files(arguments.photos)
    if weights is None:
        print("SKIP: LENSING_TEST_DATA is not set")
        return 0
    torch.set_num_threads(1)
    library, worst, failed = Library(arguments.build, weights, arguments.threads), Result(), 0
    for number, path in enumerate(photos):
        radii = RADII[number % len(RADII):][:1] if arguments.spread else RADII
        result = check_photo(library, weights, path, radii)
        worst.add(result)
        failed += bool(result.faults)
        print(f"{'FAIL' if result.faults else 'ok'} {path.name}: {result.line()}", flush=True)
        for fault in result.faults:
            print(f"  {fault}")
    library.close()
    print(f"worst of {len(photos)} photos, LENSING_CPU={os.environ.get('LENSING_CPU', '')}: {worst.line()}")
    print(f"{len(photos) - failed} passed, {failed} failed")
    return 1 if failed or not photos else 0


if __name__ == "__main__":
    sys.exit(main())
