# SPDX-License-Identifier: Apache-2.0
"""The model."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack, overload

from . import _check, _native
from ._detection import Detection
from ._errors import WeightsError
from ._features import Features
from ._images import open_image, split_batch
from ._matches import Matches, match
from ._types import Backend, DetectParameters, ExifMode, ImageLike, ModelInfo, Path, Precision

if TYPE_CHECKING:
    from ._types import FloatArray

# What is not a path, by the rules of lns_weights_locate().
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?<!\.safetensors)(@.+)?")


def _is_repository(name: str | None) -> bool:
    """Whether weights that are not there could be downloaded; None: those that the environment names."""
    if name is None:
        if os.environ.get("SP_WEIGHTS_DIR"):
            return False
        name = os.environ.get("HF_MODEL") or _native.DEFAULT_REPOSITORY
    return not os.path.exists(name) and _REPOSITORY.fullmatch(name) is not None


class SuperPoint:
    """SuperPoint: keypoints and descriptors of images.

        with lensing.SuperPoint.from_pretrained() as model:
            features = model("photo.jpg")

    A model is opened once. Threads may share it: it does not change, and calls run at the same time, without Python's
    global lock while they work. The result for an image does not depend on threads, on other calls, or on the form in
    which the image came.

    A model that was open when a process forked works in the child too, on one thread for each call; one on a card does
    not, and says so.

    Args:
        weights: a folder with config.json and model.safetensors, a .safetensors file, or a Hugging Face repository id,
            perhaps with "@revision", which is looked up in the local cache. None: what the environment names, as for
            the program: SP_WEIGHTS_DIR, else HF_MODEL with TT_WEIGHTS_REVISION; else the weights inside the library,
            `lensing.BUILTIN_WEIGHTS`. Nothing is downloaded: see from_pretrained().
        threads: threads that one call uses, 0 to 256; 0: as many as the CPU has.
        precision: arithmetic of the network: "fp32", or "bf16", which is about twice as fast and a little less exact,
            and needs a CPU with AVX512_BF16. A card has products of bfloat16, whatever this says.
        backend: "cpu", or "blackhole": a Tenstorrent Blackhole card, which one model uses at a time; where
            LENSING_TTSIM names the vendor's simulator, that in its place.
        device_id: N of the card /dev/tenstorrent/N; None: TT_DEVICE_ID, or 0. Without meaning on the CPU.

    Raises:
        WeightsError: there are no such weights, or they are not those of a SuperPoint.
        UnsupportedError: the CPU has no such arithmetic; there is no such card, or its driver or firmware does not do.
        OSError: the card is in use, or does not answer.
        ValueError: a number is out of range, or TT_DEVICE_ID is no number; there is no such backend.
    """

    __slots__ = ("__weakref__", "_model")

    def __init__(
        self,
        weights: Path | None = None,
        threads: int = 0,
        precision: Precision = "fp32",
        *,
        backend: Backend = "cpu",
        device_id: int | None = None,
    ) -> None:
        if not isinstance(precision, str):
            raise TypeError(f"precision is {precision!r}; it must be a name such as 'fp32'")
        if backend not in ("cpu", "blackhole"):
            raise ValueError(f"backend is {backend!r}; it must be 'cpu' or 'blackhole'")
        number = -1 if device_id is None else _check.integer("device_id", device_id, 0, 2**31 - 1)
        name = None if weights is None else os.fsencode(weights)
        self._model = _native.open_model(name, _check.threads(threads), precision, backend, number)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: Path | None = None,
        *,
        revision: str | None = None,
        threads: int = 0,
        precision: Precision = "fp32",
        backend: Backend = "cpu",
        device_id: int | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Opens a model, and downloads its weights into the Hugging Face cache first if they are not there. The weights
        inside the library need no download.

        Args:
            name_or_path: a Hugging Face repository id, a folder with config.json and model.safetensors, or a
                .safetensors file. None: as for SuperPoint().
            revision: commit, branch or tag of the repository, of `lensing.DEFAULT_REPOSITORY` when none is named; None:
                the default branch.
            threads: as for SuperPoint().
            precision: as for SuperPoint().
            backend: as for SuperPoint().
            device_id: as for SuperPoint().
            local_files_only: never use the network.

        Raises:
            WeightsError: there are no such weights.
            DownloadError: they could not be downloaded.
            UnsupportedError, OSError, ValueError: as for SuperPoint().
        """
        name = None if name_or_path is None else os.fspath(name_or_path)
        if revision is not None:
            name = name if name is not None else _native.DEFAULT_REPOSITORY
            if os.path.exists(name):
                raise ValueError(f"revision is {revision!r}, but {name!r} is a path; a revision is one of a repository")
            name = f"{name}@{revision}"
        try:
            return cls(name, threads, precision, backend=backend, device_id=device_id)
        except WeightsError:
            if local_files_only or not _is_repository(name):
                raise
        _native.fetch_weights(None if name is None else os.fsencode(name))
        return cls(name, threads, precision, backend=backend, device_id=device_id)

    @overload
    def __call__(  # type: ignore[overload-overlap]  # text and bytes are sequences too, and are one image
        self, images: ImageLike, *, num_workers: int = 1, **parameters: Unpack[DetectParameters]
    ) -> Features: ...

    @overload
    def __call__(
        self, images: Sequence[ImageLike], *, num_workers: int = 1, **parameters: Unpack[DetectParameters]
    ) -> list[Features]: ...

    def __call__(
        self,
        images: ImageLike | Sequence[ImageLike],
        *,
        max_keypoints: int = 1024,
        keypoint_threshold: float = 0.005,
        nms_radius: int = 4,
        return_descriptors: bool = True,
        bgr: bool = False,
        exif: ExifMode = "ignore",
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
        num_workers: int = 1,
    ) -> Features | list[Features]:
        """Finds keypoints in one image, or in each of several.

        An image is

        - a file name, the bytes of an image file, or an open binary file: JPEG, PNG, WebP, TIFF, GIF, BMP or PNM;
        - a Pillow image of any mode;
        - a NumPy array (H, W) or (H, W, C) with C = 1, 3 or 4: gray, RGB or RGBA, with any strides;
        - a PyTorch tensor (H, W), (C, H, W) or (H, W, C); what could be both, such as (3, H, 3), is (C, H, W);
        - an object with `__array_interface__`, `__array__` or `__dlpack__`, taken as a NumPy array.

        Elements of arrays are uint8, other integers in 0..255, or floats in [0, 1], which are multiplied by 255 and
        rounded to 8 bits, half to even. Only channel 0 (R), or gray, is read, and only its values are checked. Tensors
        may require a gradient and be on another device. Every image is resized to 640 x 480, whatever its aspect.

        Args:
            images: one image; or a list, tuple or other sequence of images; or a batch: an array (B, H, W, C) or a
                tensor (B, C, H, W) or (B, H, W, C). For other iterables see iter().
            max_keypoints: keep at most so many, those of the highest scores: -1 (all) to 307200.
            keypoint_threshold: keep scores above this, 0 to 1.
            nms_radius: keep a pixel if it is the maximum of the square of 2 nms_radius + 1 pixels around it, in the
                640 x 480 frame: 0 (off) to 32.
            return_descriptors: False leaves descriptors out, which is faster.
            bgr: the channels of arrays and tensors are in the order of OpenCV: blue, green, red.
            exif: "apply" turns images upright by the EXIF orientation of their files; "ignore" takes the pixels as
                they are stored, like Pillow, COLMAP and hloc.
            max_pixels: files with more pixels than this are refused; 0: no limit.
            num_workers: threads for the next images of a list meanwhile, 0 to 256; 0: none. They read and decode, and
                take as many images through the network at the same time as the model has threads.

        Returns:
            The features of the one image, or a list of those of all images in their order. (For type checkers an array
            is one image; give them list(batch).)

        Raises:
            FileNotFoundError, PermissionError, IsADirectoryError: the file cannot be read.
            ImageError: the file is damaged, of an unknown format, or too large.
            TypeError: that is no image, or its elements are of no such type.
            ValueError: shape or values are not those of an image, or a parameter is out of range.
            ClosedError: the model is closed.
        """
        detection = Detection(
            self._model,
            max_keypoints=max_keypoints,
            keypoint_threshold=keypoint_threshold,
            nms_radius=nms_radius,
            return_descriptors=return_descriptors,
            bgr=bgr,
            exif=exif,
            max_pixels=max_pixels,
        )
        workers = _check.workers(num_workers)
        batch = split_batch(images)
        if batch is None:
            return detection.one(images)
        return list(detection.each(batch, min(workers, max(len(batch) - 1, 0))))

    def iter(
        self, images: Iterable[ImageLike], *, num_workers: int = 0, **parameters: Unpack[DetectParameters]
    ) -> Iterator[Features]:
        """Finds keypoints in one image after the other, such as the frames of a video.

        Args:
            images: any iterable; the next image is asked for when the next result is, and with num_workers so many
                images before that.
            num_workers: as for a call, but 0 by default: with a live camera, a frame that waits is an old one.
            parameters: max_keypoints and the others, as for a call.

        Yields:
            The same that a call with each image returns.
        """
        workers = _check.workers(num_workers)
        return Detection(self._model, **parameters).each(images, workers)

    def match(
        self,
        first: ImageLike | Features,
        second: ImageLike | Features,
        *,
        ratio: float = 1.0,
        min_similarity: float = -1.0,
        **parameters: Unpack[DetectParameters],
    ) -> Matches:
        """Which keypoints of two images belong together.

        Args:
            first: an image, or features with descriptors.
            second: the same.
            ratio: as for `lensing.match`.
            min_similarity: as for `lensing.match`.
            parameters: max_keypoints and the others, as for a call.
        """
        found = [item if isinstance(item, Features) else self(item, **parameters) for item in (first, second)]
        return match(found[0], found[1], ratio=ratio, min_similarity=min_similarity, threads=self.info["threads"])

    def prepare(self) -> None:
        """Fetches the memory of one detection from the system, which otherwise the first call does.

        It changes no result, and takes some milliseconds.
        """
        self._model.prepare()

    def forward(
        self, image: ImageLike, *, bgr: bool = False, return_descriptors: bool = True
    ) -> "tuple[FloatArray, FloatArray | None]":
        """What the network itself gives for an image, before suppression and selection.

        Returns:
            scores: float32 (480, 640), one for each pixel of the frame, in [0, 1].
            descriptors: float32 (60, 80, 256), one of Euclidean length 1 for each cell of 8 x 8 pixels; None when they
                were not asked for.
        """
        import numpy as np

        plane = open_image(image, bgr=bgr)
        scores = np.empty((480, 640), np.float32)
        descriptors = np.empty((60, 80, 256), np.float32) if return_descriptors else None
        self._model.forward(plane, scores, descriptors)
        return scores, descriptors

    @property
    def info(self) -> ModelInfo:
        """Facts about the model: where its weights come from, and what it runs on."""
        return self._model.describe()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._model.closed

    def close(self) -> None:
        """Closes the model; calls that are running end as usual, and memory is freed after the last one. Does nothing
        the second time. Results stay valid."""
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<lensing.SuperPoint: closed>"
        info = self.info
        device = f"{info['threads']} threads" if info["backend"] == "cpu" else info["device"]
        return f"<lensing.SuperPoint: {info['repository']}, {info['precision']}, {device}>"
