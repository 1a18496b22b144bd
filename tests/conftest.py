# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: where the build is, synthetic weights, and test data.

LENSING_BUILD_DIR names the build to test (default build/), LENSING_SANITIZER_BUILD_DIR the one with sanitizers (default
build-asan/), LENSING_TEST_DATA a folder with real weights and photos (tests that need it are skipped without it).
"""
import json
import os
import signal
from pathlib import Path

import pytest

from golden import synthetic

ROOT = Path(__file__).resolve().parent.parent

# A shell starts what runs in the background with SIGINT ignored, programs that are started from there inherit that, and
# Lensing respects it. Tests that interrupt programs would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


def environment_folder(variable, default):
    folder = Path(os.environ.get(variable) or ROOT / default)
    if not (folder / "build.ninja").exists():
        pytest.fail(f"{folder} is not a build folder; run scripts/build.sh {default} or set {variable}")
    return folder


@pytest.fixture(scope="session")
def root():
    """Folder of the sources."""
    return ROOT


@pytest.fixture(scope="session")
def build_dir():
    """Folder of the build."""
    return environment_folder("LENSING_BUILD_DIR", "build")


@pytest.fixture(scope="session")
def sanitizer_build_dir():
    """Folder of the build with AddressSanitizer and UndefinedBehaviorSanitizer."""
    return environment_folder("LENSING_SANITIZER_BUILD_DIR", "build-asan")


@pytest.fixture(scope="session")
def program(build_dir):
    """The `lensing` program."""
    return build_dir / "lensing"


@pytest.fixture(scope="session")
def synthetic_weights(tmp_path_factory):
    """A safetensors file with the tensors of SuperPoint and random values."""
    path = tmp_path_factory.mktemp("weights") / "synthetic.safetensors"
    synthetic.write_safetensors(path, synthetic.weights())
    return path


@pytest.fixture(scope="session")
def builtin_weights(root, build_dir):
    """The file of the weights inside the library. Tests that need them are skipped when the build left them out."""
    options = json.loads((build_dir / "meson-info" / "intro-buildoptions.json").read_text())
    if any(option["name"] == "builtin_weights" and option["value"] == "disabled" for option in options):
        pytest.skip("the build has no weights")
    (path,) = (root / "models").glob("*.safetensors")
    return path


@pytest.fixture(scope="session")
def test_data():
    """The folder of LENSING_TEST_DATA."""
    folder = os.environ.get("LENSING_TEST_DATA")
    if not folder:
        pytest.skip("LENSING_TEST_DATA is not set")
    return Path(folder)
