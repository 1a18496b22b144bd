# SPDX-License-Identifier: Apache-2.0
"""The model."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, overload

import lensing
from lensing import ImageLike, _check
from lensing._images import split_batch
from lensing._types import Path

from . import _card, warmup
from ._lists import Detection, Threads
from ._output import SuperPointOutput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_DEFAULT_REVISION = "734450e9ffe229074f5998494ddc615475cdb20a"
"""Revision of the default repository."""


class DetectParameters(TypedDict, total=False):
    """Keyword arguments of `SuperPoint.__call__` besides num_workers, with its defaults."""

    max_keypoints: int
    keypoint_threshold: float
    nms_radius: int
    return_descriptors: bool
    bgr: bool


class SuperPoint:
    """SuperPoint: keypoints and descriptors of images. Made by `from_pretrained`.

    Threads may share a model: it does not change, and calls run at the same time. The result for an image does not
    depend on threads, on other calls, on preparation, or on the form in which the image came.
    """

    def __init__(self, model: lensing.SuperPoint, requested: dict[str, Any]) -> None:
        """For the package itself: see from_pretrained()."""
        self._model = model
        self._info = model.info
        self._requested = requested
        self._threads = Threads()
        self._preparing = threading.Lock()
        self._preparation = warmup.Preparation(model.prepare, self._prepare_reading, self._threads.start)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Path = lensing.DEFAULT_REPOSITORY,
        *,
        revision: str | None = None,
        device: object = None,
        device_id: int = 0,
        dispatch: _card.Dispatch = "auto",
        warmup_variants: warmup.Spec = None,
        precompile_sizes: Iterable[warmup.Size] | None = None,
        precompile_nms_radii: Iterable[int] = (),
        trace_region_size: int = 32 << 20,
        local_files_only: bool = False,
        verbose: bool = False,
    ) -> Self:
        """Opens a model and prepares the first call. Weights that are not in the Hugging Face cache are downloaded.

        Args:
            pretrained_model_name_or_path: a Hugging Face repository id, or a folder with config.json and
                model.safetensors.
            revision: commit, branch or tag of the repository. None: for the default repository commit 734450e9, for
                others the default branch. Without meaning for a folder.
            device: "cpu", or "blackhole": the card `device_id`; None: what `$LENSING_BACKEND` says, else the CPU. An
                open device of ttnn is left alone, with a RuntimeWarning, and the CPU takes its place.
            device_id: number of a card, at least 0: N of /dev/tenstorrent/N. Without meaning on the CPU.
            dispatch: "auto", "eth" or "worker"; `$SP_DISPATCH` takes the place of "auto". The last two give a
                RuntimeWarning.
            warmup_variants: what to prepare: None or "default", "minimal" or False, "all", or a dict with any of the
                keys sizes ((width, height), ...), nms_radii, decoders, num_workers and fallbacks, which replace those
                of the default.
            precompile_sizes: replaces sizes.
            precompile_nms_radii: added to nms_radii.
            trace_region_size: bytes, at least 0. Kept in `config`.
            local_files_only: never use the network.
            verbose: False sets TT_LOGGER_LEVEL and LOGURU_LEVEL for ttnn, where they are not set. Lensing itself prints
                nothing either way.

        Raises:
            lensing.WeightsError: an OSError: there are no such weights.
            lensing.DownloadError: an OSError: they could not be downloaded.
            lensing.UnsupportedError: a RuntimeError: there is no such card, or its driver or firmware does not do.
            OSError: the card is in use, or does not answer.
            ValueError: a value is out of range, or not known.
            TypeError: a value is of another type.
        """
        requested = _card.check(device, device_id, dispatch, trace_region_size)
        backend = _card.backend(device)
        wanted = warmup.variants(warmup_variants, precompile_sizes, precompile_nms_radii)
        _card.quieten(verbose)
        name = os.fspath(pretrained_model_name_or_path)
        if os.path.exists(name):
            revision = None
        elif revision is None and name == lensing.DEFAULT_REPOSITORY:
            revision = _DEFAULT_REVISION
        model = cls(
            lensing.SuperPoint.from_pretrained(
                name,
                revision=revision,
                backend=backend,
                device_id=requested["device_id"],
                local_files_only=local_files_only,
            ),
            requested,
        )
        try:
            model._preparation.prepare(wanted)
        except BaseException:
            model.close()
            raise
        return model

    @overload
    def __call__(  # type: ignore[overload-overlap]  # text and bytes are sequences too, and are one image
        self,
        images: ImageLike,
        max_keypoints: int = 1024,
        keypoint_threshold: float = 0.005,
        nms_radius: int = 4,
        return_descriptors: bool = True,
        bgr: bool = False,
        num_workers: int = 4,
    ) -> SuperPointOutput: ...

    @overload
    def __call__(
        self,
        images: Sequence[ImageLike],
        max_keypoints: int = 1024,
        keypoint_threshold: float = 0.005,
        nms_radius: int = 4,
        return_descriptors: bool = True,
        bgr: bool = False,
        num_workers: int = 4,
    ) -> list[SuperPointOutput]: ...

    def __call__(
        self,
        images: ImageLike | Sequence[ImageLike],
        max_keypoints: int = 1024,
        keypoint_threshold: float = 0.005,
        nms_radius: int = 4,
        return_descriptors: bool = True,
        bgr: bool = False,
        num_workers: int = 4,
    ) -> SuperPointOutput | list[SuperPointOutput]:
        """Finds keypoints in one image, or in each of several.

        An image is

        - a file name, or the bytes of an image file: JPEG, PNG, WebP, TIFF, GIF, BMP or PNM, or with Pillow installed
          any format that Pillow opens;
        - a Pillow image of any mode;
        - a NumPy array (H, W) or (H, W, C) with C = 1, 3 or 4: gray, RGB or RGBA;
        - a PyTorch tensor (H, W), (C, H, W) or (H, W, C); what could be both, such as (3, H, 3), is (C, H, W).

        Elements of arrays are uint8, other integers in 0..255, or floats in [0, 1], which are multiplied by 255 and
        rounded to 8 bits, half to even. Only channel 0 (R), or gray, is read. Every image is resized to 640 x 480,
        whatever its aspect.

        Args:
            images: one image; or a list or other sequence of images; or a batch: an array (B, H, W, C) or a tensor
                (B, C, H, W) or (B, H, W, C).
            max_keypoints: keep at most so many, those of the highest scores: -1 (all) to 307200.
            keypoint_threshold: keep scores above this, 0 to 1.
            nms_radius: keep a pixel if it is the maximum of the square of 2 nms_radius + 1 pixels around it, in the
                640 x 480 frame: 0 (off) to 32.
            return_descriptors: False leaves descriptors out, which is faster.
            bgr: the channels of arrays and tensors are in the order of OpenCV: blue, green, red.
            num_workers: threads for the next images of a list meanwhile, 0 to 256. They read and decode, and take as
                many images through the network at the same time as the model has threads.

        Returns:
            The output for the one image, or a list of those of all images in their order. (For type checkers an array
            is one image; give them list(batch).)

        Raises:
            FileNotFoundError, PermissionError, IsADirectoryError: the file cannot be read.
            OSError: the file is damaged, too large (lensing.ImageError), or of an unknown format
                (PIL.UnidentifiedImageError; lensing.ImageError without Pillow).
            TypeError: that is no image, or its elements are of no such type.
            ValueError: shape or values are not those of an image, or a parameter is out of range.
            RuntimeError: the model is closed (lensing.ClosedError).
        """
        detection = self._detection(
            max_keypoints=max_keypoints,
            keypoint_threshold=keypoint_threshold,
            nms_radius=nms_radius,
            return_descriptors=return_descriptors,
            bgr=bgr,
        )
        workers = _check.workers(num_workers)
        batch = split_batch(images)
        if batch is None:
            return SuperPointOutput(detection.one(images))
        features = detection.each(batch, min(workers, max(len(batch) - 1, 0)))
        return [SuperPointOutput(item) for item in features]

    def iter(
        self, images: Iterable[ImageLike], num_workers: int = 0, **parameters: Unpack[DetectParameters]
    ) -> Iterator[SuperPointOutput]:
        """Finds keypoints in one image after the other, such as the frames of a video.

        Args:
            images: any iterable; the next image is asked for when the next result is, and with num_workers so many
                images before that.
            num_workers: as for a call, but 0 by default.
            parameters: max_keypoints and the others, as for a call.

        Yields:
            The same that a call with each image returns.
        """
        workers = _check.workers(num_workers)
        features = self._detection(**parameters).each(images, workers)
        return map(SuperPointOutput, features)

    def warmup(
        self,
        *,
        nms_radius: int | None = None,
        size: warmup.Size | None = None,
        sizes: Iterable[warmup.Size] = (),
        nms_radii: Iterable[int] = (),
        decoders: Iterable[str] = (),
        num_workers: int = 0,
        fallbacks: bool = False,
    ) -> dict[str, float]:
        """Prepares more variants. No result changes.

        Args:
            nms_radius: a radius, 0 to 32.
            size: (width, height) of images.
            sizes: several of them.
            nms_radii: several radii.
            decoders: names of `tt_superpoint.warmup.DECODERS`; always ready.
            num_workers: threads of list calls.
            fallbacks: always ready.

        Returns:
            The seconds of each step that ran; empty when all was ready.
        """
        wanted = warmup.checked(
            {
                "sizes": [*sizes, *([] if size is None else [size])],
                "nms_radii": [*nms_radii, *([] if nms_radius is None else [nms_radius])],
                "decoders": decoders,
                "num_workers": num_workers,
                "fallbacks": fallbacks,
            }
        )
        self._check_open()
        with self._preparing:
            return self._preparation.prepare(wanted)

    @property
    def config(self) -> dict[str, Any]:
        """Facts about the model, as a new dict.

        - repository, revision, local_dir, license: of the weights;
        - backend ("cpu" or "blackhole"), device ("cpu", "/dev/tenstorrent/N" or "simulator"), precision,
          border_removal_distance;
        - device_config: dispatch, num_command_queues and compute_grid, as the server's /info has them;
        - requested: device, device_id, dispatch and trace_region_size, as they were given;
        - warmup_variants: what is ready: sizes, nms_radii, decoders, num_workers, fallbacks;
        - warmup_s: the seconds of each step that prepared it.
        """
        info = self._info
        with self._preparing:
            ready, seconds = self._preparation.ready._asdict(), dict(self._preparation.seconds)
        return {
            "repository": info["repository"],
            "revision": info["revision"],
            "local_dir": info["local_dir"],
            "license": info["license"],
            "backend": info["backend"],
            "device": info["device"],
            "precision": info["precision"],
            "border_removal_distance": info["border_removal_distance"],
            "device_config": dict(_card.DEVICE_CONFIG)
            if info["backend"] == "blackhole"
            else {
                "dispatch": f"cpu-{info['cpu_path']}",
                "num_command_queues": 1,
                "compute_grid": f"{info['threads']}x1",
            },
            "requested": dict(self._requested),
            "warmup_variants": ready,
            "warmup_s": seconds,
        }

    def close(self) -> None:
        """Closes the model and stops the threads of list calls. Does nothing the second time. Results stay valid."""
        self._model.close()
        self._threads.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._model).replace("lensing", "tt_superpoint", 1)

    def _check_open(self) -> None:
        if self._model.closed:
            raise lensing.ClosedError("the model is closed")

    def _detection(self, **parameters: Any) -> Detection:
        self._check_open()
        return Detection(self._model._model, self._threads, **parameters)

    def _prepare_reading(self, image: "npt.NDArray[np.uint8]") -> None:
        self._detection().read(image)
