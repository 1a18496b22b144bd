# SPDX-License-Identifier: Apache-2.0
"""SuperPoint keypoints and descriptors of images, on the CPU.

    import lensing

    with lensing.SuperPoint.from_pretrained() as model:
        features = model("photo.jpg")
        print(len(features), features.keypoints[:3], features.scores[:3], features.descriptors.shape)

`SuperPoint` is a model, `Features` what it finds in one image, `match` joins the features of two images, and
`HDF5Writer` keeps those of many in one file. What goes wrong with files, weights or downloads is an `Error`; a wrong
argument is a TypeError or ValueError.

`BUILTIN_WEIGHTS` is the name of the weights inside the library, which are used when nothing else is named; None when it
was built without. `DEFAULT_REPOSITORY` has the original weights, for academic or non-profit noncommercial research.

NumPy is imported when arrays are first asked for, so that importing this package takes a few milliseconds.
"""

from ._errors import ClosedError, DownloadError, Error, ImageError, UnsupportedError, WeightsError
from ._features import Features
from ._hdf5 import HDF5Writer
from ._matches import Matches, match
from ._native import BUILTIN_WEIGHTS, DEFAULT_REPOSITORY, VERSION
from ._superpoint import SuperPoint
from ._types import ArrayLike, Backend, DetectParameters, EncodedImage, ImageLike, ModelInfo, Precision

__version__: str = VERSION

__all__ = [
    "BUILTIN_WEIGHTS",
    "DEFAULT_REPOSITORY",
    "ArrayLike",
    "Backend",
    "ClosedError",
    "DetectParameters",
    "DownloadError",
    "EncodedImage",
    "Error",
    "Features",
    "HDF5Writer",
    "ImageError",
    "ImageLike",
    "Matches",
    "ModelInfo",
    "Precision",
    "SuperPoint",
    "UnsupportedError",
    "WeightsError",
    "__version__",
    "match",
]
