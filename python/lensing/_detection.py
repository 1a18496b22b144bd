# SPDX-License-Identifier: Apache-2.0
"""Detections with the same parameters, one after the other or several at a time."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from . import _check, _native
from ._features import Features
from ._images import open_image
from ._types import ExifMode

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    Picture = tuple[_native.Plane, float]

# Images that are in the network at the same time, at most: each takes some 50 MB. Beyond that, the threads of the model
# help each other with one image.
_IN_NETWORK = 16


class Detection:
    """A model with parameters, checked once."""

    def __init__(
        self,
        model: _native.Model,
        *,
        max_keypoints: int = 1024,
        keypoint_threshold: float = 0.005,
        nms_radius: int = 4,
        return_descriptors: bool = True,
        bgr: bool = False,
        exif: ExifMode = "ignore",
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
    ) -> None:
        self.model = model
        self.max_keypoints = _check.integer("max_keypoints", max_keypoints, -1, _native.MAX_KEYPOINTS_LIMIT)
        self.keypoint_threshold = _check.real("keypoint_threshold", keypoint_threshold)
        self.nms_radius = _check.integer("nms_radius", nms_radius, 0, _native.NMS_RADIUS_LIMIT)
        self.return_descriptors = bool(return_descriptors)
        self.bgr = bool(bgr)
        self.exif: ExifMode = exif
        self.max_pixels = _check.integer("max_pixels", max_pixels, 0, 2**64 - 1)

    def read(self, image: object) -> "Picture":
        """The R plane of an image, and how long it took in milliseconds."""
        start = time.perf_counter()
        plane = open_image(image, bgr=self.bgr, exif=self.exif, max_pixels=self.max_pixels)
        return plane, (time.perf_counter() - start) * 1e3

    def detect(self, picture: "Picture") -> Features:
        """The features of a plane."""
        plane, milliseconds = picture
        return Features(
            self.model.detect(
                plane,
                milliseconds,
                self.max_keypoints,
                self.keypoint_threshold,
                self.nms_radius,
                self.return_descriptors,
            )
        )

    def one(self, image: object) -> Features:
        """The features of an image."""
        return self.detect(self.read(image))

    def each(self, images: Iterable[object], workers: int) -> Iterator[Features]:
        """The features of one image after the other; so many images ahead are worked on at the same time.

        An error says which image it was.
        """
        found = map(self.one, images) if workers == 0 else self._ahead(images, workers)
        index = 0
        while True:
            try:
                features = next(found, None)
                if features is None:
                    return
            except Exception as error:
                error.add_note(f"image {index}, counted from 0")
                raise
            yield features
            index += 1

    def _ahead(self, images: Iterable[object], workers: int) -> Iterator[Features]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(workers + 1, "lensing") as pool:
            yield from self.find_on(pool, images, workers)

    def find_on(self, pool: "Executor", images: Iterable[object], workers: int) -> Iterator[Features]:
        """What one() gives for one image after the other, on `workers` + 1 threads of the pool; no more images are in
        the network than the model has threads."""
        turns = threading.Semaphore(min(self.model.describe()["threads"], _IN_NETWORK))
        waiting: deque[Future[Features]] = deque()

        def find(image: object) -> Features:
            picture = self.read(image)
            with turns:
                return self.detect(picture)

        try:
            for image in images:
                waiting.append(pool.submit(find, image))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
