"""What an image may look like, and what may have been done to it before it was mixed.

Prior. Images are Gaussian, with few smooth components that hold most of the variance:

    x ~ N(mean, U diag(w) Uᵀ + detail)

It is learned from other images of the kind, each counted with its mirror image. The part of an
image that mirroring keeps and the part whose sign it turns do not correlate, so that the components
of either are found alone, each at half the size. Without such images the prior is that of
photographs in general: neighbouring pixels correlate by 0.97, colours by 0.9, and the mean is zero.

Copies. An image may be mirrored, or padded and cut to size elsewhere, before it is mixed. Copy t of
image j is column t·n + j of every matrix of weights; without augmentation there is one copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.checks import InputError
from unveil.encode.copies import Copies as Crops

Floats = NDArray[np.float32]
VARIANCE = 0.3
"""Variance of a pixel of photographs in [−1, 1], for which temperatures are stated."""


def mirror(images: Floats, shape: tuple[int, ...]) -> Floats:
    """Images (n, d) turned left to right."""
    turned = images.reshape(len(images), *shape)[:, :, ::-1]
    return np.ascontiguousarray(turned).reshape(images.shape)


@dataclass(frozen=True, eq=False)
class Prior:
    """mean (d,); orthonormal basis (d, r) with falling variances (r,); variance of each pixel (d,).

    known: the mean is that of real images, so that it can tell an image from its negative.
    """

    mean: Floats
    basis: Floats
    variances: Floats
    pixel: Floats
    known: bool

    @cached_property
    def whitener(self) -> Floats:
        """(d, r): x @ whitener has components of variance about one. A tenth is added to the
        variances, below which components of signed encodings are noise."""
        return np.asarray(self.basis / np.sqrt(self.variances + np.float32(0.1)))

    @property
    def unit(self) -> float:
        """Temperatures are multiplied by this: images of less contrast need lower ones."""
        return min(1.0, float(self.pixel.mean()) / VARIANCE)

    def correlation(self) -> Floats:
        """(d, d): how much any two pixels have in common."""
        U = self.basis * np.sqrt(self.variances)
        U /= np.linalg.norm(U, axis=1, keepdims=True) + np.float32(1e-9)
        return np.asarray(U @ U.T)


def image_prior(
    shape: tuple[int, ...],
    like: Floats | None = None,
    *,
    rank: int = 512,
    sample: int = 8000,
    name: str = "like",
) -> Prior:
    """From like images (items, d) of a shape, or of photographs in general where there are none.

    rank: components kept. Photographs of 32×32 pixels have 2% of their variance beyond 512.
    sample: like images looked at, at most.
    name: what the images are called in messages.
    """
    if like is None:
        return _photographs(shape, rank)
    d = int(np.prod(shape))
    if like.shape[1] != d:
        raise InputError(
            f"{name} images have {like.shape[1]} pixels, encodings {d}: bring them to the same size"
        )
    if len(like) < 2 or not np.ptp(like, axis=0).any():
        raise InputError(
            f"{name} images that are all the same say nothing of what varies: give at least two "
            "different ones, better some hundred"
        )
    # 1. Left halves hold all of the even and the odd parts; their pixels count twice, but for the
    #    middle column of an odd width.
    x = like[:: -(-len(like) // sample)]
    y = mirror(x, shape)
    mean = (x.mean(axis=0) + y.mean(axis=0)) / 2
    places = np.arange(d).reshape(shape)
    width = -(-shape[1] // 2)
    left, right = places[:, :width].ravel(), places[:, ::-1][:, :width].ravel()
    twice = np.where(left == right, 1, np.sqrt(2)).astype(np.float32)
    # 2. Components of each, put back to both halves; the largest of all.
    variances, basis = [], []
    for side in (1, -1):
        part = (x[:, left] + side * y[:, left]) / 2
        part = (part - mean[left] if side == 1 else part) * twice
        w, V = _components(np.asarray(part), rank)
        whole = np.empty((d, len(w)), np.float32)
        whole[right] = side * V / twice[:, None]
        whole[left] = V / twice[:, None]
        variances.append(w)
        basis.append(whole)
    w, U = np.concatenate(variances), np.concatenate(basis, axis=1)
    order = np.argsort(-w, kind="stable")[:rank]
    pixel = (((x - mean) ** 2).mean(axis=0) + ((y - mean) ** 2).mean(axis=0)) / 2
    return Prior(
        mean=mean.astype(np.float32),
        basis=np.ascontiguousarray(U[:, order], np.float32),
        variances=w[order].astype(np.float32),
        pixel=np.maximum(pixel, 1e-4).astype(np.float32),
        known=True,
    )


def _components(rows: NDArray[Any], rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Variances and directions (d, ·) of rows about zero, from the smaller of covariance and Gram
    matrix. Variances of rounding errors are left out."""
    count, d = rows.shape
    small = count < d
    C = (rows @ rows.T if small else rows.T @ rows) / np.float32(count)
    w, V = eigh(C, subset_by_index=[max(0, len(C) - rank), len(C) - 1])
    keep = w > 1e-6 * w[-1]
    w, V = w[keep], V[:, keep]
    return (w, rows.T @ (V / np.sqrt(w * count))) if small else (w, V)


