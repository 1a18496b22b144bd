#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and accuracy in the lines that scripts for the package of Tenstorrent cards look for.

    python bench/benchmark.py [--image PHOTO] [--weights FOLDER] [--results results.tsv --description TEXT]

Without a photo the input is PyTorch's random image of seed 0. The reference is SuperPoint of Hugging Face Transformers
in float32 with the same weights; without Transformers the lines of accuracy are left out. Prints:

    input_kind=                         photo or random
    inference_speed=                    network, with its input
    inference_speed_compute_only=       the same: there is no card whose memory the input could be in already
    inference_speed_e2e=                a call with the frame, to keypoints and descriptors
    inference_speed_match_paper=        network, the best 1000 pixels without suppression, and their descriptors
    accuracy=                           100 x the lower of the two correlations
    score_pcc=, descriptor_pcc=         correlation of the maps of 480 x 640 and of 60 x 80 x 256 with the reference's
    keypoint_{recall,precision,f1}@500_tol2=    of the best 500 pixels after suppression, within 2 pixels
    descriptor_norm_max_dev=            largest difference of a descriptor's length from 1
    peak_dram=0                         memory of a card
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

import lensing

Map = npt.NDArray[np.float32]
RADIUS, POINTS, TOLERANCE = 4, 500, 2


def frame(photo: Path | None) -> npt.NDArray[np.uint8]:
    """480 x 640 bytes."""
    if photo is None:
        import torch

        generator = torch.Generator().manual_seed(0)
        random = torch.rand(1, 3, 480, 640, generator=generator)[0, 0].numpy()
        return np.rint(random * 255).astype(np.uint8)
    with Image.open(photo) as image:
        return np.array(image.convert("RGB").resize((640, 480), Image.Resampling.BILINEAR))[..., 0]


def speed(run: Callable[[], Any], count: int) -> float:
    """Runs a second, by the median."""
    run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1 / statistics.median(times)


def suppressed(scores: Map) -> Map:
    """The maxima of their square."""
    highest = scores
    for axis in (0, 1):
        pads = [(RADIUS, RADIUS) if axis == other else (0, 0) for other in (0, 1)]
        padded = np.pad(highest, pads, constant_values=-np.inf)
        highest = np.lib.stride_tricks.sliding_window_view(padded, 2 * RADIUS + 1, axis).max(-1)
    return np.where(scores == highest, scores, np.float32(0))


def best(scores: Map, count: int) -> npt.NDArray[np.intp]:
    """(count, 2): x, y of the highest pixels."""
    order = np.argsort(-scores, axis=None, kind="stable")[:count]
    return np.stack([order % scores.shape[1], order // scores.shape[1]], 1)


def sample(descriptors: Map, points: npt.NDArray[np.intp]) -> Map:
    """(N, 256) descriptors at points of the frame: bilinear, zeros outside, scaled to length 1."""
    x, y = ((points - 3.5) / (np.array([640, 480]) - 4.5) * np.array([79, 59])).T
    values = np.zeros((len(points), 256), np.float32)
    for dx in (0, 1):
        for dy in (0, 1):
            column, row = np.floor(x).astype(int) + dx, np.floor(y).astype(int) + dy
            inside = (column >= 0) & (column < 80) & (row >= 0) & (row < 60)
            weight = (1 - abs(x - column)) * (1 - abs(y - row)) * inside
            values += weight[:, None].astype(np.float32) * descriptors[row.clip(0, 59), column.clip(0, 79)]
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-12))


def correlation(a: Map, b: Map) -> float:
    a, b = a.ravel() - a.mean(), b.ravel() - b.mean()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length else 1.0


