"""One column that stands for several images is taken apart.

A cluster grown over two images that are seen together too often has the encodings of both, so that
neither is ever found; elsewhere one image has two columns. Once signs are known this shows plainly:
what is left of a column's encodings, the other images taken out, points along one direction per
image. The cosines of these residuals have an eigenvalue for each, as large as the number of its
encodings; k-means among these eigenvectors tells whose each encoding is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import whiten

Floats = NDArray[np.float32]
MANY = 1.4
"""A column with so many times the encodings of an image is looked at."""
GROUP = 0.3
"""An eigenvalue, and a group, below this share of an image's encodings is no image."""
TRIES = 8


def split_merged(
    E: Floats,
    weights: sparse.csr_array,
    images: Floats,
    prior: ImagePrior,
    used: NDArray[np.bool_],
    free: NDArray[np.int64],
    k: int,
    rng: np.random.Generator,
) -> list[tuple[int, NDArray[np.int64]]]:
    """(column, encodings) for every column that several images shared, and every `free` one that
    takes one of them over.

    used (m, n): which encodings count as a column's
    """
    m, n = weights.shape
    expected = k * m / n
    out: list[tuple[int, NDArray[np.int64]]] = []
    spare = list(free)
    W = whiten(prior)
    x = (images - prior.mean) @ W
    for column in np.flatnonzero(used.sum(axis=0) > MANY * expected):
        rows = np.flatnonzero(used[:, column])
        others = weights[rows].toarray()
        others[:, column] = 0
        groups = _groups((E[rows] - prior.mean) @ W - others @ x, GROUP * expected, rng)[
            : 1 + len(spare)
        ]
        if len(groups) > 1:
            places = [int(column)] + [int(spare.pop(0)) for _ in groups[1:]]
            out += [(place, rows[group]) for place, group in zip(places, groups, strict=True)]
    return out


def _groups(
    residual: NDArray[Any], least: float, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Rows that point the same way, the largest group first."""
    unit = residual / (np.linalg.norm(residual, axis=1, keepdims=True) + 1e-9)
    cosines = (unit @ unit.T).astype(np.float64)
    cosines[np.diag_indices(len(cosines))] = 0
    values, vectors = np.linalg.eigh(cosines)
    count = int((values > least).sum())
    if count < 2:
        return [np.arange(len(residual))]
    places = vectors[:, -count:] * np.sqrt(values[-count:])
    best, names = np.inf, np.zeros(len(residual), np.int64)
    for _ in range(TRIES):
        guess, total = _nearest_means(places, count, rng)
        if total < best:
            best, names = total, guess
    groups = [np.flatnonzero(names == name) for name in range(count)]
    return sorted((group for group in groups if len(group) > least), key=len, reverse=True)


def _nearest_means(
    places: NDArray[np.float64], count: int, rng: np.random.Generator, rounds: int = 20
) -> tuple[NDArray[np.int64], float]:
    """k-means from random places: whose each place is, and the sum of squared distances."""
    centres = places[rng.choice(len(places), count, replace=False)]
    for _ in range(rounds):
        distance = cdist(places, centres, "sqeuclidean")
        names = distance.argmin(axis=1)
        for name in np.unique(names):
            centres[name] = places[names == name].mean(axis=0)
    return names.astype(np.int64), float(distance.min(axis=1).sum())
