# SPDX-License-Identifier: Apache-2.0
"""Features of many images in one HDF5 file."""

import os
from types import TracebackType
from typing import Self

from . import _native
from ._features import Features
from ._types import Path


class HDF5Writer:
    """One HDF5 file with the features of many images, in the layout that hloc reads.

    For each name there is a group with keypoints float32 (N, 2), scores float32 (N,), descriptors float32 (256, N) and
    image_size int64 (2,): width, height. A name with slashes makes nested groups.

        with lensing.HDF5Writer("features.h5") as file:
            for path in paths:
                file.add(path, model(path))

    The file appears under its name when it is complete: after close(), or at the end of a `with` block that no
    exception left. Threads may share a writer.

    Raises:
        OSError: the file cannot be written.
        UnsupportedError: there is no HDF5 library on this machine.
    """

    def __init__(self, path: Path) -> None:
        self._native = _native.create_hdf5(os.fsencode(path))

    def add(self, name: Path, features: Features) -> None:
        """Adds the features of one image under its name.

        Raises:
            ValueError: the name is there already, or cannot be one.
            ClosedError: the file is closed.
        """
        if not isinstance(features, Features):
            raise TypeError(f"features is {type(features).__name__}; it must be lensing.Features")
        self._native.add(os.fsencode(name), features._native)

    def close(self) -> None:
        """Finishes the file under its name. Does nothing the second time."""
        self._native.close()

    def abandon(self) -> None:
        """Drops what was written. Does nothing after close()."""
        self._native.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
