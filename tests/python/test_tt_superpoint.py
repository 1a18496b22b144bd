# SPDX-License-Identifier: Apache-2.0
"""What tt_superpoint finds: the same as the program, the server and Transformers."""

import base64
import copy
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

import lensing
from python import places
from python.reference import same
from server.running import Server, json_body
from tt_superpoint import SuperPoint, SuperPointOutput

NOTHING = {"sizes": (), "nms_radii": (), "num_workers": 0}


@pytest.fixture(scope="module")
def folder(synthetic_weights, tmp_path_factory):
    return places.folder(tmp_path_factory.mktemp("tt") / "weights", synthetic_weights)


@pytest.fixture(scope="module")
def model(folder):
    with SuperPoint.from_pretrained(folder, warmup_variants=NOTHING) as model:
        yield model


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def same_outputs(found, expected):
    """Whether two lists of outputs have the same bytes."""
    return [f.numpy()[n].tobytes() for f in found for n in f.numpy()] == [
        e.numpy()[n].tobytes() for e in expected for n in e.numpy()
    ]


# ---- Images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [str, pathlib.Path, pathlib.Path.read_bytes, Image.open, lambda path: np.asarray(Image.open(path))],
    ids=["str", "Path", "bytes", "Pillow", "numpy"],
)
def test_forms_of_an_image(model, photo, expected, form):
    out = model(form(photo))
    assert type(out) is SuperPointOutput
    assert same(out, expected)


def test_arrays(model, cli, rgb, expected, expected_blue):
    rgba = np.dstack([rgb, rgb[..., :1]])
    for image in (rgba, rgb[..., :1], rgb[..., 0], rgb[:, ::-1].copy()[:, ::-1], rgb / 255, rgb.astype(np.int64)):
        assert same(model(image), expected)
    assert same(model(rgb[..., ::-1], bgr=True), expected)
    assert same(model(rgb, bgr=True), expected_blue)


def test_tensors(model, torch, rgb, expected, expected_blue):
    last = torch.from_numpy(rgb.copy())
    first = last.permute(2, 0, 1)
    for image in (
        last,
        first,
        first.contiguous(),
        last[..., 0],
        first[:1],
        first / 255,
        (first / 255).requires_grad_(),
    ):
        assert same(model(image), expected)
    assert same(model(first, bgr=True), expected_blue)


def test_lists_and_batches(model, torch, rgb, photo, expected):
    for images in ([photo, rgb, Image.fromarray(rgb)], (photo, rgb, photo)):
        for workers in (0, 1, 4):
            found = model(images, num_workers=workers)
            assert type(found) is list
            assert [same(out, expected) for out in found] == [True] * 3
    batch = np.stack([rgb, rgb[::-1]])
    upside_down = model(batch[1])
    assert not same(upside_down, expected)
    for images in (batch, torch.from_numpy(batch).permute(0, 3, 1, 2), torch.from_numpy(batch)):
        found = model(images)
        assert type(found) is list and same_outputs(found, [model(rgb), upside_down])
    assert model([]) == []
    assert [same(out, expected) for out in model([photo])] == [True]


def test_formats_of_pillow(model, cli, rgb, expected, tmp_path):
    """Any format that Pillow opens, which Lensing alone refuses."""
    gray = np.ascontiguousarray(rgb[..., 0])
    for name in ("photo.tga", "photo.pcx", "photo.sgi"):
        path = tmp_path / name
        Image.fromarray(rgb if name != "photo.pcx" else gray).save(path)
        with pytest.raises(lensing.ImageError), lensing.SuperPoint(cli.weights) as plain:
            plain(path)
        assert same(model(path), expected)
        assert same(model(path.read_bytes()), expected)
        assert [same(out, expected) for out in model([str(path)] * 3)] == [True] * 3


def test_parameters(model, cli, photo):
    flags = ("--max-keypoints", 50, "--keypoint-threshold", 0.01, "--nms-radius", 7)
    expected = cli.detect(photo, *flags)
    assert same(model(photo, 50, 0.01, 7), expected) and len(expected["scores"]) == 50
    del expected["descriptors"]
    assert same(model(photo, 50, 0.01, 7, False), expected)
    for options in ({"max_keypoints": 0}, {"max_keypoints": -1, "nms_radius": 0}, {"keypoint_threshold": 1.0}):
        flags = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
        assert same(model(photo, **options), cli.detect(photo, *flags))


