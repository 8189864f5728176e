"""SSIM and PSNR of images, one by one or all with all.

Images come with pixels in [−1, 1]; of recovered ones, what is outside is clipped. Bytes are brought
there from 0..255. They are compared on [0, 1], where black is zero.

SSIM. Wang, Bovik, Sheikh and Simoncelli, IEEE Trans. Image Processing 13 (2004), over 7×7 uniform
windows that lie inside the image, sample variances, K₁ = 0.01, K₂ = 0.03 and a range of 1; the mean
over windows and channels. This is scikit-image's `structural_similarity(channel_axis=-1,
data_range=1)` of images on [0, 1]. Where zero lies matters: the means of windows are multiplied,
and on [−1, 1] an image and its negative have both means and covariance of opposite signs, so that
they come out alike (0.73 on CIFAR-10, −0.62 on [0, 1]). Of a pair of images only the covariance is
new: O(d) per pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from unveil.checks import DataLike, InputError, as_array, as_shape, as_vectors
from unveil.data.tensors import read_any_array

WINDOW = 7
"""Height and width of a window, as in scikit-image."""
RANGE = 2.0
"""Of pixels as they come: from −1 to 1."""
C1, C2 = 0.01**2, 0.03**2
"""K₁ and K₂ of the definition: where windows are flat they keep the quotient from 0/0."""
SAMPLE = WINDOW**2 / (WINDOW**2 - 1)
"""From the variance of a window to the sample variance."""
HALF_BYTE = 127.5
"""Bytes 0 and 255 become −1 and 1."""
HIGHEST = 100.0
"""PSNR of equal images, in dB."""
Images = NDArray[np.float64]


def ssim(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """SSIM (n,) of image i of `first` with image i of `second`."""
    A, B = _same(first, second, shape)
    out = np.empty(len(A))
    for rows in image_blocks(len(A), A[0].size):
        out[rows] = ssim_of(Windows.of(A[rows]), Windows.of(B[rows]))
    return out


def ssim_table(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """SSIM (a, b) of every image of `first` with every one of `second`."""
    return table_of(*(as_images(values, shape, "images") for values in (first, second)))


def psnr(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Peak signal to noise ratio (n,) in dB, image by image; 100 at most."""
    return psnr_of(*_same(first, second, shape))


def table_of(A: Images, B: Images) -> NDArray[np.float64]:
    out = np.empty((len(A), len(B)))
    for columns in image_blocks(len(B), B[0].size):
        # Windows of one block of B are made once and meet every image of A.
        others = Windows.of(B[columns])
        for i in range(len(A)):
            out[i, columns] = ssim_of(Windows.of(A[i : i + 1]), others)
    return out


def psnr_of(A: Images, B: Images) -> NDArray[np.float64]:
    error = mean_square_of(A, B)
    return -10 * np.log10(np.maximum(error, 10 ** (-HIGHEST / 10)))


@dataclass(frozen=True, eq=False)
class Windows:
    """Images with the means and variances of their windows."""

    images: Images
    mean: Images
    variance: Images

    @classmethod
    def of(cls, images: Images) -> Windows:
        mean = _windows(images)
        return cls(images, mean, SAMPLE * (_windows(images**2) - mean**2))

    def take(self, rows: NDArray[np.int64]) -> Windows:
        return Windows(self.images[rows], self.mean[rows], self.variance[rows])


def ssim_of(a: Windows, b: Windows) -> NDArray[np.float64]:
    covariance = SAMPLE * (_windows(a.images * b.images) - a.mean * b.mean)
    likeness = (2 * a.mean * b.mean + C1) * (2 * covariance + C2)
    likeness /= (a.mean**2 + b.mean**2 + C1) * (a.variance + b.variance + C2)
    return np.asarray(likeness.mean(axis=(1, 2, 3)))


def _windows(images: Images) -> Images:
    """Mean of every window that lies inside, (n, height − 6, width − 6, channels)."""
    # What the filter makes up beyond the border is cut off.
    edge = WINDOW // 2
    return np.asarray(
        uniform_filter(images, size=(1, WINDOW, WINDOW, 1))[:, edge:-edge, edge:-edge]
    )


def mean_square_of(A: Images, B: Images) -> NDArray[np.float64]:
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


def image_blocks(count: int, pixels: int) -> Iterator[slice]:
    step = max(1, (1 << 20) // pixels)  # 8 MiB of doubles at a time
    for start in range(0, count, step):
        yield slice(start, start + step)
