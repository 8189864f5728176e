"""The final solve with unknown weights: every pixel and every weight from the explained encodings.

  names    columns that are one vector get one name; a row that then holds a vector twice, or a vector that fewer than two
           different subsets use, is left out
  lock in  weights and pixels in turn, by least squares with signs, on the pixels where the feedback fits
  pixels   every pixel from two independent random starts (`solve.pixels.pixels`), the weights held
  again    weights from all solved pixels in double precision, and the vectors from them
  rows     with the vectors solved, all rows choose their members again: small weights show now, and rows the feedback gave up.
           Where that changes anything, all is done again
  check    weights are estimated once more from each half of the pixels

Cost: that of `solve.pixels.pixels` once or twice, and a few passes over the encodings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress
from unveil.solve.pixels.pixels import PixelSolution, solve_pixels
from unveil.solve.subsets.descent import uses
from unveil.solve.weights.unequal import (
    Members,
    WeightedAssignment,
    Weights,
    mixed,
    reassign,
    refit,
    scaled,
)

EXACT = 1e-3
"""Residuals within this part of the root mean square of the encodings count as none."""

PIXELS = 1024
"""Pixels that are enough to choose members."""


@dataclass(frozen=True, eq=False)
class WeightedSolution:
    """rows: the explained encodings; members, weights (rows, k); pixels: the vectors, as in
    `solve.pixels.pixels`;
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
    some = slice(0, found.x.shape[1])
    rms = float(np.sqrt(np.mean(np.square(magnitudes, dtype=np.float64)))) or 1.0
    present = _Explained(
        np.flatnonzero(found.exact), found.members[found.exact], found.weights[found.exact]
    )
    x = found.x.astype(np.float64)
    Y = magnitudes.astype(np.float64)
    out = None
    for _ in range(rounds):
        # Members and weights first on the pixels of the feedback, where a round costs little.
        for _ in range(rounds):
            present, x = _named(present, x[:, some])
            if len(present.rows) <= max(len(x), present.members.shape[1] + 2):
                return None
            y = Y[present.rows, some]
            good = _best_half(y, x, present, rms)
            weights, x = _in_turn(y, x, present.members, present.weights, good, 20)
            before = replace(present, weights=weights)
            present = _explain(Y[:, some][:, good], x[:, good], before, EXACT * rms)
            if present.same(before):
                break
        present, x = _named(present, x)
        rows, members = present.rows, present.members
        if len(rows) <= max(len(x), members.shape[1] + 2):
            return None
        pixels = _every_pixel(magnitudes[rows], members, len(x), present.weights, rng, progress)
        y = Y[rows]
        good = (
            pixels.solved
            if pixels.solved.mean() > 0.1
            else pixels.misfit <= np.median(pixels.misfit)
        )
        weights, x = _in_turn(y, pixels.values, members, present.weights, good)
        misfit = np.abs(np.abs(mixed(x, members, weights)) - y).max(axis=0) / rms
        halves = [
            refit(y[:, part], x[:, part], members, weights, 1)
            for part in (slice(0, None, 2), slice(1, None, 2))
        ]
        out = WeightedSolution(
            rows,
            members,
            weights,
            replace(pixels, values=x, misfit=misfit, solved=misfit <= EXACT),
            np.abs(halves[0] - halves[1]).max(axis=1),
        )
        before = replace(present, weights=weights)
        present = _explain(Y, x, before, EXACT * rms)
        if present.same(before):
            break
    return out


