# SPDX-License-Identifier: Apache-2.0
"""Helpers of the Python tests."""
import json
import struct

import numpy as np

# Name of each convolution of SuperPoint with its output channels, input channels and kernel size.
LAYERS = [
    ("encoder.conv_blocks.0.conv_a", 64, 1, 3),
    ("encoder.conv_blocks.0.conv_b", 64, 64, 3),
    ("encoder.conv_blocks.1.conv_a", 64, 64, 3),
    ("encoder.conv_blocks.1.conv_b", 64, 64, 3),
    ("encoder.conv_blocks.2.conv_a", 128, 64, 3),
    ("encoder.conv_blocks.2.conv_b", 128, 128, 3),
    ("encoder.conv_blocks.3.conv_a", 128, 128, 3),
    ("encoder.conv_blocks.3.conv_b", 128, 128, 3),
    ("keypoint_decoder.conv_score_a", 256, 128, 3),
    ("keypoint_decoder.conv_score_b", 65, 256, 1),
    ("descriptor_decoder.conv_descriptor_a", 256, 128, 3),
    ("descriptor_decoder.conv_descriptor_b", 256, 256, 1),
]


def synthetic_tensors(seed=1):
    """The tensors of SuperPoint with random values that keep activations of moderate size (variance 2 / inputs)."""
    random = np.random.default_rng(seed)
    tensors = {}
    for name, outputs, inputs, kernel in LAYERS:
        scale = np.sqrt(2.0 / (inputs * kernel * kernel))
        weight = random.standard_normal((outputs, inputs, kernel, kernel)) * scale
        tensors[name + ".weight"] = weight.astype(np.float32)
        tensors[name + ".bias"] = (random.standard_normal(outputs) * 0.1).astype(np.float32)
    return tensors


def write_safetensors(path, tensors):
    """Writes float32 arrays as a safetensors file: header length, JSON header, data."""
    header = {}
    offset = 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.astype("<f4").tobytes())


def write_synthetic_weights(path, seed=1):
    """Writes a safetensors file that opens as a SuperPoint model."""
    write_safetensors(path, synthetic_tensors(seed))
