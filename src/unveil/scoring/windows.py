"""SSIM and PSNR of images, one by one, and which images of two sets go together.

Images come with pixels in [−1, 1]; of recovered ones, what is outside is clipped. Bytes are brought
there from 0..255. They are compared on [0, 1], where black is zero.

SSIM. Wang, Bovik, Sheikh and Simoncelli, IEEE Trans. Image Processing 13 (2004), over 7×7 uniform
windows that lie inside the image, sample variances, K₁ = 0.01, K₂ = 0.03 and a range of 1; the mean
over windows and channels: scikit-image's `structural_similarity(channel_axis=-1, data_range=1)` of
images on [0, 1]. Where zero lies matters: the means of windows are multiplied, and on [−1, 1] an
image and its negative have both means and covariance of opposite signs, so that they come out alike
(0.73 on CIFAR-10, −0.62 on [0, 1]).
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unveil.checks import DataLike, InputError, as_array, as_shape, as_vectors
from unveil.data.arrays import read_any_array

WINDOW = 7
"""Height and width of a window, as in scikit-image."""
RANGE = 2.0
"""Of pixels as they come: from −1 to 1."""
HALF_BYTE = 127.5
"""Bytes 0 and 255 become −1 and 1."""
Images = NDArray[np.float64]


def ssim(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """SSIM (n,) of image i of `first` with image i of `second`."""
    return ssim_of(*_same(first, second, shape))


def psnr(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Peak signal to noise ratio (n,) in dB, image by image; 100 at most."""
    return psnr_of(*_same(first, second, shape))


def ssim_of(A: Images, B: Images) -> NDArray[np.float64]:
    """(n,), image by image."""
    try:
        from skimage.metrics import structural_similarity
    except ImportError:
        raise InputError(
            "SSIM needs scikit-image: install it by pip install 'unveil[images]'"
        ) from None
    compare: Any = structural_similarity  # it has no types
    likeness = [
        float(compare(a, b, win_size=WINDOW, channel_axis=-1, data_range=1.0))
        for a, b in zip(A, B, strict=True)
    ]
    return np.array(likeness, np.float64)


def match_images(A: Images, B: Images, *, best: int = 8) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images of A and of B that go together, one to one, so that the sum of SSIMs is largest.

    best: SSIM is worked out of the so many images of the other side that correlate most with each;
    an image is never as like to others. All pairs would take seconds for a hundred images.
    """
    x, y = (part.reshape(len(part), -1) for part in (A, B))
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (x, y))
    alike = x @ y.T
    alike /= np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1) + 1e-12
    near = np.argsort(np.argsort(-alike, axis=1), axis=1) < best
    near |= np.argsort(np.argsort(-alike, axis=0), axis=0) < best
    table = alike - 2  # others: less than any SSIM
    first, second = np.nonzero(near)
    table[first, second] = ssim_of(A[first], B[second])
    return linear_sum_assignment(table, maximize=True)


def psnr_of(A: Images, B: Images) -> NDArray[np.float64]:
    """(n,) in dB, 100 for equal images."""
    return -10 * np.log10(np.maximum(mean_square_of(A, B), 1e-10))


def mean_square_of(A: Images, B: Images) -> NDArray[np.float64]:
    """(n,)."""
    return np.asarray(((A - B) ** 2).mean(axis=(1, 2, 3)))


def _same(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> tuple[Images, Images]:
    A, B = (as_images(values, shape, "images") for values in (first, second))
    if len(A) != len(B):
        raise InputError(
            f"{len(A)} images and {len(B)} others: give as many, they are compared one by one"
        )
    return A, B


def read_images(values: Any, name: str) -> NDArray[Any]:
    """The array of what was given. Bytes in a file stay bytes, which are brought to [−1, 1]."""
    path = Path(values) if isinstance(values, (str, PathLike)) else None
    if path is not None and path.suffix.lower() in (".npy", ".npz", ".pt", ".pth"):
        return read_any_array(path)
    return as_array(values, name)


def as_images(values: Any, shape: tuple[int, ...], name: str) -> Images:
    """(n, height, width, channels), clipped, and brought from [−1, 1] to [0, 1]."""
    array = read_images(values, name)
    if array.dtype == np.uint8:
        array = array.astype(np.float32) / np.float32(HALF_BYTE) - np.float32(1)
    # Images may come flat or with their own axes.
    flat = as_vectors(
        array.reshape(len(array), -1) if array.ndim > 2 and array.size else array, name
    )
    height, width, *channels = as_shape(shape, flat.shape[1])
    if min(height, width) < WINDOW:
        raise InputError(f"images of {height}×{width} pixels: SSIM needs {WINDOW}×{WINDOW} or more")
    clipped = np.clip(flat, -RANGE / 2, RANGE / 2).astype(np.float64)
    clipped = clipped / RANGE + 0.5  # from [−1, 1] to [0, 1]
    return clipped.reshape(len(flat), height, width, *(channels or [1]))
