"""Encodings of one subset, under noise: copies differ by noise alone, so that they show how large
it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COPIES, ALIKE, ROOM = 4, 1.3, 1.1
"""So many pairs of encodings nearest to each other are copies if their distances are alike up to a
factor; and the noise that is then tried, relative to the largest of them."""


def distances(y: NDArray[np.float32]) -> NDArray[np.float64]:
    """(m, m) mean square difference of any two encodings."""
    size = np.einsum("ij,ij->i", y, y, dtype=np.float64)
    return np.asarray(
        np.maximum(size[:, None] + size - 2 * (y @ y.T).astype(np.float64), 0.0) / y.shape[1]
    )


def noise_of_copies(apart: NDArray[np.float64]) -> list[float]:
    """The noise, where some subsets were drawn twice: their encodings differ by noise alone, all by
    the same. At most one."""
    m = len(apart)
    near = np.sqrt(np.sort(apart[np.triu_indices(m, 1)])[:COPIES] / 2)
    far = float(np.sqrt(np.median(apart) / 2))
    return (
        [ROOM * float(near[-1])]
        if m > COPIES and 0 < near[-1] < ALIKE * near[0] and near[-1] < 0.25 * far
        else []
    )


def different(apart: NDArray[np.float64], noise: float) -> NDArray[np.int64]:
    """One encoding of each kind: copies differ by noise alone, and their relations with each other
    say nothing."""
    # Two copies are √2 noises apart at each pixel; three leave room for chance where pixels are
    # few.
    same = np.triu(apart <= 9 * noise**2, 1)
    return np.flatnonzero(~same.any(axis=0)).astype(np.int64)
