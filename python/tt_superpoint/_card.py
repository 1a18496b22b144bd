# SPDX-License-Identifier: Apache-2.0
"""Arguments and variables about a Tenstorrent card."""

import os
import warnings
from typing import Any, Literal, TypeAlias

from lensing import Backend, _check

Dispatch: TypeAlias = Literal["auto", "eth", "worker"]

_DISPATCH = ("auto", "eth", "worker")

DEVICE_CONFIG: dict[str, Any] = {"dispatch": "resident", "num_command_queues": 1, "compute_grid": "12x10"}
"""What there is of these on a card: one program that stays on 12 x 10 tiles, and one doorbell."""


def backend(device: object) -> Backend:
    """What runs the network: what `device` names, else `$LENSING_BACKEND`, if it is set and not empty, else the CPU.

    An open device of ttnn stays with its owner, so the CPU takes its place.
    """
    if device is not None:
        return "blackhole" if str(device) == "blackhole" else "cpu"
    name = os.environ.get("LENSING_BACKEND") or "cpu"
    if name == "blackhole":
        return "blackhole"
    if name != "cpu":
        raise ValueError(f"LENSING_BACKEND is {name!r}; it must be 'cpu' or 'blackhole'")
    return "cpu"


def check(device: object, device_id: int, dispatch: str, trace_region_size: int) -> dict[str, Any]:
    """What was asked for, for `SuperPoint.config`. Warns of what cannot be had.

    `$SP_DISPATCH` takes the place of "auto", if it is set and not empty.
    """
    unused = _unused_device(device)
    if unused is not None:
        _warn(unused)
    if dispatch not in _DISPATCH:
        raise ValueError(f"dispatch is {dispatch!r}; it must be 'auto', 'eth' or 'worker'")
    if dispatch == "auto":
        dispatch = os.environ.get("SP_DISPATCH") or "auto"
        if dispatch not in _DISPATCH:
            raise ValueError(f"SP_DISPATCH is {dispatch!r}; it must be 'auto', 'eth' or 'worker'")
    if dispatch != "auto":
        _warn(f"dispatch is {dispatch!r}, but Lensing has no dispatch cores; results are the same")
    return {
        "device": None if device is None else str(device),
        "device_id": _check.integer("device_id", device_id, 0, 2**31 - 1),
        "dispatch": dispatch,
        "trace_region_size": _check.integer("trace_region_size", trace_region_size, 0, 2**63 - 1),
    }


def quieten(verbose: bool) -> None:
    """Lets ttnn, should the program import it, show warnings and errors only, unless the variables are set already."""
    if not verbose:
        os.environ.setdefault("TT_LOGGER_LEVEL", "Error")
        os.environ.setdefault("LOGURU_LEVEL", "WARNING")


def _unused_device(device: object) -> str | None:
    """What there is to say of a device. An open one is an object of ttnn."""
    if device is None or str(device) in ("cpu", "blackhole"):
        return None
    if isinstance(device, str | int | float) or type(device).__module__.partition(".")[0] == "torch":
        raise ValueError(f"device is {device!r}; it must be None, 'cpu', 'blackhole' or an open device of ttnn")
    return f"device is a {type(device).__name__}, but the network runs on the CPU; the device is left alone"


def _warn(text: str) -> None:
    # Of check(), from_pretrained() and its caller, the last is meant.
    warnings.warn(text, RuntimeWarning, stacklevel=4)
