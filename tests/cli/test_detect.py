# SPDX-License-Identifier: Apache-2.0
"""`lensing detect`: its JSON, many images, folders, standard input."""
import base64
import json
import os

import numpy as np
import pytest
from PIL import Image

from cli.tool import names_in, npz, one_error, paint, without_times

# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_json_shape(tool, photo):
    code, out, err = tool.detect(photo)
    assert (code, err) == (0, "") and out.count(b"\n") == 1 and out.endswith(b"\n")
    result = json.loads(out)
    assert list(result) == [
        "file", "num_keypoints", "keypoints", "scores", "original_size", "image_size", "scale", "params", "timing_ms",
        "weights",
    ]  # fmt: skip
    assert result["file"] == photo
    assert result["original_size"] == {"height": 72, "width": 96}
    assert result["num_keypoints"] == len(result["keypoints"]) == len(result["scores"]) > 0
    assert result["scores"] == sorted(result["scores"], reverse=True)
    assert result["timing_ms"]["preprocess"] > 0
    assert result["weights"] == {"name": tool.weights, "license": "Apache-2.0"}


def test_json_descriptors(tool, photo):
    (result,) = tool.lines(photo, "--descriptors", "-n", "5")
    described = result["descriptors"]
    array = npz(base64.b64decode(described["data"]))["descriptors"]
    assert array.shape == (5, 256) and array.dtype == np.float16
    assert np.allclose(np.linalg.norm(array.astype(np.float64), axis=1), 1, atol=2e-3)
    (result,) = tool.lines(photo, "--descriptors", "--no-descriptors", "-n", "5")
    assert "descriptors" not in result


def test_parameters_reach_the_library(tool, photo):
    (result,) = tool.lines(photo, "-n", "11", "--keypoint-threshold", "1e-2", "--nms-radius", "9")
    params = result["params"]
    assert (params["max_keypoints"], params["keypoint_threshold"], params["nms_radius"]) == (11, 0.01, 9)
    assert tool.lines(photo, "-n", "0")[0]["keypoints"] == []
    many, few = (tool.lines(photo, "-n", "-1", "--nms-radius", r)[0]["num_keypoints"] for r in ("0", "32"))
    assert many > 1024 > few
    assert tool.lines(photo, "--keypoint-threshold", "1")[0]["num_keypoints"] == 0


def test_exif(tool):
    image = Image.new("RGB", (60, 40))
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tool.folder / "turned.jpg", exif=exif)
    assert tool.lines("turned.jpg")[0]["original_size"] == {"height": 40, "width": 60}
    assert tool.lines("turned.jpg", "--exif", "apply")[0]["original_size"] == {"height": 60, "width": 40}


def test_max_pixels(tool, photo):
    code, out, err = tool.detect(photo, "--max-pixels", 96 * 72 - 1)
    assert (code, out) == (1, b"") and one_error(err).startswith("photo.png: ")
    assert tool.detect(photo, "--max-pixels", 96 * 72)[0] == 0
    assert tool.detect(photo, "--max-pixels", 0)[0] == 0


@pytest.mark.parametrize("name", ["with space.png", "ünïcødé 写真.png", "new\nline.png", 'quo"te\\.png', "-dash.png"])
def test_strange_names(tool, name):
    paint(tool.folder / name, 3)
    code, out, err = tool("detect", "-w", tool.weights, "--", name)
    assert (code, err) == (0, "") and out.count(b"\n") == 1
    assert json.loads(out)["file"] == name


