"""Whether rows come epoch by epoch, told by the public images that rows of one epoch share.

`images.epochs` tells it by clusters, which must be good for that. Where public images are white
noise they are not; but there noise itself tells. A row shares a public image with many rows of its
epoch (two in five of them, for four public images of thirty) and with none of another, so that
pairs of one block of n rows are more alike than pairs of two blocks:

    z = Σ_l d_l/v_l / √(Σ_l 1/v_l),   d_l = mean of K_{i,i+l} within blocks − across them

v_l is the variance of d_l by chance. Pairs at the same distance l are compared, so that nothing but
the ends of blocks counts: the same rows in blocks of n ± 1 give chance. O(m·d) for each l.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.images.epochs import FEWEST, Epochs, blocks_of

Floats = NDArray[np.float32]
SIGMAS = 5.0
"""Standard deviations of z that tell. Four seeds in order had 10.9 to 13.1, and in blocks of n ± 1,
or where rows were shuffled, −1.6 to 2.0."""
FARTHEST = 64
"""The largest l: of 400 images the first 64 tell enough, and cost a sixth."""
EMPTY = 1e-12
"""Guards divisions: all encodings may be the same."""


def order_of_noise(Y: Floats, n: int, k: int) -> Epochs | None:
    """Epochs of n rows by the squares of magnitudes Y (m, d), where public images are white noise;
    None: rows are in no order, or too few."""
    m = len(Y)
    if m < FEWEST * n:
        return None
    squares = Y * Y
    squares -= squares.mean(axis=0)
    squares -= squares.mean(axis=1, keepdims=True)
    squares /= np.linalg.norm(squares, axis=1, keepdims=True) + np.float32(EMPTY)
    alike = [np.einsum("id,id->i", squares[:-lag], squares[lag:]) for lag in range(1, _lags(n + 1))]
    less, right, more = (evidence(alike, size) for size in (n - 1, n, n + 1))
    return blocks_of(m, n, k) if right > max(less, more, SIGMAS) else None


def evidence(alike: list[Floats], size: int) -> float:
    """z of blocks of that size; alike: of each distance from 1 on, how alike the rows are that are
    so far apart."""
    total, weight = 0.0, 0.0
    for lag, values in enumerate(alike[: _lags(size) - 1], 1):
        first = np.arange(len(values))
        same = first // size == (first + lag) // size
        if not same.any() or same.all():
            continue
        inside, across = values[same], values[~same]
        variance = float(values.var(dtype=np.float64)) * (1 / len(inside) + 1 / len(across)) + EMPTY
        total += float(inside.mean(dtype=np.float64) - across.mean(dtype=np.float64)) / variance
        weight += 1 / variance
    return total / np.sqrt(weight) if weight else 0.0


def _lags(size: int) -> int:
    return min(size, FARTHEST + 1)
