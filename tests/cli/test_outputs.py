# SPDX-License-Identifier: Apache-2.0
"""Where output goes, in which format, and what happens when it cannot be written."""
import base64
import json
import os
import resource
import shutil
import signal
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from cli.tool import names_in, npz, one_error, paint

# ---- Where output goes -----------------------------------------------------------------------------------------------


def test_json_into_one_file(tool, photos):
    target = tool.folder / "out.json"
    target.write_text("old")
    code, out, err = tool.detect(*photos, "-o", "out.json")
    assert (code, out, err) == (0, b"", "")
    assert [json.loads(line)["file"] for line in target.read_text().splitlines()] == photos
    assert names_in(tool.folder) == sorted([*photos, "out.json"])


def test_json_into_a_folder(tool, photos):
    (tool.folder / "x").mkdir()
    paint(tool.folder / "x" / "a.png", 9)
    paint(tool.folder / "a.jpg", 10)
    code, out, err = tool.detect("a.png", "a.jpg", "x/a.png", "a.png", "-o", "out/")
    assert (code, out, err) == (0, b"", "")
    assert names_in(tool.folder / "out") == ["a.jpg.json", "a.png.2.json", "a.png.3.json", "a.png.json"]
    assert json.loads((tool.folder / "out" / "a.png.2.json").read_text())["file"] == "x/a.png"
    code, out, err = tool.detect("b.jpg", "-o", "out")
    assert code == 0 and "b.jpg.json" in names_in(tool.folder / "out")


def test_format_follows_the_ending(tool, photo):
    for name, start in (("o.npz", b"PK"), ("o.h5", b"\x89HDF"), ("o.hdf5", b"\x89HDF"), ("o.txt", b'{"file"')):
        code, out, err = tool.detect(photo, "-o", name)
        assert (code, out, err) == (0, b"", "")
        assert (tool.folder / name).read_bytes().startswith(start)
    assert tool.detect(photo, "-o", "o.npz", "--format", "json")[0] == 0
    assert (tool.folder / "o.npz").read_bytes().startswith(b'{"file"')


def test_the_formats_agree(tool, photos):
    results = tool.lines(*photos, "--descriptors")
    assert tool.detect(*photos, "-o", "all.h5")[0] == 0
    assert tool.detect(*photos, "--format", "npz", "-o", "npz/")[0] == 0
    assert names_in(tool.folder / "npz") == [name + ".npz" for name in photos]
    with h5py.File(tool.folder / "all.h5") as file:
        assert sorted(file) == photos
        for name, result in zip(photos, results):
            arrays = npz((tool.folder / "npz" / (name + ".npz")).read_bytes())
            group = file[name]
            assert arrays["keypoints"].dtype == group["keypoints"].dtype == np.float32
            assert np.array_equal(arrays["keypoints"], group["keypoints"][()])
            assert np.array_equal(arrays["scores"], group["scores"][()])
            assert np.array_equal(arrays["descriptors"], group["descriptors"][()].T)
            assert arrays["image_size"].tolist() == group["image_size"][()].tolist() == [96, 72]
            assert arrays["weights"].item().decode() == group.attrs["weights"] == result["weights"]["name"]
            assert arrays["weights_license"].item().decode() == group.attrs["weights_license"] == \
                result["weights"]["license"]
            assert np.abs(arrays["keypoints"] - np.array(result["keypoints"])).max() <= 5.1e-4
            assert np.abs(arrays["scores"] - np.array(result["scores"])).max() <= 5.1e-7
            half = npz(base64.b64decode(result["descriptors"]["data"]))["descriptors"]
            assert np.array_equal(arrays["descriptors"].astype(np.float16), half)


def test_npz_on_standard_output(tool, photo):
    code, out, err = tool.detect(photo, "--format", "npz")
    assert (code, err) == (0, "")
    assert tool.detect(photo, "--format", "npz", "-o", "o.npz")[0] == 0
    assert (tool.folder / "o.npz").read_bytes() == out
    assert npz(out)["descriptors"].shape[1] == 256


