# SPDX-License-Identifier: Apache-2.0
"""The Python API of the `tt_superpoint` package for Tenstorrent cards, on Lensing.

    from tt_superpoint import SuperPoint

    with SuperPoint.from_pretrained() as model:
        out = model("photo.jpg")
        print(len(out), out.keypoints[:3], out.scores[:3], out.descriptors.shape)

For programs that were written for that package: same names, arguments, defaults and results. The network runs on the
CPU, or on a card with device="blackhole", or when the variable LENSING_BACKEND is "blackhole". What else is said about
a card is checked, shown in `SuperPoint.config`, and changes no result. New programs should take the package `lensing`,
which this one is a layer over.

PyTorch is imported when a result is first asked for a tensor. Until then nothing here needs it, and
`SuperPointOutput.numpy` and `to_dict` never do.
"""

from lensing import __version__

from . import warmup
from ._output import SuperPointOutput
from ._superpoint import SuperPoint

__all__ = ["SuperPoint", "SuperPointOutput", "__version__", "warmup"]