def test_iter_is_lazy(model, photo, rgb, expected):
    taken = []

    def images():
        for number in range(1000):
            taken.append(number)
            yield rgb if number % 2 else photo

    outputs = model.iter(images())
    assert taken == []
    for count in (1, 2, 3):
        assert same(next(outputs), expected)
        assert taken == list(range(count))
    ahead = model.iter(images(), num_workers=2, max_keypoints=5)
    taken.clear()
    assert len(next(ahead)) == 5
    assert taken == [0, 1, 2]


# ---- Outputs ---------------------------------------------------------------------------------------------------------


def test_fields(model, torch, photo, expected):
    out = model(photo)
    assert [(t.dtype, tuple(t.shape), t.device.type) for t in (out.keypoints, out.scores, out.descriptors)] == [
        (torch.float32, (len(out), 2), "cpu"),
        (torch.float32, (len(out),), "cpu"),
        (torch.float32, (len(out), 256), "cpu"),
    ]
    for name in ("keypoints", "scores", "descriptors"):
        assert out[name] is getattr(out, name)
        assert out[name].numpy().tobytes() == expected[name].tobytes()
        assert out.numpy()[name].ctypes.data == out[name].data_ptr()
    assert out.image_size == (217, 333)
    assert out.scale == (333 / 640, 217 / 480)
    assert out.device_nms is False
    assert list(out.timing_ms) == ["preprocess", "device_forward", "postprocess"]
    assert all(type(value) is float and value >= 0 for value in out.timing_ms.values())
    assert out.timing_ms["device_forward"] > 1
    assert (out.scores[:-1] >= out.scores[1:]).all() and out.scores[-1] > 0 and out.scores[0] <= 1
    with pytest.raises(KeyError, match="image_size"):
        out["image_size"]


def test_without_descriptors(model, photo):
    out = model(photo, return_descriptors=False)
    assert out.descriptors is None and out["descriptors"] is None
    assert list(out.numpy()) == ["keypoints", "scores"]
    assert out.to_dict()["descriptors"] is None


def test_no_keypoints(model, torch):
    out = model(np.zeros((50, 60), np.uint8), keypoint_threshold=1.0)
    assert len(out) == 0
    assert [tuple(t.shape) for t in (out.keypoints, out.scores, out.descriptors)] == [(0, 2), (0,), (0, 256)]
    assert json.loads(json.dumps(out.to_dict()))["keypoints"] == []


def test_to_dict(model, photo, expected):
    value = json.loads(json.dumps(model(photo).to_dict()))
    keys = ["keypoints", "scores", "descriptors", "image_size", "scale", "device_nms", "timing_ms"]
    assert list(value) == keys
    for name in ("keypoints", "scores", "descriptors"):
        assert np.array(value[name], np.float32).tobytes() == expected[name].tobytes()
    assert value["image_size"] == [217, 333] and value["scale"] == [333 / 640, 217 / 480]


def test_copies_of_outputs(model, photo, expected):
    out = model(photo)
    for other in (pickle.loads(pickle.dumps(out)), copy.copy(out), copy.deepcopy(out)):
        assert same(other, expected) and other.image_size == out.image_size
    assert repr(out) == f"<tt_superpoint.SuperPointOutput: {len(out)} keypoints of 333 x 217 pixels>"


# ---- Other programs --------------------------------------------------------------------------------------------------


def test_the_server_answers_the_same(model, program, synthetic_weights, photo, tmp_path):
    out = model(photo, max_keypoints=300)
    with Server(program, synthetic_weights) as server:
        answer = server.post(
            "/predict", json_body(photo.read_bytes(), max_keypoints=300), Content_Type="application/json"
        )
    answer = answer.json
    arrays = out.numpy()
    assert answer["num_keypoints"] == len(out) == 300
    assert np.abs(np.array(answer["keypoints"]) - arrays["keypoints"].astype(np.float64)).max() <= 0.0005 + 1e-4
    assert np.abs(np.array(answer["scores"]) - arrays["scores"].astype(np.float64)).max() <= 0.5000001e-6

    npz = np.load(io.BytesIO(base64.b64decode(answer["descriptors"]["data"])))["descriptors"]
    assert npz.tobytes() == arrays["descriptors"].astype(np.float16).tobytes()
    assert answer["scale"] == {"x": out.scale[0], "y": out.scale[1]}
    assert answer["serving_path"]["device_nms"] is out.device_nms