def test_hdf5_names(tool, photos):
    (tool.folder / "sub").mkdir()
    shutil.copy(tool.folder / "a.png", tool.folder / "sub" / "a.png")
    shutil.copy(tool.folder / "a.png", tool.folder / "sub" / "b.png")
    assert tool.detect("sub", "-o", "folder.h5")[0] == 0
    assert tool.detect("a.png", "sub", "-o", "mixed.h5")[0] == 0
    with h5py.File(tool.folder / "folder.h5") as file:
        assert sorted(file) == ["a.png", "b.png"]
    with h5py.File(tool.folder / "mixed.h5") as file:
        assert sorted(file) == ["a.png", "sub"] and sorted(file["sub"]) == ["a.png", "b.png"]


def test_hdf5_with_a_bad_image(tool, photos):
    (tool.folder / "bad.png").write_bytes(b"\x89PNG")
    code, out, err = tool.detect("a.png", "bad.png", "c.png", "-o", "f.h5")
    assert (code, out) == (1, b"") and one_error(err).startswith("bad.png: ")
    with h5py.File(tool.folder / "f.h5") as file:
        assert sorted(file) == ["a.png", "c.png"]


def test_draw(tool, photos):
    code, out, err = tool.detect("a.png", "--draw", "drawn.png")
    assert (code, err) == (0, "") and json.loads(out)["file"] == "a.png"
    with Image.open(tool.folder / "drawn.png") as image:
        assert image.format == "PNG" and image.width >= 96 and image.height >= 72
        image.load()
    for target in ("pictures/", "pictures", "fresh"):
        code, out, err = tool.detect(*photos, "--draw", target, "-o", "o.json")
        assert (code, out, err) == (0, b"", "")
        assert names_in(tool.folder / target) == [name + ".png" for name in photos]


def test_links_are_followed(tool, photo):
    (tool.folder / "real.json").write_text("old")
    (tool.folder / "link.json").symlink_to("real.json")
    assert tool.detect(photo, "-o", "link.json")[0] == 0
    assert (tool.folder / "link.json").is_symlink()
    assert json.loads((tool.folder / "real.json").read_text())["file"] == photo


def test_devices_are_written_not_replaced(tool, photo):
    for arguments in (["-o", "/dev/null"], ["-o", "/dev/null", "--format", "npz"], ["--draw", "/dev/null"]):
        assert tool.detect(photo, *arguments)[0] == 0
        assert Path("/dev/null").is_char_device()
    code, out, err = tool.detect(photo, "-o", "/dev/stdout")
    assert code == 0 and json.loads(out)["file"] == photo


def test_an_image_is_not_replaced(tool, photo):
    before = (tool.folder / photo).read_bytes()
    (tool.folder / "link.png").symlink_to(photo)
    for arguments in (["-o", photo], ["--draw", photo], ["--draw", "link.png"], ["-o", "./" + photo]):
        code, out, err = tool.detect(photo, *arguments)
        assert (code, out) == (2, b"") and one_error(err).endswith("would replace an image that is to be read")
        code, out, err = tool("match", photo, photo, *arguments)
        assert (code, out) == (2, b"")
    assert (tool.folder / photo).read_bytes() == before


# ---- Output that cannot be written -----------------------------------------------------------------------------------


def test_full_device(tool, photo):
    commands = [
        ["--help"], ["--version"], ["help", "detect"], ["info"], ["detect", photo, "-w", tool.weights],
        ["detect", photo, "--format", "npz", "-w", tool.weights], ["match", photo, photo, "-w", tool.weights],
        ["bench", "--runs", "1", "-w", tool.weights],
    ]  # fmt: skip
    for command in commands:
        with open("/dev/full", "wb") as full:
            code, _, err = tool(*command, stdout=full)
        assert code == 4 and one_error(err) == "cannot write standard output: No space left on device"
    code, out, err = tool.detect(photo, "-o", "/dev/full")
    assert (code, out) == (4, b"") and one_error(err) == "cannot write '/dev/full': No space left on device"


