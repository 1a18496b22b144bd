# SPDX-License-Identifier: Apache-2.0
"""The losses of the two heads."""
import torch
from torch.nn import functional

from network import CELL, sample_descriptors

TEMPERATURE = 0.05
NEIGHBOURHOOD = 5.0  # pixels: closer places of one picture are neither right nor wrong; keypoints are not found so close


def cell_targets(targets):
    """(n, 65, h / 8, w / 8) probabilities from a map (n, h, w): a cell's pixels, and what is left for "none"."""
    cells = functional.pixel_unshuffle(targets[:, None], CELL)
    total = cells.sum(1, keepdim=True)
    return torch.cat([cells / total.clamp(min=1), (1 - total).clamp(min=0)], 1)


def detector_loss(logits, targets, valid):
    """Cross-entropy of the cells that are valid."""
    loss = -(cell_targets(targets) * functional.log_softmax(logits.float(), 1)).sum(1)
    return (loss * valid).sum() / valid.sum()


def detector_hits(logits, targets, valid):
    """Of cells that most likely hold a point: the share whose best pixel is the point's or next to it."""
    found = logits[:, :-1].argmax(1)
    cells = functional.pixel_unshuffle(targets[:, None], CELL)
    wanted = cells.argmax(1)
    near = ((found % CELL - wanted % CELL).abs() <= 1) & ((found // CELL - wanted // CELL).abs() <= 1)
    return near[(cells.sum(1) > 0.5) & valid].float().mean()


def descriptor_loss(descriptors, places, weights, height, width):
    """InfoNCE in both directions over the places of all pairs, and the share that finds its partner, both weighted.

    @param descriptors (2 pairs, 256, h / 8, w / 8), first views before second ones. Every other place of the batch is a
    negative, but for those within NEIGHBOURHOOD of the right one. @param weights (pairs, k), 0 where there is no place."""
    pairs, most = places.shape[:2]
    filled = weights > 0
    first = sample_descriptors(descriptors[:pairs], places[..., :2], height, width)[filled]
    second = sample_descriptors(descriptors[pairs:], places[..., 2:], height, width)[filled]
    pair = torch.arange(pairs)[:, None].expand(-1, most)[filled]
    here, there = places[..., :2][filled], places[..., 2:][filled]
    other = (pair[:, None] == pair[None]) & ~torch.eye(len(pair), dtype=torch.bool)
    similar = first @ second.T / TEMPERATURE
    forth = similar.masked_fill(other & (torch.cdist(there, there) < NEIGHBOURHOOD), -1e4)
    back = similar.T.masked_fill(other & (torch.cdist(here, here) < NEIGHBOURHOOD), -1e4)
    partner = torch.arange(len(pair))
    share = weights[filled] / weights.sum()
    loss = sum(functional.cross_entropy(similarities, partner, reduction="none") for similarities in (forth, back)) / 2
    return share @ loss, share @ (forth.argmax(1) == partner).float()
