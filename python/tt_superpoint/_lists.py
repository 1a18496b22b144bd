# SPDX-License-Identifier: Apache-2.0
"""Lists of images: on threads that are kept between lists, and with Pillow where Lensing knows no format."""

import io
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import lensing
from lensing import Features, _detection, _native

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from lensing._detection import Picture

# What num_workers may be, and one for the image whose features come next.
_MOST = 257


class Threads:
    """Threads for the images of lists; started when they are needed, and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def pool(self) -> "ThreadPoolExecutor":
        """It starts a thread only when all are busy, so it grows to what calls ask for. A new one after a fork."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._pool is None or self._process != os.getpid():
                self._pool = ThreadPoolExecutor(_MOST, "tt_superpoint")
                self._process = os.getpid()
            return self._pool

    def start(self, count: int) -> None:
        """Starts threads until there are so many, and lets Pillow keep memory for them."""
        _keep_pillow_buffers(2 * count)
        together = threading.Barrier(count)
        for future in [self.pool().submit(together.wait, 60) for _ in range(count)]:
            future.result()

    def stop(self) -> None:
        """Ends the threads when they are done with their images."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.shutdown()


class Detection(_detection.Detection):
    """Detections with the same parameters, one after the other or several at a time."""

    def __init__(self, model: _native.Model, threads: Threads, **parameters: Any) -> None:
        super().__init__(model, **parameters)
        self._threads = threads

    def read(self, image: object) -> "Picture":
        try:
            return super().read(image)
        except lensing.ImageError as error:
            if error.status != "format":
                raise
            return super().read(_open_with_pillow(image, error))

    def _ahead(self, images: Iterable[object], workers: int) -> Iterator[Features]:
        try:
            yield from self.find_on(self._threads.pool(), images, workers)
        except RuntimeError:
            # What a pool says that was stopped meanwhile.
            if self.model.closed:
                raise lensing.ClosedError("the model was closed during the call") from None
            raise


def _keep_pillow_buffers(count: int) -> None:
    """Lets Pillow use the memory of freed images again, which speeds up its conversions of the images that it is given;
    only if Pillow is in use, and its variable does not say otherwise."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and "PILLOW_BLOCKS_MAX" not in os.environ:
        pillow.core.set_blocks_max(max(count, pillow.core.get_blocks_max()))


def _open_with_pillow(image: Any, error: lensing.ImageError) -> Any:
    """The image, if Pillow knows its format; what Pillow raises otherwise."""
    try:
        from PIL import Image
    except ImportError:
        raise error from None
    if isinstance(image, str | os.PathLike):
        file: Any = image
    elif isinstance(image, bytes | bytearray):
        file = io.BytesIO(image)
    else:
        raise error
    opened = Image.open(file)
    opened.load()
    return opened
