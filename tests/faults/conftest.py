# SPDX-License-Identifier: Apache-2.0
import json
import shutil

import pytest


@pytest.fixture(scope="session")
def weights(synthetic_weights, tmp_path_factory):
    """A folder as on the Hugging Face Hub, so that both files are read."""
    folder = tmp_path_factory.mktemp("superpoint")
    shutil.copy(synthetic_weights, folder / "model.safetensors")
    config = {"architectures": ["SuperPointForKeypointDetection"], "model_type": "superpoint", "decoder_hidden_size": 256}
    config |= {"encoder_hidden_sizes": [64, 64, 128, 128], "border_removal_distance": 4}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder
