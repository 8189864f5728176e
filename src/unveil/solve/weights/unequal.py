"""Feedback for weights that are unequal, unknown and new in every encoding: y = |Σ λ_j x_j|, λ ≥ 0,
Σ λ = 1.

Memberships read off the overlaps (`factor.mixed_memberships`) give weights to about a hundredth,
and miss members of small weight. Pixels solved from them are good enough to see everything, and
noise-free data then lock in. Each round:

  1 solve     x from the present weights (`affine_rrr`), rows weighted by how well they fit
  2 reassign  with the signs of the present fit, regress every row on *all* columns: its k largest
              coefficients are its members. One product with the inverse of xxᵀ. No search over
              subsets and weights is needed: signs are known where the large member dominates, and a
              small member then stands out over the pixels
    refit     each row's k weights by least squares, signs renewed
    scale     columns so that weights sum to 1 in every row: it is what ties the scale of x to that
              of y
  3 judge     a row is exact as `model.FEEDBACK_UNEQUAL` says
  4 stop      when all rows are exact, or none has been added for a while

On at most a few hundred pixels. Pixels that are solved well count for more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.factor.mixed_memberships import Memberships
from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all
from unveil.solve.model import FEEDBACK_UNEQUAL, Members, Real, Values, reproduced, rms
from unveil.solve.subsets.feedback import BETTER, EVEN

Weights = NDArray[np.float64]
FIRST_STEPS, STEPS = 150, 40
"""Iterations of the first solve, from random signs, and of later ones, from where the last
ended."""
UNCLEAR = 1e-3
"""Weight of rows whose smallest member the overlaps do not show, in the first solve: they come in
once x says who their members are."""
SLOWLY, LEAST_DOUBT, DOUBTED = 1e-2, 1e-4, 10.0
"""What a row may miss by, in squares, and still count half: the first, halved in every round down
to the second, and so many times what right rows miss by. Bad rows lose their weight slowly: at
first they may be right, and only a pixel or a column wrong."""
RIDGE, ROW_RIDGE = 1e-6, 1e-9
"""Added to the Gram matrix of all columns, and of one row's members, relative to their mean square:
two columns that are nearly one vector would have no inverse."""
PULL, FACTORS = 1e-6, (0.2, 5.0)
"""A faint pull of every column's factor towards 1, so that columns no row uses stay as they are;
and the bounds of one correction, since early weights can be anything."""
HEAVY = 0.1
"""Rows of at least this part of the largest weight say how well a pixel is solved."""
PATIENCE = 5
"""Rounds without a new exact row after which the loop ends."""
CLEAR = 0.03
"""A share of an encoding's power that the overlaps show reliably."""


@dataclass(frozen=True, eq=False)
class WeightedAssignment:
    """members, weights (m, k): rows of W; x (n, pixels); exact (m,): rows explained at most
    pixels."""

    members: Members
    weights: Weights
    x: Values
    exact: NDArray[np.bool_]
    rounds: int


def feedback_unequal(
    magnitudes: Values,
    start: Memberships,
    rng: np.random.Generator,
    *,
    rounds: int = 30,
    progress: Progress | None = None,
) -> WeightedAssignment:
    """Alternate between pixels, subsets and weights until every row is exact; `magnitudes` (m, p)
    on the pixels to use."""
    m, p = magnitudes.shape
    scale = np.float32(rms(magnitudes))
    y = magnitudes / scale
    n, members = start.n, start.members
    weights = np.sqrt(start.shares)
    # A row without a share weighs nothing, and is assigned anew below.
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    rows = np.where(start.shares[:, -1] > CLEAR, 1.0, UNCLEAR)
    v = rng.standard_normal((m, p), dtype=np.float32)
    x = np.zeros((n, p), np.float32)
    exact = np.zeros(m, bool)
    best = stale = done = 0
    for done in range(1, rounds + 1):
        # 1. Solve.
        steps = FIRST_STEPS if done == 1 else STEPS
        x, v = solve_all(y, None, members, n, rows, weights, v, steps=steps)
        # 2. Reassign, refit, scale.
        pixels = _pixel_weights(y, x, members, weights, rows)
        members, weights = reassign(y, x, members, weights, pixels)
        weights, x = scaled(members, weights, x)
        # 3. Judge.
        misfit = np.abs(np.abs(mixed(x, members, weights)) - y)
        cost = np.median(misfit, axis=1).astype(np.float64) ** 2
        allowed = max(SLOWLY * 0.5**done, LEAST_DOUBT)
        rows = 1 / (1 + cost / (allowed + DOUBTED * float(np.quantile(cost, BETTER))))
        exact = reproduced(misfit, *FEEDBACK_UNEQUAL)
        if progress:
            progress("feedback", int(exact.sum()), m)
        # 4. Stop.
        best, stale = (count, 0) if (count := int(exact.sum())) > best else (best, stale + 1)
        if exact.all() or (stale >= PATIENCE and 2 * best > m):
            break
    return WeightedAssignment(members, weights, x * scale, exact, done)


