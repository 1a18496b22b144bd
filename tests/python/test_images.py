# SPDX-License-Identifier: Apache-2.0
"""Every form of an image gives the bytes that the program gives for the same pixels."""

import collections
import io
import mmap
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import lensing
from python.reference import Program, equal, same

# ---- Files -----------------------------------------------------------------------------------------------------------


class Path(os.PathLike):
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


def mapped(path):
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.parametrize(
    "form",
    [
        str,
        pathlib.Path,
        Path,
        pathlib.Path.read_bytes,
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        mapped,
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: open(path, "rb"),
        Image.open,
        lambda path: np.asarray(Image.open(path)),
    ],
    ids=["str", "Path", "PathLike", "bytes", "bytearray", "memoryview", "mmap", "BytesIO", "file", "Pillow", "numpy"],
)
def test_forms_of_a_file(model, photo, expected, form):
    image = form(photo)
    assert same(model(image), expected)
    if hasattr(image, "close"):
        image.close()


def test_jpeg(model, cli, scene):
    expected = cli.detect(scene)
    assert same(model(scene), expected)
    assert same(model(scene.read_bytes()), expected)


def test_real_weights(test_data, program, tmp_path):
    weights = test_data / "weights" / "superpoint_magicleap_v1.safetensors"
    photo = sorted((test_data / "photos").glob("*.jpg"))[0]
    cli = Program(program, weights, tmp_path)
    with lensing.SuperPoint(weights) as model:
        features = model(photo)
        assert same(features, cli.detect(photo)) and len(features) > 100
        assert same(model(np.asarray(Image.open(photo))), cli.detect_pixels(np.asarray(Image.open(photo))))


