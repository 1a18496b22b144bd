# SPDX-License-Identifier: Apache-2.0
"""Weights and a picture made of pseudo-random numbers, the same as tests/synthetic_weights.c makes, bit for bit.

    synthetic.py --safetensors OUT    writes the weights as a safetensors file
    synthetic.py --pgm OUT            writes the picture

Number i of stream s is output i of splitmix64 from the state s x 2^32. Layer n (in the order of LAYERS, from 0) takes its
weights from stream 2 n + 1 and its biases from stream 2 n + 2: the upper 24 bits as a number in -1 .. 1, in float32, times
a scale in float32: sqrt(6 / fan-in) for weights (sqrt(3 / fan-in) in the score head's last layer), 1/8 for biases. The
bias of the 65th score, "no keypoint", gets 4 more.
"""

import argparse
import json
import struct

import numpy as np

LAYERS = [  # name, outputs, inputs, kernel
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
FRAME_STREAM = 1000


def numbers(stream, count):
    """The first `count` numbers of a stream, uint64."""
    with np.errstate(over="ignore"):
        z = np.uint64(stream << 32) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return mix(z)


def mix(z):
    """The output function of splitmix64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def spread(stream, count, scale):
    unit = (numbers(stream, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return unit * np.float32(scale)


def weights():
    """All tensors by name, float32."""
    tensors = {}
    for n, (name, outputs, inputs, kernel) in enumerate(LAYERS):
        gain = 3.0 if name.endswith("conv_score_b") else 6.0
        scale = np.float32(np.sqrt(gain / (inputs * kernel * kernel)))
        weight = spread(2 * n + 1, outputs * inputs * kernel * kernel, scale)
        bias = spread(2 * n + 2, outputs, 0.125)
        if name.endswith("conv_score_b"):
            bias[64] += np.float32(4)
        tensors[name + ".weight"] = weight.reshape(outputs, inputs, kernel, kernel)
        tensors[name + ".bias"] = bias
    return tensors


def frame():
    """A 480 x 640 picture of shades, blocks and noise, uint8."""
    y, x = np.mgrid[0:480, 0:640]
    blocks = (numbers(FRAME_STREAM + 1, 30 * 40) >> np.uint64(57)).astype(int)
    noise = (numbers(FRAME_STREAM, 480 * 640) >> np.uint64(60)).astype(int).reshape(480, 640)
    return (x // 16 + y // 12 + blocks[y // 16 * 40 + x // 16] + noise).astype(np.uint8)


def write_safetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt", "license": "Apache-2.0"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.astype("<f4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--safetensors", metavar="OUT")
    parser.add_argument("--pgm", metavar="OUT")
    arguments = parser.parse_args()
    if arguments.safetensors:
        write_safetensors(arguments.safetensors, weights())
    if arguments.pgm:
        with open(arguments.pgm, "wb") as file:
            file.write(b"P5\n640 480\n255\n" + frame().tobytes())


if __name__ == "__main__":
    main()
