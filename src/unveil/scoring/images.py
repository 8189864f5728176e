"""How much of an image came back: SSIM, PSNR, and the four scores of the InstaHide challenge.

Images come with pixels in [−1, 1]; of recovered ones, what is outside is clipped. Bytes are brought
there from 0..255. They are compared on [0, 1], where black is zero.

SSIM. Wang, Bovik, Sheikh and Simoncelli, IEEE Trans. Image Processing 13 (2004), over 7×7 uniform
windows that lie inside the image, sample variances, K₁ = 0.01, K₂ = 0.03 and a range of 1; the mean
over windows and channels. This is scikit-image's `structural_similarity(channel_axis=-1,
data_range=1)` of images on [0, 1]. Where zero lies matters: the means of windows are multiplied,
and on [−1, 1] an image and its negative have both means and covariance of opposite signs, so that
they come out alike (0.73 on CIFAR-10, −0.62 on [0, 1]). Of a pair of images only the covariance is
new: O(d) per pair.

The challenge (github.com/Hazelsuko07/InstaHide_Challenge, "Format and Rules") takes one image per
encoding and holds it against the two private images mixed into it, then takes means over encodings:

  Max_SSIM   the larger SSIM of the two, by which attacks are ranked      Mean_SSIM  their mean
  Min_L2     the smaller difference of the two                            Mean_L2    their mean

The rules say "L2 difference"; here it is the mean squared difference of pixels. The leaderboard
agrees: the attack with Min_L2 0.00 has Mean_L2 0.27, so that unrelated images differ by 0.54; two
images of CIFAR-10 differ by 0.49 in the mean square and 0.70 in its root. (The text of the rules
has Max_L2 where the leaderboard has Min_L2; 0.01 can only be the smaller of the two.)
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
from scipy.optimize import linear_sum_assignment

from unveil.checks import DataLike, InputError, as_array, as_shape, as_vectors, one_shape
from unveil.data.tensors import read_any_array
from unveil.rooms import Shown

WINDOW = 7
"""Height and width of a window, as in scikit-image."""
RANGE = 2.0
"""Of pixels as they come: from −1 to 1."""
C1, C2 = 0.01**2, 0.03**2
"""K₁ and K₂ of the definition: where windows are flat they keep the quotient from 0/0."""
SAMPLE = WINDOW**2 / (WINDOW**2 - 1)
"""From the variance of a window to the sample variance."""
SLACK = 1e-3
"""How far outside [−1, 1] a pixel may lie: rounding of float16 files."""
HALF_BYTE = 127.5
"""Bytes 0 and 255 become −1 and 1."""
HIGHEST = 100.0
"""PSNR of equal images, in dB."""

Images = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ImageScores(Shown):
    """Recovered images held against the true ones, one to one.

    Attributes
    ----------
    matches : array of shape (n,)
        The recovered image that stands for each true one, or −1.
    ssim, psnr : array of shape (n,)
        How well, and 0 where there is none.
    """

    matches: NDArray[np.int64]
    ssim: NDArray[np.float64]
    psnr: NDArray[np.float64]

    @property
    def mean_ssim(self) -> float:
        return float(self.ssim.mean())

    @property
    def mean_psnr(self) -> float:
        return float(self.psnr.mean())

    def share(self, ssim: float) -> float:
        """Of all true images, how many have a higher SSIM."""
        return float((self.ssim > ssim).mean())


@dataclass(frozen=True)
class ChallengeScores(Shown):
    """The four scores of the InstaHide challenge, as its rules define them.

    Attributes
    ----------
    max_ssim, mean_ssim : float
        The larger SSIM of the images mixed into an encoding, and their mean; means over encodings.
    min_l2, mean_l2 : float
        The smaller mean squared difference of pixels, and their mean; means over encodings.
    """

    max_ssim: float
    mean_ssim: float
    min_l2: float
    mean_l2: float


def image_scores(
    recovered: DataLike,
    truth: DataLike,
    image_shape: tuple[int, ...] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
) -> ImageScores:
    """Match recovered to true images one to one, so that the sum of SSIMs is largest.

    Parameters
    ----------
    recovered : array of shape (r, d)
        Recovered images; pixels outside [−1, 1] are clipped.
    truth : array of shape (n, d)
        The true ones, in [−1, 1], or bytes.
    image_shape : tuple of int
        (height, width) or (height, width, channels); arrays may have that shape already. `shape`
        is an older name of the same.

    Returns
    -------
    ImageScores
        SSIM and PSNR of every true image with the one that stands for it.

    Raises
    ------
    InputError
        Where pixels are out of range, or images smaller than a window of 7×7.

    References
    ----------
    Wang, Bovik, Sheikh and Simoncelli, IEEE Trans. Image Processing 13 (2004).

    Examples
    --------
    >>> import numpy as np, unveil
    >>> images = np.linspace(-1, 1, 3 * 64).reshape(3, 64)
    >>> unveil.image_scores(images[::-1], images, (8, 8)).matches.tolist()
    [2, 1, 0]
    """
    shape = _shape(image_shape, shape)
    T = _as_truth(truth, shape)
    matches, similar, noise = np.full(len(T), -1), np.zeros(len(T)), np.zeros(len(T))
    recovered = _read(recovered, "recovered images")
    if len(recovered):
        R = _as_images(recovered, shape, "recovered images")
        table = _table(R, T)
        # One to one: an image that resembles many counts once.
        found, true = linear_sum_assignment(table, maximize=True)
        matches[true], similar[true] = found, table[found, true]
        noise[true] = _psnr(R[found], T[true])
    return ImageScores(matches, similar, noise)


def challenge_scores(
    decryption: DataLike,
    private: DataLike,
    pairs: NDArray[np.int64],
    image_shape: tuple[int, ...] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
) -> ChallengeScores:
    """The scores of the InstaHide challenge for one image per encoding.

    Parameters
    ----------
    decryption : array of shape (m, d)
        The image an attack found in each encoding.
    private : array of shape (n, d)
        The true images, in [−1, 1], or bytes.
    pairs : array of int of shape (m, k)
        The private images mixed into each encoding.
    image_shape : tuple of int
        (height, width) or (height, width, channels). `shape` is an older name of the same.

    Returns
    -------
    ChallengeScores
        Max_SSIM, Mean_SSIM, Min_L2 and Mean_L2.

    Raises
    ------
    InputError
        Where `pairs` does not name private images, one row per encoding.

    References
    ----------
    github.com/Hazelsuko07/InstaHide_Challenge, "Format and Rules".

    Examples
    --------
    >>> import numpy as np, unveil
    >>> private = np.linspace(-1, 1, 2 * 64).reshape(2, 64)
    >>> scores = unveil.challenge_scores(private[:1], private, np.array([[0, 1]]), (8, 8))
    >>> round(scores.max_ssim, 6), scores.min_l2
    (1.0, 0.0)
    """
    shape = _shape(image_shape, shape)
    X, T = _as_images(decryption, shape, "decryption"), _as_truth(private, shape)
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or not pairs.size or pairs.dtype.kind not in "iu" or len(pairs) != len(X):
        raise InputError(
            f"pairs of shape {pairs.shape}: give the private images of each of the {len(X)} "
            "encodings, (m, k)"
        )
    if pairs.min() < 0 or pairs.max() >= len(T):
        raise InputError(
            f"pairs name private images beyond the {len(T)} there are: give indices from 0"
        )
    similar, differ = np.empty(pairs.shape), np.empty(pairs.shape)
    # The windows of private images are shared by all encodings that mix them.
    private_windows = _Local.of(T)
    for rows in _blocks(len(X), X[0].size):
        windows = _Local.of(X[rows])
        for slot, chosen in enumerate(pairs[rows].T):
            similar[rows, slot] = _ssim(windows, private_windows.take(chosen))
            differ[rows, slot] = RANGE**2 * _mean_square(X[rows], T[chosen])
    return ChallengeScores(
        max_ssim=float(similar.max(axis=1).mean()),
        mean_ssim=float(similar.mean()),
        min_l2=float(differ.min(axis=1).mean()),
        mean_l2=float(differ.mean()),
    )


def are_images(truth: NDArray[np.float32], shape: tuple[int, ...] | None) -> bool:
    """Whether these scores apply: vectors with the shape of an image that is large enough, and
    pixels in range."""
    return (
        shape is not None
        and min(shape[:2]) >= WINDOW
        and float(np.abs(truth).max()) <= RANGE / 2 + SLACK
    )


def ssim(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """SSIM (n,) of image i of `first` with image i of `second`."""
    A, B = _same(first, second, shape)
    out = np.empty(len(A))
    for rows in _blocks(len(A), A[0].size):
        out[rows] = _ssim(_Local.of(A[rows]), _Local.of(B[rows]))
    return out


def ssim_table(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """SSIM (a, b) of every image of `first` with every one of `second`."""
    return _table(*(_as_images(values, shape, "images") for values in (first, second)))


def psnr(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Peak signal to noise ratio (n,) in dB, image by image; 100 at most."""
    return _psnr(*_same(first, second, shape))


