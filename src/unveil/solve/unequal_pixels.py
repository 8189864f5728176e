"""The final solve with unknown weights: every pixel and every weight from the explained encodings.

  names    columns that are one vector get one name; a row that then holds a vector twice, or a vector that fewer than two
           different subsets use, is left out
  lock in  weights and pixels in turn, by least squares with signs, on the pixels where the feedback fits
  pixels   every pixel from two independent random starts (`solve.pixels`), the weights held
  again    weights from all solved pixels in double precision, and the vectors from them
  rows     with the vectors solved, all rows choose their members again: small weights show now, and rows the feedback gave up.
           Where that changes anything, all is done again
  check    weights are estimated once more from each half of the pixels

Cost: that of `solve.pixels` once or twice, and a few passes over the encodings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress
from unveil.solve.feedback import uses
from unveil.solve.pixels import PixelSolution, solve_pixels
from unveil.solve.unequal import Members, WeightedAssignment, Weights, mixed, reassign, refit, scaled

EXACT = 1e-3
"""Residuals within this part of the root mean square of the encodings count as none."""

PIXELS = 1024
"""Pixels that are enough to choose members."""


@dataclass(frozen=True, eq=False)
class WeightedSolution:
    """rows: the explained encodings; members, weights (rows, k); pixels: the vectors, as in `solve.pixels`;
    spread (rows,): largest difference between the weights that two halves of the pixels give."""

    rows: NDArray[np.int64]
    members: Members
    weights: Weights
    pixels: PixelSolution
    spread: NDArray[np.float64]


def solve_weights_and_pixels(
    magnitudes: NDArray[np.float32],
    found: WeightedAssignment,
    rng: np.random.Generator,
    *,
    rounds: int = 4,
    progress: Progress | None = None,
) -> WeightedSolution | None:
    """Vectors and weights from the rows that `found` calls exact; None when too few are left."""
    k = found.members.shape[1]
    some = found.x.shape[1]
    rms = float(np.sqrt(np.mean(np.square(magnitudes, dtype=np.float64)))) or 1.0
    rows = np.flatnonzero(found.exact)
    members, weights, x = found.members[rows], found.weights[rows], found.x.astype(np.float64)
    out = None
    for _ in range(rounds):
        members, keep, used = _names(x, members)
        rows, members, weights, x = rows[keep], members[keep], weights[keep], x[used]
        n = len(x)
        if len(rows) <= max(n, k + 2):
            return None
        y = magnitudes[rows]
        weights, x = _lock_in(y[:, :some].astype(np.float64), x[:, :some], members, weights, rms)
        pixels = solve_pixels(y, None, members, n, weights, rng, tolerance=EXACT, progress=progress)
        y = y.astype(np.float64)
        good = pixels.solved if pixels.solved.mean() > 0.1 else pixels.misfit <= np.median(pixels.misfit)
        weights, x = _in_turn(y, pixels.values, members, weights, good)
        missed = np.abs(np.abs(mixed(x, members, weights)) - y)
        misfit = missed.max(axis=0) / rms
        halves = [refit(y[:, part], x[:, part], members, weights, 1) for part in (slice(0, None, 2), slice(1, None, 2))]
        out = WeightedSolution(
            rows,
            members,
            weights,
            replace(pixels, values=x, misfit=misfit, solved=misfit <= EXACT),
            np.abs(halves[0] - halves[1]).max(axis=1),
        )
        explained = _explained(magnitudes, out, EXACT * rms)
        if np.array_equal(explained[0], rows) and np.array_equal(np.sort(explained[1], axis=1), np.sort(members, axis=1)):
            break
        rows, members, weights = explained
    return out


def _explained(
    magnitudes: NDArray[np.float32], solution: WeightedSolution, bound: float
) -> tuple[NDArray[np.int64], Members, Weights]:
    """All rows that the solved vectors explain, with their members and weights."""
    y, x, (m, k) = magnitudes.astype(np.float64), solution.pixels.values, (len(magnitudes), solution.members.shape[1])
    part = slice(0, PIXELS)
    # A row not explained so far starts from the vector whose magnitudes are most like its own.
    folded, bright = (np.abs(v[:, part]) - np.abs(v[:, part]).mean(axis=1, keepdims=True) for v in (y, x))
    likely = ((folded @ bright.T) / np.linalg.norm(bright, axis=1)).argsort(axis=1)[:, ::-1]
    members, weights = likely[:, :k].astype(np.int64), np.tile(np.eye(k)[0], (m, 1))
    members[solution.rows], weights[solution.rows] = solution.members, solution.weights
    members, weights = reassign(y[:, part], x[:, part], members, weights)
    fits = (np.abs(np.abs(mixed(x, members, weights)) - y) <= bound).mean(axis=1) > 0.95
    return np.flatnonzero(fits), members[fits], weights[fits]


def _names(x: NDArray[np.float64], members: Members) -> tuple[Members, NDArray[np.bool_], NDArray[np.int64]]:
    """(members under new names, which rows to keep, the old names of the columns left)."""
    k = members.shape[1]
    length = np.linalg.norm(x, axis=1) + 1e-30
    name = np.arange(len(x))
    for i, j in np.argwhere(np.triu((x @ x.T) / np.outer(length, length), 1) > 0.98):
        name[name == name[j]] = name[i]
    members = name[members]
    ordered = np.sort(members, axis=1)
    keep = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1) if k > 1 else np.ones(len(members), bool)
    while keep.any():
        lonely = keep & (uses(members[keep], len(x))[members] < 2).any(axis=1)
        if not lonely.any():
            break
        keep &= ~lonely
    used, new = np.unique(members[keep], return_inverse=True)
    out = np.zeros_like(members)
    out[keep] = new.reshape(-1, k)
    return out, keep, used


def _lock_in(
    y: NDArray[np.float64], x: NDArray[np.float64], members: Members, weights: Weights, rms: float
) -> tuple[Weights, NDArray[np.float64]]:
    """Weights and pixels in turn, on the half of the pixels that fits best."""
    missed = np.abs(np.abs(mixed(x, members, weights)) - y)
    worst = np.quantile(missed, 0.95, axis=0)
    good = worst <= max(float(np.median(worst)), 2e-3 * rms)
    return _in_turn(y, x, members, weights, good, 20)


def _in_turn(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    members: Members,
    weights: Weights,
    good: NDArray[np.bool_],
    steps: int = 4,
) -> tuple[Weights, NDArray[np.float64]]:
    """Alternating least squares with the signs of the fit: weights from the good pixels, vectors at all pixels."""
    m, k = members.shape
    for _ in range(steps):
        before = weights
        weights = refit(y[:, good], x[:, good], members, weights, 1)
        weights, x = scaled(members, weights, x)
        W = sparse.csr_array((weights.ravel(), members.ravel(), np.arange(m + 1) * k), shape=(m, len(x)))
        inverse = np.linalg.pinv((W.T @ W).toarray(), rcond=1e-9, hermitian=True)
        x = inverse @ (W.T @ np.copysign(y, W @ x))
        if np.abs(weights - before).max() < 1e-7:
            break
    return weights, x