@pytest.mark.parametrize("name", [b"\xff", b"\xe2\x82q", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\xaf\xc3"])
def test_a_name_that_is_not_utf8(tool, name):
    """One U+FFFD stands for what could have begun a character, as Python has it."""
    paint(tool.folder / "plain.png", 3)
    os.rename(tool.folder / "plain.png", os.fsencode(tool.folder) + b"/" + name + b".png")
    code, out, err = tool("detect", "-w", tool.weights, ".")
    assert (code, err) == (0, "") and json.loads(out)["file"] == f"./{name.decode(errors='replace')}.png"


def test_a_newline_in_a_name_forges_no_line(tool):
    code, out, err = tool("detect", "-w", tool.weights, "no\nlensing: such.png")
    assert (code, out) == (1, b"") and "no lensing: such.png" in one_error(err)


# ---- Many images -----------------------------------------------------------------------------------------------------


def test_order_and_a_bad_image_in_the_middle(tool, photos):
    (tool.folder / "bad.jpg").write_bytes((tool.folder / "b.jpg").read_bytes()[:400])
    code, out, err = tool.detect("a.png", "bad.jpg", "missing.png", "b.jpg", "c.png")
    assert code == 1
    assert [json.loads(line)["file"] for line in out.splitlines()] == ["a.png", "b.jpg", "c.png"]
    lines = err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("lensing: bad.jpg: ")
    assert lines[1] == "lensing: missing.png: cannot open: No such file or directory"


def test_a_folder_stands_for_its_images(tool, photos):
    (tool.folder / "sub").mkdir()
    for name in ("z.PNG", "m.Jpeg", ".hidden.png"):
        paint(tool.folder / "sub" / "x.png", 5)
        os.rename(tool.folder / "sub" / "x.png", tool.folder / "sub" / name)
    (tool.folder / "sub" / "notes.txt").write_text("no image")
    (tool.folder / "sub" / "deeper.png").mkdir()
    found = [result["file"] for result in tool.lines("c.png", "sub", "a.png")]
    assert found == ["c.png", "sub/m.Jpeg", "sub/z.PNG", "a.png"]
    assert [result["file"] for result in tool.lines("sub/")] == ["sub/m.Jpeg", "sub/z.PNG"]


def test_a_folder_without_images(tool, photo):
    (tool.folder / "empty").mkdir()
    code, out, err = tool.detect("empty")
    assert (code, out) == (1, b"") and one_error(err).startswith("empty: the folder holds no image file")
    code, out, err = tool.detect("empty", photo)
    assert code == 1 and json.loads(out)["file"] == photo and one_error(err).startswith("empty: ")


def test_an_empty_file_and_a_text(tool):
    (tool.folder / "empty.png").write_bytes(b"")
    (tool.folder / "text.png").write_text("hello")
    os.mkfifo(tool.folder / "pipe.png")
    for name in ("empty.png", "text.png", "pipe.png"):
        code, out, err = tool.detect(name)
        assert (code, out) == (1, b"") and one_error(err).startswith(name + ": ")


def test_threads_do_not_change_a_byte(tool, photos):
    results = set()
    for threads in (1, 2, 3, 8):
        code, out, err = tool.detect(*photos, "--descriptors", "-t", threads)
        assert (code, err) == (0, "")
        results.add(without_times(out))
    assert len(results) == 1


def test_many_images_at_a_time(tool, photos):
    """Results and errors in order, whatever the number of threads, the same as of each image alone."""
    (tool.folder / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    paint(tool.folder / "large.png", 9, (2000, 1500))  # takes longer than what comes behind it
    names = ["large.png", *photos, "missing.png", *photos[::-1], "bad.png", "large.png", *photos]
    alone = {name: tool.detect(name, "--descriptors") for name in set(names)}
    for threads in (1, 2, 5):
        code, out, err = tool.detect(*names, "--descriptors", "-t", threads)
        assert code == 1
        assert without_times(out) == b"".join(without_times(alone[name][1]) for name in names)
        assert err == "".join(alone[name][2] for name in names)
    code, out, err = tool.detect(*photos, "--descriptors", "-", *photos, input=(tool.folder / "large.png").read_bytes())
    assert (code, err) == (0, "")
    assert [json.loads(line)["file"] for line in out.splitlines()] == [*photos, "-", *photos]


def test_the_first_output_that_fails_ends_the_work(tool, photos):
    """What other threads have found meanwhile is dropped."""
    (tool.folder / "out" / "b.jpg.json").mkdir(parents=True)
    code, out, err = tool.detect(*photos * 5, "-o", "out/", "-t", "4")
    assert (code, out) == (4, b"") and "b.jpg.json" in one_error(err)
    assert names_in(tool.folder / "out") == ["a.png.json", "b.jpg.json"]


def test_memory_does_not_grow_with_the_number_of_images(tool):
    paint(tool.folder / "large.png", 9, (3000, 2000))

    def peak(count):
        """Bytes."""
        process = tool.popen("detect", *["large.png"] * count, "-t", "2", "-n", "10", "-w", tool.weights)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss << 10

    few, many = peak(6), peak(16)
    assert many < few + (20 << 20), "ten planes are 60 MB"


def test_standard_input(tool, photo):
    data = (tool.folder / photo).read_bytes()
    code, out, err = tool.detect("-", input=data)
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["file"] == "-"
    (same,) = tool.lines(photo)
    assert result["keypoints"] == same["keypoints"] and result["scores"] == same["scores"]
    code, out, err = tool.detect("-", input=b"")
    assert (code, out) == (1, b"") and one_error(err).startswith("standard input: ")
    code, out, err = tool.detect("-", "-o", "d/", input=data)
    assert code == 0 and names_in(tool.folder / "d") == ["stdin.json"]


def test_standard_input_closed(tool):
    code, out, err = tool.detect("-", stdin=None, preexec_fn=lambda: os.close(0))
    assert (code, out) == (1, b"") and one_error(err).startswith("standard input: cannot read: ")


# ---- Real weights ----------------------------------------------------------------------------------------------------


def test_photos_with_real_weights(tool, test_data):
    """Two views of one scene match in many places, and the homography between them agrees with most of them."""
    photos = test_data / "photos"
    weights = test_data / "weights" / "superpoint_magicleap_v1.safetensors"
    names = [photos / f"hpatches_v_dogman_{i}.ppm" for i in (1, 2)]
    code, out, err = tool("match", *names, "-w", weights, "--ratio", "0.9")
    assert (code, err) == (0, "")
    result = json.loads(out)
    homography = np.loadtxt(photos / "hpatches_v_dogman_H_1_2.txt")
    first = np.array([result["first"]["keypoints"][i] for i, _, _ in result["matches"]])
    second = np.array([result["second"]["keypoints"][j] for _, j, _ in result["matches"]])
    assert len(first) > 100
    mapped = np.c_[first, np.ones(len(first))] @ homography.T
    error = np.linalg.norm(mapped[:, :2] / mapped[:, 2:] - second, axis=1)
    assert np.mean(error < 5) > 0.6
