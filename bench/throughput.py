# SPDX-License-Identifier: Apache-2.0
"""Measures how many photos a second `lensing detect` reads, detects in and writes, against what the network alone allows.

    python bench/throughput.py --build build --weights model.safetensors --photos FOLDER [--threads 2] [--format npz]

Makes a set of 200 photos from those in FOLDER, of several sizes and formats, and lets `lensing detect` on all of them and
`lensing bench`, which times the network alone, take turns. The ratio is the rate of photos times the time of a pass over the
network, both with the same threads: 1 means that reading, decoding, resizing, post-processing and writing cost nothing
beside it. Nothing else should run at the same time.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".gif", ".bmp", ".ppm", ".pgm")

# What the photos become in turn: None leaves a file as it is; else the longer side, the format and its options. Mostly
# JPEG, as photos are.
KINDS = (
    None,
    (1600, "jpeg", {"quality": 90}),
    (1024, "jpeg", {"quality": 85}),
    (640, "png", {}),
    (2048, "jpeg", {"quality": 92, "subsampling": 0}),
    (800, "webp", {"quality": 85}),
    (1280, "jpeg", {"quality": 88, "progressive": True}),
    (1920, "jpeg", {"quality": 80}),
    (1024, "ppm", {}),
    (4000, "jpeg", {"quality": 90}),
)


def photos_in(folder):
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    if not found:
        raise SystemExit(f"{folder}: no photos")
    return found


def make_set(photos, count, folder):
    """`count` files in the folder. Every photo meets every kind before one repeats, if their numbers share no factor."""
    for index in range(count):
        source, kind = photos[index % len(photos)], KINDS[(index // len(photos) + index) % len(KINDS)]
        if kind is None:
            (folder / f"{index:04d}_{source.name}").write_bytes(source.read_bytes())
            continue
        longest, form, options = kind
        with Image.open(source) as picture:
            picture = picture.convert("RGB")
            scale = longest / max(picture.size)
            size = tuple(max(round(side * scale), 1) for side in picture.size)
            picture.resize(size, Image.LANCZOS).save(folder / f"{index:04d}_{source.stem}.{form}", form, **options)


def forward_ms(setup):
    """The median time of a pass over the network."""
    command = [setup.build / "lensing", "bench", "--json", "--quiet", "--runs", setup.runs, "--threads", setup.threads,
               "--precision", setup.precision, "--weights", setup.weights]
    return json.loads(subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout)["forward_ms"]


def detect_all(setup, photos, output):
    """Seconds from the start of the program to its end, and of CPU time."""
    command = [setup.build / "lensing", "detect", "--quiet", "--threads", setup.threads, "--precision", setup.precision,
               "--weights", setup.weights, "--format", setup.format, "-o", output, photos]
    before = os.times()
    start = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True)
    took = time.perf_counter() - start
    after = os.times()
    return took, sum(after[2:4]) - sum(before[2:4])


def measure(setup, photos, folder):
    output = folder / {"json": "out.json", "npz": "out/", "hdf5": "out.h5"}[setup.format]
    output = f"{output}/" if setup.format == "npz" else output
    detect_all(setup, photos, output)
    forwards = [forward_ms(setup)]
    rounds = []
    for index in range(setup.rounds):
        took, cpu = detect_all(setup, photos, output)
        forwards.append(forward_ms(setup))
        forward = sum(forwards[-2:]) / 2
        rate = setup.count / took
        rounds.append({"photos_per_s": rate, "forward_ms": forward, "cpu_share": cpu / took / setup.threads,
                       "ratio": rate * forward / 1e3})
        print(f"  round {index + 1}: {rate:.2f} photos/s, network {forward:.1f} ms, CPUs {rounds[-1]['cpu_share']:.0%} busy, "
              f"ratio {rounds[-1]['ratio']:.3f}", flush=True)
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder")
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="safetensors file")
    parser.add_argument("--photos", type=pathlib.Path, required=True, help="folder of photos that the set is made from")
    parser.add_argument("--count", type=int, default=200, help="photos in the set (default %(default)s)")
    parser.add_argument("--set", type=pathlib.Path, help="where the set is, or is made if that folder is missing")
    parser.add_argument("--threads", type=int, default=2, help="threads of the program (default %(default)s)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--format", choices=("json", "npz", "hdf5"), default="npz", help="what to write (default npz)")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs over the set (default %(default)s)")
    parser.add_argument("--runs", type=int, default=15, help="passes over the network between them (default %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    setup = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        photos = setup.set or folder / "photos"
        if not photos.exists():
            photos.mkdir(parents=True)
            make_set(photos_in(setup.photos), setup.count, photos)
        setup.count = len(photos_in(photos))
        size = sum(path.stat().st_size for path in photos.iterdir())
        print(f"{setup.count} photos, {size / 1e6:.0f} MB, {setup.threads} thread(s), to {setup.format}", flush=True)
        rounds = measure(setup, photos, folder)
    figures = {name: statistics.median(values[name] for values in rounds) for name in rounds[0]}
    print(f"median: {figures['photos_per_s']:.2f} photos/s, network {figures['forward_ms']:.1f} ms, "
          f"ratio {figures['ratio']:.3f}")
    if setup.json:
        setup.json.write_text(json.dumps({"count": setup.count, "threads": setup.threads, **figures, "rounds": rounds},
                                         indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
