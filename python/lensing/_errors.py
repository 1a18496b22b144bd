# SPDX-License-Identifier: Apache-2.0
"""Exceptions, and which of them a status of the C library becomes."""

import errno
import os

from ._types import Path


class Error(Exception):
    """Anything that went wrong and was not a wrong argument. The text is one line that names the thing, its value, and
    what would be right."""

    status: str = "unknown"
    """Name of the C library's status, such as "corrupt"; "closed" for a ClosedError."""


class ImageError(Error, OSError):
    """The image is of no known format (status "format"), damaged or truncated ("corrupt"), or larger than max_pixels
    ("limit"). An OSError, as Pillow's exceptions for files are."""


class WeightsError(Error, OSError):
    """The weights were not found, or are not those of a SuperPoint."""


class DownloadError(Error, ConnectionError):
    """The weights could not be downloaded."""


class UnsupportedError(Error, RuntimeError):
    """This build or this machine lacks what was asked for, such as a library for HDF5 files."""


class ClosedError(Error, RuntimeError):
    """The model or the file was closed before."""


# Statuses of which the caller's argument is the cause, or the machine: the exceptions that Python has for them.
_BUILT_IN: dict[str, type[Exception]] = {
    "invalid-argument": ValueError,
    "out-of-memory": MemoryError,
    "io": OSError,
    "system": OSError,
}
_OWN: dict[str, type[Error]] = {
    "format": ImageError,
    "corrupt": ImageError,
    "limit": ImageError,
    "weights": WeightsError,
    "network": DownloadError,
    "unsupported": UnsupportedError,
    "closed": ClosedError,
}
# A damaged file of weights has the status of a damaged image.
_OF_WEIGHTS = frozenset({"io", "format", "corrupt", "limit", "weights"})


def from_status(status: str, message: str, weights: bool) -> Exception:
    """The exception for a status of the C library. Called by the extension module.

    `weights`: whether the call was about weights, and not about an image.
    """
    if weights and status in _OF_WEIGHTS:
        error: Error = WeightsError(message)
    elif status in _BUILT_IN:
        return _BUILT_IN[status](message)
    else:
        error = _OWN.get(status, Error)(message)
    error.status = status
    return error


def unreadable_file(path: Path, error: OSError) -> OSError:
    """What Python itself raises for a file that cannot be opened, such as FileNotFoundError; else `error`."""
    if os.path.isdir(path):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as reason:
        return reason
    return error