def _photographs(
    shape: tuple[int, ...], rank: int, *, neighbours: float = 0.97, colours: float = 0.9
) -> Prior:
    """A covariance that is a product over rows, columns and colours: so are its components."""
    w, U = np.array([VARIANCE]), np.ones((1, 1))
    for axis, size in enumerate(shape):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        values, vectors = np.linalg.eigh(
            neighbours**apart if axis < 2 else np.where(apart, colours, 1.0)
        )
        # The largest products so far are products of the largest: the others may go already.
        products = np.multiply.outer(w, values).ravel()
        order = np.argsort(-products, kind="stable")[:rank]
        first, second = np.divmod(order, size)
        U = (U[:, None, first] * vectors[None, :, second]).reshape(-1, len(order))
        w = products[order]
    d = len(U)
    return Prior(
        mean=np.zeros(d, np.float32),
        basis=np.ascontiguousarray(U, np.float32),
        variances=w.astype(np.float32),
        pixel=np.full(d, VARIANCE, np.float32),
        known=False,
    )


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of images of a shape.

    flips: mirrored or not; reach: padded by so many pixels of the values `fill` (channels,) and cut
    to size again anywhere. Without reach public images were mirrored as well, so that a mirrored
    encoding is an encoding; of cropped ones only private images were moved.
    """

    shape: tuple[int, ...]
    flips: bool = False
    reach: int = 0
    fill: Floats | float = -1.0

    @cached_property
    def crops(self) -> Crops:
        return Crops(self.shape, self.reach, self.flips)

    @property
    def count(self) -> int:
        return (1 + self.flips) * (2 * self.reach + 1) ** 2

    @property
    def symmetric(self) -> bool:
        """Whether the mirror image of an encoding is an encoding of the same images."""
        return self.flips and not self.reach

    def every(self, images: Floats) -> Floats:
        """(count·n, d): all copies of images (n, d)."""
        if not self.reach:
            return self.both(images)
        all_of = self.crops.all_of(self.crops.padded(images, self.fill))
        return np.ascontiguousarray(all_of.transpose(1, 0, 2)).reshape(-1, images.shape[1])

    def mix(self, A: sparse.csr_array, images: Floats, *, linear: bool = False) -> Floats:
        """(m, d): Σ weight·copy, by weights A (m, count·n); linear: without what `fill` adds."""
        if not self.reach:
            return np.asarray(A @ self.both(images))
        wide = self.crops.padded(images, 0.0 if linear else self.fill)
        return self.crops.mix(self._by_image(A), wide)

    def gather(self, A: sparse.csr_array, rows: Floats) -> Floats:
        """(n, d): the adjoint of the linear `mix`, of rows (m, d)."""
        if self.reach:
            return self.crops.middle(self.crops.gather(self._by_image(A), rows))
        sums = np.split(np.asarray(A.T @ rows), self.count)
        return sums[0] if len(sums) == 1 else sums[0] + mirror(sums[1], self.shape)

    def _by_image(self, A: sparse.csr_array) -> sparse.csr_array:
        """Columns in the order of `encode.copies`, j·count + t."""
        n = A.shape[1] // self.count
        names = A.indices % n * self.count + A.indices // n
        return sparse.csr_array((A.data, names, A.indptr), shape=A.shape)

    def both(self, rows: Floats) -> Floats:
        """Rows and, below them, their mirror images where these are of the same kind."""
        return np.concatenate([rows, mirror(rows, self.shape)]) if self.symmetric else rows

    def of_mirrored(self, A: sparse.csr_array) -> sparse.csr_array:
        """Weights of rows and, below them, those of their mirror images: copies swap."""
        if not self.symmetric:
            return A
        n = A.shape[1] // 2
        return sparse.csr_array(sparse.vstack([A, A[:, np.r_[n : 2 * n, :n]]]))

    def of_images(self, values: NDArray[Any]) -> NDArray[Any]:
        """(…, n): sums of values (…, count·n) over the copies of each image."""
        return np.asarray(values.reshape(*values.shape[:-1], self.count, -1).sum(axis=-2))

    def merged(self, A: sparse.csr_array) -> sparse.csr_array:
        """(m, n): the same of a sparse matrix."""
        shape = (A.shape[0], A.shape[1] // self.count)
        out = sparse.csr_array((A.data, A.indices % shape[1], A.indptr), shape=shape)
        out.sum_duplicates()
        return out
