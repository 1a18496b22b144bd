# SPDX-License-Identifier: Apache-2.0
"""Help, and options that are refused."""
import json
import re

import pytest

from cli.tool import ALL_ENVIRONMENT, COMMANDS, names_in, one_error, without_times

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
