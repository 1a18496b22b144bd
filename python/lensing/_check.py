# SPDX-License-Identifier: Apache-2.0
"""Types of arguments that are numbers, with errors that name the argument. The C library checks the ranges."""

import operator
from typing import Any


def integer(name: str, value: Any, least: int | None = None) -> int:
    """The value as an int of 32 bits; NumPy's integers are taken, bool is not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}; it must be an integer")
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{name} is {number}; it is far out of range")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}; it must be at least {least}")
    return number


def real(name: str, value: Any) -> float:
    """The value as a float; NumPy's numbers are taken, text and bool are not."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    return float(value)
