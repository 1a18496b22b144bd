# SPDX-License-Identifier: Apache-2.0
"""Arrays of pixels. The only module that imports NumPy."""

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native

_Array: TypeAlias = npt.NDArray[Any]
_CHANNELS = (1, 3, 4)


def to_plane(image: object, bgr: bool) -> _native.Plane:
    """The R plane of one image. Memory is copied only where it is not a plane of bytes already."""
    array = to_numpy(image)
    plane = _to_bytes(_take_channel(array, bgr, is_torch(image)))
    return _native.plane_from_pixels(plane)


def split_batch(images: object) -> Sequence[object] | None:
    """The images of an array of four dimensions, as views; None for other arrays."""
    array = to_numpy(images)
    if array.ndim != 4:
        return None
    return [_FromTorch(image) for image in array] if is_torch(images) else list(array)


class _FromTorch:
    """An image of a batch of tensors, which may have its channels first."""

    def __init__(self, array: _Array) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> _Array:
        return self.array


def is_torch(image: object) -> bool:
    """Whether it is a tensor of PyTorch, without importing PyTorch: who has one has imported it."""
    if isinstance(image, _FromTorch):
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def to_numpy(image: Any) -> _Array:
    """An array over the memory of `image` where that is possible; from another device, a copy."""
    if isinstance(image, np.ndarray):
        return np.asarray(image)
    if isinstance(image, _FromTorch):
        return image.array
    try:
        if is_torch(image):
            return _tensor_to_numpy(image)
        if any(hasattr(image, name) for name in ("__array_interface__", "__array_struct__", "__array__")):
            return np.asarray(image)
        if isinstance(image, memoryview):
            return np.asarray(image)
        return np.from_dlpack(image)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(f"cannot read the {type(image).__name__} as an array: {error}") from error


def _tensor_to_numpy(tensor: Any) -> _Array:
    """Without gradient, on the CPU. NumPy has no bfloat16, and what it lacks is a float that float32 can hold."""
    try:
        array: _Array = tensor.numpy(force=True)
    except TypeError:
        array = tensor.float().numpy(force=True)
    return array


def _take_channel(array: _Array, bgr: bool, torch_layout: bool) -> _Array:
    """The channel that the network reads, as a view (H, W)."""
    if array.ndim == 3:
        channels_last = array.shape[2] in _CHANNELS
        if torch_layout and array.shape[0] in _CHANNELS:
            array = array.transpose(1, 2, 0)
        elif not channels_last:
            raise ValueError(_wrong_channels(array, torch_layout))
        array = array[..., 2 if bgr and array.shape[2] > 1 else 0]
    elif array.ndim != 2:
        raise ValueError(_wrong_dimensions(array))
    if array.size == 0:
        raise ValueError(f"the image has {array.shape[1]} x {array.shape[0]} pixels; it needs at least 1 x 1")
    return array


def _wrong_channels(array: _Array, torch_layout: bool) -> str:
    if torch_layout:
        return f"the tensor has shape {array.shape}; it must be (H, W), (C, H, W) or (H, W, C) with C = 1, 3 or 4"
    hint = "; for channels first, pass image.transpose(1, 2, 0)" if array.shape[0] in _CHANNELS else ""
    return f"the array has shape {array.shape}; it must be (H, W) or (H, W, C) with C = 1, 3 or 4{hint}"


def _wrong_dimensions(array: _Array) -> str:
    hint = "; for the bytes of an image file, pass array.tobytes()" if array.ndim == 1 else ""
    return f"the array has shape {array.shape}; one image has 2 or 3 dimensions, a batch 4{hint}"


def _to_bytes(plane: _Array) -> _Array:
    """8 bits: integers as they are, floats in [0, 1] times 255, rounded half to even."""
    if plane.dtype.char == "B":
        return plane
    kind = plane.dtype.kind
    if kind in "iu":
        low, high = plane.min(), plane.max()
        if low < 0 or high > 255:
            raise ValueError(
                f"the {plane.dtype} image has values from {low} to {high}; integers must be 0 to 255: scale them first"
            )
        return plane.astype(np.uint8)
    if kind == "f":
        return _round(plane)
    if kind == "b":
        raise TypeError("the image is bool; for black and white pass image.astype(numpy.uint8) * 255")
    raise TypeError(f"the image is {plane.dtype}; it must be uint8, another integer type in 0..255, or float in [0, 1]")


def _round(plane: _Array) -> _Array:
    # float16 has too few digits for the product.
    wide = plane.astype(np.float32) if plane.dtype.itemsize < 4 else plane
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: _Array = np.rint(wide * 255)
    # Written so that NaN is refused too. What rounds into the range, such as -1e-7 from a resize, is in it.
    if not (scaled.min() >= 0 and scaled.max() <= 255):
        raise ValueError(
            f"the {plane.dtype} image has values from {plane.min()} to {plane.max()}; floats must be 0 to 1: "
            "divide by 255, or convert to uint8"
        )
    return scaled.astype(np.uint8)
