"""All private vectors from known subsets: |a·Wx + c| = y at every pixel, for hundreds of unknowns,
batched over pixels.

`a` is one weight for all, or one for every member of every row (rows, k).

Relaxed reflect-reflect between two sets: the magnitudes {v : |v| = y} and the range {a·Wx + c}.
With the projections P_A (put the sign of v on y) and P_B (weighted least squares), the iteration is
v ← v + β·(P_A(2·P_B(v) − v) − P_B(v)). All pixels share W, so that a step is three sparse products
and one dense one with the inverse of WᵀDW. Rows of weight 0 do not take part.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.solve.model import Values

Weight = float | NDArray[np.float64]
BETA = 0.5
"""Relaxation of the reflections: 1 is Douglas–Rachford, which circles where no exact solution
exists, as with wrong rows; small values are slow. On small instances 0.3 and 0.7 find as
much."""
RIDGE = 1e-4
"""Added to WᵀDW, in units of a squared weight: columns that no row uses stay zero, and eigenvalues
of those in use are some thousand times as large."""
SMALLEST = 1e-9
"""Eigenvalues below this share of the largest are zero: they are counts of rows."""
POLISH = 6
"""Last steps with the signs held: they take out what the relaxation leaves."""


class Range:
    """The affine range a·Wx + c of given rows, and weighted least squares onto it."""

    def __init__(
        self, members: NDArray[np.int64], n: int, weights: NDArray[np.float64], a: Weight
    ) -> None:
        m, k = members.shape
        data = np.broadcast_to(np.asarray(a, np.float32), (m, k)).ravel()
        self.W = sparse.csr_array((data, members.ravel(), np.arange(m + 1) * k), shape=(m, n))
        self.WtD = sparse.csr_array(self.W.T.multiply(weights[None, :].astype(np.float32))).astype(
            np.float32
        )
        self.gram = np.asarray((self.WtD @ self.W).toarray(), dtype=np.float64)
        ridge = RIDGE * np.mean(np.square(a))
        self.inverse = np.linalg.inv(self.gram + ridge * np.eye(n)).astype(np.float32)

    def fit(self, v: Values) -> Values:
        """x that minimises Σ weight·(a·Wx − v)²."""
        return np.asarray(self.inverse @ (self.WtD @ v))

    @cached_property
    def _pinv(self) -> NDArray[np.float64]:
        inverse = np.linalg.pinv(self.gram, rcond=SMALLEST, hermitian=True)
        return np.asarray(inverse, dtype=np.float64)

    def pinv(self) -> NDArray[np.float64]:
        """Pseudo-inverse of WᵀDW, for exact least squares where vectors are not determined;
        computed once."""
        return self._pinv

    def leverage(self) -> NDArray[np.float64]:
        """(rows,) how much of the fit of each row is the row itself."""
        W = self.W.astype(np.float64)
        return np.asarray((W @ self.pinv() * W.toarray()).sum(axis=1))

    def image(self, x: Values) -> Values:
        return np.asarray(self.W @ x)


def solve_all(
    magnitudes: Values,
    offsets: Values | None,
    members: NDArray[np.int64],
    n: int,
    weights: NDArray[np.float64],
    a: Weight,
    start: Values,
    *,
    steps: int,
) -> tuple[Values, Values]:
    """x (n, pixels) and the iterate v (rows, pixels), from `start` (rows, pixels); rows with weight
    0 keep their start."""
    # 1. The iteration; values that grow without bound are taken care of below.
    use = np.flatnonzero(weights > 0)
    target = Range(members[use], n, weights[use], a[use] if isinstance(a, np.ndarray) else a)
    y = magnitudes[use]
    c = np.float32(0) if offsets is None else offsets[use]
    v = start[use]
    step = np.float32(BETA)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            onto = target.image(target.fit(v - c)) + c
            v = v + step * (np.copysign(y, 2 * onto - v) - onto)
        # Subsets that contradict each other can drive it off.
        v = np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0)
        # 2. Least squares with the signs found.
        x = target.fit(v - c)
        for _ in range(POLISH):
            x = target.fit(np.copysign(y, target.image(x) + c) - c)
    out = start.copy()
    out[use] = v
    return x, out
