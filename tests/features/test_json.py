# SPDX-License-Identifier: Apache-2.0
"""JSON against Python's json, round() and numpy."""
import base64
import io
import json

import numpy as np
import pytest

from tool import random_features, savez


def python_text(value):
    """The float text of the server: repr(), but with its own exponents and a later start of them."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        return mantissa
    power = int(exponent)
    if power == -5:  # positional down to 1e-5
        sign = "-" if mantissa.startswith("-") else ""
        return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"
    return f"{mantissa.removesuffix('.0')}e{power:+d}"


def numbers(tool, tmp_path, values, decimals):
    path = tmp_path / "values.bin"
    path.write_bytes(np.asarray(values, "<f8").tobytes())
    return tool("number", path, decimals).split()


def test_known_texts(tool, tmp_path):
    known = {200.0: "200.0", 1.0: "1.0", 0.0: "0.0", 0.000093: "0.000093", 0.00001: "0.00001",
             1000000000000000.0: "1000000000000000.0", 1e-6: "1e-6", 1e-320: "1e-320", 1e16: "1e+16",
             1 / 480: "0.0020833333333333333", 2.5: "2.5", 123e20: "1.23e+22", 5e-324: "5e-324", 1.5e-7: "1.5e-7"}
    assert numbers(tool, tmp_path, list(known), -1) == list(known.values())
    assert numbers(tool, tmp_path, [-0.0], -1) == ["-0.0"]
    assert numbers(tool, tmp_path, [np.nan, np.inf, -np.inf], -1) == ["NaN", "Infinity", "-Infinity"]


def test_shortest_text(tool, tmp_path):
    random = np.random.default_rng(1)
    values = random.integers(0, 2**64, 100000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], random.uniform(-1, 1, 50000), random.uniform(0, 1e-3, 20000),
                             random.integers(0, 10**6, 20000) / 1000, 10.0 ** np.arange(-30, 31),
                             random.integers(1, 9000, 1000) / 640, random.integers(1, 9000, 1000) / 480])
    assert numbers(tool, tmp_path, values, -1) == [python_text(v) for v in values]


@pytest.mark.parametrize("decimals", [2, 3, 6])
def test_rounded_text(tool, tmp_path, decimals):
    random = np.random.default_rng(decimals)
    ties = (random.integers(0, 10**7, 20000) * 2 + 1) / 2 ** random.integers(1, 8, 20000)
    values = np.concatenate([
        random.integers(0, 640, 50000) * (random.integers(1, 20000, 50000) / 640),
        random.uniform(0, 1, 50000).astype(np.float32), random.uniform(0, 1e-4, 50000), random.uniform(0, 1e-6, 20000),
        ties, -ties[:100], (random.integers(0, 10**6, 20000) + 0.5) / 10**decimals,
        random.integers(0, 2**64, 20000, dtype=np.uint64).view(np.float64),
        [0.0, -0.0, 0.5e-3, 1.5e-3, 2.5e-3, 1e-7, 4.9e-7, 5e-7, 9.5e-6, 1e15, 1e16, 2.0**52, 2.0**53, 2.0**63, 1e300],
    ])
    values = values[np.isfinite(values)]
    assert numbers(tool, tmp_path, values, decimals) == [python_text(round(float(v), decimals)) for v in values]


def expected(features, file=None, serving_path=None, weights=None, descriptors=None):
    sx, sy = features.width / 640, features.height / 480
    answer = {} if file is None else {"file": file}
    answer["num_keypoints"] = len(features.scores)
    answer["keypoints"] = [[round(float(x) * sx, 3), round(float(y) * sy, 3)] for x, y in features.network_keypoints]
    answer["scores"] = [round(float(s), 6) for s in features.scores]
    answer["original_size"] = {"height": features.height, "width": features.width}
    answer["image_size"] = {"height": 480, "width": 640}
    answer["scale"] = {"x": sx, "y": sy}
    answer["params"] = {"max_keypoints": features.max_keypoints, "keypoint_threshold": features.threshold,
                        "nms_radius": features.nms_radius, "border_removal_distance": features.border}
    if serving_path is not None:
        answer["serving_path"] = serving_path
    names = ("preprocess", "device_forward", "postprocess")
    answer["timing_ms"] = {name: round(t, 2) for name, t in zip(names, features.timing)}
    answer["timing_ms"]["total"] = round(features.timing[0] + features.timing[1] + features.timing[2], 2)
    if weights is not None:
        answer["weights"] = weights
    if descriptors is not None:
        answer["descriptors"] = {"format": "npz", "key": "descriptors", "dtype": "float16",
                                 "shape": [len(features.scores), 256], "data": descriptors}
    return answer


def python_json(value):
    """json.dumps with the server's float text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{python_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(python_json, value)) + "]"
    if isinstance(value, float):
        return python_text(value)
    return json.dumps(value, ensure_ascii=False)


