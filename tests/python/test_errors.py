# SPDX-License-Identifier: Apache-2.0
"""What is refused, with which exception, and what its text names."""

import io
import os
import re

import numpy as np
import pytest
from PIL import Image

import lensing
from python.reference import equal

# ---- Images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (1, "cannot take int as an image; it must be"),
        (None, "cannot take NoneType as an image"),
        (object(), "cannot take object as an image"),
        ({"a": 1}, "cannot take dict as an image.*iter"),
        ((b"x" for _ in range(3)), "cannot take generator as an image.*iter"),
        ([[b"x"]], "cannot take list as an image"),
        (np.zeros((5, 5), bool), "bool"),
        (np.zeros((5, 5), complex), "complex128"),
        (np.zeros((5, 5), object), "object"),
        (np.zeros((5, 5), "datetime64[s]"), "datetime64"),
        (np.array([["a"]]), "<U1"),
        (np.zeros((5, 5), [("r", "u1")]), re.escape("[('r', 'u1')]")),
        (io.StringIO("text"), "binary mode"),
    ],
    ids=str,
)
def test_types_of_images(model, image, text):
    with pytest.raises(TypeError, match=text):
        model(image)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((), "2 or 3 dimensions"),
        ((7,), r"\(7,\).*array.tobytes\(\)"),
        ((5, 5, 2), r"\(5, 5, 2\).*C = 1, 3 or 4$"),
        ((5, 5, 5), r"\(5, 5, 5\).*C = 1, 3 or 4$"),
        ((3, 5, 5), r"\(3, 5, 5\).*transpose\(1, 2, 0\)"),
        ((0, 5), "5 x 0 pixels"),
        ((5, 0, 3), "0 x 5 pixels"),
        ((1, 1, 5, 5, 3), "batch 4"),
        ((2, 3, 5, 5), r"\(3, 5, 5\)"),
    ],
    ids=str,
)
def test_shapes(model, shape, text):
    with pytest.raises(ValueError, match=text):
        model(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("shape", [(2, 5, 5), (5,), (3, 0, 5), (1, 1, 3, 5, 5)])
def test_shapes_of_tensors(model, shape):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"shape|at least 1 x 1"):
        model(torch.zeros(shape))


def test_types_of_tensors(model):
    torch = pytest.importorskip("torch")
    for dtype in (torch.bool, torch.complex64):
        with pytest.raises(TypeError, match=r"bool|complex"):
            model(torch.zeros((5, 5), dtype=dtype))
    with pytest.raises(TypeError, match="cannot read the Tensor as an array"):
        model(torch.zeros((5, 5)).to_sparse())


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([0, 256], "i4", "int32.*0 to 256"),
        ([-1, 5], "i1", "int8.*-1 to 5"),
        ([2**64 - 1, 5], "u8", "uint64.*5 to 18446744073709551615"),
        ([0, 1.01], "f4", "float32.*0.0 to 1.0"),
        ([0, 255], "f8", "float64.*0.0 to 255.0.*divide by 255"),
        ([-0.01, 1], "f2", "float16.*-0.0"),
        ([0, float("nan")], "f4", "nan"),
        ([0, float("inf")], "f4", "inf"),
        ([0, 1e308], "f8", "1e"),
        ([0, 65504], "f2", "65504|65500"),
    ],
)
def test_values(model, values, dtype, text):
    with pytest.raises(ValueError, match=text):
        model(np.array([values], dtype))


class BadDLPack:
    def __dlpack__(self, **arguments):
        raise BufferError("it is on another device")

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_that_numpy_cannot_read(model):
    with pytest.raises(TypeError, match="cannot read the BadDLPack as an array: it is on another device"):
        model(BadDLPack())


# ---- Files -----------------------------------------------------------------------------------------------------------


