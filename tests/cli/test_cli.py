# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the `lensing` program: options, exit codes, error lines, outputs, signals."""
import base64
import io
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

COMMANDS = ["detect", "match", "fetch", "info", "bench", "serve", "blackhole-selftest"]
ENVIRONMENT = ["LENSING_CPU", "HF_MODEL", "SP_WEIGHTS_DIR", "TT_WEIGHTS_REVISION", "HF_HOME", "HF_HUB_CACHE"]
ALL_ENVIRONMENT = ENVIRONMENT + ["HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"]


def paint(path, seed, size=(96, 72)):
    """A small picture with corners."""
    random = np.random.default_rng(seed)
    pixels = np.full((size[1], size[0], 3), 128, np.uint8)
    for _ in range(30):
        x, y = random.integers(0, size[0]), random.integers(0, size[1])
        pixels[y : y + random.integers(4, 30), x : x + random.integers(4, 30)] = random.integers(0, 256, 3)
    Image.fromarray(pixels).save(path)


class Tool:
    """Runs the program in a folder of its own, with no weights in the environment."""

    def __init__(self, program, weights, folder):
        self.program, self.weights, self.folder = str(program), str(weights), folder
        self.environment = {k: v for k, v in os.environ.items() if k not in ALL_ENVIRONMENT}
        self.environment["HF_HOME"] = str(folder / "no-such-home")

    def popen(self, *arguments, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            [self.program, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            **options,
        )

    def __call__(self, *arguments, env=None, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.popen(*arguments, env=env, **options)
        out, err = process.communicate(input, timeout=300)
        return process.returncode, out or b"", (err or b"").decode()

    def detect(self, *arguments, **options):
        return self("detect", *arguments, "-w", self.weights, **options)

    def lines(self, *arguments):
        """The JSON objects of a detect that must go well."""
        code, out, err = self.detect(*arguments)
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.decode().splitlines()]


@pytest.fixture
def tool(program, synthetic_weights, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return Tool(program, synthetic_weights, folder)


@pytest.fixture
def photo(tool):
    paint(tool.folder / "photo.png", 1)
    return "photo.png"


@pytest.fixture
def photos(tool):
    names = ["a.png", "b.jpg", "c.png"]
    for seed, name in enumerate(names):
        paint(tool.folder / name, seed)
    return names


def one_error(err):
    """The text of standard error, which is one line of the program."""
    assert err.startswith("lensing: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err[len("lensing: ") : -1]


def without_times(data):
    """Output with the times masked, which alone may differ between runs."""
    return re.sub(rb'"timing_ms":\{[^}]*\}', b'"timing_ms":{}', data)


def without_weights(data):
    """The same with the names of weights masked too."""
    return re.sub(rb'"weights":\{[^}]*\}', b'"weights":{}', without_times(data))


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def npz(data):
    with np.load(io.BytesIO(data)) as arrays:
        return {name: arrays[name] for name in arrays.files}


# ---- Help ------------------------------------------------------------------------------------------------------------


def test_help_and_version(tool):
    for arguments in (["--help"], ["-h"], ["help"], ["help", "--help"], ["help", "help"]):
        code, out, err = tool(*arguments)
        assert (code, err) == (0, "") and out.startswith(b"Usage: lensing COMMAND")
    for name in COMMANDS:
        assert name in out.decode()
    for name in ALL_ENVIRONMENT:
        assert name in out.decode()
    for arguments in (["--version"], ["-V"]):
        code, out, err = tool(*arguments)
        assert (code, err) == (0, "") and re.fullmatch(rb"lensing \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(tool, command):
    texts = []
    for arguments in ([command, "--help"], [command, "-h"], ["help", command], [command, "--no-such", "--help"]):
        code, out, err = tool(*arguments)
        assert (code, err) == (0, "")
        texts.append(out.decode())
    assert len(set(texts)) == 1
    assert texts[0].startswith(f"Usage: lensing {command}") and "Examples:" in texts[0]


def test_help_fits_a_terminal(tool):
    for arguments in (["help"], *(["help", command] for command in COMMANDS)):
        for line in tool(*arguments)[1].decode().splitlines():
            assert len(line) <= 80 and "\t" not in line and line == line.rstrip(), line


def test_help_states_the_options_that_exist(tool, photo):
    """Every long option in the help of detect is accepted, and its stated default changes nothing."""
    text = tool("help", "detect")[1].decode()
    options = set(re.findall(r"^ *(?:-\w, )? +(--[a-z-]+)|^  -\w, (--[a-z-]+)", text, re.M))
    found = {a or b for a, b in options}
    assert found == {
        "--output", "--format", "--draw", "--descriptors", "--no-descriptors", "--quiet", "--max-keypoints",
        "--keypoint-threshold", "--nms-radius", "--exif", "--max-pixels", "--weights", "--threads", "--precision",
        "--backend", "--device-id", "--help",
    }  # fmt: skip
    defaults = ["--output", "-", "--format", "json", "--no-descriptors", "--quiet", "--max-keypoints", "1024"]
    defaults += ["--keypoint-threshold", "0.005", "--nms-radius", "4", "--exif", "ignore", "--threads", "0"]
    defaults += ["--max-pixels", "178956970", "--precision", "fp32", "--backend", "cpu", "--device-id", "0"]
    plain = tool.detect(photo)
    given = tool.detect(photo, *defaults)
    assert plain[0] == given[0] == 0 and without_times(plain[1]) == without_times(given[1])


def test_bf16_is_never_replaced_silently(tool, photo):
    """Either it runs and is near float32, or the error says what is missing."""
    code, out, err = tool.detect(photo, "--precision", "bf16", env={"LENSING_CPU": "c"})
    assert (code, out) == (2, b"") and "precision bf16 needs" in one_error(err)
    code, out, err = tool.detect(photo, "--precision", "bf16")
    if "avx512_bf16" not in json.loads(tool("info", "--json")[1])["cpu_features"].split():
        assert (code, out) == (2, b"") and "precision bf16 needs a CPU with AVX512_BF16" in one_error(err)
        return
    assert code == 0, err
    fast, exact = json.loads(out), json.loads(tool.detect(photo)[1])
    assert fast["keypoints"] != exact["keypoints"] or fast["scores"] != exact["scores"]
    assert abs(fast["num_keypoints"] - exact["num_keypoints"]) <= 0.1 * exact["num_keypoints"]


# ---- Usage errors ----------------------------------------------------------------------------------------------------

USAGE = [
    ([], "no command given; see `lensing --help`"),
    (["detct"], "unknown command 'detct'; did you mean detect?"),
    (["dtect"], "unknown command 'dtect'; did you mean detect?"),
    (["matc", "a", "b"], "unknown command 'matc'; did you mean match?"),
    (["frobnicate"], "unknown command 'frobnicate'; see `lensing --help`"),
    (["--frob"], "unknown option '--frob'; options come after a command, see `lensing --help`"),
    (["help", "infos"], "unknown command 'infos'; did you mean info?"),
    (["help", "info", "bench"], "help: takes one command, but got 2"),
    (["detect"], "detect: no IMAGE given; see `lensing help detect`"),
    (["detect", ""], "the name of an image is empty"),
    (["detect", "x", "--max-keypoint", "3"], "detect: unknown option '--max-keypoint'; did you mean --max-keypoints?"),
    (["detect", "x", "--nms=3"], "detect: unknown option '--nms=3'; did you mean --nms-radius?"),
    (["detect", "x", "--xyzzy"], "detect: unknown option '--xyzzy'; see `lensing help detect`"),
    (["detect", "x", "-z"], "detect: unknown option '-z'; see `lensing help detect`"),
    (["detect", "x", "-qz"], "detect: unknown option '-qz'; see `lensing help detect`"),
    (["detect", "x", "--quiet=1"], "--quiet takes no value, but got '1'"),
    (["detect", "x", "-o"], "-o needs a value; see `lensing help detect`"),
    (["detect", "x", "-o", ""], "-o: the value is empty"),
    (["detect", "x", "--weights="], "--weights: the value is empty"),
    (["detect", "x", "--format", "xml"], "--format: 'xml' is not one of: json, npz, hdf5"),
    (["detect", "x", "--format", "js"], "--format: 'js' is not one of: json, npz, hdf5"),
    (["detect", "x", "--exif", "on"], "--exif: 'on' is not one of: ignore, apply"),
    (["detect", "x", "--precision", "fp16"], "--precision: 'fp16' is not one of: fp32, bf16"),
    *(
        (["detect", "x", "--max-keypoints", value], f"--max-keypoints: '{value}' is not a whole number from -1 to 307200")
        for value in ["-2", "307201", "5x", "5.0", "", " 5", "5 ", "1e3", "0x10", "99999999999999999999", "nan"]
    ),
    *(
        (["detect", "x", "--keypoint-threshold", value], f"--keypoint-threshold: '{value}' is not a number from 0 to 1")
        for value in ["-0.1", "1.01", "0,5", "nan", "inf", "0.5x", " 0.5", "", ".", "0x1p-1", "1e", "1e400"]
    ),
    *(
        (["detect", "x", "--nms-radius", value], f"--nms-radius: '{value}' is not a whole number from 0 to 32")
        for value in ["-1", "33", "4.5"]
    ),
    *(
        (["detect", "x", "--threads", value], f"--threads: '{value}' is not a whole number from 0 to 256")
        for value in ["-1", "257", "two"]
    ),
    (["detect", "x", "-t", "257"], "-t: '257' is not a whole number from 0 to 256"),
    (["detect", "x", "--max-pixels=-1"], "--max-pixels: '-1' is not a whole number from 0 to 1000000000000000"),
    (["detect", "-", "-"], "'-' (standard input) can be given only once"),
    (["detect", "x", "--format", "hdf5"], "hdf5 cannot go to standard output; name a file with -o FILE"),
    (["detect", "x", "--format", "hdf5", "-o", "d/"], "-o d/: hdf5 is one regular file for all images"),
    (["detect", "x", "--format", "hdf5", "-o", "/dev/null"], "-o /dev/null: hdf5 is one regular file for all images"),
    (["detect", "x", "y", "x", "-o", "f.h5"], "x: the image is given twice; names in an HDF5 file must differ"),
    (["detect", "x", "y", "--format", "npz"], "npz holds one image, but there are 2; name a folder, such as -o features/"),
    (["detect", "x", "y", "-o", "f.npz"], "npz holds one image, but there are 2; name a folder, such as -o features/"),
    (["detect", "x", "y", "-d", "f.png"], "--draw f.png: there are 2 images; name a folder, such as --draw drawn/"),
    (["detect", "x", "-o", "f", "-d", "f"], "-o and --draw name the same file, 'f'"),
    (
        ["detect", "x", "--no-descriptors", "--format", "npz"],
        "--no-descriptors goes with --format json only; npz and hdf5 always hold descriptors",
    ),
    (["match", "x"], "match: takes two images, but got 1; see `lensing help match`"),
    (["match", "x", "y", "z"], "match: takes two images, but got 3; see `lensing help match`"),
    (["match", "x", "."], "match: '.' is a folder; A and B are images"),
    (["match", "x", "y", "--ratio", "0"], "--ratio: '0' is not a number from above 0 to 1"),
    (["match", "x", "y", "--ratio", "1.5"], "--ratio: '1.5' is not a number from above 0 to 1"),
    (["match", "x", "y", "--min-similarity", "-1.5"], "--min-similarity: '-1.5' is not a number from -1 to 1"),
    (["match", "x", "y", "--format", "npz"], "match: unknown option '--format'; see `lensing help match`"),
    (["match", "x", "y", "-o", "f", "-d", "f"], "-o and --draw name the same file, 'f'"),
    (["info", "x"], "info: takes no arguments, but got 'x'; see `lensing help info`"),
    (["bench", "x"], "bench: takes no arguments, but got 'x'; the image goes with --image"),
    (["bench", "--runs", "0"], "--runs: '0' is not a whole number from 1 to 100000"),
]


@pytest.mark.parametrize("arguments,message", USAGE, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_usage_errors(tool, arguments, message):
    """Refused before anything is opened: neither the image nor the weights exist."""
    code, out, err = tool(*arguments)
    assert (code, out) == (2, b"")
    assert one_error(err) == message
    assert names_in(tool.folder) == []


def test_the_last_of_equal_options_counts(tool, photo):
    (result,) = tool.lines("-n", "7", photo, "--max-keypoints=3", "-n2")
    assert result["num_keypoints"] == 2 and result["params"]["max_keypoints"] == 2


def test_wrong_cpu_path_is_a_usage_error(tool, photo):
    for command in (["detect", photo], ["match", photo, photo], ["bench"]):
        code, out, err = tool(*command, "-w", tool.weights, env={"LENSING_CPU": "mmx"})
        assert (code, out) == (2, b"") and "LENSING_CPU=mmx" in one_error(err)
    code, out, err = tool("info", env={"LENSING_CPU": "mmx"})
    assert code == 2 and b"LENSING_CPU=mmx" in out and "LENSING_CPU=mmx" in one_error(err)


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


def test_a_name_that_is_not_utf8(tool):
    paint(tool.folder / "plain.png", 3)
    os.rename(tool.folder / "plain.png", os.fsencode(tool.folder) + b"/\xff.png")
    code, out, err = tool("detect", "-w", tool.weights, ".")
    assert (code, err) == (0, "") and json.loads(out)["file"] == "./�.png"


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


# ---- Signals ---------------------------------------------------------------------------------------------------------


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", ["o.json", "o.h5"])
def test_interrupted_in_the_middle(tool, photo, number, target):
    for i in range(200):
        (tool.folder / f"{i}.png").symlink_to(photo)
    before = names_in(tool.folder)
    process = tool.popen("detect", ".", "-w", tool.weights, "-o", target)
    wait_until(lambda: any(".tmp" in name for name in names_in(tool.folder)))
    time.sleep(0.2)
    process.send_signal(number)
    assert process.wait(timeout=60) == 130
    assert process.stdout.read() == process.stderr.read() == b""
    assert names_in(tool.folder) == before


def test_interrupted_while_reading_standard_input(tool):
    process = tool.popen("detect", "-", "-w", tool.weights, stdin=subprocess.PIPE)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    assert process.stdout.read() == b"" == process.stderr.read()


def test_interrupted_while_nobody_reads(tool, photo):
    """Standard output is a full pipe: the write must not hold the program."""
    process = tool.popen("detect", *[photo] * 50, "--descriptors", "-w", tool.weights)
    select.select([process.stdout], [], [], 60)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130


def test_missing_weights_do_not_wait_for_standard_input(tool):
    process = tool.popen("detect", "-", "-w", "missing.safetensors", stdin=subprocess.PIPE)
    assert process.wait(timeout=30) == 3


# ---- Terminals -------------------------------------------------------------------------------------------------------


def run_on_terminal(tool, arguments, streams):
    """Runs with the named streams on a terminal; the answer holds what the terminal got and the other stream."""
    controller, terminal = pty.openpty()
    options = {name: terminal for name in streams}
    process = tool.popen(*arguments, **options)
    os.close(terminal)
    shown = b""
    while True:
        try:
            data = os.read(controller, 65536)
        except OSError:
            data = b""
        if not data:
            break
        shown += data
    out, err = process.communicate(timeout=300)
    os.close(controller)
    return process.returncode, shown, out, err


def test_progress_bar(tool, photos):
    arguments = ["detect", *photos, "missing.png", "-w", tool.weights, "-o", "o.json"]
    code, shown, out, _ = run_on_terminal(tool, arguments, ["stderr"])
    assert code == 1 and out == b""
    assert b"0/4" in shown and b"\x1b[K" in shown
    last = shown.split(b"\x1b[K")[-1]
    assert last == b"" or last.startswith(b"lensing: missing.png"), shown
    code, shown, _, _ = run_on_terminal(tool, [*arguments, "--quiet"], ["stderr"])
    assert code == 1 and shown == b"lensing: missing.png: cannot open: No such file or directory\r\n"
    code, shown, _, _ = run_on_terminal(tool, ["detect", "a.png", "-w", tool.weights, "-o", "o.json"], ["stderr"])
    assert (code, shown) == (0, b"")


def test_no_progress_bar_between_lines_on_a_terminal(tool, photos):
    arguments = ["detect", *photos, "-w", tool.weights]
    code, shown, _, _ = run_on_terminal(tool, arguments, ["stdout", "stderr"])
    assert code == 0 and b"\x1b" not in shown and shown.count(b"\n") == 3


def test_no_binary_on_a_terminal(tool, photo):
    arguments = ["detect", photo, "--format", "npz", "-w", tool.weights]
    code, shown, _, err = run_on_terminal(tool, arguments, ["stdout"])
    assert (code, shown) == (2, b"")
    assert one_error(err.decode()) == "npz is not for a terminal; name a file with -o FILE"


def test_standard_input_is_a_terminal(tool):
    code, shown, out, err = run_on_terminal(tool, ["detect", "-", "-w", tool.weights], ["stdin"])
    assert (code, out) == (2, b"") and "that is a terminal" in one_error(err.decode())


# ---- Weights ---------------------------------------------------------------------------------------------------------


def test_weights_by_every_way(tool, photo):
    folder = tool.folder / "model"
    folder.mkdir()
    shutil.copy(tool.weights, folder / "model.safetensors")
    (folder / "config.json").write_text('{"border_removal_distance": 4}')
    hub = tool.folder / "hub"
    commit = "0123456789abcdef0123456789abcdef01234567"
    for repository in ("models--magic-leap-community--superpoint", "models--someone--else"):
        snapshot = hub / repository / "snapshots" / commit
        shutil.copytree(folder, snapshot)
        (hub / repository / "refs").mkdir()
        (hub / repository / "refs" / "main").write_text(commit)
    cache = {"HF_HUB_CACHE": str(hub)}
    ways = [
        (["-w", tool.weights], {}),
        (["--weights=model"], {}),
        (["-w", "model/"], {}),
        (["-w", "someone/else"], cache),
        (["-w", "someone/else@" + commit], cache),
        (["-w", "someone/else@main"], cache),
        ([], {"SP_WEIGHTS_DIR": str(folder)}),
        ([], {"SP_WEIGHTS_DIR": str(folder), "HF_MODEL": "no/such"}),
        ([], {"HF_MODEL": str(folder)}),
        ([], {"HF_MODEL": tool.weights}),
        ([], {"HF_MODEL": "someone/else", **cache}),
        ([], {"HF_MODEL": "someone/else", "TT_WEIGHTS_REVISION": commit, **cache}),
        ([], {"TT_WEIGHTS_REVISION": commit, **cache}),
        ([], {"TT_WEIGHTS_REVISION": "main", "HF_HOME": str(tool.folder)}),
        ([], {"HF_MODEL": "", "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": commit, **cache}),
    ]
    results = set()
    for arguments, environment in ways:
        code, out, err = tool("detect", photo, *arguments, env=environment)
        assert (code, err) == (0, ""), (arguments, environment, err)
        results.add(without_weights(out))
    assert len(results) == 1


def test_weights_when_none_are_named(tool, photo, builtin_weights):
    """Those inside the library, whatever is in the cache; they are the file in models/."""
    name = builtin_weights.name.removesuffix(".safetensors")
    snapshot = tool.folder / "hub" / "models--magic-leap-community--superpoint" / "snapshots"
    shutil.copytree(tool.folder, snapshot / "0123456789abcdef0123456789abcdef01234567")
    for command in (["detect", photo], ["match", photo, photo]):
        expected = tool(*command, "-w", builtin_weights)[1]
        for arguments, environment in (
            ([], {}),
            ([], {"HF_MODEL": "", "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": "", "HF_HOME": str(tool.folder)}),
            ([], {"HF_MODEL": name, "TT_WEIGHTS_REVISION": "main"}),
            (["-w", name], {"HF_MODEL": "no/such"}),
        ):
            code, out, err = tool(*command, *arguments, env=environment)
            assert (code, err) == (0, "")
            assert without_weights(out) == without_weights(expected)
            result = json.loads(out)
            assert result.get("first", result)["weights"] == {"name": name, "license": "Apache-2.0"}
        assert without_weights(tool(*command, "-w", tool.weights)[1]) != without_weights(expected)
    code, out, err = tool("bench", "--runs", "1")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "arguments,environment",
    [
        ([], {"TT_WEIGHTS_REVISION": "main"}),
        (["-w", "no-such-file.safetensors"], {}),
        (["-w", "no/such"], {}),
        (["-w", "no/such@main"], {}),
        (["-w", "not a name!"], {}),
        (["-w", "."], {}),
        (["-w", "bad.safetensors"], {}),
        (["-w", "photo.png"], {}),
        ([], {"SP_WEIGHTS_DIR": "/no/such/folder"}),
        ([], {"HF_MODEL": "/no/such/folder"}),
        ([], {"HF_MODEL": "no/such", "TT_WEIGHTS_REVISION": "0123456789abcdef0123456789abcdef01234567"}),
    ],
)
def test_missing_or_wrong_weights(tool, photo, arguments, environment):
    (tool.folder / "bad.safetensors").write_bytes(Path(tool.weights).read_bytes()[:100000])
    before = names_in(tool.folder)
    for command in (["detect", photo, "-o", "out/"], ["detect", photo, "-o", "o.json"], ["match", photo, photo], ["bench"]):
        code, out, err = tool(*command, *arguments, env=environment)
        assert (code, out) == (3, b"")
        one_error(err)
    assert names_in(tool.folder) == before


# ---- match -----------------------------------------------------------------------------------------------------------


def reference_matches(first, second, ratio, min_similarity):
    """Mutual nearest neighbours in numpy, with the keypoints that are not near a limit."""
    similarity = first.astype(np.float64) @ second.astype(np.float64).T
    distance = np.sqrt(np.maximum(0, 2 - 2 * similarity))
    nearest = similarity.argmax(1)
    back = similarity.argmax(0)
    matches = set()
    for i, j in enumerate(nearest):
        others = np.delete(distance[i], j)
        if back[j] == i and (ratio == 1 or distance[i, j] < ratio * others.min()) and similarity[i, j] >= min_similarity:
            matches.add((i, int(j)))
    return matches, similarity


@pytest.mark.parametrize("ratio,min_similarity", [(1, -1), (0.8, -1), (1, 0.9), (0.95, 0.5)])
def test_match(tool, photos, ratio, min_similarity):
    code, out, err = tool(
        "match", "a.png", "c.png", "-w", tool.weights, "-n", 200, "--ratio", ratio, "--min-similarity", min_similarity
    )
    assert (code, err) == (0, "") and out.count(b"\n") == 1
    result = json.loads(out)
    assert list(result) == ["first", "second", "match_params", "num_matches", "matches"]
    assert result["match_params"] == {"ratio": ratio, "min_similarity": min_similarity}
    single = tool.lines("a.png", "c.png", "-n", 200)
    for name, alone in zip(("first", "second"), single):
        assert {**result[name], "timing_ms": 0} == {**alone, "timing_ms": 0}
    assert tool.detect("a.png", "c.png", "-n", 200, "--format", "npz", "-o", "npz/")[0] == 0
    descriptors = [npz((tool.folder / "npz" / f"{name}.png.npz").read_bytes())["descriptors"] for name in "ac"]
    expected, similarity = reference_matches(*descriptors, ratio, min_similarity)
    found = {(i, j) for i, j, _ in result["matches"]}
    assert result["num_matches"] == len(result["matches"]) == len(found)
    assert len(found ^ expected) <= len(expected) // 100  # rounding near the limits
    for i, j, value in result["matches"]:
        assert abs(value - similarity[i, j]) < 2e-6
    assert result["matches"] == sorted(result["matches"])


def test_match_of_an_image_with_itself(tool, photo):
    code, out, err = tool("match", photo, "-", "-w", tool.weights, input=(tool.folder / photo).read_bytes())
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["second"]["file"] == "-"
    count = result["first"]["num_keypoints"]
    # Flat areas give many keypoints one descriptor; they match each other just as well.
    assert count > 50 and len(result["matches"]) >= 0.8 * count
    assert np.mean([i == j for i, j, _ in result["matches"]]) >= 0.8
    assert all(value > 0.9999 for _, _, value in result["matches"])


def test_match_outputs(tool, photos):
    code, out, err = tool("match", "a.png", "c.png", "-w", tool.weights, "-o", "m.json", "--draw", "m.png", "--descriptors")
    assert (code, out, err) == (0, b"", "")
    result = json.loads((tool.folder / "m.json").read_text())
    assert result["first"]["descriptors"]["shape"] == [result["first"]["num_keypoints"], 256]
    with Image.open(tool.folder / "m.png") as image:
        assert image.format == "PNG" and image.width >= 2 * 96
        image.load()
    code, out, err = tool("match", "a.png", "c.png", "-w", tool.weights, "-o", "-", "-n", "0")
    assert code == 0 and json.loads(out)["matches"] == []


def test_match_with_a_bad_image(tool, photo):
    code, out, err = tool("match", photo, "missing.png", "-w", tool.weights, "-o", "o.json")
    assert (code, out) == (1, b"")
    assert one_error(err) == "missing.png: cannot open: No such file or directory"
    code, out, err = tool("match", "gone.png", "missing.png", "-w", tool.weights)
    assert (code, out) == (1, b"") and err.count("\n") == 2
    assert names_in(tool.folder) == [photo]


def test_match_threads(tool, photos):
    results = {without_times(tool("match", "a.png", "c.png", "-w", tool.weights, "-t", t)[1]) for t in (1, 2, 3, 8)}
    assert len(results) == 1


# ---- info and bench --------------------------------------------------------------------------------------------------


def test_info_of_the_weights_inside(tool, builtin_weights):
    name = builtin_weights.name.removesuffix(".safetensors")
    code, out, err = tool("info")
    text = out.decode()
    assert (code, err) == (0, "") and f"weights       {name}, inside the library\n" in text and "asked for" not in text
    assert "  licence     Apache-2.0\n" in text
    weights = json.loads(tool("info", "--json")[1])["weights"]
    assert (weights["file"], weights["repository"], weights["license"]) == (None, name, "Apache-2.0")


def test_info(tool):
    missing = {"HF_MODEL": "no/such"}
    code, out, err = tool("info", env=missing)
    assert (code, err) == (0, "") and b"weights       none: " in out
    code, out, err = tool("info", "--json", env=missing)
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["weights"] is None and facts["weights_error"]
    code, out, err = tool("info", "--json", "-w", tool.weights)
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["weights"]["file"] == tool.weights
    assert facts["cpu_path"] in ("c", "avx2", "avx512") and facts["threads"] >= 1 and facts["build"]
    code, out, err = tool("info", "--json", env={"LENSING_CPU": "c"})
    assert code == 0 and json.loads(out)["cpu_path"] == "c"
    code, out, err = tool("info", "--json", "-w", "no-such.safetensors")
    assert code == 3 and json.loads(out)["weights"] is None and "no-such.safetensors" in one_error(err)


def test_bench(tool, photo):
    code, out, err = tool("bench", "--json", "--runs", "2", "-t", "1", "-w", tool.weights)
    assert (code, err) == (0, "")
    facts = json.loads(out)
    for name in ("forward", "detect"):
        assert 0 < facts[name + "_min_ms"] <= facts[name + "_ms"] and facts[name + "_iqr_ms"] >= 0
    assert facts["threads"] == 1 and facts["runs"] == 2 and facts["version"] and facts["cpu_path"]
    assert facts["image"]["file"] is None and facts["image"]["width"] == 1600
    code, out, err = tool("bench", "--json", "--runs", "1", "--image", photo, "-w", tool.weights)
    assert (code, err) == (0, "") and json.loads(out)["image"]["width"] == 96
    code, out, err = tool("bench", "--runs", "1", "-i", photo, "-w", tool.weights)
    assert (code, err) == (0, "") and re.search(rb"^forward +[\d.]+ +[\d.]+ +[\d.]+$", out, re.M)


def test_bench_layers(tool):
    code, out, err = tool("bench", "--json", "--layers", "--runs", "3", "-t", "1", "-w", tool.weights)
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["peak_gflops"] > 1
    layers = facts["layers"]
    assert [layer["name"] for layer in layers][1:3] == ["conv1a, conv1b, pool", "conv2a"] and len(layers) == 10
    # 36 products for 16 outputs of each 3 x 3 layer, one for each multiplication of the first and the 1 x 1 layers.
    macs = {"conv2a": 240 * 320 / 16 * 36 * 64 * 64, "conv3a": 120 * 160 / 16 * 36 * 64 * 128,
            "conv1a, conv1b, pool": 480 * 640 * (36 / 16 * 64 * 64 + 9 * 64), "convPb, convDb": 60 * 80 * 256 * (65 + 256)}
    for layer in layers:
        if layer["name"] in macs:
            assert abs(layer["gflop"] - 2e-9 * macs[layer["name"]]) < 1e-4
        assert layer["ms"] > 0 and abs(layer["gflops"] * layer["ms"] - 1e3 * layer["gflop"]) <= 0.01 * 1e3 * layer["gflop"] + 1
        share, peak = layer["share_of_peak"], facts["peak_gflops"]  # all three are rounded
        assert abs(share - layer["gflops"] / peak) < 1e-3 + 0.06 * (1 + share) / peak
    assert 0.1 < sum(layer["ms"] for layer in layers) / facts["forward_ms"] < 10
    code, out, err = tool("bench", "--layers", "--runs", "1", "-w", tool.weights)
    assert (code, err) == (0, "") and re.search(rb"^conv2a +[\d.]+ +1\.416 +[\d.]+ +\d+ %$", out, re.M)
    assert re.search(rb"^all +[\d.]+ +13\.883 ", out, re.M) and b"peak: " in out


def test_bench_with_a_bad_image(tool):
    code, out, err = tool("bench", "--image", "missing.png", "-w", tool.weights)
    assert (code, out) == (1, b"")
    assert one_error(err) == "missing.png: cannot open: No such file or directory"
    (tool.folder / "bad.png").write_bytes(b"bad")
    code, out, err = tool("bench", "--image", "bad.png", "-w", tool.weights)
    assert (code, out) == (1, b"") and one_error(err).startswith("bad.png: ")


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
