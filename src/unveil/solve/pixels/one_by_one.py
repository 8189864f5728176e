"""One vector at a time: its value at a pixel, with all others held, is a question in one dimension.

y = |w·t + r| + noise in every encoding that uses the vector, r being the sum of its other members.
The likelihood of t has several peaks, since each encoding allows two values. Steps that weigh signs
(`pixels.loud`) climb the peak they are on: under loud noise one vector in ten thousand is on a
wrong one. Here all peaks are seen, on a grid:

  highest   t ← where the likelihood, with a Gaussian prior, is largest
  mean      t ← its mean over the grid: nearer in the mean square, where two peaks are alike

Cost: pixels × encodings × members × grid.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unveil.folded import rise32
from unveil.solve.affine_rrr import Weight
from unveil.solve.model import Members, Values

REACH = 4.0
"""The grid goes so many times the size of a pixel to both sides: one value in 16,000 lies beyond,
and stays as it is."""
WIDE = 1.4
"""Steps of the grid, in widths of a peak: a mean over them is off by exp(−2π²/1.4²) of a step."""
TINY = np.float32(1e-20)
"""Keeps divisions by the size of a pixel that is zero everywhere finite."""
LEAST_POWER = 0.05
"""The least Σw² of a vector that a grid is made for: peaks of fainter ones are wider."""
COARSEST, FINEST = 41, 241
"""Values of the grid, at least and at most: more are needed for peaks so sharp that the second one
is as good as never alike."""


def sweep(
    y: Values, members: Members, x: Values, noise: float, *, mean: bool, weights: Weight = 1.0
) -> Values:
    """x (n, pixels) with every vector, one after the other, at its highest value or at its mean;
    weights: of the members, one or (rows, k)."""
    n = len(x)
    each = np.broadcast_to(np.asarray(weights, np.float32), members.shape)
    flat = members.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(n + 1))
    rows = (order // members.shape[1]).astype(np.int64)
    # Pixels one after the other in memory: the kernel works on one at a time.
    found = np.ascontiguousarray(x.T, dtype=np.float32)
    total = np.zeros((x.shape[1], len(members)), np.float32)
    for column in range(members.shape[1]):
        total += found[:, members[:, column]] * each[:, column]
    size = np.sqrt(np.mean(np.square(found), axis=1)).astype(np.float32)
    power = np.bincount(flat, np.square(each, dtype=np.float64).ravel(), minlength=n)
    peak = noise / np.sqrt(max(float(np.median(power)), LEAST_POWER))
    typical = float(np.sqrt(np.mean(np.square(size))))
    count = int(np.clip(2 * REACH * typical / max(WIDE * peak, 1e-30), COARSEST, FINEST))
    grid = np.linspace(-REACH, REACH, count, dtype=np.float32)
    theirs = np.ascontiguousarray(each.ravel()[order])
    pixels = np.ascontiguousarray(y.T)
    _sweep(pixels, rows, theirs, ends, found, total, size, grid, np.float32(noise), mean)
    return np.ascontiguousarray(found.T)


@njit(cache=True, nogil=True, fastmath=True)
def _sweep(  # type: ignore[no-untyped-def]
    y, rows, weights, ends, x, total, size, grid, noise, mean
):
    """x and the sums `total` of all encodings in place, pixel by pixel."""
    certain = np.float32(1.0) / (noise * noise)
    half = np.float32(0.5)
    last = len(grid)
    score = np.empty(last + 1, np.float32)
    at = np.empty(last + 1, np.float32)
    for p in range(len(y)):
        prior = half / max(size[p] * size[p], TINY)
        for a in range(len(ends) - 1):
            if ends[a] == ends[a + 1]:
                continue
            # 1. The likelihood at every value of the grid, and at the present one.
            for g in range(last + 1):
                t = x[p, a] if g == last else size[p] * grid[g]
                at[g] = t
                change = t - x[p, a]
                here = -t * t * prior
                for e in range(ends[a], ends[a + 1]):
                    moved = total[p, rows[e]] + weights[e] * change
                    here = rise32(here, y[p, rows[e]], moved, certain)
                score[g] = here
            # 2. Its highest value, or its mean. Beyond the grid the present value stands.
            best = np.argmax(score)
            new = at[best]
            if mean and abs(new) <= at[last - 1]:
                weight = TINY
                new = np.float32(0)
                for g in range(last):
                    w = np.exp(score[g] - score[best])
                    weight += w
                    new += w * at[g]
                new /= weight
            for e in range(ends[a], ends[a + 1]):
                total[p, rows[e]] += weights[e] * (new - x[p, a])
            x[p, a] = new
