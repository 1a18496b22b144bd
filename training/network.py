# SPDX-License-Identifier: Apache-2.0
"""The SuperPoint network in PyTorch, with batch normalisation for training.

Convolutions bear the names of the tensors in a weights file of Lensing. While training, a batch normalisation stands
between each 3x3 convolution and its ReLU; fold() multiplies it into the convolution, which is exact, so that the file
has the 24 tensors of SuperPoint and nothing else."""
import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import layers

CELL = 8  # pixels: side of the square that one vector of scores or descriptor stands for
ENCODER = ((1, 64), (64, 64), (64, 128), (128, 128))


def convolution(channels_in, channels_out, size):
    layer = nn.Conv2d(channels_in, channels_out, size, padding=size // 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer


def normed_layers():
    """Names of the convolutions that a ReLU follows."""
    names = [f"encoder.conv_blocks.{block}.conv_{half}" for block in range(4) for half in "ab"]
    return names + ["keypoint_decoder.conv_score_a", "descriptor_decoder.conv_descriptor_a"]


class SuperPoint(nn.Module):
    """Scores and descriptors of pictures (n, 1, height, width), float32 0..1; sides are multiples of 8."""

    def __init__(self, batch_norm=True):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.conv_blocks = nn.ModuleList()
        for channels_in, channels_out in ENCODER:
            block = nn.Module()
            block.conv_a = convolution(channels_in, channels_out, 3)
            block.conv_b = convolution(channels_out, channels_out, 3)
            self.encoder.conv_blocks.append(block)
        self.keypoint_decoder = nn.Module()
        self.keypoint_decoder.conv_score_a = convolution(128, 256, 3)
        self.keypoint_decoder.conv_score_b = convolution(256, CELL * CELL + 1, 1)
        self.descriptor_decoder = nn.Module()
        self.descriptor_decoder.conv_descriptor_a = convolution(128, 256, 3)
        self.descriptor_decoder.conv_descriptor_b = convolution(256, 256, 1)
        for last in (self.keypoint_decoder.conv_score_b, self.descriptor_decoder.conv_descriptor_b):
            nn.init.xavier_normal_(last.weight)
        self.norms = nn.ModuleDict()
        if batch_norm:
            for name in normed_layers():
                channels = self.get_submodule(name).out_channels
                self.norms[name.replace(".", "/")] = nn.BatchNorm2d(channels, eps=layers.EPSILON, momentum=0.02)

    def activate(self, name, values, pool=False):
        """A 3x3 convolution, its normalisation if there is one, ReLU, and maybe 2x2 pooling."""
        convolution, key = self.get_submodule(name), name.replace(".", "/")
        if key in self.norms:
            return layers.normed_convolution(values, convolution, self.norms[key], pool)
        values = functional.relu(convolution(values))
        return functional.max_pool2d(values, 2) if pool else values

    def features(self, pictures):
        """(n, 128, height / 8, width / 8)"""
        values = pictures
        for block in range(4):
            values = self.activate(f"encoder.conv_blocks.{block}.conv_a", values)
            values = self.activate(f"encoder.conv_blocks.{block}.conv_b", values, pool=block < 3)
        return values

    def score_logits(self, features):
        """(n, 65, height / 8, width / 8): the pixels of each cell, row by row, and "none of them"."""
        values = self.activate("keypoint_decoder.conv_score_a", features)
        return self.keypoint_decoder.conv_score_b(values)

    def descriptors(self, features):
        """(n, 256, height / 8, width / 8), of any length."""
        values = self.activate("descriptor_decoder.conv_descriptor_a", features)
        return self.descriptor_decoder.conv_descriptor_b(values)


def score_map(logits):
    """Scores (n, height, width) of every pixel."""
    return functional.pixel_shuffle(functional.softmax(logits.float(), 1)[:, :-1], CELL)[:, 0]


def sample_descriptors(descriptors, points, height, width):
    """Unit descriptors (n, k, 256) at points (n, k, 2), in pixels; interpolated as SuperPoint and Lensing do it."""
    corner = torch.tensor([width - CELL / 2 - 0.5, height - CELL / 2 - 0.5])
    grid = (points - CELL / 2 + 0.5) / corner * 2 - 1
    cells = functional.normalize(descriptors.float(), dim=1)
    sampled = functional.grid_sample(cells, grid[:, None], mode="bilinear", align_corners=True)
    return functional.normalize(sampled[:, :, 0].transpose(1, 2), dim=-1)


def fold(state):
    """The 24 tensors of a weights file from the state of a network with batch normalisation."""
    tensors = {name: value.clone().float() for name, value in state.items() if not name.startswith("norms.")}
    for layer in normed_layers():
        norm = "norms." + layer.replace(".", "/")
        variance, mean = state[norm + ".running_var"].float(), state[norm + ".running_mean"].float()
        scale = state[norm + ".weight"].float() / torch.sqrt(variance + layers.EPSILON)
        tensors[layer + ".weight"] = (tensors[layer + ".weight"] * scale[:, None, None, None]).contiguous()
        tensors[layer + ".bias"] = (tensors[layer + ".bias"] - mean) * scale + state[norm + ".bias"].float()
    return tensors


@torch.no_grad()
def unfold(tensors, pictures):
    """A network with batch normalisation from the 24 tensors of a weights file, to go on training. The file does not say
    what the normalisations were; here they have the means and variances that these pictures (n, 1, height, width) give,
    and change nothing on them."""
    network, plain = SuperPoint(), SuperPoint(batch_norm=False)
    network.load_state_dict(network.state_dict() | tensors)
    plain.load_state_dict(tensors)

    def adopt(norm, outputs):
        variance, mean = torch.var_mean(outputs, (0, 2, 3), correction=0)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        norm.weight.copy_(torch.sqrt(variance + layers.EPSILON))
        norm.bias.copy_(mean)

    for name in normed_layers():
        norm = network.norms[name.replace(".", "/")]
        plain.get_submodule(name).register_forward_hook(lambda _, __, outputs, norm=norm: adopt(norm, outputs))
    features = plain.features(pictures)
    plain.score_logits(features)
    plain.descriptors(features)
    return network


def load(path, crops):
    """The network of a stage's weights, or of an exported file, then with the normalisations of some of the crops
    (n, height, width), bytes."""
    tensors = load_file(path)
    if not any(name.startswith("norms.") for name in tensors):
        chosen = crops[np.linspace(0, len(crops) - 1, min(len(crops), 16)).astype(int)]
        return unfold(tensors, torch.from_numpy(chosen[:, None] / np.float32(255)))
    network = SuperPoint()
    network.load_state_dict(tensors)
    return network