def write(tool, tmp_path, features, *arguments):
    out = tmp_path / "out.json"
    tool("json", features.write(tmp_path / "features.bin"), out, *arguments)
    return out.read_bytes()


@pytest.mark.parametrize("count", [0, 1, 2, 50, 1024])
@pytest.mark.parametrize("size", [(640, 480), (1600, 900), (1, 1), (4032, 3024), (333, 777)])
def test_document(tool, tmp_path, count, size):
    features = random_features(count, seed=count, width=size[0], height=size[1], max_keypoints=-1, threshold=1e-7,
                               timing=(1.005, 0.125, 1234.56789))
    text = write(tool, tmp_path, features, "file", "a/b c.jpg")
    assert text.decode() == python_json(expected(features, file="a/b c.jpg"))
    text = write(tool, tmp_path, features, "serving_path", 1, 0)
    assert text.decode() == python_json(expected(features, serving_path={"traced": True, "device_nms": False}))


def test_weights(tool, tmp_path):
    """Null for results that do not know theirs."""
    features = random_features(3)
    text = write(tool, tmp_path, features, "weights")
    assert text.decode() == python_json(expected(features, weights={"name": None, "license": None}))
    license = 'CC0, "so to say"\n'
    text = write(tool, tmp_path, features, "weights", "license", license)
    assert text.decode() == python_json(expected(features, weights={"name": None, "license": license}))
    assert b"weights" not in write(tool, tmp_path, features, "license", license)


@pytest.mark.parametrize("count", [0, 1, 50, 1024])
def test_descriptors(tool, tmp_path, count):
    features = random_features(count)
    text = write(tool, tmp_path, features, "descriptors")
    data = json.loads(text)["descriptors"]["data"]
    npz = base64.b64decode(data, validate=True)
    assert text.decode() == python_json(expected(features, descriptors=data))
    assert count != 50 or len(npz) == 25876
    loaded = np.load(io.BytesIO(npz))["descriptors"]
    assert loaded.dtype == np.float16 and np.array_equal(loaded, features.descriptors.astype(np.float16))
    assert npz == savez(descriptors=features.descriptors.astype(np.float16))


def test_descriptors_missing(tool, tmp_path):
    features = random_features(3, descriptors=False)
    done = tool.run("json", features.write(tmp_path / "f"), tmp_path / "out", "descriptors")
    assert done.returncode == 1 and b"have none" in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [
    b"plain", b'quote " back \\ slash /', b"\x01\x1f\x7f\b\f\n\r\t", "grüße 日本 🙂".encode(), b"\xff\xfe", b"a\x80b",
    b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xe2\x82z",
    b"\xf0\x9f\x99", b"\xf0\x9f\x99\xf0\x9f\x99\x82", b"\xc3", b"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", b"",
])
def test_file_name(tool, tmp_path, name):
    text = write(tool, tmp_path, random_features(1), b"file", name)
    assert json.loads(text)["file"] == name.decode("utf-8", "replace")
    assert text.startswith(b'{"file":' + json.dumps(name.decode("utf-8", "replace"), ensure_ascii=False).encode())


def test_random_file_names(tool, tmp_path):
    random = np.random.default_rng(3)
    for _ in range(100):
        name = bytes(random.choice(np.r_[1:256, 0xC2:0xF5, 0x80:0xC0], random.integers(1, 60)).astype(np.uint8))
        text = write(tool, tmp_path, random_features(0), b"file", name)
        assert json.loads(text)["file"] == name.decode("utf-8", "replace")


def test_locale(tool, tmp_path):
    """The tool keeps the C locale; what matters is that nothing reads LC_ALL by itself."""
    features = random_features(5, width=1237, height=911)
    path = features.write(tmp_path / "f")
    tool("json", path, tmp_path / "a", LC_ALL="C")
    tool("json", path, tmp_path / "b", LC_ALL="de_DE.UTF-8")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
