# SPDX-License-Identifier: Apache-2.0
"""The C library. Private: arguments are positional, and checked only as far as memory is concerned."""

from typing import Any, TypeAlias, final

import numpy.typing as npt
from typing_extensions import Buffer

from ._types import Facts, ModelInfo

# Type checkers know that arrays are buffers from Python 3.12 on only.
_Buffer: TypeAlias = Buffer | npt.NDArray[Any]

VERSION: str
DEFAULT_REPOSITORY: str
BUILTIN_WEIGHTS: str | None
DEFAULT_MAX_PIXELS: int
MAX_KEYPOINTS_LIMIT: int
NMS_RADIUS_LIMIT: int
BUILD: str

@final
class Block(Buffer):
    """A buffer over memory of a result, which it keeps alive."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Plane:
    """The R plane of an image."""

    width: int
    height: int

@final
class Features:
    """A result. len() is the number of keypoints N."""

    def __len__(self) -> int: ...
    @property
    def keypoints(self) -> Block: ...
    @property
    def network_keypoints(self) -> Block: ...
    @property
    def scores(self) -> Block: ...
    @property
    def descriptors(self) -> Block | None: ...
    @property
    def facts(self) -> Facts: ...

@final
class Matches:
    """Pairs of keypoints. len() is their number."""

    def __len__(self) -> int: ...
    @property
    def pairs(self) -> Block: ...
    @property
    def similarity(self) -> Block: ...

@final
class Model:
    """An open model, closed when the last call on it has ended."""

    closed: bool
    def detect(
        self,
        plane: Plane,
        preprocess_ms: float,
        max_keypoints: int,
        keypoint_threshold: float,
        nms_radius: int,
        return_descriptors: bool,
        /,
    ) -> Features: ...
    def prepare(self) -> None: ...
    def forward(self, plane: Plane, scores: _Buffer, descriptors: _Buffer | None, /) -> None: ...
    def describe(self) -> ModelInfo: ...
    def close(self) -> None: ...

@final
class HDF5File:
    """A file that appears under its name when it is closed."""

    def add(self, name: bytes, features: Features, /) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...

def read_plane(path: bytes, apply_exif: bool, max_pixels: int, /) -> Plane: ...
def decode_plane(data: _Buffer, apply_exif: bool, max_pixels: int, /) -> Plane: ...
def plane_from_pixels(pixels: _Buffer, /) -> Plane: ...
def open_model(weights: bytes | None, threads: int, precision: str, backend: str, device_id: int, /) -> Model: ...
def fetch_weights(repository: bytes | None, /) -> None: ...
def make_features(
    keypoints: _Buffer,
    network_keypoints: _Buffer,
    scores: _Buffer,
    descriptors: _Buffer | None,
    facts: dict[str, Any],
    /,
) -> Features: ...
def features_to_json(features: Features, file: bytes | None, descriptors: bool, /) -> bytes: ...
def features_to_npz(features: Features, /) -> bytes: ...
def draw_keypoints(plane: Plane, features: Features, /) -> bytes: ...
def draw_matches(
    first_plane: Plane, first: Features, second_plane: Plane, second: Features, matches: Matches, /
) -> bytes: ...
def match(first: Features, second: Features, ratio: float, min_similarity: float, threads: int, /) -> Matches: ...
def create_hdf5(path: bytes, /) -> HDF5File: ...
def save_file(path: bytes, data: bytes, /) -> None: ...