def _table(A: Images, B: Images) -> NDArray[np.float64]:
    out = np.empty((len(A), len(B)))
    for columns in _blocks(len(B), B[0].size):
        # Windows of one block of B are made once and meet every image of A.
        others = _Local.of(B[columns])
        for i in range(len(A)):
            out[i, columns] = _ssim(_Local.of(A[i : i + 1]), others)
    return out


def _psnr(A: Images, B: Images) -> NDArray[np.float64]:
    error = _mean_square(A, B)
    return -10 * np.log10(np.maximum(error, 10 ** (-HIGHEST / 10)))


@dataclass(frozen=True, eq=False)
class _Local:
    """Images with the means and variances of their windows."""

    images: Images
    mean: Images
    variance: Images

    @classmethod
    def of(cls, images: Images) -> _Local:
        mean = _windows(images)
        return cls(images, mean, SAMPLE * (_windows(images**2) - mean**2))

    def take(self, rows: NDArray[np.int64]) -> _Local:
        return _Local(self.images[rows], self.mean[rows], self.variance[rows])


def _ssim(a: _Local, b: _Local) -> NDArray[np.float64]:
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


def _mean_square(A: Images, B: Images) -> NDArray[np.float64]:
    return np.asarray(((A - B) ** 2).mean(axis=(1, 2, 3)))


