# SPDX-License-Identifier: Apache-2.0
"""Measures Lensing against its peers on this machine.

    python bench/compare.py --build build --weights model.safetensors [--json FILE]

 1. forward pass against ONNX Runtime, float32, 1 and 2 threads
 2. a whole detect of a 1600x900 JPEG: the time outside the network against libjpeg-turbo decoding that file
 3. from process start to the first result, beyond the network
 4. peak memory for a 640x480 and for a 12-megapixel JPEG

Contenders run in processes of their own and take turns, so that changes in the machine's speed meet all alike; what is
quoted is the median and the median of the ratios of neighbouring runs. Nothing else should run at the same time.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent


class Worker:
    """A process that does one piece of work for every line it gets."""

    def __init__(self, *command, handshake=True):
        # A peer is measured with its own settings, not with ones that were meant for other software.
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        if handshake and self.process.stdout.readline().strip() != "ready":
            raise SystemExit(f"{command}: did not start")

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(value) for value in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def alternate(workers, rounds, pause):
    """Runs all workers in turn; returns a list of results for each. The pause lets waiting threads of one go to sleep
    before another is timed."""
    results = [[] for _ in workers]
    for index in range(rounds + 2):
        for worker, values in zip(workers, results):
            time.sleep(pause)
            value = worker.run()
            if index >= 2:
                values.append(value)
    for worker in workers:
        worker.close()
    return results


def ratio(ours, theirs):
    return statistics.median(a / b for a, b in zip(ours, theirs))


def spread(values, digits=1):
    """The median and, in brackets, the quartiles."""
    low, middle, high = (f"{value:.{digits}f}" for value in statistics.quantiles(values, n=4))
    return f"{middle} ({low}-{high})"


def photo_like(width, height):
    """A picture with detail at all scales, as photos have it."""
    random = np.random.default_rng(7)
    picture = np.zeros((height, width, 3), np.float32)
    for step in (4, 16, 64, 256):
        size = (width // step + 2, height // step + 2)
        noise = random.integers(0, 256, (size[1], size[0], 3), np.uint8)
        layer = Image.fromarray(noise).resize((width, height), Image.BICUBIC)
        picture += np.asarray(layer, np.float32) * (step / 340)
    return Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))


def compare_forward(setup, threads):
    frame = setup.folder / "frame.raw"
    frame.write_bytes(photo_like(640, 480).convert("L").tobytes())
    workers = [Worker(sys.executable, HERE / "worker.py", library, setup.weights, threads, "forward", frame)
               for library in (setup.library, "onnxruntime")]
    ours, theirs = ([value[0] for value in values] for values in alternate(workers, setup.rounds, 0.05))
    print(f"forward pass, {threads} thread(s): Lensing {spread(ours)} ms, ONNX Runtime {spread(theirs)} ms, "
          f"ratio {ratio(ours, theirs):.3f}")
    return {"lensing_ms": statistics.median(ours), "onnxruntime_ms": statistics.median(theirs),
            "ratio": ratio(ours, theirs)}


def compare_detect(setup):
    picture = setup.folder / "1600x900.jpg"
    photo_like(1600, 900).save(picture, quality=90)
    workers = [Worker(sys.executable, HERE / "worker.py", setup.library, setup.weights, 1, "detect", picture),
               Worker(setup.build / "bench" / "jpeg_decode", picture, handshake=False)]
    ours, theirs = alternate(workers, 2 * setup.rounds, 0.02)
    outside = [whole - forward for whole, forward in ours]
    decode = [value[0] for value in theirs]
    print(f"detect of a 1600x900 JPEG ({picture.stat().st_size} bytes), 1 thread: outside the network {spread(outside)} ms, "
          f"libjpeg-turbo alone {spread(decode)} ms, ratio {ratio(outside, decode):.3f}")
    return {"outside_network_ms": statistics.median(outside), "libjpeg_turbo_ms": statistics.median(decode),
            "ratio": ratio(outside, decode)}


def run_program(setup, *arguments):
    """Runs the program once; returns its first line of output as JSON, milliseconds to that line, and peak memory in
    bytes."""
    command = [sys.executable, "-S", HERE / "run_once.py", setup.build / "lensing", *arguments]
    lines = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return json.loads(lines[0]), float(lines[1]), int(lines[2])


def measure_start(setup):
    picture = setup.folder / "640x480.jpg"
    photo_like(640, 480).save(picture, quality=90)
    bench = [str(setup.build / "lensing"), "bench", "--json", "--runs", "15", "--weights", str(setup.weights)]
    warm = json.loads(subprocess.run(bench, stdout=subprocess.PIPE, check=True).stdout)["forward_ms"]
    beyond_warm, beyond_own = [], []
    for _ in range(setup.rounds + 1):
        answer, took, _ = run_program(setup, "detect", picture, "--weights", setup.weights)
        beyond_warm.append(took - warm)
        beyond_own.append(took - answer["timing_ms"]["device_forward"])
    print(f"process start to first result: {spread(beyond_warm[1:])} ms beyond the {warm:.1f} ms of a warm network, "
          f"{spread(beyond_own[1:])} ms beyond the network in that very run")
    return {"beyond_warm_network_ms": statistics.median(beyond_warm[1:]), "network_ms": warm,
            "beyond_own_network_ms": statistics.median(beyond_own[1:])}


def measure_memory(setup):
    figures = {}
    for width, height in ((640, 480), (4000, 3000)):
        picture = setup.folder / f"{width}x{height}.jpg"
        photo_like(width, height).save(picture, quality=90)
        _, _, peak = run_program(setup, "detect", picture, "--weights", setup.weights)
        figures[f"{width}x{height}"] = peak / 1e6
        print(f"peak memory, {width}x{height} JPEG: {peak / 1e6:.1f} MB")
    return figures


def describe_machine():
    name = platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            name = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, {len(os.sched_getaffinity(0))} CPUs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder")
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="safetensors file")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs of each contender (default %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    setup = parser.parse_args()
    setup.library = setup.build / "src" / "liblensing.so"
    print(describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        setup.folder = pathlib.Path(folder)
        figures = {
            "forward_1_thread": compare_forward(setup, 1),
            "forward_2_threads": compare_forward(setup, 2),
            "detect_1600x900": compare_detect(setup),
            "start": measure_start(setup),
            "peak_memory_mb": measure_memory(setup),
        }
    if setup.json:
        setup.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