def _every_pixel(
    y: NDArray[np.float32],
    members: Members,
    n: int,
    weights: Weights,
    rng: np.random.Generator,
    progress: Progress | None,
    tries: int = 4,
) -> PixelSolution:
    """`solve_pixels`, and again for the few pixels that it leaves: with few encodings per vector
    some starts get stuck."""
    out = solve_pixels(y, None, members, n, weights, rng, tolerance=EXACT, progress=progress)
    for _ in range(tries):
        left = np.flatnonzero(~out.solved)
        if not 0 < len(left) <= 0.1 * y.shape[1]:
            break
        more = solve_pixels(y[:, left], None, members, n, weights, rng, tolerance=EXACT)
        values, misfit = out.values.copy(), out.misfit.copy()
        better = more.misfit < misfit[left]
        values[:, left[better]], misfit[left[better]] = more.values[:, better], more.misfit[better]
        out = PixelSolution(values, misfit, misfit <= EXACT, out.differs + more.differs, out.group)
    return out


@dataclass(frozen=True, eq=False)
class _Explained:
    rows: NDArray[np.int64]
    members: Members
    weights: Weights

    def same(self, other: _Explained) -> bool:
        """The same rows with the same members; which of them comes first does not matter."""
        return np.array_equal(self.rows, other.rows) and np.array_equal(
            np.sort(self.members), np.sort(other.members)
        )


def _explain(
    Y: NDArray[np.float64], x: NDArray[np.float64], present: _Explained, bound: float
) -> _Explained:
    """All rows that the vectors explain, with their members and weights."""
    k = present.members.shape[1]
    y, part = Y[:, :PIXELS], x[:, :PIXELS]
    # A row not explained so far starts from the vector whose magnitudes are most like its own.
    folded, bright = (np.abs(v) - np.abs(v).mean(axis=1, keepdims=True) for v in (y, part))
    likely = ((folded @ bright.T) / (np.linalg.norm(bright, axis=1) + 1e-30)).argsort(axis=1)[
        :, ::-1
    ]
    members, weights = likely[:, :k].astype(np.int64), np.tile(np.eye(k)[0], (len(Y), 1))
    members[present.rows], weights[present.rows] = present.members, present.weights
    members, weights = reassign(y, part, members, weights)
    misfit = np.quantile(np.abs(np.abs(mixed(x, members, weights)) - Y), 0.95, axis=1)
    # A wrong row spoils the fit of others a little; they must not go with it.
    fits = misfit <= max(bound, 4 * float(np.median(misfit[present.rows])))
    return _Explained(np.flatnonzero(fits), members[fits], weights[fits])


def _best_half(
    y: NDArray[np.float64], x: NDArray[np.float64], present: _Explained, rms: float
) -> NDArray[np.bool_]:
    """The pixels that fit best: at least half of them."""
    worst = np.quantile(
        np.abs(np.abs(mixed(x, present.members, present.weights)) - y), 0.95, axis=0
    )
    return np.asarray(worst <= max(float(np.median(worst)), EXACT * rms))


def _named(present: _Explained, x: NDArray[np.float64]) -> tuple[_Explained, NDArray[np.float64]]:
    """One name per vector; rows and vectors left out that say nothing."""
    members, keep, used = _names(x, present.members)
    return _Explained(present.rows[keep], members[keep], present.weights[keep]), x[used]


def _names(
    x: NDArray[np.float64], members: Members
) -> tuple[Members, NDArray[np.bool_], NDArray[np.int64]]:
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


def _in_turn(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    members: Members,
    weights: Weights,
    good: NDArray[np.bool_],
    steps: int = 4,
) -> tuple[Weights, NDArray[np.float64]]:
    """Alternating least squares with the signs of the fit: weights from the good pixels, vectors at
    all pixels."""
    m, k = members.shape
    for _ in range(steps):
        before = weights
        weights = refit(y[:, good], x[:, good], members, weights, 1)
        weights, x = scaled(members, weights, x)
        W = sparse.csr_array(
            (weights.ravel(), members.ravel(), np.arange(m + 1) * k), shape=(m, len(x))
        )
        inverse = np.linalg.pinv((W.T @ W).toarray(), rcond=1e-9, hermitian=True)
        x = inverse @ (W.T @ np.copysign(y, W @ x))
        if np.abs(weights - before).max() < 1e-7:
            break
    return weights, x
