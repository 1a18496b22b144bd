# SPDX-License-Identifier: Apache-2.0
"""HDF5 files, read with h5py the way hloc reads them."""
import os
import time

import numpy as np
import pytest

from tool import random_features

h5py = pytest.importorskip("h5py")


@pytest.fixture
def features(tmp_path):
    made = {}
    for count in (0, 1, 7, 1024):
        made[count] = random_features(count, seed=count, width=1600, height=900)
        made[count].write(tmp_path / f"{count}.bin")
    return made


def names(path):
    """As hloc's list_h5_names: what holds an array is a picture."""
    found = set()
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, o: found.add(o.parent.name.strip("/")) if isinstance(o, h5py.Dataset) else None)
    return found


def files(folder):
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".bin")


def test_layout(tool, tmp_path, features):
    arguments = [x for count in features for x in (f"db/{count}/image.jpg", tmp_path / f"{count}.bin")]
    assert tool("hdf5", tmp_path / "out.h5", 0, *arguments) == ""
    assert files(tmp_path) == ["out.h5"]
    assert names(tmp_path / "out.h5") == {f"db/{count}/image.jpg" for count in features}
    with h5py.File(tmp_path / "out.h5", "r") as file:
        for count, f in features.items():
            group = file[f"db/{count}/image.jpg"]
            assert set(group) == {"keypoints", "scores", "descriptors", "image_size"}
            for name, array in (("keypoints", f.keypoints), ("scores", f.scores), ("descriptors", f.descriptors.T)):
                assert group[name].dtype == np.float32 and group[name].shape == array.shape
                assert np.array_equal(group[name][()], array)
            assert group["image_size"].dtype == np.int64 and list(group["image_size"]) == [1600, 900]
            assert group["keypoints"].attrs["uncertainty"] == pytest.approx(2 * (1600 / 640 + 900 / 480) / 2, rel=1e-15)


def test_same_features_give_the_same_bytes(tool, tmp_path, features):
    for name in ("first.h5", "second.h5"):
        tool("hdf5", tmp_path / name, 0, "x", tmp_path / "7.bin")
        time.sleep(1.1)  # times in HDF5 are whole seconds
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()


def test_without_descriptors(tool, tmp_path):
    path = random_features(3, descriptors=False).write(tmp_path / "f.bin")
    tool("hdf5", tmp_path / "out.h5", 0, "x", path)
    with h5py.File(tmp_path / "out.h5", "r") as file:
        assert set(file["x"]) == {"keypoints", "scores", "image_size"}


@pytest.mark.parametrize("given, stored", [
    ("/data/a.jpg", "data/a.jpg"), ("./a.jpg", "a.jpg"), ("a//b/./c/", "a/b/c"), ("grüße.jpg", "grüße.jpg"),
    ("...", "..."), (".a/..b", ".a/..b"), ("a b\"\\", "a b\"\\"),
])
def test_names(tool, tmp_path, features, given, stored):
    assert tool("hdf5", tmp_path / "out.h5", 0, given, tmp_path / "7.bin") == ""
    assert names(tmp_path / "out.h5") == {stored}


@pytest.mark.parametrize("given, message", [
    ("../a", "'..'"), ("a/../b", "'..'"), ("..", "'..'"), ("", "empty"), (".", "empty"), ("//", "empty"),
    ("ok", "already"), ("/ok", "already"), ("db", "already"), ("ok/scores", "already"), ("ok/scores/x", "array"),
    ("ok/scores/x/y", "array"),
])
def test_bad_names(tool, tmp_path, features, given, message):
    """The picture is refused with one line, and the rest of the file is as it should be."""
    seven = tmp_path / "7.bin"
    done = tool.run("hdf5", tmp_path / "out.h5", 0, "ok", seven, "db/x", seven, given, seven, "last", seven)
    assert done.returncode == 0 and done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 1 and message in lines[0]
    assert names(tmp_path / "out.h5") == {"ok", "db/x", "last"}


def test_pictures_inside_a_picture(tool, tmp_path, features):
    assert tool("hdf5", tmp_path / "out.h5", 0, "a", tmp_path / "7.bin", "a/b", tmp_path / "7.bin") == ""
    assert names(tmp_path / "out.h5") == {"a", "a/b"}


def test_replaces_a_file_only_at_the_end(tool, tmp_path, features):
    (tmp_path / "out.h5").write_text("before")
    tool("abandon", tmp_path / "out.h5", "x", tmp_path / "7.bin")
    assert (tmp_path / "out.h5").read_text() == "before" and files(tmp_path) == ["out.h5"]
    tool("hdf5", tmp_path / "out.h5", 0, "x", tmp_path / "7.bin")
    assert names(tmp_path / "out.h5") == {"x"}


def one_line(done, message):
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and message in lines[0], lines


def test_folder_missing(tool, tmp_path, features):
    one_line(tool.run("hdf5", tmp_path / "none" / "out.h5", 0), "No such file or directory")


def test_target_is_a_folder(tool, tmp_path, features):
    (tmp_path / "out.h5").mkdir()
    one_line(tool.run("hdf5", tmp_path / "out.h5", 0, "x", tmp_path / "7.bin"), "directory")
    assert files(tmp_path) == ["out.h5"]


def test_no_permission(tool, tmp_path, features):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "locked").mkdir(mode=0o500)
    one_line(tool.run("hdf5", tmp_path / "locked" / "out.h5", 0), "Permission denied")


@pytest.mark.parametrize("limit", [1, 100, 1000, 2048, 5000, 8192, 10000, 100000, 1000000])
def test_disk_full(tool, tmp_path, features, limit):
    """A limit of the file's size stands for a full disk: messages, no file, no stack trace of the library."""
    (tmp_path / "out.h5").write_text("before")
    big = tmp_path / "1024.bin"
    done = tool.run("hdf5", tmp_path / "out.h5", limit, "a", tmp_path / "7.bin", "b", big, "c", big)
    one_line(done, "File too large")
    assert (tmp_path / "out.h5").read_text() == "before" and files(tmp_path) == ["out.h5"]
