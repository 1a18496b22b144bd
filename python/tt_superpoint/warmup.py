# SPDX-License-Identifier: Apache-2.0
"""What is prepared before the first call.

On the CPU nothing is compiled. What the first call does once is to fetch memory that later calls use again: for the
network, which any radius prepares, and for images of a size. Besides that there are the threads of list calls.
Decoders, and what the key "fallbacks" stands for on a card, are always ready. No preparation changes a result.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from lensing import _check, _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Size: TypeAlias = tuple[int, int]
"""Width and height, pixels."""

Spec: TypeAlias = Literal["default", "minimal", "all"] | Mapping[str, Any] | bool | None
"""What `SuperPoint.from_pretrained` takes as warmup_variants."""

DECODERS = ("jpeg", "png", "bmp", "webp", "tiff")
"""What the key "decoders" may name."""

_FRAME = (640, 480)
_MOST_PIXELS = _native.DEFAULT_MAX_PIXELS
_SHAPES = 240


class Variants(NamedTuple):
    """What is to be ready."""

    sizes: tuple[Size, ...] = ((1920, 1080), (1600, 900), (1280, 720), _FRAME)
    """Sizes of images."""
    nms_radii: tuple[int, ...] = (4, 0)
    decoders: tuple[str, ...] = ("jpeg", "png")
    num_workers: int = 4
    """Threads of list calls."""
    fallbacks: bool = True

    def joined(self, other: "Variants") -> "Variants":
        """What is in either."""
        return Variants(
            _unique(self.sizes + other.sizes),
            _unique(self.nms_radii + other.nms_radii),
            _unique(self.decoders + other.decoders),
            max(self.num_workers, other.num_workers),
            self.fallbacks or other.fallbacks,
        )


NONE = Variants((), (), (), 0, False)
"""Nothing."""
_DEFAULT = Variants()
_NAMED = {
    "default": _DEFAULT,
    "minimal": Variants((_FRAME,), (4,), (), 0, False),
    "all": _DEFAULT._replace(nms_radii=tuple(range(10))),
}


def variants(spec: Spec, sizes: Iterable[Size] | None = None, nms_radii: Iterable[int] = ()) -> Variants:
    """What `warmup_variants` means.

    Args:
        spec: None or "default", "minimal" or False, "all", or a mapping that replaces fields of the default.
        sizes: if not None, takes the place of the sizes.
        nms_radii: more radii.

    Raises:
        ValueError: there is no such name, key or value.
        TypeError: a value is of another type.
    """
    wanted = _named(spec)
    if sizes is not None:
        wanted = wanted._replace(sizes=_sizes("precompile_sizes", sizes))
    return wanted._replace(nms_radii=_unique(wanted.nms_radii + _radii("precompile_nms_radii", nms_radii)))


def checked(fields: Mapping[str, Any], start: Variants = NONE) -> Variants:
    """`start` with fields replaced; the errors are those of variants()."""
    unknown = [key for key in fields if key not in _CHECKS]
    if unknown:
        raise ValueError(f"warmup_variants has no key {unknown[0]!r}; it has {', '.join(_CHECKS)}")
    return start._replace(**{key: _CHECKS[key](key, value) for key, value in fields.items()})


def synthetic_image(width: int = 640, height: int = 480, seed: int = 0) -> "npt.NDArray[np.uint8]":
    """A picture of drawn shapes and noise with about 650 keypoints.

    Returns:
        uint8 (height, width, 3), gray in RGB; the same for the same arguments.
    """
    import random

    import numpy as np

    size = _size("size", (width, height))
    # Not numpy.random, which takes longer to import than all the rest.
    generator = random.Random(_check.integer("seed", seed, 0, 2**63 - 1))
    frame = np.frombuffer(generator.randbytes(_FRAME[0] * _FRAME[1]), np.uint8).reshape(_FRAME[1], _FRAME[0])
    plane = frame % 24
    for _ in range(_SHAPES):
        x, y = generator.randrange(_FRAME[0]), generator.randrange(_FRAME[1])
        w, h = generator.randrange(10, 60), generator.randrange(10, 60)
        plane[y : y + h, x : x + w] = frame[y : y + h, x : x + w] % 24 + generator.randrange(232)
    rows = np.arange(size[1]) * _FRAME[1] // size[1]
    columns = np.arange(size[0]) * _FRAME[0] // size[0]
    return np.repeat(plane[rows[:, None], columns, None], 3, 2)


class Preparation:
    """What is ready in a model. Not for several threads at the same time."""

    def __init__(
        self,
        fetch_memory: Callable[[], object],
        read: Callable[["npt.NDArray[np.uint8]"], object],
        start_threads: Callable[[int], object],
    ) -> None:
        """
        Args:
            fetch_memory: fetches the memory of a detection.
            read: reads an image, and does not detect.
            start_threads: starts so many threads for lists.
        """
        self._fetch_memory = fetch_memory
        self._read = read
        self._start_threads = start_threads
        self.ready = NONE
        self.seconds: dict[str, float] = {}

    def prepare(self, wanted: Variants) -> dict[str, float]:
        """Makes ready what is not; the seconds of each step that ran."""
        steps = dict(self._steps(wanted))
        done: dict[str, float] = {}
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            done[name] = time.perf_counter() - start
        self.ready = self.ready.joined(wanted)
        self.seconds.update(done)
        return done

    def _steps(self, wanted: Variants) -> Iterable[tuple[str, Callable[[], object]]]:
        for radius in self._radii_to_run(wanted):
            yield f"nms_radius={radius}", self._fetch_memory
        for width, height in wanted.sizes:
            if (width, height) not in self.ready.sizes:
                yield f"size={width}x{height}", partial(self._read_blank, width, height)
        if wanted.num_workers > self.ready.num_workers:
            yield f"num_workers={wanted.num_workers}", partial(self._start_threads, wanted.num_workers)

    def _read_blank(self, width: int, height: int) -> None:
        import numpy as np

        self._read(np.zeros((height, width, 3), np.uint8))

    def _radii_to_run(self, wanted: Variants) -> list[int]:
        """Radius 0, no suppression, has no step of its own where any other is ready."""
        new = [radius for radius in wanted.nms_radii if radius not in self.ready.nms_radii]
        others = [radius for radius in new if radius != 0]
        return others if others or self.ready.nms_radii else new


def _named(spec: Spec) -> Variants:
    if spec is None:
        return _DEFAULT
    if spec is False:
        return _NAMED["minimal"]
    if isinstance(spec, str) and spec in _NAMED:
        return _NAMED[spec]
    if isinstance(spec, Mapping):
        return checked(spec, _DEFAULT)
    raise ValueError(f"warmup_variants is {spec!r}; it must be 'default', 'minimal', 'all', None, False or a dict")


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _size(name: str, value: Any) -> Size:
    try:
        width, height = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} has {value!r}; a size is (width, height)") from None
    size = (
        _check.integer(f"a width of {name}", width, 1, _MOST_PIXELS),
        _check.integer(f"a height of {name}", height, 1, _MOST_PIXELS),
    )
    if size[0] * size[1] > _MOST_PIXELS:
        raise ValueError(f"{name} has {size[0]} x {size[1]}; an image has at most {_MOST_PIXELS} pixels")
    return size


def _sizes(name: str, values: Any) -> tuple[Size, ...]:
    return _unique(tuple(_size(name, value) for value in _items(name, values)))


def _radii(name: str, values: Any) -> tuple[int, ...]:
    items = _items(name, values)
    return _unique(tuple(_check.integer(f"a radius of {name}", item, 0, _native.NMS_RADIUS_LIMIT) for item in items))


def _decoders(name: str, values: Any) -> tuple[str, ...]:
    names = tuple(_items(name, values))
    for value in names:
        if value not in DECODERS:
            raise ValueError(f"{name} has {value!r}; known are {', '.join(DECODERS)}")
    return _unique(names)


def _items(name: str, values: Any) -> Iterable[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {values!r}; it must be a list or a tuple")
    return values


def _workers(name: str, value: Any) -> int:
    return _check.workers(value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "sizes": _sizes,
    "nms_radii": _radii,
    "decoders": _decoders,
    "num_workers": _workers,
    "fallbacks": lambda name, value: bool(value),
}
