# SPDX-License-Identifier: Apache-2.0
"""One stage of the training.

    python training/train.py FOLDER --labels FILE --output FOLDER2 --steps N [--from FILE] [--minutes M] [...]

Reads FOLDER/crops.npy and the labels, and writes into FOLDER2:
    checkpoint.pt         everything, every few minutes; the same command goes on from it
    log.txt               a line every 50 steps
    weights.safetensors   the network with its batch normalisation, averaged over the last steps; the next stage
                          takes it with --from, label_network.py makes labels with it, export.py folds it
    done                  when all steps are made

The learning rate rises over the first steps and falls along a cosine to zero at the last one, so the number of steps is
part of the recipe; --minutes only ends a run early, to be continued."""
import argparse
import dataclasses
import math
import os
import pathlib
import time

import numpy as np
import torch
from safetensors.torch import save_file

import labels
import losses
import samples
from network import SuperPoint, load

CHECKPOINT_SECONDS = 180
REPORT_STEPS = 50
AVERAGING = 0.998
LARGEST_GRADIENT = 5.0


def learning_rate(step, steps, highest, warm_up):
    if step < warm_up:
        return highest * (step + 1) / warm_up
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


class Average:
    """Running average of a network's weights and statistics."""

    def __init__(self, network):
        self.state = {name: value.detach().clone() for name, value in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network, step):
        keep = min(AVERAGING, (1 + step) / (10 + step))
        for name, value in network.state_dict().items():
            if value.dtype.is_floating_point:
                self.state[name].lerp_(value, 1 - keep)
            else:
                self.state[name].copy_(value)


def write(path, save):
    """Writes through save(path) to a file beside it that is renamed when complete."""
    unfinished = path.with_suffix(".part")
    save(unfinished)
    os.replace(unfinished, path)


class Stage:
    """The state of a stage: network, optimiser, average, step."""

    def __init__(self, arguments, crops):
        self.arguments = arguments
        self.output = arguments.output
        torch.manual_seed(arguments.seed)
        self.network = load(arguments.start, crops) if arguments.start else SuperPoint()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=arguments.rate, weight_decay=1e-4,
                                           betas=(0.9, 0.99))
        self.average = Average(self.network)
        self.step = 0
        checkpoint = self.output / "checkpoint.pt"
        if checkpoint.exists():
            saved = torch.load(checkpoint, weights_only=True)
            self.network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.average.state = saved["average"]
            self.step = saved["step"]

    def save(self):
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "average": self.average.state, "step": self.step}
        write(self.output / "checkpoint.pt", lambda path: torch.save(state, path))
        weights = {name: value.contiguous() for name, value in self.average.state.items()}
        write(self.output / "weights.safetensors", lambda path: save_file(weights, path))

    def train(self, batch):
        """One step; returns what the log shows."""
        pictures, targets, valid, places, weights = batch
        height, width = pictures.shape[2:]
        pairs = len(places)
        rate = learning_rate(self.step, self.arguments.steps, self.arguments.rate, self.arguments.warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        features = self.network.features(pictures)
        logits = self.network.score_logits(features)
        descriptors = self.network.descriptors(features[:2 * pairs])
        detector = losses.detector_loss(logits, targets, valid)
        descriptor, matched = losses.descriptor_loss(descriptors, places, weights, height, width)
        loss = self.arguments.detector_weight * detector + descriptor
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), LARGEST_GRADIENT)
        self.optimizer.step()
        self.step += 1
        self.average.update(self.network, self.step)
        with torch.no_grad():
            found = [losses.detector_hits(logits[part], targets[part], valid[part])
                     for part in (slice(0, 2 * pairs), slice(2 * pairs, None))]
        return [value.item() for value in (detector, descriptor, matched, *found, norm)]


def report(log, stage, rows, images_per_second):
    detector, descriptor, matched, photos, drawn, norm = np.nanmean(rows, 0)
    rate = stage.optimizer.param_groups[0]["lr"]
    line = (f"step {stage.step} of {stage.arguments.steps}  {images_per_second:.1f} images/s  rate {rate:.2e}  "
            f"detector {detector:.4f}  descriptor {descriptor:.4f}  matched {matched:.3f}  "
            f"found photos {photos:.3f} shapes {drawn:.3f}  gradient {norm:.2f}")
    print(line, flush=True)
    print(line, file=log, flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--labels", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--from", dest="start", type=pathlib.Path, metavar="FILE", help="weights of the stage before, or an exported file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this long, to be continued")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--warm-up", type=int, default=300, help="steps until the highest learning rate")
    parser.add_argument("--detector-weight", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, help="processes that make batches")
    parser.add_argument("--seed", type=int, default=3)
    for field in dataclasses.fields(samples.Options):
        parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default)
    return parser.parse_args()


def main():
    arguments = read_arguments()
    options = samples.Options(**{field.name: getattr(arguments, field.name)
                                 for field in dataclasses.fields(samples.Options)})
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)
    crops = np.load(arguments.folder / "crops.npy", mmap_mode="r")
    stage = Stage(arguments, crops)
    batches = samples.Batches(crops, labels.load(arguments.labels), options, arguments.seed, arguments.steps)
    loader = torch.utils.data.DataLoader(batches, batch_size=None, sampler=range(stage.step, arguments.steps),
                                         num_workers=arguments.workers, prefetch_factor=4)
    images = 2 * options.pairs + options.shapes
    start = saved = reported = time.monotonic()
    rows = []
    with open(arguments.output / "log.txt", "a", encoding="utf-8") as log:
        for batch in loader:
            rows.append(stage.train(batch))
            now = time.monotonic()
            if stage.step % REPORT_STEPS == 0:
                report(log, stage, rows, images * len(rows) / (now - reported))
                rows, reported = [], now
            if now - saved > CHECKPOINT_SECONDS:
                stage.save()
                saved = now
            if now - start > 60 * arguments.minutes:
                break
    stage.save()
    if stage.step >= arguments.steps:
        (arguments.output / "done").touch()


if __name__ == "__main__":
    main()
