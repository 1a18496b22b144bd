# SPDX-License-Identifier: Apache-2.0
"""What is found in one image."""

import json
import os
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._images import open_image
from ._types import ExifMode, Facts, Format, ImageLike, Path, Timing, Weights

if TYPE_CHECKING:
    from ._types import FloatArray

_FORMATS: dict[str, Format] = {".json": "json", ".npz": "npz", ".h5": "hdf5", ".hdf5": "hdf5"}


class Features:
    """Keypoints of one image, with scores and descriptors.

    N is the number of keypoints, `len(features)`. All arrays have the same order: descending score, and among equal
    scores row by row in the 640 x 480 frame of the network. They are views of one block of memory, which lives as long
    as any of them, and what is written into them is what save(), draw() and match() then see.

    Results can be pickled and copied.
    """

    __slots__ = ("_arrays", "_native")

    def __init__(self, native: _native.Features) -> None:
        """For the package itself: results come from a SuperPoint."""
        self._native = native
        self._arrays: dict[str, FloatArray] = {}

    def _array(self, name: Literal["keypoints", "network_keypoints", "scores", "descriptors"]) -> "FloatArray | None":
        array = self._arrays.get(name)
        if array is None:
            block = getattr(self._native, name)
            if block is None:
                return None
            import numpy as np

            array = self._arrays.setdefault(name, np.asarray(block))
        return array

    @property
    def _facts(self) -> Facts:
        return self._native.facts

    @property
    def keypoints(self) -> "FloatArray":
        """float32 (N, 2): x, y in pixels of the image, from its left and top; not rounded. They are the position in the
        640 x 480 frame of the network times `scale`."""
        array = self._array("keypoints")
        assert array is not None
        return array

    @property
    def network_keypoints(self) -> "FloatArray":
        """float32 (N, 2): x, y in pixels of the 640 x 480 frame of the network; whole numbers."""
        array = self._array("network_keypoints")
        assert array is not None
        return array

    @property
    def scores(self) -> "FloatArray":
        """float32 (N,): in (0, 1], descending."""
        array = self._array("scores")
        assert array is not None
        return array

    @property
    def descriptors(self) -> "FloatArray | None":
        """float32 (N, 256): each of Euclidean length 1; None when they were not asked for."""
        return self._array("descriptors")

    @property
    def image_size(self) -> tuple[int, int]:
        """(height, width) of the image, pixels."""
        facts = self._facts
        return facts["image_height"], facts["image_width"]

    @property
    def scale(self) -> tuple[float, float]:
        """(x, y): width / 640 and height / 480 of the image."""
        facts = self._facts
        return facts["image_width"] / 640, facts["image_height"] / 480

    @property
    def timing_ms(self) -> Timing:
        """Milliseconds that the steps took: preprocess, forward, postprocess."""
        facts = self._facts
        return {
            "preprocess": facts["preprocess"],
            "forward": facts["forward"],
            "postprocess": facts["postprocess"],
        }

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters that were used: max_keypoints, keypoint_threshold, nms_radius, border_removal_distance."""
        facts = self._facts
        return {
            "max_keypoints": facts["max_keypoints"],
            "keypoint_threshold": facts["keypoint_threshold"],
            "nms_radius": facts["nms_radius"],
            "border_removal_distance": facts["border_removal_distance"],
        }

    @property
    def weights(self) -> Weights:
        """The weights that found them: name and license."""
        return {"name": self._facts["weights"], "license": self._facts["license"]}

    @property
    def device_nms(self) -> bool:
        """Whether suppression ran on a card, and not on the CPU: for radii 1 to 8, with backend "blackhole"."""
        return self._facts["device_nms"]

    def __len__(self) -> int:
        """Number of keypoints."""
        return len(self._native)

    def __getitem__(self, key: str) -> "FloatArray | None":
        """The array "keypoints", "scores" or "descriptors"."""
        if key not in ("keypoints", "scores", "descriptors"):
            raise KeyError(key)
        value: FloatArray | None = getattr(self, key)
        return value

    def __repr__(self) -> str:
        height, width = self.image_size
        without = "" if self._native.descriptors is not None else ", without descriptors"
        return f"<lensing.Features: {len(self)} keypoints of an image of {width} x {height} pixels{without}>"

    def numpy(self) -> "dict[str, FloatArray]":
        """The arrays by name: keypoints, scores and, if there are any, descriptors."""
        arrays = {"keypoints": self.keypoints, "scores": self.scores}
        if self.descriptors is not None:
            arrays["descriptors"] = self.descriptors
        return arrays

    def to_json(self, *, file: str | None = None, descriptors: bool = False) -> str:
        """One JSON object on one line, as `lensing detect` writes it: num_keypoints, keypoints (3 decimals), scores
        (6 decimals), original_size, image_size, scale, params, timing_ms, weights.

        Args:
            file: value of the key "file", which then comes first.
            descriptors: add "descriptors", an NPZ of float16 (N, 256) in base64.
        """
        name = None if file is None else os.fsencode(file)
        return _native.features_to_json(self._native, name, descriptors).decode()

    def to_dict(self, *, descriptors: bool = False) -> dict[str, Any]:
        """What to_json() writes, as a dict of plain Python objects."""
        value: dict[str, Any] = json.loads(self.to_json(descriptors=descriptors))
        return value

    def save(
        self, path: Path, *, format: Format | None = None, name: str | None = None, descriptors: bool = False
    ) -> None:
        """Writes a file, complete or not at all, in place of one of that name.

        Args:
            path: name of the file. Without `format` its ending decides: .json, .npz, .h5 or .hdf5.
            format: "json": what to_json() gives, and a newline. "npz": keypoints, scores and descriptors in float32 and
                image_size (width, height), for `numpy.load`, and weights and weights_license, bytes. "hdf5": the same
                in one group, as hloc reads it; the names of the weights are attributes of the group.
            name: name of the image: the key "file" in JSON, the group in HDF5, where the default is the file name
                without its ending. For many images in one HDF5 file see `HDF5Writer`.
            descriptors: whether JSON holds descriptors; NPZ and HDF5 hold them always, if there are any.

        Raises:
            OSError: the file cannot be written.
            UnsupportedError: there is no HDF5 library on this machine.
        """
        stem, ending = os.path.splitext(os.path.basename(path))
        kind = format or _FORMATS.get(ending.lower())
        if kind == "json":
            text = self.to_json(file=name, descriptors=descriptors) + "\n"
            _native.save_file(os.fsencode(path), text.encode())
        elif kind == "npz":
            _native.save_file(os.fsencode(path), _native.features_to_npz(self._native))
        elif kind == "hdf5":
            file = _native.create_hdf5(os.fsencode(path))
            try:
                file.add(os.fsencode(stem if name is None else name), self._native)
                file.close()
            finally:
                file.abandon()
        elif format is not None:
            raise ValueError(f"format is {format!r}; it must be 'json', 'npz' or 'hdf5'")
        else:
            raise ValueError(f"no format is known for {os.fspath(path)!r}; name it .json, .npz or .h5, or give format=")

    def draw(
        self, image: ImageLike, path: Path | None = None, *, bgr: bool = False, exif: ExifMode = "ignore"
    ) -> bytes:
        """The image in gray with a circle for every keypoint, larger and warmer for a higher score.

        Args:
            image: the image that these features are of, in any form that SuperPoint takes.
            path: a file to write too.
            bgr: as for SuperPoint.
            exif: as for SuperPoint.

        Returns:
            A PNG file, at most 2560 pixels wide and high.

        Raises:
            ValueError: the image has another size.
            UnsupportedError: there is no cairo library on this machine.
        """
        plane = open_image(image, bgr=bgr, exif=exif)
        check_size(plane, self)
        png = _native.draw_keypoints(plane, self._native)
        if path is not None:
            _native.save_file(os.fsencode(path), png)
        return png

    def __reduce__(self) -> "tuple[Any, ...]":
        native = self._native
        descriptors = native.descriptors
        return _rebuild, (
            bytes(native.keypoints),
            bytes(native.network_keypoints),
            bytes(native.scores),
            None if descriptors is None else bytes(descriptors),
            self._facts,
        )


def check_size(plane: _native.Plane, features: Features) -> None:
    """Refuses an image that features cannot be of."""
    height, width = features.image_size
    if (plane.height, plane.width) != (height, width):
        raise ValueError(
            f"the image has {plane.width} x {plane.height} pixels, but the features are of one of {width} x {height}"
        )


def _rebuild(
    keypoints: bytes, network_keypoints: bytes, scores: bytes, descriptors: bytes | None, facts: Facts
) -> Features:
    values = {key: os.fsencode(value) if isinstance(value, str) else value for key, value in facts.items()}
    return Features(_native.make_features(keypoints, network_keypoints, scores, descriptors, values))
