# SPDX-License-Identifier: Apache-2.0
"""SuperPoint in plain PyTorch, float32: what the C library is compared with.

The network is that of Hugging Face's SuperPointForKeypointDetection; the post-processing is not: it suppresses in a single
pass (a pixel stays if it equals the maximum of its window), and equal scores are in row-major order.
"""

import json
import struct
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

WIDTH, HEIGHT, CELL = 640, 480, 8


class Keypoints(NamedTuple):
    pixels: np.ndarray  # y * 640 + x, int64, N
    scores: np.ndarray  # float32, N, not increasing
    descriptors: np.ndarray | None  # float32, N x 256


def load_safetensors(path):
    """All float32 tensors of a safetensors file by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {entry['dtype']}, not F32")
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy()
    return tensors


def conv(weights, name, x):
    weight = torch.as_tensor(weights[name + ".weight"])
    return F.conv2d(x, weight, torch.as_tensor(weights[name + ".bias"]), padding=weight.shape[2] // 2)


@torch.no_grad()
def network(weights, frame):
    """weights: tensors by name. frame: 480 x 640 uint8. Returns the score map, 480 x 640, before suppression, and the
    descriptor map, 60 x 80 x 256, each descriptor of length 1; both float32 numpy."""
    x = torch.as_tensor(np.array(frame))[None, None].to(torch.float32) / 255
    for block in range(4):
        x = F.relu(conv(weights, f"encoder.conv_blocks.{block}.conv_a", x))
        x = F.relu(conv(weights, f"encoder.conv_blocks.{block}.conv_b", x))
        if block < 3:
            x = F.max_pool2d(x, 2, 2)
    scores = F.relu(conv(weights, "keypoint_decoder.conv_score_a", x))
    scores = F.softmax(conv(weights, "keypoint_decoder.conv_score_b", scores), 1)[:, :-1]
    scores = F.pixel_shuffle(scores, CELL)[0, 0]
    descriptors = F.relu(conv(weights, "descriptor_decoder.conv_descriptor_a", x))
    descriptors = F.normalize(conv(weights, "descriptor_decoder.conv_descriptor_b", descriptors), p=2, dim=1)
    return scores.numpy().copy(), descriptors[0].permute(1, 2, 0).contiguous().numpy()


def suppress(scores, radius):
    """The score map with every pixel that is not the maximum of its window set to 0."""
    scores = torch.as_tensor(scores)
    if radius == 0:
        return scores
    maximum = F.max_pool2d(scores[None, None], 2 * radius + 1, stride=1, padding=radius)[0, 0]
    return torch.where(scores == maximum, scores, torch.zeros_like(scores))


def sample(descriptors, pixels):
    """Descriptors of a 60 x 80 x 256 map at pixels of the frame, N x 256."""
    pixels = torch.as_tensor(np.asarray(pixels, np.int64))
    points = torch.stack([pixels % WIDTH, pixels // WIDTH], 1).to(torch.float32)
    size = torch.tensor([WIDTH - CELL / 2 - 0.5, HEIGHT - CELL / 2 - 0.5])
    grid = (points - CELL / 2 + 0.5) / size * 2 - 1
    planes = torch.as_tensor(descriptors).permute(2, 0, 1)[None]
    sampled = F.grid_sample(planes, grid[None, None], mode="bilinear", align_corners=True)[0, :, 0]
    return F.normalize(sampled, p=2, dim=0).T.contiguous().numpy()


def select(suppressed, max_keypoints=1024, threshold=0.005, border=4):
    """Pixels and scores of the keypoints of a suppressed score map."""
    suppressed = torch.as_tensor(suppressed)
    keep = suppressed > torch.tensor(threshold, dtype=torch.float32)
    inner = torch.zeros_like(keep)
    inner[border : HEIGHT - border, border : WIDTH - border] = True
    pixels = torch.nonzero((keep & inner).flatten())[:, 0]
    scores, order = torch.sort(suppressed.flatten()[pixels], descending=True, stable=True)
    if max_keypoints >= 0:
        scores, order = scores[:max_keypoints], order[:max_keypoints]
    return pixels[order].numpy(), scores.numpy()


def postprocess(scores, descriptors=None, max_keypoints=1024, threshold=0.005, nms_radius=4, border=4):
    """Keypoints of the maps of network()."""
    pixels, values = select(suppress(scores, nms_radius), max_keypoints, threshold, border)
    return Keypoints(pixels, values, None if descriptors is None else sample(descriptors, pixels))
