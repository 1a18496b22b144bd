#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower the first calls of tt_superpoint are than later ones.

    python bench/bench_first_call.py PHOTOS [--weights W] [--images 38] [--passes 3] [--repetitions 3] [VARIANT...]

For every variant and repetition a new process opens a model and calls it with each image once (pass 1), then with all
of them again in PASSES later passes. The steady time of an image is the median of its later passes, since the time
depends on the image. Prints, as medians over the repetitions: the seconds of from_pretrained(), and for calls 1, 2, 10
the milliseconds and the ratio to the steady time of the same image. Every pass must give the same bytes.

The images are the photos of the folder PHOTOS and their mirror images, at the size of the variant.
"""

import argparse
import hashlib
import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from tt_superpoint import SuperPoint

ENDINGS = {".jpg", ".jpeg", ".png", ".ppm"}
Pixels = npt.NDArray[np.uint8]


def encoded(pixels: Pixels, kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


class Variant(NamedTuple):
    size: tuple[int, int]
    form: Callable[[Pixels], Any]
    parameters: Mapping[str, Any] = MappingProxyType({})
    warmup: dict[str, Any] | str | None = None


VARIANTS = {
    "jpeg": Variant((1600, 900), lambda pixels: encoded(pixels, "JPEG")),
    "png": Variant((1600, 900), lambda pixels: encoded(pixels, "PNG")),
    "rgb-1920x1080": Variant((1920, 1080), lambda pixels: pixels),
    "rgb-1280x720": Variant((1280, 720), lambda pixels: pixels),
    "plane-640x480": Variant((640, 480), lambda pixels: np.ascontiguousarray(pixels[..., 0])),
    "all-keypoints": Variant((1600, 900), lambda pixels: pixels, {"max_keypoints": -1}),
    "no-descriptors": Variant((1600, 900), lambda pixels: pixels, {"return_descriptors": False}),
    "nms-radius-0": Variant((1600, 900), lambda pixels: pixels, {"nms_radius": 0}),
    "nms-radius-3": Variant((1600, 900), lambda pixels: pixels, {"nms_radius": 3}),
    "rgb-1024x768": Variant((1024, 768), lambda pixels: pixels),
    "list-of-4-jpeg": Variant((1600, 900), lambda pixels: [encoded(pixels, "JPEG")] * 4),
    "nothing-prepared": Variant(
        (1600, 900), lambda pixels: pixels, {}, {"sizes": (), "nms_radii": (), "num_workers": 0}
    ),
}  # fmt: skip


def images(folder: Path, variant: Variant, count: int) -> list[Any]:
    """Each photo and its mirror image."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    found: list[Any] = []
    for file in files:
        with Image.open(file) as photo:
            resized = photo.convert("RGB").resize(variant.size)
        found += [variant.form(np.array(image)) for image in (resized, ImageOps.mirror(resized))]
    if not found:
        raise SystemExit(f"no photos in {folder}")
    return found[:count]


def digest(output: Any) -> str:
    outputs = output if isinstance(output, list) else [output]
    arrays = [array for item in outputs for array in item.numpy().values()]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def measure(arguments: argparse.Namespace, name: str) -> dict[str, Any]:
    """One repetition, in this process."""
    variant = VARIANTS[name]
    inputs = images(arguments.photos, variant, arguments.images)
    start = time.perf_counter()
    model = SuperPoint.from_pretrained(arguments.weights, warmup_variants=variant.warmup)
    opening = time.perf_counter() - start
    times: list[list[float]] = []
    digests: list[list[str]] = []
    for _ in range(1 + arguments.passes):
        times.append([])
        digests.append([])
        for image in inputs:
            start = time.perf_counter()
            output = model(image, **variant.parameters)
            times[-1].append((time.perf_counter() - start) * 1e3)
            digests[-1].append(digest(output))
    if any(others != digests[0] for others in digests[1:]):
        raise SystemExit(f"{name}: the passes differ")
    steady = [statistics.median(column) for column in zip(*times[1:], strict=True)]
    calls = [number for number in (1, 2, 10) if number <= len(inputs)]
    return {
        "from_pretrained": opening,
        "steady": statistics.median(steady),
        "calls": {number: (times[0][number - 1], times[0][number - 1] / steady[number - 1]) for number in calls},
        "digest": hashlib.sha256("".join(digests[0]).encode()).hexdigest(),
    }


def repeat(arguments: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """The repetitions, each in a process of its own."""
    command = [sys.executable, __file__, str(arguments.photos), "--weights", arguments.weights, "--one", name]
    command += ["--images", str(arguments.images), "--passes", str(arguments.passes)]
    results = []
    for _ in range(arguments.repetitions):
        results.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    if len({result["digest"] for result in results}) != 1:
        raise SystemExit(f"{name}: the repetitions differ")
    return results


def line(name: str, results: list[dict[str, Any]]) -> str:
    def middle(values: Any) -> float:
        return statistics.median(values)

    cells = [name, f"{middle(r['from_pretrained'] for r in results):.2f} s"]
    for number in ("1", "2", "10"):
        if number in results[0]["calls"]:
            both = zip(*(r["calls"][number] for r in results), strict=True)
            milliseconds, ratio = (middle(values) for values in both)
            cells.append(f"{milliseconds:.1f} ms ({ratio:.2f})")
        else:
            cells.append("-")
    return "| " + " | ".join([*cells, f"{middle(r['steady'] for r in results):.1f} ms"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description="How much slower the first calls are than later ones.")
    parser.add_argument("photos", type=Path)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--weights", default="magic-leap-community/superpoint")
    parser.add_argument("--images", type=int, default=38)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    if arguments.one:
        print(json.dumps(measure(arguments, arguments.one)))
        return
    unknown = [name for name in arguments.variants if name not in VARIANTS]
    if unknown:
        parser.error(f"no variant {unknown[0]!r}; there are {', '.join(VARIANTS)}")
    print("| variant | from_pretrained | call 1 (ratio) | call 2 | call 10 | steady |")
    print("|---|---|---|---|---|---|")
    for name in arguments.variants or VARIANTS:
        print(line(name, repeat(arguments, name)), flush=True)


if __name__ == "__main__":
    main()
