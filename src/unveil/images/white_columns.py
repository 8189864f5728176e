"""Columns among public white noise that stand for no image are given to images that share one.

Each image is in k rows of every epoch. A column with a fifth more has the rows of two images, and
an image that has two columns, or none that is sure, leaves one free. What is left of the signed
rows of a column that two images share lies along one direction, to either side of zero: the smaller
side gets the free column. On the mean seed one or two of thirty images are found so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.images.missing import repeated_images
from unveil.images.prior import ImagePrior
from unveil.images.reweigh import Weighing

Floats = NDArray[np.float32]
MANY, FEW = 1.12, 1.05
"""Rows of a column by those of an image: from the one on two images share it (they had 1.16 to
1.38, images of their own 0.9 to 1.07), up to the other it may be free."""
SAME = 0.85
"""Correlation, in magnitude, from which on two columns are one image: such had 0.93, and others
0.82 at most."""
UNSURE = 0.75
"""Sureness below which a column stands for no image: of those that did it was 0.79 and more."""
SMALL = 0.05
"""Least weight that what is left is divided by, to bound what a faint member says."""
SIDES = (0.1, 0.9)
"""Quantiles from which the two sides are told apart."""
ROUNDS = 30
"""Rounds of that: it settles in ten."""
EMPTY = 1e-9
"""Guards divisions: an image may be in no encoding."""


@dataclass(frozen=True, eq=False)
class Split:
    """A column that two images shared, the free one, and the rows that go there."""

    column: int
    free: int
    rows: NDArray[np.int64]


def certainty(weighing: Weighing) -> NDArray[np.float64]:
    """Of each image, Σ E[λ]²/Σ E[λ²] over its encodings, times its weight by the median where that
    is less than one: near one where its encodings are told from others, and all found."""
    weight = np.asarray(weighing.weights.sum(axis=0)).ravel()
    first = np.asarray(weighing.weights.multiply(weighing.weights).sum(axis=0)).ravel()
    second = np.asarray(weighing.squares.sum(axis=0)).ravel()
    share = np.minimum(weight / max(float(np.median(weight)), EMPTY), 1)
    return np.asarray(first / np.maximum(second, EMPTY) * share, np.float64)


def split_columns(
    left: Floats, noise: Floats, images: Floats, weighing: Weighing, prior: ImagePrior
) -> list[Split]:
    """left (m, d): what private images leave of signed rows, of variance `noise` (m,)."""
    # 1. Free columns, the least sure first; and those with the rows of two images.
    m, n = weighing.weights.shape
    uses = np.bincount(weighing.members.ravel(), minlength=n) / (weighing.members.shape[1] * m / n)
    free = free_columns(images, weighing, prior, uses)
    many = [int(q) for q in np.argsort(-uses) if uses[q] > MANY and q not in free]
    # 2. Of each, the direction in which its rows differ most: images are smooth, noise is not.
    smooth = prior.basis * np.sqrt(prior.variances)
    weights, out = weighing.weights.toarray(), []
    for column, spare in zip(many, free, strict=False):
        rows = np.flatnonzero((weighing.members == column).any(axis=1))
        parts = (left[rows] / np.sqrt(noise[rows])[:, None]) @ smooth
        direction = np.linalg.eigh((parts.T @ parts).astype(np.float64))[1][:, -1]
        along = parts @ direction.astype(np.float32) * np.sqrt(noise[rows])
        small = _smaller_side(along / np.maximum(weights[rows, column], SMALL))
        if small.any():
            out.append(Split(column, int(spare), rows[small]))
    return out


def free_columns(
    images: Floats, weighing: Weighing, prior: ImagePrior, uses: NDArray[np.float64]
) -> list[int]:
    """Columns that stand for no image, or repeat one with more weight; uses (n,): rows of each, by
    those of an image."""
    unit = images / (np.linalg.norm(images, axis=1, keepdims=True) + EMPTY)
    weight = np.asarray(weighing.weights.sum(axis=0)).ravel() * np.linalg.norm(images, axis=1)
    same = (np.abs(unit @ unit.T) > SAME) & (weight[:, None] < weight)
    none = same.any(axis=1) & (uses < FEW)
    none |= repeated_images(images, weighing.weights, prior, np.zeros_like(images[0]))
    sure = certainty(weighing)
    free = np.flatnonzero(none | (sure < UNSURE))
    return [int(q) for q in free[np.argsort(sure[free])]]


def _smaller_side(values: Floats) -> NDArray[np.bool_]:
    """Which of the values (rows,) belong to the smaller of two groups, by their means."""
    low, high = np.quantile(values, SIDES)
    for _ in range(ROUNDS):
        upper = np.abs(values - high) < np.abs(values - low)
        if upper.all() or not upper.any():
            return np.zeros(len(values), bool)
        low, high = values[~upper].mean(), values[upper].mean()
    return np.asarray(upper if 2 * upper.sum() < len(upper) else ~upper)
