# SPDX-License-Identifier: Apache-2.0
"""Which keypoints of two images belong together."""

import os
from typing import TYPE_CHECKING, Any

from . import _check, _native
from ._features import Features, check_size
from ._images import open_image
from ._types import ExifMode, ImageLike, Path

if TYPE_CHECKING:
    from ._types import FloatArray, IndexArray


class Matches:
    """Pairs of keypoints of two images that are nearest to each other in both directions.

    M is the number of pairs, `len(matches)`. The arrays are in the order of the first image's keypoints and are views
    of one block of memory.
    """

    __slots__ = ("_native", "_parameters", "first", "second")

    first: Features
    """Features of the first image."""
    second: Features
    """Features of the second image."""

    def __init__(
        self, native: _native.Matches, first: Features, second: Features, parameters: dict[str, float]
    ) -> None:
        """For the package itself: matches come from match()."""
        self._native = native
        self._parameters = parameters
        self.first = first
        self.second = second

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<lensing.Matches: {len(self)} pairs of {len(self.first)} and {len(self.second)} keypoints>"

    @property
    def pairs(self) -> "IndexArray":
        """uint32 (M, 2): index of the keypoint in the first image, index in the second."""
        import numpy as np

        return np.asarray(self._native.pairs)

    @property
    def similarity(self) -> "FloatArray":
        """float32 (M,): dot product of the two descriptors, in [-1, 1]."""
        import numpy as np

        return np.asarray(self._native.similarity)

    @property
    def keypoints(self) -> "tuple[FloatArray, FloatArray]":
        """Two float32 (M, 2), new arrays: x, y of each pair in the first image, and in the second, pixels."""
        pairs = self.pairs
        return self.first.keypoints[pairs[:, 0]], self.second.keypoints[pairs[:, 1]]

    def to_dict(self, *, descriptors: bool = False) -> dict[str, Any]:
        """What `lensing match` writes, as a dict of plain Python objects: first and second (see `Features.to_dict`),
        match_params, num_matches, and matches: [index, index, similarity with 6 decimals]."""
        return {
            "first": self.first.to_dict(descriptors=descriptors),
            "second": self.second.to_dict(descriptors=descriptors),
            "match_params": dict(self._parameters),
            "num_matches": len(self),
            "matches": [
                [first, second, round(similarity, 6)]
                for (first, second), similarity in zip(self.pairs.tolist(), self.similarity.tolist(), strict=True)
            ],
        }

    def draw(
        self,
        first_image: ImageLike,
        second_image: ImageLike,
        path: Path | None = None,
        *,
        bgr: bool = False,
        exif: ExifMode = "ignore",
    ) -> bytes:
        """Both images side by side with a line for every pair, warmer for a higher similarity.

        Args:
            first_image: the image of `first`, in any form that SuperPoint takes.
            second_image: the image of `second`.
            path: a file to write too.
            bgr: as for SuperPoint, for both.
            exif: as for SuperPoint, for both.

        Returns:
            A PNG file, at most 4096 pixels wide and high.

        Raises:
            ValueError: an image has another size.
            UnsupportedError: there is no cairo library on this machine.
        """
        first_plane = open_image(first_image, bgr=bgr, exif=exif)
        check_size(first_plane, self.first)
        second_plane = open_image(second_image, bgr=bgr, exif=exif)
        check_size(second_plane, self.second)
        png = _native.draw_matches(first_plane, self.first._native, second_plane, self.second._native, self._native)
        if path is not None:
            _native.save_file(os.fsencode(path), png)
        return png


def match(
    first: Features, second: Features, *, ratio: float = 1.0, min_similarity: float = -1.0, threads: int = 0
) -> Matches:
    """Pairs of keypoints that are mutual nearest neighbours by the dot product of their descriptors.

    Args:
        first: features with descriptors.
        second: features with descriptors.
        ratio: in (0, 1]; keep a pair when its distance is below ratio times the distance of the second best in the
            second image; 1: no test.
        min_similarity: in [-1, 1]; keep a pair when the dot product of its descriptors is at least this.
        threads: 0 for as many as the CPU has, at most 256. The result does not depend on it.

    Raises:
        ValueError: a number is out of range, or descriptors are missing.
    """
    for name, value in (("first", first), ("second", second)):
        if not isinstance(value, Features):
            raise TypeError(f"{name} is {type(value).__name__}; it must be lensing.Features")
    parameters = {
        "ratio": _check.real("ratio", ratio),
        "min_similarity": _check.real("min_similarity", min_similarity),
    }
    native = _native.match(
        first._native,
        second._native,
        parameters["ratio"],
        parameters["min_similarity"],
        _check.threads(threads),
    )
    return Matches(native, first, second, parameters)
