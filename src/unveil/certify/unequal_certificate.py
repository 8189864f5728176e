"""May a vector recovered with unknown weights be called verified? The doubts of
`certify.certificate`, and those of weights.

Given the signs, encodings are a product WX with W unknown at its known support. If X has
independent rows, every other solution is (WM, M⁻¹X) with the zeros of W kept and row sums 1. So
what can go wrong is in W alone:

  rank         x_b can take on a part of x_a when the encodings without a do not determine x_b: a
               null vector of W, without the rows and the column of a, touches b. That is so when b
               never occurs without a. Or a null vector of W touches b
  alias        another labelling: vectors z with s ≥ 2 true ones in each bring s − 1 unknowns, and
               cost every encoding that uses one at least s − 2 of its equations (k = 2, weights in
               general position). With at least `FEWEST` encodings of every vector, counted among
               such vectors only, there are more equations than unknowns, and no such z exists
  weights      two halves of the pixels give different weights, or weights do not sum to 1
  law          recovered weights that are not half-normal: equal ones, say, are not in general
               position, and the scheme is wrong
  k ≥ 3        the count does not hold; a theorem takes its place (`certify.hidden_own_weights`)

A member of weight below `FAINT` is no evidence for anything and does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import kstest

from unveil.certify.aliases import dependent
from unveil.certify.certificate import doubt_about_all
from unveil.certify.hidden_own_weights import certify_hidden_own_weights
from unveil.encodings import Encodings
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED
from unveil.solve.model import LEAST_USES_UNEQUAL, needed, rms, uses
from unveil.solve.simplex import Corners
from unveil.solve.weights.unequal_pixels import EXACT, WeightedSolution

FEWEST = LEAST_USES_UNEQUAL
FAINT = 1e-2
"""Weights below it are no evidence: with a residual of 1e-3 they are known to a tenth at best."""
RULED_OUT = 1e-5
"""Probability of the weights under the half-normal law below which the law is wrong."""
NULL, TOUCHED = 1e-6, 1e-4
"""Eigenvalues of WᵀW that are zero, relative to their mean, and entries of a null vector that are
not. Wider than in `solve.model`: weights are estimated, to some 1e-5."""


def certify_unequal(
    encodings: Encodings, solution: WeightedSolution
) -> tuple[NDArray[np.str_], list[str]]:
    """Status and reason of each vector."""
    # 1. What speaks against each vector. Faint weights are no evidence, so that only encodings
    # without them count for what determines a vector.
    pixels = solution.pixels
    n, d = pixels.values.shape
    members, weights = solution.members, solution.weights
    clear = (weights > FAINT).all(axis=1)
    loose = (solution.spread > EXACT) | (np.abs(weights.sum(axis=1) - 1) > EXACT)
    unsure = np.bincount(members[loose].ravel(), minlength=n) > 0
    undetermined = _undetermined(members[clear], weights[clear], n)
    core = _core(members[clear], n)
    main = int(np.bincount(pixels.group).argmax())
    alias = (
        dependent(members, pixels.values, np.ones(n, bool), pixels.misfit)
        if n <= d
        else np.ones(n, bool)
    )
    # 2. What speaks against all of them, and for k ≥ 3 what no other reading lacks.
    proved, more = _by_theorem(solution) if members.shape[1] > 2 else (core >= FEWEST, "")
    whole = (
        more
        or _doubt_about_weights(solution)
        or doubt_about_all(
            encodings, len(solution.rows), pixels, ~undetermined & ~unsure & (pixels.differs == 0)
        )
    )
    unsolved = int((~pixels.solved).sum())
    status, reasons = np.full(n, VERIFIED, dtype="<U10"), []
    # 3. The first doubt decides: those about all vectors come first, since what is said of a single
    # one then means nothing.
    for i in range(n):
        if unsolved:
            what, why = UNRESOLVED, f"{unsolved} of {d} pixels were not solved"
        elif whole:
            what, why = AMBIGUOUS, whole
        elif unsure[i]:
            what, why = AMBIGUOUS, "the weights of an encoding that uses it are not determined"
        elif undetermined[i]:
            what, why = (
                AMBIGUOUS,
                "with unknown weights the encodings that use it do not determine it",
            )
        elif pixels.differs[i]:
            what, why = (
                AMBIGUOUS,
                f"another value fits as well at {int(pixels.differs[i])} of {d} pixels",
            )
        elif pixels.group[i] != main:
            what, why = (
                AMBIGUOUS,
                "linked with a few others only, whose sign per pixel is their own",
            )
        elif alias[i]:
            what, why = (
                AMBIGUOUS,
                "a combination of other vectors: its encodings can be explained in another way",
            )
        # Last the count of encodings, which is evidence only where nothing else speaks against it.
        elif not proved[i] and members.shape[1] > 2:
            what, why = AMBIGUOUS, "its encodings do not exclude another reading"
        elif not proved[i]:
            what, why = (
                AMBIGUOUS,
                f"fewer than {FEWEST} different encodings with vectors as well supported as itself",
            )
        else:
            what, why = (
                VERIFIED,
                f"{core[i]} different encodings reproduced at all {d} pixels by one solution only",
            )
        status[i] = what
        reasons.append(why)
    return status, reasons


def _by_theorem(solution: WeightedSolution) -> tuple[NDArray[np.bool_], str]:
    """Vectors that are in every reading, and a doubt about all."""
    values = solution.pixels.values.astype(np.float64)
    off = float(np.max(solution.pixels.misfit, initial=0.0)) * rms(values)
    fits = np.ones(len(solution.members), bool)
    found = Corners(values, solution.members, solution.weights, fits, off, True)
    return certify_hidden_own_weights(found)


def _doubt_about_weights(solution: WeightedSolution) -> str:
    """In words; empty where there is none."""
    (m, k), (n, d) = solution.members.shape, solution.pixels.values.shape
    if n > d:
        return (
            f"{d} pixels for {n} vectors: too few to rule out vectors that are combinations of "
            "others"
        )
    if m * d <= n * d + m * (k - 1):
        return "hardly more equations than unknowns"
    if k > 2:
        return ""
    # Two half-normal weights are cos and sin of a uniform angle; the smaller one, since the names
    # of vectors depend on weights.
    angle = np.arctan2(solution.weights.min(axis=1), solution.weights.max(axis=1)) / (np.pi / 4)
    if kstest(angle, "uniform").pvalue < RULED_OUT:
        return "recovered weights do not follow the half-normal law: check weighting and k_private"
    return ""


def _undetermined(
    members: NDArray[np.int64], weights: NDArray[np.float64], n: int
) -> NDArray[np.bool_]:
    """Vectors that a null vector of W touches, or one of W without some other vector a."""
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, weights, axis=1)
    gram = W.T @ W
    bound = NULL * float(np.trace(gram)) / n
    out = _touched(gram, np.arange(n), bound)
    for a in range(n):
        rows = W[W[:, a] > 0]
        others = np.delete(np.arange(n), a)
        out |= _touched(gram - rows.T @ rows, others, bound)
    return out


def _touched(
    gram: NDArray[np.float64], columns: NDArray[np.int64], bound: float
) -> NDArray[np.bool_]:
    """Columns with a part in the null space of the Gram matrix of `columns`."""
    out = np.zeros(len(gram), bool)
    part = gram[np.ix_(columns, columns)]
    try:
        # A tenth of the cost of eigenvalues, and nearly always enough.
        np.linalg.cholesky(part - bound * np.eye(len(part)))
    except np.linalg.LinAlgError:
        values, vectors = eigh(part)
        out[columns] = (np.abs(vectors[:, values <= 2 * bound]) > TOUCHED).any(axis=1)
    return out


def _core(members: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """In how many different subsets each vector occurs, those subsets only whose vectors all occur
    in `FEWEST` of them."""
    return uses(members[needed(members, FEWEST)], n)
