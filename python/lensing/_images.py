# SPDX-License-Identifier: Apache-2.0
"""From an image in any form to the R plane that the network reads."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from . import _native
from ._errors import Error, unreadable_file
from ._types import ExifMode, Path

_ARRAY_ATTRIBUTES = ("__array_interface__", "__array_struct__", "__array__", "__dlpack__")


def open_image(
    image: object, *, bgr: bool = False, exif: ExifMode = "ignore", max_pixels: int = _native.DEFAULT_MAX_PIXELS
) -> _native.Plane:
    """The R plane of one image; the arguments are those of `SuperPoint.__call__`."""
    if isinstance(image, str) or hasattr(image, "__fspath__"):
        return _read_file(image, _applies(exif), max_pixels)
    if isinstance(image, bytes | bytearray):
        return _native.decode_plane(image, _applies(exif), max_pixels)
    if isinstance(image, memoryview) and image.ndim == 1:
        return _native.decode_plane(bytes(image), _applies(exif), max_pixels)
    if is_pillow(image):
        return _from_pillow(image)
    if is_array(image):
        from . import _arrays

        return _arrays.to_plane(image, bgr)
    if hasattr(image, "read"):
        data: Any = image if _is_mapped(image) else image.read()
        if isinstance(data, str):
            raise TypeError("the file is open as text; open it in binary mode ('rb')")
        return _native.decode_plane(data, _applies(exif), max_pixels)
    raise TypeError(_unknown(image))


def split_batch(images: object) -> Sequence[object] | None:
    """The images of a sequence, or of an array of four dimensions; None for a single image."""
    if isinstance(images, str | bytes | bytearray) or getattr(images, "ndim", 0) in (2, 3) or is_pillow(images):
        return None
    if is_array(images):
        from . import _arrays

        return _arrays.split_batch(images)
    return images if isinstance(images, Sequence) else None


def is_pillow(image: object) -> bool:
    """Whether it is an image of Pillow, without importing Pillow: who has one has imported it."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(image, pillow.Image)


def _is_mapped(image: object) -> bool:
    """Whether it is a file in memory, whose bytes are there without reading."""
    module = sys.modules.get("mmap")
    return module is not None and isinstance(image, module.mmap)


def is_array(image: object) -> bool:
    """Whether it holds pixels in a way that NumPy understands."""
    # The type is asked first: an array makes a dict for each look at its own __array_interface__.
    return isinstance(image, memoryview) or any(
        hasattr(owner, name) for owner in (type(image), image) for name in _ARRAY_ATTRIBUTES
    )


def _applies(exif: str) -> bool:
    if exif not in ("ignore", "apply"):
        raise ValueError(f"exif is {exif!r}; it must be 'ignore' or 'apply'")
    return exif == "apply"


def _read_file(path: Path, apply_exif: bool, max_pixels: int) -> _native.Plane:
    try:
        return _native.read_plane(os.fsencode(path), apply_exif, max_pixels)
    except OSError as error:
        if isinstance(error, Error):
            raise
        raise unreadable_file(path, error) from None


def _from_pillow(image: Any) -> _native.Plane:
    """Channel 0 of convert("RGB"), as for a file."""
    if image.width == 0 or image.height == 0:
        raise ValueError(f"the image has {image.width} x {image.height} pixels; it needs at least 1 x 1")
    if image.mode not in ("L", "RGB", "RGBA", "RGBX"):
        image = image.convert("RGB")
    if image.mode != "L":
        image = image.getchannel(0)
    pixels = memoryview(image.tobytes()).cast("B", (image.height, image.width))
    return _native.plane_from_pixels(pixels)


def _unknown(image: object) -> str:
    kind = type(image).__name__
    if hasattr(image, "__next__") or hasattr(image, "__iter__"):
        return f"cannot take {kind} as an image; for a generator or another iterable of images use model.iter(...)"
    return (
        f"cannot take {kind} as an image; it must be a file name, bytes, an open file, a Pillow image, or an array "
        "(NumPy, PyTorch, __array_interface__ or DLPack)"
    )
