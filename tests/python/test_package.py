# SPDX-License-Identifier: Apache-2.0
"""The package from nothing: `pip install .` and the wheel, each in a clean virtual environment with NumPy alone."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lensing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the names and tools of Linux shared libraries")

USE = """\
import sys
import lensing
model = lensing.SuperPoint(sys.argv[1])
features = model(sys.argv[2])
assert len(features) == len(features.keypoints) > 0
"""
LIBRARIES = """\
for line in open("/proc/self/maps"):
    if ".so" in line:
        print(line.split()[-1])
"""


class Environment:
    """A new virtual environment."""

    def __init__(self, folder, environment):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"
        self.folder = folder
        kept = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        self.environment = {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, *arguments):
        command = [self.python, *map(str, arguments)]
        result = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def use(self, weights, image):
        """Detects something; the shared libraries of the process."""
        return set(self.run("-c", USE + LIBRARIES, weights, image).split())


@pytest.fixture
def clean(tmp_path, environment):
    return Environment(tmp_path / "venv", environment)


@pytest.fixture(scope="module")
def wheel(root):
    """The wheel that scripts/wheel.sh made."""
    wheels = list((root / "build" / "wheel").glob("lensing-*.whl"))
    if len(wheels) != 1:
        pytest.skip("no wheel in build/wheel; run scripts/wheel.sh")
    return wheels[0]


def test_pip_install(clean, root, synthetic_weights, scene):
    clean.run("-m", "pip", "install", "-q", root)
    clean.use(synthetic_weights, scene)
    installed = clean.run("-m", "pip", "list", "--format=freeze").split()
    assert {line.split("==")[0] for line in installed} - {"pip", "setuptools"} == {"lensing", "numpy"}
    assert f"lensing=={lensing.__version__}" in installed


def test_wheel_brings_its_libraries(clean, wheel, synthetic_weights, scene):
    """In use, everything that is loaded is of the environment, of Python and NumPy, or of the C library."""
    clean.run("-m", "pip", "install", "-q", wheel)
    loaded = clean.use(synthetic_weights, scene)
    own = {Path(path).name for path in loaded if "lensing.libs" in path}
    assert any(name.startswith("libjpeg") for name in own)
    assert any(name.startswith("libtiff") for name in own)
    # What NumPy needs anyway, and what every Linux for these wheels has.
    others = set(clean.run("-c", "import numpy, json\n" + LIBRARIES).split())
    given = re.compile(r"(lib(c|m|pthread|dl|gcc_s|stdc\+\+|z)|ld-linux.*)\.so.*")
    foreign = {path for path in loaded - others if str(clean.folder) not in path}
    assert {path for path in foreign if not given.fullmatch(Path(path).name) and "lib-dynload" not in path} == set()


def test_contents_of_the_wheel(wheel, root):
    assert re.fullmatch(rf"lensing-[\d.]+-cp3{sys.version_info.minor}-abi3-manylinux_2_\d+_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"lensing", "lensing.libs", "tt_superpoint"}
    assert {"lensing/py.typed", "lensing/_native.pyi", "lensing/_native.abi3.so"} <= set(names)
    sources = {f"{path.parent.name}/{path.name}" for path in (root / "python" / "tt_superpoint").glob("*.py")}
    assert {*sources, "tt_superpoint/py.typed"} <= set(names)
    assert not any("liblensing" in name for name in names)
    needed = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    assert [line for line in needed if "extra ==" not in line] == ["numpy>=1.23.2"]


def test_only_the_entry_of_the_module_is_exported():
    from lensing import _native

    output = subprocess.run(
        ["nm", "-D", "--defined-only", _native.__file__], check=True, capture_output=True, text=True
    )
    assert [line.split()[-1] for line in output.stdout.splitlines()] == ["PyInit__native"]


def test_only_the_limited_api_is_used(root, wheel):
    tool = root / "build" / "venv-wheel" / "bin" / "abi3audit"
    if not tool.exists():
        pytest.skip("no abi3audit; run scripts/wheel.sh")
    result = subprocess.run([tool, "--strict", "--verbose", wheel], capture_output=True, text=True)
    output = " ".join((result.stdout + result.stderr).split())
    assert result.returncode == 0, output
    assert "1 extensions scanned; 0 ABI version mismatches and 0 ABI violations found" in output