def mixed(x: Real, members: Members, weights: Weights) -> Real:
    """Σ λ_j x_j of every row."""
    w = weights.astype(x.dtype)
    out = w[:, :1] * x[members[:, 0]]
    for column in range(1, members.shape[1]):
        out += w[:, column : column + 1] * x[members[:, column]]
    return np.asarray(out)


def reassign(
    y: Real, x: Real, members: Members, weights: Weights, pixels: Real | None = None, steps: int = 3
) -> tuple[Members, Weights]:
    """The k columns that explain each row best, by folded regression on all of them, and their
    weights."""
    n, k = len(x), members.shape[1]
    if pixels is not None:
        root = np.sqrt(pixels)
        y, x = y * root, x * root
    gram = (x @ x.T).astype(np.float64)
    ridge = RIDGE * (np.trace(gram) / n + 1e-30)
    inverse = np.linalg.inv(gram + ridge * np.eye(n)).astype(x.dtype)
    fit = mixed(x, members, weights)
    # Better members give better signs, and these better members.
    for _ in range(steps):
        signed = np.copysign(y, fit)
        coefficients = (signed @ x.T) @ inverse
        members = np.argpartition(-coefficients, k - 1, axis=1)[:, :k].astype(np.int64)
        weights = least_squares(signed, x, members, gram)
        fit = mixed(x, members, weights)
    return members, refit(y, x, members, weights, steps)


def refit(y: Real, x: Real, members: Members, weights: Weights, steps: int = 3) -> Weights:
    """Weights by least squares with the signs of the present fit, a few times."""
    gram = (x @ x.T).astype(np.float64)
    for _ in range(steps):
        weights = least_squares(np.copysign(y, mixed(x, members, weights)), x, members, gram)
    return weights


def weight_matrix(members: Members, weights: Weights, n: int) -> sparse.csr_array:
    """(rows, n) the weights of every row."""
    rows, k = members.shape
    return sparse.csr_array(
        (weights.ravel(), members.ravel(), np.arange(rows + 1) * k), shape=(rows, n)
    )


def scaled(members: Members, weights: Weights, x: Real) -> tuple[Weights, Real]:
    """Columns multiplied so that the weights of each row sum to 1 as nearly as may be, and x
    divided by the same."""
    W = weight_matrix(members, weights, len(x))
    normal = (W.T @ W).toarray() + PULL * np.eye(len(x))
    factor = np.clip(np.linalg.solve(normal, W.T @ np.ones(len(members)) + PULL), *FACTORS)
    return weights * factor[members], np.asarray(x / factor[:, None], dtype=x.dtype)


def least_squares(signed: Real, x: Real, members: Members, gram: Weights) -> Weights:
    """Weights of each row's members against its signed values; negative ones become 0."""
    k = members.shape[1]
    normal = gram[members[:, :, None], members[:, None, :]]
    normal += ROW_RIDGE * (np.trace(gram) / len(gram) + 1e-30) * np.eye(k)
    right = np.stack(
        [np.einsum("ij,ij->i", signed, x[members[:, c]]) for c in range(k)], axis=1
    ).astype(np.float64)
    return np.asarray(np.maximum(np.linalg.solve(normal, right[:, :, None])[:, :, 0], 0))


def _pixel_weights(y: Real, x: Real, members: Members, weights: Weights, rows: Weights) -> Real:
    """Pixels that are solved well count for more."""
    miss = np.abs(np.abs(mixed(x, members, weights)) - y)[rows > HEAVY * rows.max()]
    spread = np.median(miss, axis=0) ** 2 + EVEN
    out = 1 / (spread + np.median(spread))
    return np.asarray(out / out.mean(), dtype=np.float32)
