# SPDX-License-Identifier: Apache-2.0
"""`lensing info` and `lensing bench`."""
import json
import re

from cli.tool import one_error



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
