# SPDX-License-Identifier: Apache-2.0
"""Writes a weights file for Lensing from the weights of a stage.

    python training/export.py weights.safetensors OUTPUT.safetensors [--quieter X] [--float32]

Batch normalisation is folded into the convolutions; what remains are the 24 tensors of SuperPoint under the names that
Lensing and Hugging Face's transformers know. They are rounded to float16, which halves the file; --float32 leaves them
as they are. --quieter adds X to the logit of "no keypoint here": all scores fall, by a factor of up to exp(X), and the
number of keypoints above a threshold with them, while their order hardly changes."""
import argparse
import pathlib

import torch
from safetensors.torch import load_file, save_file

from network import SuperPoint, fold


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--quieter", type=float, default=0.0, metavar="X")
    parser.add_argument("--float32", action="store_true")
    arguments = parser.parse_args()
    tensors = fold(load_file(arguments.weights))
    expected = {name: value.shape for name, value in SuperPoint(batch_norm=False).state_dict().items()}
    if {name: value.shape for name, value in tensors.items()} != expected:
        raise SystemExit(f"{arguments.weights}: not the tensors of SuperPoint with batch normalisation")
    tensors["keypoint_decoder.conv_score_b.bias"][-1] += arguments.quieter
    if not arguments.float32:
        tensors = {name: value.half() for name, value in tensors.items()}
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise SystemExit(f"{arguments.weights}: {name} has values beyond the range of {value.dtype}")
    save_file(tensors, arguments.output, metadata={"format": "pt", "license": "Apache-2.0"})


if __name__ == "__main__":
    main()
