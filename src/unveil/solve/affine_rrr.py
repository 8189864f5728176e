"""All private vectors from known subsets: |a·Wx + c| = y at every pixel, for hundreds of unknowns, batched over pixels.

Relaxed reflect-reflect between two sets: the magnitudes {v : |v| = y} and the range {a·Wx + c}. With the projections P_A
(put the sign of v on y) and P_B (weighted least squares), the iteration is v ← v + β·(P_A(2·P_B(v) − v) − P_B(v)). All
pixels share W, so that a step is a dense product with the inverse of WᵀDW and one pass over the rows, which takes Wx, moves v
and adds up WᵀDv. Rows of weight 0 do not take part. Blocks of pixels run side by side; one that fits everywhere stops early.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.parallel import run_blocks, worker_count

Values = NDArray[np.float32]
BLOCK = 64
CONVERGED = 1e-3
"""A block of pixels is done when no row is off by more than this, relative to the rms of y: all signs are settled then."""


class Range:
    """The affine range a·Wx + c of given rows, and weighted least squares onto it."""

    def __init__(self, members: NDArray[np.int64], n: int, weights: NDArray[np.float64], a: float) -> None:
        m, k = members.shape
        data = np.full(m * k, a, np.float32)
        self.W = sparse.csr_array((data, members.ravel(), np.arange(m + 1) * k), shape=(m, n))
        self.WtD = sparse.csr_array(self.W.T.multiply(weights[None, :].astype(np.float32))).astype(np.float32)
        self.gram = np.asarray((self.WtD @ self.W).toarray(), dtype=np.float64)
        self.inverse = np.linalg.inv(self.gram + 1e-4 * a * a * np.eye(n)).astype(np.float32)

    def fit(self, v: Values) -> Values:
        """x that minimises Σ weight·(a·Wx − v)²."""
        return np.asarray(self.inverse @ (self.WtD @ v))

    @cached_property
    def _pinv(self) -> NDArray[np.float64]:
        return np.asarray(np.linalg.pinv(self.gram, rcond=1e-9, hermitian=True), dtype=np.float64)

    def pinv(self) -> NDArray[np.float64]:
        """Pseudo-inverse of WᵀDW, for exact least squares where vectors are not determined."""
        return self._pinv

    def image(self, x: Values) -> Values:
        return np.asarray(self.W @ x)


def solve_all(
    magnitudes: Values,
    offsets: Values | None,
    members: NDArray[np.int64],
    n: int,
    weights: NDArray[np.float64],
    a: float,
    start: Values,
    *,
    steps: int,
    beta: float = 0.5,
) -> tuple[Values, Values]:
    """x (n, pixels) and the iterate v (rows, pixels), from `start` (rows, pixels); rows with weight 0 keep their start."""
    use = np.flatnonzero(weights > 0)
    target = Range(members[use], n, weights[use], a)
    weight = weights[use].astype(np.float32)
    scale = CONVERGED * float(np.sqrt(np.mean(np.square(magnitudes[use], dtype=np.float64)))) if len(use) else 0.0
    x, out = np.empty((n, magnitudes.shape[1]), np.float32), start.copy()

    def solve(pixels: slice) -> None:
        y, v = (np.ascontiguousarray(part[use, pixels]) for part in (magnitudes, start))
        c = None if offsets is None else np.ascontiguousarray(offsets[use, pixels])
        back = np.ascontiguousarray(target.WtD @ (v if c is None else v - c))
        has, c = c is not None, y if c is None else c
        here = np.empty((n, y.shape[1]), np.float32)
        rows = members[use]
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(steps):
                np.matmul(target.inverse, back, out=here)
                if _step(rows, weight, np.float32(a), y, c, has, here, v, back, np.float32(beta)) <= scale:
                    break
            v = np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0)  # subsets that contradict each other can drive it off
            offset = c if has else np.float32(0)
            found = target.fit(v - offset)
            for _ in range(6):
                found = target.fit(np.copysign(y, target.image(found) + offset) - offset)
        x[:, pixels], out[use, pixels] = found, v

    pixels = magnitudes.shape[1]
    run_blocks(solve, [slice(s, min(s + BLOCK, pixels)) for s in range(0, pixels, BLOCK)], worker_count(None))
    return x, out


@njit(cache=True, nogil=True)
def _step(members, weight, a, y, c, has, x, v, back, beta):  # type: ignore[no-untyped-def]
    """One step of the iteration from x = P_B(v): v in place, back = WᵀD(v − c) for the next x; the largest ||Wx + c| − y|."""
    m, k = members.shape
    pixels = y.shape[1]
    back[:] = 0
    total = np.empty(pixels, np.float32)
    gap = np.zeros(pixels, np.float32)
    for i in range(m):
        total[:] = x[members[i, 0]]
        for q in range(1, k):
            other = x[members[i, q]]
            for p in range(pixels):
                total[p] += other[p]
        yi, vi, ci = y[i], v[i], c[i]
        for p in range(pixels):
            onto = a * total[p] + (ci[p] if has else np.float32(0))
            target = yi[p] if 2 * onto - vi[p] >= 0 else -yi[p]
            gap[p] = max(gap[p], abs(abs(onto) - yi[p]))
            vi[p] += beta * (target - onto)
            total[p] = a * weight[i] * (vi[p] - (ci[p] if has else np.float32(0)))
        for q in range(k):
            to = back[members[i, q]]
            for p in range(pixels):
                to[p] += total[p]
    return gap.max() if m else np.float32(0)