def test_exif(model, cli, rgb, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "turned.jpg"
    Image.fromarray(rgb).save(path, exif=exif, quality=95)
    assert model(path).image_size == (217, 333)
    assert same(model(path, exif="ignore"), cli.detect(path))
    for image in (path, path.read_bytes(), open(path, "rb")):
        turned = model(image, exif="apply")
        assert turned.image_size == (333, 217) and same(turned, cli.detect(path, "--exif", "apply"))
    assert turned.draw(path, exif="apply").startswith(b"\x89PNG")
    assert lensing.match(turned, turned).draw(path, path, exif="apply").startswith(b"\x89PNG")


# ---- Pillow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I;16", "I", "F"])
def test_modes_of_pillow(model, cli, rgb, mode):
    image = Image.fromarray(rgb)
    image = Image.fromarray(rgb[..., 0].astype(np.uint16) * 2) if mode == "I;16" else image.convert(mode)
    assert image.mode == mode
    channel = np.asarray(image.convert("RGB"))[..., 0]
    assert same(model(image), cli.detect_pixels(np.ascontiguousarray(channel)))


# ---- Arrays ----------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": lambda a: a.copy(),
    "read-only": lambda a: a,
    "fortran": np.asfortranarray,
    "rows upside down": lambda a: a[::-1].copy()[::-1],
    "columns reversed": lambda a: a[:, ::-1].copy()[:, ::-1],
    "both reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every third column": lambda a: np.repeat(a, 3, axis=1)[:, ::3],
    "part of a larger one": lambda a: np.pad(a, [(3, 5), (7, 2)] + [(0, 0)] * (a.ndim - 2))[3:-5, 7:-2],
    "transposed": lambda a: a.swapaxes(0, 1).copy().swapaxes(0, 1),
    "subclass": lambda a: a.view(type("Subclass", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides(model, rgb, expected, layout):
    assert same(model(LAYOUTS[layout](rgb)), expected)
    assert same(model(LAYOUTS[layout](np.ascontiguousarray(rgb[..., 0]))), expected)


def test_channels(model, rgb, expected, expected_blue):
    rgba = np.concatenate([rgb, rgb[..., :1]], axis=2)
    bgra = rgba[..., [2, 1, 0, 3]]
    gray = rgb[..., :1]
    for image in (rgb, rgba, gray, gray[..., 0]):
        assert same(model(image), expected)
    for image in (rgb[..., ::-1], bgra, gray, gray[..., 0]):
        assert same(model(image, bgr=True), expected)
    assert same(model(rgb, bgr=True), expected_blue)


def test_bgr_means_arrays_only(model, photo, expected):
    assert same(model(photo, bgr=True), expected)
    assert same(model(Image.open(photo), bgr=True), expected)


def test_one_pixel_and_single_lines(model, cli):
    for shape in [(1, 1), (1, 50), (50, 1)]:
        pixels = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
        assert same(model(pixels, keypoint_threshold=0), cli.detect_pixels(pixels, "--keypoint-threshold", "0"))


def test_rows_that_overlap_are_copied(model, cli):
    line = np.random.default_rng(4).integers(0, 256, 400, np.uint8)
    image = np.lib.stride_tricks.as_strided(line, (300, 100), (1, 1))
    assert same(model(image), cli.detect_pixels(np.ascontiguousarray(image)))
    repeated = np.broadcast_to(line, (200, 400))
    assert same(model(repeated), cli.detect_pixels(np.ascontiguousarray(repeated)))


class ArrayInterface:
    """Only the protocol, as for arrays of other libraries."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class DLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrapper", [ArrayInterface, DLPack, memoryview])
def test_other_arrays(model, rgb, expected, wrapper):
    pixels = rgb.copy()
    assert same(model(wrapper(pixels)), expected)
    assert same(model(wrapper(pixels[..., 0].copy())), expected)
    if wrapper is not memoryview:
        assert same(model(wrapper(pixels[::-1].copy()[::-1])), expected)
        assert [same(found, expected) for found in model(wrapper(np.stack([pixels] * 2)))] == [True, True]


# ---- Elements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "u2", "i2", "u4", "i4", "u8", "i8", ">u2", ">i4"])
def test_integers(model, cli, rgb, expected, dtype):
    pixels = rgb if dtype != "i1" else rgb // 2
    assert same(model(pixels.astype(dtype)), expected if dtype != "i1" else cli.detect_pixels(pixels))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f4"])
def test_floats_of_bytes(model, rgb, expected, dtype):
    """Bytes divided by 255 come back as they were."""
    assert same(model((rgb / 255).astype(dtype)), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_round_to_the_nearest_byte(model, cli, dtype):
    values = np.random.default_rng(6).random((480, 640)).astype(dtype)
    wide = values.astype(np.float32) if dtype == np.float16 else values
    assert same(model(values), cli.detect_pixels(np.rint(wide * wide.dtype.type(255)).astype(np.uint8)))


def test_halves_round_to_even(model, cli):
    """k / 255 + 1 / 510 in float64, where the product with 255 is k + 1/2 exactly."""
    k = np.random.default_rng(8).integers(0, 255, (480, 640))
    values = (2 * k + 1) / 510
    half = values * 255 == k + 0.5
    assert half.mean() > 0.5
    values, k = np.where(half, values, 0), np.where(half, k, 0)
    assert same(model(values), cli.detect_pixels(np.where(half, k + k % 2, 0).astype(np.uint8)))


def test_floats_that_round_into_the_range(model, cli):
    values = np.random.default_rng(9).random((100, 100), np.float32)
    values[0, :2] = -1e-7, 1.0000001
    values[1, :2] = -0.0, 1
    pixels = np.rint(np.clip(values, 0, 1) * np.float32(255)).astype(np.uint8)
    assert same(model(values), cli.detect_pixels(pixels))


def test_other_channels_are_not_read(model, rgb, expected):
    wide = rgb.astype(np.int32)
    wide[..., 1:] = 1000
    assert same(model(wide), expected)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def test_layouts_of_tensors(model, torch, rgb, expected, expected_blue):
    last = torch.from_numpy(rgb.copy())
    first = last.permute(2, 0, 1)
    for tensor in (last, first, first.contiguous(), last[..., 0], last[..., :1], first[:1]):
        assert same(model(tensor), expected)
    for tensor in (last, first, first.contiguous()):
        assert same(model(tensor, bgr=True), expected_blue)
    assert same(model(torch.cat([first, first[:1]])), expected)


def test_a_tensor_that_could_be_both_has_channels_first(model, torch, cli):
    pixels = np.random.default_rng(10).integers(0, 256, (3, 200, 3), np.uint8)
    assert same(model(torch.from_numpy(pixels)), cli.detect_pixels(np.ascontiguousarray(pixels[0])))
    assert same(model(pixels), cli.detect_pixels(np.ascontiguousarray(pixels[..., 0])))


def test_types_of_tensors(model, torch, rgb, expected, cli):
    tensor = torch.from_numpy(rgb.copy()).permute(2, 0, 1)
    assert same(model(tensor.int()), expected)
    assert same(model(tensor / 255), expected)
    assert same(model((tensor / 255).double()), expected)
    assert same(model((tensor / 255).requires_grad_()), expected)
    rough = (tensor / 255).bfloat16()
    pixels = np.rint(rough[0].float().numpy() * np.float32(255)).astype(np.uint8)
    assert same(model(rough), cli.detect_pixels(pixels))


def test_the_package_does_not_import_torch(model, environment, synthetic_weights, photo):
    code = (
        "import sys, lensing\n"
        "assert 'numpy' not in sys.modules\n"
        f"model = lensing.SuperPoint({str(synthetic_weights)!r}); features = model({str(photo)!r})\n"
        "assert 'numpy' not in sys.modules\n"
        "import numpy; model(numpy.zeros((9, 9, 3)))\n"
        "assert not {'torch', 'PIL'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# ---- Several ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several(cli, photo, rgb):
    """Images in several forms, and what the program finds in each."""
    other = np.ascontiguousarray(rgb[::-1, :, 1])
    images = [photo, rgb, other, Image.open(photo), photo.read_bytes(), other]
    expected, flipped = cli.detect(photo), cli.detect_pixels(other)
    return images, [expected, expected, flipped, expected, expected, flipped]


@pytest.mark.parametrize("workers", [0, 1, 3, 50])
def test_lists(model, several, workers):
    images, expected = several
    for kind in (list, tuple, collections.deque):
        found = model(kind(images), num_workers=workers)
        assert isinstance(found, list) and list(map(same, found, expected)) == [True] * 6


def test_short_lists(model, rgb, expected):
    assert model([]) == [] and model(()) == []
    found = model([rgb])
    assert len(found) == 1 and same(found[0], expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_generators(model, several, workers):
    images, expected = several
    found = model.iter((image for image in images), num_workers=workers)
    assert isinstance(found, collections.abc.Iterator)
    assert list(map(same, found, expected)) == [True] * 6
    assert next(found, None) is None


def test_iter_is_lazy(model, rgb):
    asked = []

    def frames():
        for number in range(5):
            asked.append(number)
            yield rgb

    found = model.iter(frames())
    assert asked == []
    for number in range(3):
        next(found)
        assert asked == list(range(number + 1))
    found.close()
    ahead = model.iter(frames(), num_workers=2)
    asked.clear()
    next(ahead)
    assert asked == [0, 1, 2]
    ahead.close()


def test_batches(model, rgb, expected, expected_blue):
    other = np.ascontiguousarray(rgb[..., ::-1])
    batch = np.stack([rgb, other])
    for images in (batch, batch[::-1].copy()[::-1], batch.astype(np.float32) / 255, batch.astype(np.int64)):
        found = model(images)
        assert isinstance(found, list) and len(found) == 2
        assert same(found[0], expected) and same(found[1], expected_blue)
    assert model(np.zeros((0, 5, 5, 3), np.uint8)) == []


def test_batches_of_tensors(model, torch, rgb, expected, expected_blue):
    batch = torch.from_numpy(np.stack([rgb, rgb[..., ::-1]]))
    for images in (batch, batch.permute(0, 3, 1, 2), batch.permute(0, 3, 1, 2).float() / 255):
        found = model(images)
        assert len(found) == 2 and same(found[0], expected) and same(found[1], expected_blue)


# ---- Parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({"max_keypoints": 10}, ["-n", "10"]),
        ({"max_keypoints": np.int64(0)}, ["-n", "0"]),
        ({"max_keypoints": -1, "keypoint_threshold": 0}, ["-n", "-1", "--keypoint-threshold", "0"]),
        ({"keypoint_threshold": np.float32(0.25)}, ["--keypoint-threshold", "0.25"]),
        ({"nms_radius": 0}, ["--nms-radius", "0"]),
        ({"nms_radius": 32}, ["--nms-radius", "32"]),
    ],
)
def test_parameters(model, cli, photo, rgb, parameters, options):
    expected = cli.detect(photo, *options)
    assert same(model(rgb, **parameters), expected)
    assert same(next(model.iter([rgb], **parameters)), expected)


def test_without_descriptors(model, rgb, expected):
    features = model(rgb, return_descriptors=False)
    assert features.descriptors is None and features["descriptors"] is None
    assert sorted(features.numpy()) == ["keypoints", "scores"]
    assert equal(features.scores.tobytes(), expected["scores"].tobytes())
    assert "without descriptors" in repr(features)


def test_max_pixels(model, photo, rgb):
    assert len(model(photo, max_pixels=333 * 217)) > 0
    assert len(model(photo, max_pixels=0)) > 0
    with pytest.raises(lensing.ImageError, match="333 x 217") as caught:
        model(photo, max_pixels=333 * 217 - 1)
    assert caught.value.status == "limit"
    assert len(model(rgb, max_pixels=1)) > 0  # a limit for files


def test_forward(model, rgb):
    """The maps fit the features: each score is at its pixel, and is what suppression left."""
    features = model(rgb, max_keypoints=-1)
    scores, descriptors = model.forward(rgb)
    assert scores.shape == (480, 640) and descriptors.shape == (60, 80, 256)
    assert scores.dtype == descriptors.dtype == np.float32
    assert np.allclose(np.linalg.norm(descriptors, axis=2), 1, atol=1e-5)
    x, y = features.network_keypoints.astype(int).T
    assert (scores[y, x] == features.scores).all()
    assert model.forward(rgb, return_descriptors=False)[1] is None