def _shape(image_shape: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    sizes = one_shape(image_shape, shape)
    if sizes is None:
        raise InputError("no image_shape: give (height, width) or (height, width, channels)")
    return sizes


def _same(first: DataLike, second: DataLike, shape: tuple[int, ...]) -> tuple[Images, Images]:
    A, B = (_as_images(values, shape, "images") for values in (first, second))
    if len(A) != len(B):
        raise InputError(
            f"{len(A)} images and {len(B)} others: give as many, they are compared one by one"
        )
    return A, B


def _as_truth(values: Any, shape: tuple[int, ...]) -> Images:
    array = _read(values, "private images")
    if (
        array.dtype.kind == "f"
        and array.size
        and max(abs(float(array.min())), abs(float(array.max()))) > RANGE / 2 + SLACK
    ):
        raise InputError(
            f"private images from {array.min():.3g} to {array.max():.3g}: bring them to [-1, 1], "
            "or give bytes from 0 to 255"
        )
    return _as_images(array, shape, "private images")


def _read(values: Any, name: str) -> NDArray[Any]:
    """The array of what was given. Bytes in a file stay bytes, which are brought to [−1, 1]."""
    path = Path(values) if isinstance(values, (str, PathLike)) else None
    if path is not None and path.suffix.lower() in (".npy", ".npz", ".pt", ".pth"):
        return read_any_array(path)
    return as_array(values, name)


def _as_images(values: Any, shape: tuple[int, ...], name: str) -> Images:
    """(n, height, width, channels), clipped, and brought from [−1, 1] to [0, 1]."""
    array = _read(values, name)
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


def _blocks(count: int, pixels: int) -> Iterator[slice]:
    step = max(1, (1 << 20) // pixels)  # 8 MiB of doubles at a time
    for start in range(0, count, step):
        yield slice(start, start + step)
