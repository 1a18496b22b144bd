# SPDX-License-Identifier: Apache-2.0
"""`meson install` gives what a program needs to use the library: the C example of README.md is compiled against the
installed files, as it stands, with the shared and with the static library, and run. The weights inside the library are a
matter of the build, and so they are here too."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the names and tools of Linux shared libraries")


def find_meson(root):
    command = '. "$1/scripts/common.sh"; find_meson; find_ninja'
    output = subprocess.run(["bash", "-c", command, "bash", str(root)], check=True, capture_output=True, text=True)
    return output.stdout.split()


class Installation:
    """An installed copy under a temporary prefix."""

    def __init__(self, prefix, package_dir):
        self.prefix = prefix
        self.package = next(prefix.rglob("lensing.pc"))
        self.library_dir = self.package.parent.parent
        # A copy of the package file that says where the files really are.
        self.package_dir = package_dir
        text = self.package.read_text(encoding="utf-8")
        text, count = re.subn(r"^prefix=.*$", f"prefix={prefix}", text, flags=re.MULTILINE)
        assert count == 1
        (package_dir / "lensing.pc").write_text(text, encoding="utf-8")

    def flags(self, *arguments):
        """Answer of pkg-config."""
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.package_dir)}
        command = ["pkg-config", *arguments, "lensing"]
        result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return shlex.split(result.stdout)


@pytest.fixture(scope="module")
def installation(root, build_dir, tmp_path_factory):
    destination = tmp_path_factory.mktemp("install")
    meson, ninja = find_meson(root)
    subprocess.run(
        [meson, "install", "-C", str(build_dir), "--no-rebuild", "--quiet", "--destdir", str(destination)],
        check=True,
        env={**os.environ, "NINJA": ninja},
    )
    headers = next(destination.rglob("lensing.h"))
    return Installation(headers.parent.parent.parent, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def example(root, tmp_path_factory):
    """The C example of README.md."""
    blocks = re.findall(r"^```c\n(.*?)^```", (root / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    source = tmp_path_factory.mktemp("example") / "example.c"
    source.write_text(blocks[0], encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A gray PGM picture with squares."""
    width, height = 160, 120
    pixels = bytes(255 if (x // 20 + y // 20) % 2 else 20 for y in range(height) for x in range(width))
    path = tmp_path_factory.mktemp("picture") / "squares.pgm"
    path.write_bytes(b"P5\n%d %d\n255\n" % (width, height) + pixels)
    return path


def static_flags(flags):
    """Takes liblensing.a although the shared library lies beside it."""
    return [flag if flag != "-llensing" else "-l:liblensing.a" for flag in flags]


def run_example(binary, installation, weights, *arguments):
    environment = {**os.environ, "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": "", "HF_MODEL": str(weights)}
    environment["LD_LIBRARY_PATH"] = str(installation.library_dir)
    return subprocess.run([str(binary), *map(str, arguments)], capture_output=True, text=True, env=environment)


def test_installed_files(installation, program):
    prefix = installation.prefix
    assert (prefix / "bin" / program.name).stat().st_mode & 0o111
    assert (installation.library_dir / "liblensing.a").exists()
    assert (installation.library_dir / "liblensing.so").is_symlink()
    assert (installation.library_dir / "liblensing.so.0").exists()
    assert (prefix / "share" / "man" / "man1" / "lensing.1").exists()
    version = subprocess.run([str(prefix / "bin" / program.name), "--version"], capture_output=True, text=True)
    assert version.stdout.split()[-1] == installation.flags("--modversion")[0]
    unit = (prefix / "lib/systemd/system/lensing.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=(\S+)/bin/lensing serve ", unit, re.M)
    assert started and str(prefix).endswith(started[1])


def test_library_is_small(installation, tmp_path):
    """Weights included; what debuggers need is left out, as in packages."""
    for name in ("liblensing.so.0", "liblensing.a"):
        shutil.copyfile(installation.library_dir / name, tmp_path / name)
        subprocess.run(["strip", "--strip-debug", tmp_path / name], check=True)
        size = (tmp_path / name).stat().st_size
        print(f"{name}: {size} bytes")
        assert 1_000_000 < size <= 8_000_000, name


def test_what_goes_with_the_weights(installation, root, builtin_weights):
    """Their description, and the authors of the photos."""
    documents = installation.prefix / "share" / "doc" / "lensing"
    name = builtin_weights.stem
    assert sorted(path.name for path in documents.iterdir()) == [f"{name}-photos.tsv", f"{name}.md"]
    assert (documents / f"{name}.md").read_bytes() == (root / "models" / "README.md").read_bytes()
    assert (documents / f"{name}-photos.tsv").read_bytes() == (root / "training" / "photos.tsv").read_bytes()


def configure(source, build, option):
    """`meson setup` with as little as possible."""
    meson, ninja = find_meson(source)
    less = [f"-D{name}=disabled" for name in ("curl", "hdf5", "cairo", "webp", "tiff", "server", "tests")]
    return subprocess.run([meson, "setup", str(build), str(source), *less, *option], capture_output=True, text=True,
                          env={**os.environ, "NINJA": ninja})


def test_weights_can_be_left_out_of_the_build(root, tmp_path):
    """And a file that is missing is not passed over in silence."""
    source = tmp_path / "source"
    shutil.copytree(root, source, ignore=shutil.ignore_patterns(".git", "build", "build-*", "*.safetensors", "demo"))
    failed = configure(source, tmp_path / "with", [])
    assert failed.returncode != 0
    assert "models/lensing-superpoint-v1.safetensors is missing" in failed.stdout
    assert "-Dbuiltin_weights=disabled" in failed.stdout
    done = configure(source, tmp_path / "without", ["-Dbuiltin_weights=disabled"])
    assert done.returncode == 0, done.stdout + done.stderr
    commands = json.loads((tmp_path / "without" / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {Path(command["file"]).name for command in commands}
    assert "no_builtin.c" in compiled and not compiled & {"builtin.c", "builtin_weights.c"}


def test_only_documented_names_are_exported(installation):
    library = installation.library_dir / "liblensing.so"
    output = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True)
    exported = {line.split()[-1].split("@")[0] for line in output.stdout.splitlines()}
    headers = "".join(path.read_text(encoding="utf-8") for path in (installation.prefix / "include").rglob("*.h"))
    declared = set(re.findall(r"\b(lns_\w+)\(", " ".join(re.findall(r"LNS_API[^;]*;", headers))))
    assert declared
    assert exported == declared


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_readme_example(installation, example, picture, synthetic_weights, tmp_path, kind):
    binary = tmp_path / "example"
    flags = installation.flags("--cflags", "--libs") if kind == "shared" else static_flags(
        installation.flags("--cflags", "--libs", "--static"))
    subprocess.run([CC, "-std=c11", *WARNINGS, str(example), "-o", str(binary), *flags], check=True)
    libraries = subprocess.run(["ldd", str(binary)], check=True, capture_output=True, text=True).stdout
    assert ("liblensing" in libraries) == (kind == "shared")

    result = run_example(binary, installation, synthetic_weights, picture)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert 0 < len(lines) <= 1024
    assert all(re.fullmatch(r"\d+\.\d+ \d+\.\d+ [01]\.\d+", line) for line in lines)

    result = run_example(binary, installation, synthetic_weights, tmp_path / "absent.jpg")
    assert result.returncode == 1
    assert "absent.jpg" in result.stderr


def test_readme_example_needs_no_weights(installation, example, picture, builtin_weights, tmp_path):
    binary = tmp_path / "example"
    flags = installation.flags("--cflags", "--libs")
    subprocess.run([CC, "-std=c11", *WARNINGS, str(example), "-o", str(binary), *flags], check=True)
    result = run_example(binary, installation, "", picture)
    assert (result.returncode, result.stderr) == (0, "") and result.stdout
    assert result.stdout == run_example(binary, installation, builtin_weights, picture).stdout


def test_readme_example_as_cpp(installation, example, tmp_path):
    source = tmp_path / "example.cpp"
    shutil.copy(example, source)
    flags = installation.flags("--cflags", "--libs")
    subprocess.run([CXX, "-std=c++17", *WARNINGS, str(source), "-o", str(tmp_path / "example"), *flags], check=True)


def test_package_file_names_no_build_folder(installation, root):
    assert str(root) not in Path(installation.package).read_text(encoding="utf-8")