def test_closed_standard_output(tool, photos):
    """The descriptor must not be reused for a file that is being read or written."""
    before = {name: (tool.folder / name).read_bytes() for name in photos}
    code, _, err = tool.detect(*photos, stdout=None, preexec_fn=lambda: os.close(1))
    assert code == 4 and one_error(err) == "cannot write standard output: Bad file descriptor"
    code, _, err = tool.detect(*photos, "-o", "o.json", stdout=None, preexec_fn=lambda: os.close(1))
    assert (code, err) == (0, "")
    assert [json.loads(line)["file"] for line in (tool.folder / "o.json").read_text().splitlines()] == photos
    assert before == {name: (tool.folder / name).read_bytes() for name in photos}


def test_closed_standard_error(tool, photo):
    code, out, _ = tool.detect(photo, "missing.png", "-o", "o.json", stderr=None, preexec_fn=lambda: os.close(2))
    assert (code, out) == (1, b"")
    assert json.loads((tool.folder / "o.json").read_text())["file"] == photo


def test_a_reader_that_goes_away(tool, photo):
    """No message and no signal, but an exit code."""
    process = tool.popen("detect", *[photo] * 20, "-w", tool.weights)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=300) == 4
    assert process.stderr.read() == b""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tool, photo):
    (tool.folder / "locked").mkdir(mode=0o555)
    for target in ("locked/o.json", "locked/o.npz", "locked/o.h5", "locked/d/"):
        code, out, err = tool.detect(photo, "-o", target)
        assert (code, out) == (4, b"") and "locked/" in one_error(err)


def test_a_target_that_cannot_be(tool, photos):
    (tool.folder / "file").write_text("a file")
    targets = ["no/such/folder.json", "no/such/folder.npz", "no/such/folder.h5", "no/such/folder/", "file/"]
    for target in targets:
        code, out, err = tool.detect("a.png", "-o", target)
        assert (code, out) == (4, b"") and "'" + target in one_error(err)
    for target in ("no/such.png", "no/such/"):
        code, out, err = tool.detect("a.png", "--draw", target)
        assert (code, out) == (4, b"") and "'" + target in one_error(err)
        code, out, err = tool("match", "a.png", "c.png", "-w", tool.weights, "--draw", "no/such.png")
        assert (code, out) == (4, b"")
    assert (tool.folder / "file").read_text() == "a file"
    assert names_in(tool.folder) == sorted([*photos, "file"])


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))


@pytest.mark.parametrize("target", ["o.json", "o.npz", "o.h5", "o/", "drawn.png"])
def test_a_disk_that_fills_up_leaves_nothing(tool, target):
    """A limit on the size of files stands for a full disk."""
    paint(tool.folder / "large.png", 1, (800, 600))
    (tool.folder / "o.json").write_text("old")
    arguments = ["--draw", target] if target.endswith(".png") else ["-o", target]
    code, out, err = tool.detect("large.png", *arguments, "--descriptors", preexec_fn=limit_file_size)
    assert (code, out) == (4, b"") and "cannot write" in one_error(err)
    assert names_in(tool.folder) == ["large.png", "o.json"]
    assert (tool.folder / "o.json").read_text() == "old"


@pytest.mark.parametrize("target", ["o.json", "o.npz", "o.h5", "o/"])
def test_no_output_when_nothing_could_be_read(tool, target):
    (tool.folder / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    code, out, err = tool.detect("bad.png", "-o", target, "--draw", "drawn/")
    assert (code, out) == (1, b"") and one_error(err).startswith("bad.png: ")
    assert names_in(tool.folder) == ["bad.png"]
