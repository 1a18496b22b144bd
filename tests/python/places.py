# SPDX-License-Identifier: Apache-2.0
"""Weights where programs look for them."""

import os

REPOSITORY = "magic-leap-community/superpoint"
REVISION = "734450e9ffe229074f5998494ddc615475cdb20a"


def folder(path, weights, config='{"model_type": "superpoint"}'):
    """Makes a folder with config.json and model.safetensors."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(config)
    (path / "model.safetensors").symlink_to(weights)
    return path


def hub(path, weights):
    """Makes a Hugging Face cache with the default repository at its default revision, and nothing else."""
    folder(path / ("models--" + REPOSITORY.replace("/", "--")) / "snapshots" / REVISION, weights)
    return path


def environment(cache):
    """Environment of a child process that finds weights in a cache only, and no network."""
    prefixes = ("HF_", "TT_", "SP_", "XDG_", "LOGURU_", "PILLOW_", "LENSING_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**kept, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
