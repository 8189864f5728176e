"""Weights that are unequal and unknown, under noise: y = |Σ λ_j x_j + ε|, λ ≥ 0, Σ λ = 1.

No encoding is explained exactly, so that there is nothing to lock in to (`solve.weights.unequal`).
But overlaps are pooled over all pixels, and memberships read off them have nine large members of
ten right. From there:

  1 some     vectors on a few hundred pixels (`solve.pixels.loud`); weights and vectors in turn, by
    pixels   least squares with likely signs: that of an encoding smaller than the noise is a mean
             of both; all rows choose their members again. A few times
  2 every    pixel by `solve.pixels.loud`, members and weights held
    pixel
  3 weights  once more, from all pixels

Before 2 it is held against chance, by rows predicted from vectors made without them
(`solve.pixels.left_out`), and against itself: two halves of the rows must give the same vectors.
A row that is nearly one vector alone is predicted by magnitudes, whatever their signs. In the end
what is left must be noise: the same in all rows. Two members where there are three, or own weights
where they are equal, leave some rows explained well and others badly.

Under noise of a tenth of the signal the feedback of the exact route ends with wrong signs that fit
nearly as well, and vectors that are nobody's; this one stands a fifth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.factor.mixed_memberships import Memberships
from unveil.folded import information, signed
from unveil.parallel import one_blas_thread
from unveil.records import Progress
from unveil.solve.model import MEDIAN, TWICE_THE_NOISE, Members, Values, rms, touched_by_null
from unveil.solve.pixels.left_out import beyond_chance
from unveil.solve.pixels.loud import solve_loud
from unveil.solve.pixels.noisy import NoisySolution
from unveil.solve.weights.unequal import (
    Weights,
    least_squares,
    mixed,
    reassign,
    scaled,
    weight_matrix,
)
from unveil.solve.weights.unequal_pixels import Explained, named

SOME = 384
"""Pixels on which members are found, as many as where weights are known."""
ROUNDS, TURNS = 3, 5
"""Times that rows choose their members again, and turns between weights and vectors each time:
nothing changes any more after two and four."""
FIRST_NOISE = 0.3
"""A guess at the noise, relative to the rms of an encoding, before anything is known."""
FAINT = 1e-4
"""The least weight of a member: with none at all its vector would not be held by anything."""
HEAVIEST = 10.0
"""The largest weight of a member, where those of a row sum to 1: vectors that are next to nothing
would get any."""
LEAST_TOLD = 0.02
"""The least that a magnitude is taken to say of its sum: where signs tell nothing, errors are not
blown up beyond bounds."""
ALIKE = 0.5
"""The cosine of a vector from one half of the rows with that from the other: 0.7 to 1 where members
are right, some values being on a wrong peak with so few rows; 0.1 where magnitudes are right and
signs are not."""
EVEN, FREE = 0.05, 0.2
"""Relative spread of what rows miss by, beyond chance, up to which it is even: 0.02 is measured
where members are right, 0.08 and more where they are not. And the share of a row that must be left
to noise: of others the misfit says nothing."""
RIDGE = 1e-9
"""Added to WᵀW, relative to its mean: a vector that no row determines must not stop the others."""


def solve_noisy_weights(
    magnitudes: Values,
    start: Memberships,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> NoisySolution | None:
    """Vectors and weights from the rows that fit like the others, in the units of the magnitudes;
    None: less than half of them do, no better than by chance, or some of them much better than
    others."""
    m, d = magnitudes.shape
    scale = np.float32(rms(magnitudes))
    y = magnitudes / scale
    # 1. Members and weights on some pixels.
    some = np.ascontiguousarray(y[:, np.sort(rng.permutation(d)[:SOME])])
    with one_blas_thread():
        present, n, noise = _on_some(some, start, rng)
        rows = present.rows
        if 2 * len(rows) < m or len(rows) <= n:
            return None
        part = np.ascontiguousarray(y[rows])
        spare = beyond_chance(part, present.members, n, noise, rng, present.weights)
        if spare < 0 or not _halves_agree(some[rows], present, n, noise, rng):
            return None
        # 2. Every pixel.
        loud = solve_loud(
            part, present.members, n, noise, rng, weights=present.weights, progress=progress
        )
    # 3. Weights from all pixels.
    x, noise = loud.x, loud.noise
    weights, x = _weighed(part, present.members, present.weights, x, noise)
    # 4. How well each vector is known.
    W = weight_matrix(present.members, weights, n)
    gram = (W.T @ W).toarray()
    inverse = np.linalg.pinv(gram, hermitian=True)
    if not _even(part, W, x, inverse):
        return None
    told = max(information(part, W @ x, noise**2), LEAST_TOLD)
    error = noise * np.sqrt(np.diag(inverse) / told)
    size = float(scale)
    return NoisySolution(
        x * size,
        rows,
        present.members,
        noise * size,
        error * size,
        ~touched_by_null(gram),
        spare / len(rows),
        spare,
        weights,
    )


def _on_some(
    y: Values, start: Memberships, rng: np.random.Generator
) -> tuple[Explained, int, float]:
    """Rows that fit like the others with members and weights, how many vectors these are, and the
    noise; y (m, pixels)."""
    m, n = len(y), start.n
    members, weights = start.members, np.sqrt(start.shares)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    present, noise = Explained(np.arange(m), members, np.maximum(weights, FAINT)), FIRST_NOISE
    for _ in range(ROUNDS):
        # 1. Vectors from the rows that fit, members of all rows from these.
        rows = present.rows
        loud = solve_loud(
            y[rows], present.members, n, noise, rng, weights=present.weights, fine=False
        )
        members[rows], weights[rows] = present.members, present.weights
        members, weights = reassign(y, loud.x.astype(np.float32), members, weights)
        # 2. Weights and vectors in turn.
        weights, x = _in_turn(y, members, weights, loud.x, loud.noise)
        noise = loud.noise
        # 3. One name for each vector; rows that fit like the others.
        missed = np.median(np.abs(np.abs(mixed(x, members, weights)) - y), axis=1) / MEDIAN
        keep = np.flatnonzero(missed <= TWICE_THE_NOISE * noise)
        weights = np.maximum(weights, FAINT)
        present, x = named(Explained(keep, members[keep], weights[keep]), x)
        n = len(x)
        if len(present.rows) <= n or 2 * len(present.rows) < m:
            break
        # Those left out choose anew from the names there are now.
        members, weights = np.zeros_like(members), np.full_like(weights, 1 / weights.shape[1])
    return present, n, noise


def _halves_agree(
    y: Values, present: Explained, n: int, noise: float, rng: np.random.Generator
) -> bool:
    """Whether two halves of the rows, y (rows, pixels), give vectors that are alike, up to one sign
    per pixel common to all."""
    half = rng.permutation(len(y)) < len(y) // 2
    one, other = (
        solve_loud(
            y[part], present.members[part], n, noise, rng, weights=present.weights[part], fine=False
        ).x
        for part in (half, ~half)
    )
    one = one * np.where((one * other).sum(axis=0) < 0, -1, 1)
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    alike = np.einsum("ij,ij->i", one, other) / np.maximum(sizes, 1e-30)
    return bool(np.median(alike) >= ALIKE)


def _even(
    y: Values, W: sparse.csr_array, x: NDArray[np.float64], inverse: NDArray[np.float64]
) -> bool:
    """Whether all rows miss by the same; `inverse` of WᵀW. What two halves of the pixels share is
    no chance (as in `attacks.evenness`); medians, since single values may be on a wrong peak."""
    missed = np.abs(np.abs(W @ x) - y)
    leverage = np.asarray(W.multiply(W @ inverse).sum(axis=1)).ravel()
    free = 1 - leverage
    use = free > FREE
    first, second = (
        np.median(missed[use, half::2], axis=1) / np.sqrt(free[use]) for half in (0, 1)
    )
    shared = float(np.mean((first - first.mean()) * (second - second.mean())))
    return shared <= EVEN**2 * float(first.mean() * second.mean())


def _in_turn(
    y: Values, members: Members, weights: Weights, x: NDArray[np.float64], noise: float
) -> tuple[Weights, NDArray[np.float64]]:
    """Weights and vectors by least squares with likely signs, y (rows, pixels)."""
    for _ in range(TURNS):
        # Weights with vectors held, then vectors with weights held; signs renewed in between.
        weights, x = _weighed(y, members, weights, x, noise)
        W = weight_matrix(members, weights, len(x))
        gram = (W.T @ W).toarray()
        gram += (RIDGE * np.trace(gram) / len(gram) + 1e-30) * np.eye(len(gram))
        x = np.linalg.solve(gram, W.T @ signed(y, W @ x, noise**2))
    return weights, np.asarray(x, np.float64)


def _weighed(
    y: Values, members: Members, weights: Weights, x: NDArray[np.float64], noise: float
) -> tuple[Weights, NDArray[np.float64]]:
    """Weights by least squares with likely signs, vectors held but for their scale."""
    likely = signed(y, mixed(x, members, weights), noise**2)
    found = np.minimum(least_squares(likely, x, members, x @ x.T), HEAVIEST)
    return scaled(members, found, x)
