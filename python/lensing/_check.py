# SPDX-License-Identifier: Apache-2.0
"""Arguments that are numbers, with errors that name the argument, its value and the range."""

import operator
from typing import Any


def integer(name: str, value: Any, low: int, high: int) -> int:
    """The value as an int from low to high; NumPy's integers are taken, bool is not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}; it must be an integer")
    number = operator.index(value)
    if not low <= number <= high:
        raise ValueError(f"{name} is {number}; it must be {low} to {high}")
    return number


def real(name: str, value: Any) -> float:
    """The value as a float; NumPy's numbers are taken, text and bool are not. The C library checks the range."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    return float(value)


def threads(value: Any) -> int:
    """Number of threads; 0: as many as the CPU has."""
    return integer("threads", value, 0, 256)


def workers(value: Any) -> int:
    """Number of threads that read ahead."""
    return integer("num_workers", value, 0, 256)
