# SPDX-License-Identifier: Apache-2.0
"""What is found in one image, as tensors."""

from typing import TYPE_CHECKING, Any, TypedDict

import lensing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch


class Timing(TypedDict):
    """Wall-clock time of the steps of one call, milliseconds."""

    preprocess: float
    """Reading, decoding and resizing."""
    device_forward: float
    """The network."""
    postprocess: float
    """Suppression, selection, and sampling of descriptors."""


class SuperPointOutput:
    """Keypoints of one image, with scores and descriptors.

    N is the number of keypoints, `len(out)`. Keypoints, scores and descriptors have the same order: descending score.
    The tensors are on the CPU and are views of memory that lives as long as any of them.

    Results can be pickled and copied.
    """

    __slots__ = ("_features", "_tensors")

    def __init__(self, features: lensing.Features) -> None:
        """For the package itself: results come from a SuperPoint."""
        self._features = features
        self._tensors: dict[str, torch.Tensor] = {}

    def _tensor(self, name: str) -> "torch.Tensor | None":
        array = self._features[name]
        if array is None:
            return None
        tensor = self._tensors.get(name)
        if tensor is None:
            tensor = self._tensors.setdefault(name, _import_torch().from_numpy(array))
        return tensor

    @property
    def keypoints(self) -> "torch.Tensor":
        """float32 (N, 2): x, y in pixels of the image: the position in the 640 x 480 frame times `scale`."""
        tensor = self._tensor("keypoints")
        assert tensor is not None
        return tensor

    @property
    def scores(self) -> "torch.Tensor":
        """float32 (N,): in (0, 1], descending."""
        tensor = self._tensor("scores")
        assert tensor is not None
        return tensor

    @property
    def descriptors(self) -> "torch.Tensor | None":
        """float32 (N, 256): each of Euclidean length 1; None when they were not asked for."""
        return self._tensor("descriptors")

    @property
    def image_size(self) -> tuple[int, int]:
        """(height, width) of the image, pixels."""
        return self._features.image_size

    @property
    def scale(self) -> tuple[float, float]:
        """(x, y): width / 640 and height / 480 of the image."""
        return self._features.scale

    @property
    def device_nms(self) -> bool:
        """Whether suppression ran on a card, and not on the CPU: for radii 1 to 8, when the model is on one."""
        return self._features.device_nms

    @property
    def timing_ms(self) -> Timing:
        """Milliseconds that the steps took: preprocess, device_forward, postprocess."""
        timing = self._features.timing_ms
        return {
            "preprocess": timing["preprocess"],
            "device_forward": timing["forward"],
            "postprocess": timing["postprocess"],
        }

    def __len__(self) -> int:
        """Number of keypoints."""
        return len(self._features)

    def __getitem__(self, key: str) -> "torch.Tensor | None":
        """The tensor "keypoints", "scores" or "descriptors"."""
        if key not in ("keypoints", "scores", "descriptors"):
            raise KeyError(key)
        return self._tensor(key)

    def __repr__(self) -> str:
        height, width = self.image_size
        without = "" if self._features.descriptors is not None else ", without descriptors"
        return f"<tt_superpoint.SuperPointOutput: {len(self)} keypoints of {width} x {height} pixels{without}>"

    def numpy(self) -> "dict[str, npt.NDArray[np.float32]]":
        """The arrays by name, over the memory of the tensors: keypoints, scores and, if there are any, descriptors."""
        return self._features.numpy()

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, as objects that `json.dumps` takes; tensors become lists, without rounding."""
        arrays = {name: array.tolist() for name, array in self._features.numpy().items()}
        return {
            "keypoints": arrays["keypoints"],
            "scores": arrays["scores"],
            "descriptors": arrays.get("descriptors"),
            "image_size": list(self.image_size),
            "scale": list(self.scale),
            "device_nms": self.device_nms,
            "timing_ms": dict(self.timing_ms),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return SuperPointOutput, (self._features,)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError("tensors need PyTorch (pip install torch); numpy() and to_dict() do without") from error
    return torch
