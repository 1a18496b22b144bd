# SPDX-License-Identifier: Apache-2.0
"""Measures the Python package against other ways to SuperPoint in Python: a decoded picture in, keypoints, scores and
descriptors as arrays out.

    python bench/python_peers.py --weights model.safetensors [--rounds N] IMAGE

Needs the package `lensing`, torch, transformers and onnxruntime, and Pillow. Each contender runs in a process of its own,
and they take turns; the median is quoted, and the median of the ratios of neighbouring runs. Nothing else should run at
the same time.
"""
import argparse
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peer_server")]

COUNT, THRESHOLD, RADIUS = 1024, 0.005, 4
CONTENDERS = ["lensing", "transformers", "onnxruntime"]


def lensing(weights, threads):
    import lensing

    model = lensing.SuperPoint(weights, threads=threads)

    def detect(picture):
        found = model(picture, max_keypoints=COUNT, keypoint_threshold=THRESHOLD, nms_radius=RADIUS)
        return found.keypoints, found.scores, found.descriptors

    return detect


def transformers(weights, threads):
    import safetensors.torch
    import torch
    from transformers import SuperPointConfig, SuperPointForKeypointDetection, SuperPointImageProcessor

    torch.set_num_threads(threads)
    model = SuperPointForKeypointDetection(SuperPointConfig(max_keypoints=COUNT, keypoint_threshold=THRESHOLD,
                                                            nms_radius=RADIUS)).eval()
    model.load_state_dict(safetensors.torch.load_file(weights))
    processor = SuperPointImageProcessor()

    def detect(picture):
        with torch.inference_mode():
            outputs = model(**processor(picture, return_tensors="pt"))
        height, width = picture.shape[:2]
        result = processor.post_process_keypoint_detection(outputs, [(height, width)])[0]
        return tuple(result[name].numpy() for name in ("keypoints", "scores", "descriptors"))

    return detect


def onnxruntime(weights, threads):
    import numpy as np
    import peers
    import postprocess
    from PIL import Image

    network = peers.onnxruntime(weights, threads, "fp32")

    def detect(picture):
        plane = Image.fromarray(picture[:, :, 0]).resize((postprocess.WIDTH, postprocess.HEIGHT), Image.BILINEAR)
        probabilities, descriptors = network(np.asarray(plane, np.float32)[None, None] / np.float32(255))
        points, scores = postprocess.select(postprocess.score_map(probabilities[0]), RADIUS, THRESHOLD, COUNT)
        scale = np.array([picture.shape[1] / postprocess.WIDTH, picture.shape[0] / postprocess.HEIGHT], np.float32)
        return points * scale, scores, postprocess.sample(descriptors[0], points)

    return detect


def work(name, weights, threads, image):
    """Times one detection for every line on stdin. Prints "ready" and the number of keypoints first."""
    import numpy as np
    from PIL import Image

    with Image.open(image) as opened:
        picture = np.asarray(opened.convert("RGB"))
    detect = {"lensing": lensing, "transformers": transformers, "onnxruntime": onnxruntime}[name](weights, int(threads))
    detect(picture)
    print("ready", len(detect(picture)[0]), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        detect(picture)
        print((time.perf_counter() - start) * 1e3, flush=True)


def compare(arguments, threads):
    import compare

    workers = [compare.Worker(sys.executable, __file__, "--work", name, arguments.weights, threads, arguments.image)
               for name in CONTENDERS]
    counts = [int(worker.facts[0]) for worker in workers]
    times = [[value for value, in values] for values in compare.alternate(workers, arguments.rounds, 0.05)]
    print(f"{threads} thread(s)")
    for name, count, values in zip(CONTENDERS, counts, times):
        print(f"  {name:14} {compare.spread(values):>21} ms, {count} keypoints, "
              f"{compare.ratio(times[0], values):.3f} is lensing's share")


def main():
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--weights", required=True, help="model.safetensors")
    parser.add_argument("--rounds", type=int, default=15, help="[%(default)s]")
    parser.add_argument("image")
    arguments = parser.parse_args()
    for threads in (1, 2):
        if threads <= len(os.sched_getaffinity(0)):
            compare(arguments, threads)


if __name__ == "__main__":
    main()