def test_transformers_agrees(test_data, torch, tmp_path, monkeypatch):
    """All scores above a threshold, and the descriptors there, of the same weights. Suppression differs by design."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(transformers.models.superpoint.modeling_superpoint, "simple_nms", lambda scores, radius: scores)
    weights = test_data / "weights" / "superpoint_magicleap_v1.safetensors"
    photo = Image.open(test_data / "photos" / "tum_freiburg_1341847980.722988.png").convert("RGB")
    assert photo.size == (640, 480)
    reference = transformers.SuperPointForKeypointDetection(transformers.SuperPointConfig()).eval()
    load_file = pytest.importorskip("safetensors.torch").load_file
    reference.load_state_dict(load_file(weights))
    with torch.no_grad():
        pixels = torch.from_numpy(np.asarray(photo)[..., 0] / np.float32(255))[None, None]
        encoded = reference.encoder(pixels)[0]
        scores = reference.keypoint_decoder._get_pixel_scores(encoded)[0].numpy()
    with SuperPoint.from_pretrained(places.folder(tmp_path / "w", weights), warmup_variants="minimal") as model:
        out = model(photo, max_keypoints=-1, nms_radius=0, keypoint_threshold=0.02)
    x, y = np.rint(out.numpy()["keypoints"] / np.array(out.scale)).astype(int).T
    assert len(out) > 1000
    assert np.abs(out.numpy()["scores"] - scores[y, x]).max() < 1e-5
    inside = np.zeros(scores.shape, bool)
    inside[4:476, 4:636] = True
    found = np.zeros(scores.shape, bool)
    found[y, x] = True
    assert not (found & ~inside).any()
    assert not (found != (scores > 0.02))[inside & (np.abs(scores - 0.02) > 1e-5)].any()
    with torch.no_grad():
        points = torch.stack([torch.from_numpy(x), torch.from_numpy(y)], 1).float()
        descriptors = reference.descriptor_decoder(encoded, points).numpy()
    assert np.abs(out.numpy()["descriptors"] - descriptors).max() < 2e-4


# ---- Threads and processes -------------------------------------------------------------------------------------------


def test_sixteen_threads_share_a_model(model, photo, rgb):
    images = [photo, rgb, rgb[::-1], rgb[:, ::-1]]
    serial = [model(image) for image in images]
    failures = []

    def work(number):
        try:
            chosen = [number % 4, (number + 1 + number // 4) % 4]
            found = model([images[index] for index in chosen], num_workers=1 + number % 3)
            if not same_outputs(found, [serial[index] for index in chosen]):
                failures.append(f"thread {number}")
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def reading_threads():
    return sum(thread.name.startswith("tt_superpoint") for thread in threading.enumerate())


def test_threads_are_kept_and_stop_with_the_model(folder, photo):
    before = reading_threads()
    model = SuperPoint.from_pretrained(folder, warmup_variants=NOTHING)
    model(photo)
    assert reading_threads() == before
    model([photo] * 4, num_workers=2)
    count = reading_threads()
    assert before < count <= before + 3
    model([photo] * 8, num_workers=2)
    assert count <= reading_threads() <= before + 3
    model.close()
    assert reading_threads() == before


def test_lists_after_a_fork(model, photo, expected):
    """The threads of the parent do not exist in the child, which would wait for them for ever."""
    model.warmup(num_workers=6)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if all(same(out, expected) for out in model([photo] * 3)) else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child does not end")
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


def test_torch_is_imported_when_a_tensor_is_asked_for(folder, photo, torch, tmp_path):
    code = (
        "import sys, tt_superpoint\n"
        "assert not {'torch', 'numpy', 'PIL', 'transformers'} & set(sys.modules)\n"
        f"out = tt_superpoint.SuperPoint.from_pretrained({str(folder)!r})({str(photo)!r})\n"
        "out.numpy(), out.to_dict(), len(out)\n"
        "assert not {'torch', 'PIL'} & set(sys.modules)\n"
        "out.scores\n"
        "assert 'torch' in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "try: out.keypoints\n"
        "except ImportError as error: assert 'pip install torch' in str(error)\n"
        "else: raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=places.environment(tmp_path))


# ---- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"max_keypoints": -2}, ValueError, r"max_keypoints is -2; it must be -1 to 307200"),
        ({"max_keypoints": 307201}, ValueError, r"max_keypoints is 307201"),
        ({"max_keypoints": 1.5}, TypeError, r"max_keypoints is 1.5"),
        ({"keypoint_threshold": -0.1}, ValueError, r"keypoint_threshold.*-0.1"),
        ({"keypoint_threshold": 1.1}, ValueError, r"keypoint_threshold.*1.1"),
        ({"keypoint_threshold": float("nan")}, ValueError, r"keypoint_threshold"),
        ({"keypoint_threshold": "0.1"}, TypeError, r"keypoint_threshold is '0.1'"),
        ({"nms_radius": -1}, ValueError, r"nms_radius is -1; it must be 0 to 32"),
        ({"nms_radius": 33}, ValueError, r"nms_radius is 33"),
        ({"num_workers": -1}, ValueError, r"num_workers is -1"),
        ({"num_workers": 1.0}, TypeError, r"num_workers is 1.0"),
    ],
)
def test_wrong_parameters(model, photo, options, kind, words):
    for call in (model, model.iter):
        with pytest.raises(kind, match=words):
            for _ in [call([photo], **options)] if call == model else call([photo], **options):
                pass
    with pytest.raises(kind, match=words):
        model(photo, **options)


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (np.zeros((4, 4, 2), np.uint8), ValueError),
        (np.zeros((4, 4, 5), np.uint8), ValueError),
        (np.zeros(4, np.uint8), ValueError),
        (np.zeros((0, 4), np.uint8), ValueError),
        (np.full((4, 4), 256), ValueError),
        (np.full((4, 4), -1), ValueError),
        (np.full((4, 4), 1.01), ValueError),
        (np.full((4, 4), np.nan), ValueError),
        (np.zeros((4, 4), bool), TypeError),
        (np.zeros((4, 4), complex), TypeError),
        (None, TypeError),
        (3, TypeError),
        ({}, TypeError),
        (iter([]), TypeError),
        ("/nonexistent/photo.jpg", FileNotFoundError),
        ("/", IsADirectoryError),
        (b"", UnidentifiedImageError),
        (b"not an image", UnidentifiedImageError),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), OSError),
    ],
    ids=str,
)
def test_wrong_images(model, image, kind):
    with pytest.raises(kind):
        model(image)
    with pytest.raises(kind) as caught:
        model([np.zeros((9, 9), np.uint8), image], num_workers=2)
    assert caught.value.__notes__ == ["image 1, counted from 0"]


def test_unknown_formats_without_pillow(folder, tmp_path):
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "import lensing, tt_superpoint\n"
        f"model = tt_superpoint.SuperPoint.from_pretrained({str(folder)!r}, warmup_variants='minimal')\n"
        "try: model(b'not an image')\n"
        "except lensing.ImageError as error: assert error.status == 'format'\n"
        "else: raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=places.environment(tmp_path))


def test_closed_models(folder, photo):
    with SuperPoint.from_pretrained(folder, warmup_variants="minimal") as model:
        out = model(photo)
    model.close()
    for call in (lambda: model(photo), lambda: model([photo]), lambda: next(model.iter([photo])), model.warmup):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    assert len(out.numpy()["scores"]) == len(out)
    assert repr(model) == "<tt_superpoint.SuperPoint: closed>"


def test_closing_during_a_list(folder, photo):
    model = SuperPoint.from_pretrained(folder, warmup_variants="minimal")

    def images():
        yield photo
        yield photo
        model.close()
        yield photo

    with pytest.raises(RuntimeError, match="closed"):
        list(model.iter(images(), num_workers=1))
