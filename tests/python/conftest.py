# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. They test the package that is installed, with synthetic weights.

Expected values come from the `lensing` program, whose own results are compared with PyTorch elsewhere.
"""

import os

import numpy as np
import pytest
from PIL import Image

import lensing
from python.reference import Program


@pytest.fixture(scope="session")
def cli(program, synthetic_weights, tmp_path_factory):
    return Program(program, synthetic_weights, tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="session")
def model(synthetic_weights):
    with lensing.SuperPoint(synthetic_weights) as model:
        yield model


@pytest.fixture(scope="session")
def scene(root):
    """A JPEG of gray values, 1280 x 960."""
    return root / "examples" / "scene_1.jpg"


@pytest.fixture(scope="session")
def scene_2(root):
    return root / "examples" / "scene_2.jpg"


@pytest.fixture(scope="session")
def rgb():
    """Colours, 333 x 217, every channel different."""
    random = np.random.default_rng(5)
    small = random.integers(0, 256, (28, 42, 3), np.uint8)
    image = Image.fromarray(small).resize((333, 217), Image.Resampling.BICUBIC)
    pixels = np.array(image)
    pixels.flags.writeable = False
    return pixels


@pytest.fixture(scope="session")
def photo(rgb, tmp_path_factory):
    """The same colours as a file."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.fromarray(rgb).save(path)
    return path


@pytest.fixture(scope="session")
def expected(cli, photo):
    """What the program finds in them."""
    arrays = cli.detect(photo)
    assert 100 < len(arrays["scores"]) <= 1024
    return arrays


@pytest.fixture(scope="session")
def expected_blue(cli, rgb):
    """What it finds in their last channel, which is red in the order of OpenCV."""
    return cli.detect_pixels(np.ascontiguousarray(rgb[..., 2]))


@pytest.fixture
def environment():
    """Environment of a child process without variables that name weights."""
    prefixes = ("HF_", "TT_", "SP_", "XDG_", "LENSING_CPU")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
