"""The final solve with unknown weights: every pixel and every weight from the explained encodings.

  1 names    columns that are one vector get one name; a row that then holds a vector twice, or a
             vector that fewer than two different subsets use, is left out
    lock in  weights and pixels in turn, by least squares with signs, on the pixels where the
             feedback fits
  2 pixels   every pixel from two independent random starts (`solve.pixels.pixels`), weights held
  3 again    weights from all solved pixels in double precision, and the vectors from them
  4 check    weights are estimated once more from each half of the pixels
  5 rows     with the vectors solved, all rows choose their members again: small weights show now,
             and rows that the feedback gave up. Where that changes anything, all is done again

Cost: that of `solve.pixels.pixels` once or twice, and a few passes over the encodings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.records import Progress
from unveil.solve.model import SETTLED, Members, all_different, merged, needed, renamed, rms
from unveil.solve.pixels.pixels import SHARE, PixelSolution, solve_pixels
from unveil.solve.weights.unequal import (
    WeightedAssignment,
    Weights,
    mixed,
    reassign,
    refit,
    scaled,
    weight_matrix,
)

EXACT = SETTLED.near
"""Residuals within this part of the rms of the encodings count as none. A pixel is held to it as
well, ten times as wide as with known weights: errors of weights and of vectors add up."""
ROUNDS = 4
"""Times that rows choose their members again, on some pixels and on all, until none changes."""
SOLVED = 0.1
"""Share of solved pixels from which weights are taken from these alone; below, from the better
half."""
WITH_THE_OTHERS = 4.0
"""A row is explained as well when it misses by no more than so many times what the explained ones
typically do: a wrong row spoils the fit of others a little, and they must not go with it."""
LOCK_IN, AGAIN, STILL = 20, 4, 1e-7
"""Turns between weights and vectors from the feedback's rough ones, and from solved ones; and the
change of all weights below which they have come to an end."""
SMALLEST = 1e-9
"""Eigenvalues of WᵀW below this share of the largest are zero."""
TRIES = 4
"""Solves of the few pixels that are left: with few encodings per vector some starts get stuck."""

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
    progress: Progress | None = None,
) -> WeightedSolution | None:
    """Vectors and weights from the rows that `found` calls exact; None when too few are left."""
    some = slice(0, found.x.shape[1])
    scale = rms(magnitudes)
    present = Explained(
        np.flatnonzero(found.exact), found.members[found.exact], found.weights[found.exact]
    )
    x = found.x.astype(np.float64)
    Y = magnitudes.astype(np.float64)
    out = None
    for _ in range(ROUNDS):
        # 1. Members and weights first on the pixels of the feedback, where a round costs little.
        for _ in range(ROUNDS):
            present, x = named(present, x[:, some])
            if len(present.rows) <= max(len(x), present.members.shape[1] + 2):
                return None
            y = Y[present.rows, some]
            good = _best_half(y, x, present, scale)
            weights, x = _in_turn(y, x, present.members, present.weights, good, LOCK_IN)
            before = replace(present, weights=weights)
            present = _explain(Y[:, some][:, good], x[:, good], before, EXACT * scale)
            if present.same(before):
                break
        present, x = named(present, x)
        rows, members = present.rows, present.members
        if len(rows) <= max(len(x), members.shape[1] + 2):
            return None
        # 2. Every pixel.
        pixels = _every_pixel(magnitudes[rows], members, len(x), present.weights, rng, progress)
        y = Y[rows]
        # 3. Weights from what is solved, and the vectors from them.
        enough = pixels.solved.mean() > SOLVED
        good = pixels.solved if enough else pixels.misfit <= np.median(pixels.misfit)
        weights, x = _in_turn(y, pixels.values, members, present.weights, good, AGAIN)
        misfit = np.abs(np.abs(mixed(x, members, weights)) - y).max(axis=0) / scale
        # 4. The same weights from either half of the pixels?
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
        # 5. All rows again.
        before = replace(present, weights=weights)
        present = _explain(Y, x, before, EXACT * scale)
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
) -> PixelSolution:
    """`solve_pixels`, and again for the few pixels that it leaves."""
    out = solve_pixels(y, None, members, n, weights, rng, tolerance=EXACT, progress=progress)
    for _ in range(TRIES):
        left = np.flatnonzero(~out.solved)
        if not 0 < len(left) <= SHARE * y.shape[1]:
            break
        more = solve_pixels(y[:, left], None, members, n, weights, rng, tolerance=EXACT)
        values, misfit = out.values.copy(), out.misfit.copy()
        better = more.misfit < misfit[left]
        values[:, left[better]], misfit[left[better]] = more.values[:, better], more.misfit[better]
        out = PixelSolution(values, misfit, misfit <= EXACT, out.differs + more.differs, out.group)
    return out


@dataclass(frozen=True, eq=False)
class Explained:
    """Rows with their members and weights."""

    rows: NDArray[np.int64]
    members: Members
    weights: Weights

    def same(self, other: Explained) -> bool:
        """The same rows with the same members; which of them comes first does not matter."""
        return np.array_equal(self.rows, other.rows) and np.array_equal(
            np.sort(self.members), np.sort(other.members)
        )


def _explain(
    Y: NDArray[np.float64], x: NDArray[np.float64], present: Explained, bound: float
) -> Explained:
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
    miss = np.abs(np.abs(mixed(x, members, weights)) - Y)
    misfit = np.quantile(miss, SETTLED.share, axis=1)
    typical = float(np.median(misfit[present.rows]))
    fits = misfit <= max(bound, WITH_THE_OTHERS * typical)
    return Explained(np.flatnonzero(fits), members[fits], weights[fits])


def _best_half(
    y: NDArray[np.float64], x: NDArray[np.float64], present: Explained, scale: float
) -> NDArray[np.bool_]:
    """The pixels that fit best: at least half of them."""
    miss = np.abs(np.abs(mixed(x, present.members, present.weights)) - y)
    worst = np.quantile(miss, SETTLED.share, axis=0)
    return np.asarray(worst <= max(float(np.median(worst)), EXACT * scale))


def named(present: Explained, x: NDArray[np.float64]) -> tuple[Explained, NDArray[np.float64]]:
    """One name per vector; rows and vectors left out that say nothing."""
    members, keep, used = _names(x, present.members)
    return Explained(present.rows[keep], members[keep], present.weights[keep]), x[used]


def _names(
    x: NDArray[np.float64], members: Members
) -> tuple[Members, NDArray[np.bool_], NDArray[np.int64]]:
    """(members under new names, which rows to keep, the old names of the columns left)."""
    members = merged(x, members)
    keep = all_different(members)
    keep[keep] = needed(members[keep])
    used, new = renamed(members[keep])
    out = np.zeros_like(members)
    out[keep] = new
    return out, keep, used


def _in_turn(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    members: Members,
    weights: Weights,
    good: NDArray[np.bool_],
    steps: int,
) -> tuple[Weights, NDArray[np.float64]]:
    """Alternating least squares with the signs of the fit: weights from the good pixels, vectors at
    all pixels."""
    for _ in range(steps):
        # Weights with vectors held, then vectors with weights held; signs renewed in between.
        before = weights
        weights = refit(y[:, good], x[:, good], members, weights, 1)
        weights, x = scaled(members, weights, x)
        W = weight_matrix(members, weights, len(x))
        inverse = np.linalg.pinv((W.T @ W).toarray(), rcond=SMALLEST, hermitian=True)
        x = inverse @ (W.T @ np.copysign(y, W @ x))
        if np.abs(weights - before).max() < STILL:
            break
    return weights, x
