# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and results. Nothing here imports NumPy, Pillow or PyTorch."""

import os
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float32]
    IndexArray: TypeAlias = npt.NDArray[np.uint32]

Path: TypeAlias = str | os.PathLike[str]
"""Name of a file or folder."""

Precision: TypeAlias = Literal["fp32", "bf16"]
"""Arithmetic of the network."""

Backend: TypeAlias = Literal["cpu", "blackhole"]
"""What runs the network: the CPU, or a Tenstorrent Blackhole card."""

ExifMode: TypeAlias = Literal["ignore", "apply"]
"""What to do with the EXIF orientation of a file: nothing, or turn the image upright."""

Format: TypeAlias = Literal["json", "npz", "hdf5"]
"""Format of a file of features."""


class BinaryFile(Protocol):
    """An open binary file, or anything else whose read() gives bytes."""

    def read(self) -> bytes: ...


class HasArrayInterface(Protocol):
    """An object with `__array_interface__`: NumPy arrays, Pillow images, and others."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class HasDLPack(Protocol):
    """An object with `__dlpack__`: PyTorch tensors, JAX and CuPy arrays, and others."""

    def __dlpack__(self) -> Any: ...


EncodedImage: TypeAlias = Path | bytes | bytearray | memoryview | BinaryFile
"""A file name, the bytes of an image file, or an open binary file."""

ArrayLike: TypeAlias = HasArrayInterface | HasDLPack
"""Pixels: see `SuperPoint.__call__`."""

ImageLike: TypeAlias = EncodedImage | ArrayLike
"""One image in any form that `SuperPoint.__call__` takes."""


class DetectParameters(TypedDict, total=False):
    """Keyword arguments of `SuperPoint.__call__` besides num_workers, with its defaults."""

    max_keypoints: int
    keypoint_threshold: float
    nms_radius: int
    return_descriptors: bool
    bgr: bool
    exif: ExifMode
    max_pixels: int


class ModelInfo(TypedDict):
    """Facts about an open model."""

    backend: str
    """What computes: "cpu" or "blackhole"."""
    device: str
    """"cpu", the card, such as "/dev/tenstorrent/0", or "simulator"."""
    cpu_path: str
    """Kernel set: "c", "avx2" or "avx512"; "" on a card."""
    precision: str
    """"fp32" or "bf16"; a card has products of bfloat16."""
    threads: int
    """Threads that one call uses; 1 on a card."""
    file: str | None
    """The safetensors file; None: the weights inside the library."""
    repository: str
    """Name of the weights: the repository id or path that was asked for, or `lensing.BUILTIN_WEIGHTS`."""
    revision: str | None
    local_dir: str | None
    """The folder that was given, or None."""
    license: str
    """Licence of the weights, as far as it is known."""
    border_removal_distance: int
    """Pixels of the 640 x 480 frame along its edge where no keypoint is taken."""


class Timing(TypedDict):
    """Wall-clock time of the steps of one detection, milliseconds."""

    preprocess: float
    """Reading, decoding and resizing."""
    forward: float
    """The network."""
    postprocess: float
    """Suppression, selection, and sampling of descriptors."""


class Weights(TypedDict):
    """Which weights a result was made with, as far as it is known."""

    name: str | None
    """`ModelInfo.repository` of the model."""
    license: str | None


class Facts(TypedDict):
    """What a result holds besides its arrays."""

    image_width: int
    image_height: int
    max_keypoints: int
    keypoint_threshold: float
    nms_radius: int
    border_removal_distance: int
    device_nms: bool
    preprocess: float
    forward: float
    postprocess: float
    weights: str | None
    license: str | None
