# SPDX-License-Identifier: Apache-2.0
"""Measures Lensing against its peers on this machine.

    python bench/compare.py --build build --weights model.safetensors [--peers] [--part PART] [--json FILE]

 1. forward pass, 1 and 2 threads: Lensing in float32, restricted to AVX2, and in bfloat16, where this CPU can, against
    ONNX Runtime; with --peers also against OpenVINO, PyTorch and ncnn as far as they are installed
 2. a whole detect of a 1600x900 JPEG: the time outside the network against libjpeg-turbo decoding that file
 3. from process start to the first result, beyond the network
 4. peak memory for a 640x480 and for a 12-megapixel JPEG

Contenders run in processes of their own and take turns, so that changes in the machine's speed meet all alike; what is
quoted is the median and the median of the ratios of neighbouring runs. Nothing else should run at the same time.
"""
import argparse
import importlib.util
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

from peers import PEERS

HERE = pathlib.Path(__file__).resolve().parent
REFERENCE = "ONNX Runtime"


class Worker:
    """A process that does one piece of work for every line it gets."""

    def __init__(self, *command, handshake=True, cpu=None):
        # A peer is measured with its own settings, not with ones that were meant for other software.
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        if cpu is not None:
            environment["LENSING_CPU"] = cpu
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        words = self.process.stdout.readline().split() if handshake else ["ready"]
        if words[:1] != ["ready"]:
            raise SystemExit(f"{command}: did not start")
        self.facts = [float(word) for word in words[1:]]

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


def lensing_kinds(setup):
    """Name, what worker.py is to run, and kernel set, of each way in which this CPU can run Lensing."""
    facts = json.loads(subprocess.run([str(setup.build / "lensing"), "info", "--json"], stdout=subprocess.PIPE, check=True,
                                      env={**os.environ, "LENSING_CPU": ""}).stdout)
    kinds = [("Lensing", setup.shared_library, "")]
    if facts["cpu_path"] == "avx512":
        kinds.append(("Lensing, AVX2 only", setup.shared_library, "avx2"))
    if "avx512_bf16" in facts["cpu_features"].split():
        kinds.append(("Lensing, bf16", f"{setup.shared_library}:bf16", ""))
    return kinds


def peer_names(setup):
    return [name for name, (_, _, module) in PEERS.items()
            if name == REFERENCE or setup.peers and importlib.util.find_spec(module)]


def compare_forward(setup, threads):
    frame = setup.folder / "frame.raw"
    with Image.open(HERE.parent / "examples" / "scene_1.jpg") as picture:
        frame.write_bytes(picture.convert("L").resize((640, 480)).tobytes())
    contenders = [*lensing_kinds(setup), *((name, name, "") for name in peer_names(setup))]
    workers = [Worker(sys.executable, HERE / "worker.py", what, setup.weights, threads, "forward", frame, cpu=cpu)
               for _, what, cpu in contenders]
    means = [worker.facts[0] for worker in workers]
    for (name, _, _), mean in zip(contenders, means):
        if abs(mean - means[0]) > 0.05 * means[0]:  # bfloat16 changes it a little
            raise SystemExit(f"{name}: the mean score is {mean}, and {means[0]} with Lensing: not the same network")
    times = {name: [value[0] for value in values]
             for (name, _, _), values in zip(contenders, alternate(workers, setup.rounds, 0.05))}
    print(f"forward pass, {threads} thread(s)")
    figures = {}
    for name, values in times.items():
        figures[name] = {"ms": statistics.median(values), "fastest_ms": min(values),
                         "of_onnxruntime": ratio(values, times[REFERENCE])}
        print(f"  {name:33} {spread(values):>21} ms, fastest {min(values):6.1f}, "
              f"{figures[name]['of_onnxruntime']:.3f} of {REFERENCE}")
    return figures


def compare_detect(setup):
    picture = setup.folder / "1600x900.jpg"
    photo_like(1600, 900).save(picture, quality=90)
    workers = [Worker(sys.executable, HERE / "worker.py", setup.shared_library, setup.weights, 1, "detect", picture),
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
    parser.add_argument("--peers", action="store_true", help="all peers that are installed, not only ONNX Runtime")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be given several times")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    setup = parser.parse_args()
    setup.shared_library = setup.build / "src" / "liblensing.so"
    print(describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        setup.folder = pathlib.Path(folder)
        figures = {name: PARTS[name](setup) for name in setup.part or PARTS}
    if setup.json:
        setup.json.write_text(json.dumps(figures, indent=2) + "\n")


PARTS = {
    "forward_1_thread": lambda setup: compare_forward(setup, 1),
    "forward_2_threads": lambda setup: compare_forward(setup, 2),
    "detect_1600x900": compare_detect,
    "start": measure_start,
    "peak_memory_mb": measure_memory,
}


if __name__ == "__main__":
    main()