def test_files(model, tmp_path):
    absent = tmp_path / "absent.jpg"
    with pytest.raises(FileNotFoundError) as caught:
        model(absent)
    assert caught.value.filename == str(absent) and caught.value.errno == 2
    with pytest.raises(IsADirectoryError):
        model(tmp_path)
    with pytest.raises(FileNotFoundError):
        model("")
    with pytest.raises(ValueError, match="null"):
        model("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        model(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(model, tmp_path):
    path = tmp_path / "locked.png"
    path.touch(0)
    with pytest.raises(PermissionError):
        model(path)


def test_damaged_files(model, photo, tmp_path):
    whole = photo.read_bytes()
    for data, status in [(b"", "format"), (b"no image", "format"), (whole[: len(whole) // 2], "corrupt")]:
        (tmp_path / "damaged").write_bytes(data)
        for image in (data, tmp_path / "damaged", io.BytesIO(data)):
            with pytest.raises(lensing.ImageError) as caught:
                model(image)
            assert caught.value.status == status and isinstance(caught.value, OSError)
            assert "\n" not in str(caught.value)


def test_a_damaged_image_of_pillow(model, photo):
    whole = photo.read_bytes()
    with pytest.raises(OSError, match="truncated"):
        model(Image.open(io.BytesIO(whole[: len(whole) // 2])))


def test_an_empty_image_of_pillow(model):
    with pytest.raises(ValueError, match="0 x 5 pixels"):
        model(Image.new("RGB", (0, 5)))


def test_a_reader_that_fails(model):
    class Reader:
        def read(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model(Reader())
    with pytest.raises(TypeError, match="bytes-like"):
        model(type("Reader", (), {"read": lambda self: None})())


# ---- Several ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_an_error_names_the_image(model, rgb, workers):
    images = [rgb, rgb, b"no image", rgb]
    with pytest.raises(lensing.ImageError) as caught:
        model(images, num_workers=workers)
    assert caught.value.__notes__ == ["image 2, counted from 0"]
    found = model.iter(images, num_workers=workers)
    assert len(next(found)) == len(next(found)) > 0
    with pytest.raises(lensing.ImageError):
        next(found)


def test_an_error_of_the_generator(model, rgb):
    def frames():
        yield rgb
        raise ZeroDivisionError

    for workers in (0, 1):
        found = model.iter(frames(), num_workers=workers)
        with pytest.raises(ZeroDivisionError):
            list(found)


def test_not_iterable(model):
    with pytest.raises(TypeError, match="int"):
        list(model.iter(5))


# ---- Parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("max_keypoints", -2, ValueError, "is -2; it must be -1 to 307200"),
        ("max_keypoints", 307201, ValueError, "is 307201; it must be -1 to 307200"),
        ("max_keypoints", 2**70, ValueError, f"is {2**70}; it must be -1 to 307200"),
        ("max_keypoints", 1.0, TypeError, "is 1.0; it must be an integer"),
        ("max_keypoints", True, TypeError, "is True; it must be an integer"),
        ("max_keypoints", "5", TypeError, "is '5'; it must be an integer"),
        ("max_keypoints", None, TypeError, "is None; it must be an integer"),
        ("keypoint_threshold", -0.1, ValueError, "is -0.1; it must be 0 to 1"),
        ("keypoint_threshold", 1.1, ValueError, "is 1.1; it must be 0 to 1"),
        ("keypoint_threshold", float("nan"), ValueError, "is nan; it must be 0 to 1"),
        ("keypoint_threshold", "0.5", TypeError, "is '0.5'; it must be a number"),
        ("keypoint_threshold", None, TypeError, "is None; it must be a number"),
        ("nms_radius", -1, ValueError, "is -1; it must be 0 to 32"),
        ("nms_radius", 33, ValueError, "is 33; it must be 0 to 32"),
        ("nms_radius", "4", TypeError, "is '4'; it must be an integer"),
        ("exif", "turn", ValueError, "is 'turn'; it must be 'ignore' or 'apply'"),
        ("max_pixels", -1, ValueError, "is -1; it must be 0 to"),
        ("max_pixels", 2**64, ValueError, f"is {2**64}; it must be 0 to"),
        ("max_pixels", "1", TypeError, "is '1'; it must be an integer"),
        ("num_workers", -1, ValueError, "is -1; it must be 0 to"),
        ("num_workers", 1.5, TypeError, "is 1.5; it must be an integer"),
    ],
)
def test_parameters(model, photo, name, value, error, text):
    for call in (lambda: model(photo, **{name: value}), lambda: list(model.iter([photo], **{name: value}))):
        with pytest.raises(error, match=f"^{name} {re.escape(text)}"):
            call()


def test_unknown_parameters(model, rgb):
    for call in (model, model.iter):
        with pytest.raises(TypeError, match="max_keypoint'"):
            call([rgb], max_keypoint=5)


# ---- Models ----------------------------------------------------------------------------------------------------------


def test_weights(tmp_path, synthetic_weights, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "text.safetensors").write_text("no weights")
    whole = synthetic_weights.read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    for name in ("absent/repository", tmp_path / "absent", tmp_path, tmp_path / "text.safetensors",
                 tmp_path / "half.safetensors"):  # fmt: skip
        with pytest.raises(lensing.WeightsError) as caught:
            lensing.SuperPoint(name)
        assert isinstance(caught.value, OSError) and os.fspath(name).split("/")[-1] in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"threads": 257}, ValueError, "threads is 257; it must be 0 to 256"),
        ({"threads": -1}, ValueError, "threads is -1"),
        ({"threads": "2"}, TypeError, "threads is '2'"),
        ({"precision": "fp8"}, ValueError, "precision is 'fp8'; it must be 'fp32' or 'bf16'"),
        ({"precision": None}, TypeError, "precision is None"),
        ({"weights": 5}, TypeError, "int"),
    ],
)
def test_arguments_of_a_model(synthetic_weights, arguments, error, text):
    with pytest.raises(error, match=text):
        lensing.SuperPoint(**{"weights": synthetic_weights, **arguments})


def test_a_closed_model(synthetic_weights, rgb):
    model = lensing.SuperPoint(synthetic_weights)
    features = model(rgb)
    before = features.descriptors.tobytes()
    waiting = model.iter([rgb])
    model.close()
    model.close()
    assert model.closed and repr(model) == "<lensing.SuperPoint: closed>"
    for call in (
        lambda: model(rgb),
        lambda: model([rgb]),
        lambda: next(waiting),
        lambda: model.info,
        lambda: model.match(rgb, rgb),
        lambda: model.forward(rgb),
        lambda: model.match(features, features),
    ):
        with pytest.raises(lensing.ClosedError, match="the model is closed") as caught:
            call()
        assert isinstance(caught.value, RuntimeError) and caught.value.status == "closed"
    assert equal(features.descriptors.tobytes(), before)


# ---- Results ---------------------------------------------------------------------------------------------------------


def test_matching(model, rgb):
    features = model(rgb, max_keypoints=20)
    bare = model(rgb, return_descriptors=False)
    with pytest.raises(ValueError, match="descriptors"):
        lensing.match(features, bare)
    for wrong, text in [
        ({"ratio": 0}, "ratio is 0"),
        ({"ratio": 1.5}, "ratio is 1.5"),
        ({"min_similarity": 2}, "min_similarity is 2"),
        ({"threads": 1000}, "threads is 1000"),
    ]:
        with pytest.raises(ValueError, match=text):
            lensing.match(features, features, **wrong)
    with pytest.raises(TypeError, match="ratio is '1'"):
        lensing.match(features, features, ratio="1")
    with pytest.raises(TypeError, match="second is ndarray; it must be lensing.Features"):
        lensing.match(features, features.descriptors)


def test_saving(model, rgb, tmp_path):
    features = model(rgb, max_keypoints=5)
    with pytest.raises(ValueError, match="'features.txt'"):
        features.save("features.txt")
    with pytest.raises(ValueError, match="format is 'csv'"):
        features.save("features.npz", format="csv")
    for name in ("a.json", "a.npz", "a.h5"):
        with pytest.raises(OSError, match="absent"):
            features.save(tmp_path / "absent" / name)
    assert list(tmp_path.iterdir()) == []


def test_drawing_over_another_image(model, rgb):
    features = model(rgb, max_keypoints=5)
    with pytest.raises(ValueError, match="332 x 217 pixels, but the features are of one of 333 x 217"):
        features.draw(rgb[:, 1:])
    with pytest.raises(ValueError, match="217 x 333"):
        lensing.match(features, features).draw(rgb, rgb.swapaxes(0, 1))


def test_unknown_keys(model, rgb):
    features = model(rgb, max_keypoints=5)
    with pytest.raises(KeyError, match="timing_ms"):
        features["timing_ms"]


def test_writing_hdf5(model, rgb, tmp_path):
    features = model(rgb, max_keypoints=5)
    with pytest.raises(OSError, match="absent"):
        lensing.HDF5Writer(tmp_path / "absent" / "a.h5")
    path = tmp_path / "a.h5"
    with lensing.HDF5Writer(path) as file:
        file.add("a", features)
        with pytest.raises(ValueError, match="'a'"):
            file.add("a", features)
        with pytest.raises(TypeError, match="dict"):
            file.add("b", features.numpy())
    with pytest.raises(lensing.ClosedError, match="the file is closed"):
        file.add("b", features)
    file.close()
    file.abandon()
    assert path.exists()


def test_private_types_cannot_be_made(model, rgb):
    from lensing import _native

    features = model(rgb, max_keypoints=5)
    for kind in (_native.Features, _native.Plane, _native.Model, _native.Matches, _native.Block, _native.HDF5File):
        with pytest.raises(TypeError, match="cannot create"):
            kind()
    with pytest.raises(ValueError, match="same number of keypoints"):
        _native.make_features(b"12345678", b"12345678", b"1234" * 2, None, features._facts)
    with pytest.raises(ValueError, match="same number of keypoints"):
        _native.make_features(b"12345678", b"12345678", b"1234", bytes(1020), features._facts)
    with pytest.raises(TypeError):
        _native.make_features(b"12345678", b"12345678", b"1234", None, {})
