"""What images look like before anything is known of them: a Gaussian with smooth principal
components.

An encoding's public part, and the private images themselves, are natural images: neighbouring
pixels are nearly equal, and most of the variance sits in few components. From a sample of like
images: mean and covariance, mirrored images included. With no
sample: neighbours correlate 0.97 along rows and columns, channels 0.9, as in photographs; mean
zero, so that one sign common to all images stays open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError

RANK = 1024
"""Components kept: beyond them photographs of 32×32 pixels have less than 1.5 percent of their
variance."""
NEIGHBOURS, CHANNELS, VARIANCE = 0.97, 0.9, 0.3
"""Correlation of neighbouring pixels and of channels in photographs, and the variance of a pixel in
[−1, 1]: rough values, used where no like images are given."""
DEPENDENT = 1e-6
"""Components with less than this share of the largest variance are rounding errors of dependent
images."""
STILL = 1e-4
"""Least variance of a pixel: one that is the same in all like images could still differ."""
SAMPLE = 3000
"""Like images used where images have more pixels than `SAMPLE`: the components come from their Gram
matrix then."""


@dataclass(frozen=True, eq=False)
class ImagePrior:
    """mean (d,), orthonormal basis (d, r) with falling variances (r,), variance of each pixel (d,).

    known: whether the mean is that of real images, so that the sign common to all images can be
    told.
    """

    mean: NDArray[np.float32]
    basis: NDArray[np.float32]
    variances: NDArray[np.float32]
    pixel: NDArray[np.float32]
    known: bool

    @property
    def mean_share(self) -> float:
        """How much of the energy of images the mean image has: much for objects on an empty
        ground."""
        energy = float((self.mean**2).sum())
        return energy / (energy + float(self.pixel.sum()))

    def centred(self) -> ImagePrior:
        """The same with a mean of zero: what varies is known, which way round is not."""
        return replace(self, mean=np.zeros_like(self.mean), known=False)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Images (count, d) of this kind."""
        parts = rng.standard_normal((count, len(self.variances))) * np.sqrt(self.variances)
        return np.asarray(parts @ self.basis.T + self.mean, np.float32)

    def correlation(self) -> NDArray[np.float32]:
        """(d, d): how much any two pixels have in common."""
        covariance = np.asarray((self.basis * self.variances) @ self.basis.T, np.float32)
        scale = 1 / np.sqrt(np.diag(covariance) + 1e-12)
        covariance *= scale
        covariance *= scale[:, None]
        return covariance


def image_prior(
    shape: tuple[int, ...],
    like: NDArray[np.float32] | None = None,
    *,
    rank: int = RANK,
    name: str = "like",
) -> ImagePrior:
    """From like images (items, pixels), or of natural images in general."""
    if like is None:
        return smooth_prior(shape, rank)
    d = int(np.prod(shape))
    if like.shape[1] != d:
        raise InputError(
            f"{name} images have {like.shape[1]} pixels, encodings {d}: bring them to the same size"
        )
    if len(like) < 2:
        raise InputError(
            f"one {name} image says nothing of what varies: give at least two, better some hundred"
        )
    if not np.ptp(like, axis=0).any():
        raise InputError(
            f"all {name} images are the same, which says nothing of what varies: give others"
        )
    # 1. Images and their mirror images, as likely. What is the same in both and what changes its
    #    sign do not correlate: two problems of half the size.
    images = like if d <= SAMPLE + 1000 else like[:: -(-len(like) // SAMPLE)]
    pixels = images.reshape(len(images), *shape)
    mirrored = pixels[:, :, ::-1].reshape(images.shape)
    mean = ((images + mirrored) / 2).mean(axis=0)
    half = (np.arange(d).reshape(shape)[:, : -(-shape[1] // 2)]).ravel()
    twin = np.arange(d).reshape(shape)[:, ::-1][:, : -(-shape[1] // 2)].ravel()
    middle = half == twin  # of an odd width: its own mirror image
    even = (images + mirrored)[:, half] - 2 * mean[half]
    even *= np.where(middle, 0.5, np.sqrt(0.5)).astype(np.float32)
    odd = (images - mirrored)[:, half[~middle]] * np.float32(np.sqrt(0.5))
    # 2. Components of each, put back to both halves, and the largest of them.
    spread, parts = [], []
    for block, sign, columns in ((even, 1, ~middle), (odd, -1, np.ones(odd.shape[1], bool))):
        variances, vectors = _components(block, rank)
        places, twins = (half, twin) if sign == 1 else (half[~middle], twin[~middle])
        whole = np.zeros((d, len(variances)), np.float32)
        whole[places] = vectors * np.where(columns, np.sqrt(0.5), 1)[:, None]
        whole[twins[columns]] = sign * whole[places[columns]]
        spread.append(variances)
        parts.append(whole)
    variances, basis = np.concatenate(spread), np.concatenate(parts, axis=1)
    order = np.argsort(-variances, kind="stable")[:rank]
    pixel = ((images - mean) ** 2).mean(axis=0) + ((mirrored - mean) ** 2).mean(axis=0)
    return ImagePrior(
        mean=mean.astype(np.float32),
        basis=np.ascontiguousarray(basis[:, order], np.float32),
        variances=variances[order].astype(np.float32),
        pixel=np.maximum(pixel / 2, STILL).astype(np.float32),
        known=True,
    )


def _components(
    rows: NDArray[np.float32], rank: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Largest variances and their directions (columns) of rows around zero, from the smaller of
    covariance and Gram matrix."""
    count, d = rows.shape
    if count > d:
        variances, basis = np.linalg.eigh(rows.T @ rows / np.float32(count))
        return np.maximum(variances[::-1][:rank], 0), basis[:, ::-1][:, :rank]
    variances, left = np.linalg.eigh(rows @ rows.T / np.float32(count))
    variances, left = variances[::-1][:rank], left[:, ::-1][:, :rank]
    keep = variances > DEPENDENT * variances[0]
    variances, left = variances[keep], left[:, keep]
    return variances, rows.T @ left / np.sqrt(variances * count)


def smooth_prior(
    shape: tuple[int, ...], rank: int = RANK, neighbours: float = NEIGHBOURS
) -> ImagePrior:
    """The largest components of a covariance that is a product over rows, columns and channels."""
    parts = []
    for axis, size in enumerate(shape):
        places = np.arange(size)
        apart = np.abs(places[:, None] - places)
        parts.append(
            np.linalg.eigh(neighbours**apart if axis < 2 else np.where(apart == 0, 1.0, CHANNELS))
        )
    # The eigenvalues of a Kronecker product are products of eigenvalues: keep the largest.
    products = np.array(VARIANCE)
    for values, _ in parts:
        products = np.multiply.outer(products, values)
    order = np.argsort(-products.ravel())[:rank]
    where = np.unravel_index(order, shape)
    basis = np.ones((1, len(order)))
    for (_, vectors), column in zip(parts, where, strict=True):
        basis = (basis[:, None, :] * vectors[None, :, column]).reshape(-1, len(order))
    d = len(basis)
    return ImagePrior(
        mean=np.zeros(d, np.float32),
        basis=np.ascontiguousarray(basis, np.float32),
        variances=products.ravel()[order].astype(np.float32),
        pixel=np.full(d, VARIANCE, np.float32),
        known=False,
    )