def near(points: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> float:
    """Share of the points that have another one within the tolerance, along each axis."""
    apart = np.abs(points[:, None] - others[None]).max(-1).min(1)
    return float((apart <= TOLERANCE).mean())


def reference(plane: npt.NDArray[np.uint8], weights: str) -> tuple[Map, Map] | None:
    """Both maps of Transformers; None without it."""
    try:
        import torch
        from safetensors.torch import load_file
        from transformers import SuperPointConfig, SuperPointForKeypointDetection
    except ImportError:
        return None
    network = SuperPointForKeypointDetection(SuperPointConfig()).eval()
    network.load_state_dict(load_file(weights))
    with torch.no_grad():
        encoded = network.encoder(torch.from_numpy(plane / np.float32(255))[None, None])[0]
        decoder = network.keypoint_decoder
        logits = decoder.conv_score_b(torch.relu(decoder.conv_score_a(encoded)))
        cells = torch.softmax(logits, 1)[0, :64].reshape(8, 8, 60, 80)
        scores = cells.permute(2, 0, 3, 1).reshape(480, 640)
        decoder = network.descriptor_decoder
        descriptors = decoder.conv_descriptor_b(torch.relu(decoder.conv_descriptor_a(encoded)))[0]
        descriptors = torch.nn.functional.normalize(descriptors, dim=0).permute(1, 2, 0)
    return scores.numpy(), descriptors.contiguous().numpy()


def append(path: Path, commit: str, gen_speed: float, accuracy: float, description: str) -> None:
    """A line of results.tsv."""
    new = not path.exists()
    with path.open("a") as file:
        if new:
            file.write("commit\tgen_speed\taccuracy\tstatus\tdescription\n")
        file.write(f"{commit}\t{gen_speed:.4f}\t{accuracy:.4f}\tkeep\t{description}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and accuracy, in lines that scripts look for.")
    parser.add_argument("--image", type=Path)
    parser.add_argument("--weights", default=lensing.DEFAULT_REPOSITORY)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=int(os.environ.get("SP_N_ITER") or 10))
    parser.add_argument("--results", type=Path, help="a file to add a line to")
    parser.add_argument("--commit", default="-", help="for that line")
    parser.add_argument("--description", default="", help="for that line")
    arguments = parser.parse_args()

    plane = frame(arguments.image)
    with lensing.SuperPoint.from_pretrained(arguments.weights, threads=arguments.threads) as model:
        scores, descriptors = model.forward(plane)
        assert descriptors is not None

        def match_paper() -> Map:
            found, described = model.forward(plane)
            assert described is not None
            return sample(described, best(found, 1000))

        print("input_kind=" + ("photo" if arguments.image else "random"))
        forward = speed(lambda: model.forward(plane), arguments.iterations)
        print(f"inference_speed={forward:.4f} fps")
        print(f"inference_speed_compute_only={forward:.4f} fps")
        print(f"inference_speed_e2e={speed(lambda: model(plane), arguments.iterations):.4f} fps")
        print(f"inference_speed_match_paper={speed(match_paper, arguments.iterations):.4f} fps")
        expected = reference(plane, model.info["file"])
    accuracy = 0.0
    if expected is not None:
        pcc = correlation(scores, expected[0]), correlation(descriptors, expected[1])
        found, wanted = best(suppressed(scores), POINTS), best(suppressed(expected[0]), POINTS)
        recall, precision = near(wanted, found), near(found, wanted)
        accuracy = 100 * min(pcc)
        print(f"accuracy={accuracy:.4f}")
        print(f"score_pcc={pcc[0]:.6f}")
        print(f"descriptor_pcc={pcc[1]:.6f}")
        print(f"keypoint_recall@500_tol2={recall:.4f}")
        print(f"keypoint_precision@500_tol2={precision:.4f}")
        print(f"keypoint_f1@500_tol2={2 * recall * precision / max(recall + precision, 1e-9):.4f}")
    deviation = float(np.abs(np.linalg.norm(descriptors, axis=-1) - 1).max())
    print(f"descriptor_norm_max_dev={deviation:.5f}")
    print("peak_dram=0")
    if arguments.results is not None:
        append(arguments.results, arguments.commit, forward, accuracy, arguments.description)


if __name__ == "__main__":
    main()
