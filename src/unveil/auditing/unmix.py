"""MixUp with weights of its own in every encoding: y = λ·x₁ + (1 − λ)·x₂, signs and all.

Encodings are points on the edges of a simplex whose corners are the records. No attack of the
package takes them on, since exact ones want fixed weights and the others ignore signs; but linear
algebra does:

    1  n ← the rank of the encodings
    2  x ← n extreme encodings           successive projection (Araújo et al. 2001): the longest
                                         one, then the longest when those before are projected out
    3  w ← the best two corners, for every encoding; x ← least squares   until nothing changes

Needs n at most the number of pixels, and more encodings than records. Cost: pairs of records times
encodings, for each of some rounds.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encodings import Encodings
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import UNRESOLVED, Recovery

NAME = "unmix"
"""How the audit lists it."""
RANK = 1e-5
"""Singular values below this share of the largest are rounding."""
ROUNDS = 60
"""Rounds after which it converges or does not."""
CHANGE = 1e-9
"""Relative change of the records from which on nothing changes any more."""
FITS = 1e-4
"""Relative error of an encoding that is explained."""
MOST_PAIRS = 40_000_000
"""Pairs of corners times encodings: some seconds a round."""
Floats = NDArray[np.float64]


def unmix(encodings: Encodings) -> Recovery:
    """Every record of which encodings are mixtures of two."""
    clock = Stopwatch()
    Y = encodings.values.astype(np.float64)
    with clock("unmix"), one_blas_thread():
        # 1. How many corners there are.
        sizes = np.linalg.svd(Y, compute_uv=False)
        n = int((sizes > RANK * sizes[0]).sum())
        if not 3 <= n < min(len(Y), Y.shape[1]) or n * n // 2 * len(Y) > MOST_PAIRS:
            why = f"encodings of rank {n}: no simplex of fewer corners than encodings and values"
            return Recovery.empty(encodings, NAME, why, clock.seconds)
        # 2. and 3. Corners, then mixtures and corners in turn.
        x = Y[_extreme(Y, n)]
        pairs = np.array(list(combinations(range(n), 2)), np.int64)
        W = np.zeros((len(Y), n))
        for _ in range(ROUNDS):
            W = _mixtures(Y, x, pairs)
            used = W.any(axis=0)
            new = x.copy()
            new[used] = np.linalg.lstsq(W[:, used], Y, rcond=None)[0]
            moved = float(np.linalg.norm(new - x)) / max(float(np.linalg.norm(x)), 1e-30)
            x = new
            if moved < CHANGE:
                break
    size = np.maximum(np.linalg.norm(Y, axis=1), 1e-30)
    miss = np.linalg.norm(W @ x - Y, axis=1) / size
    explained = int((miss <= FITS).sum())
    return Recovery(
        vectors=x.astype(np.float32),
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=True,
        members=sparse.csr_array(W > 0),
        residual=np.full(n, float(np.median(miss))),
        reasons=("a corner of the simplex of all encodings",) * n,
        attack=NAME,
        explanation=f"{n} corners explain {explained} of {len(Y)} encodings as mixtures of two",
        seconds=clock.seconds,
        evidence={"encodings_explained": explained},
        explained=explained,
    )


def _extreme(Y: Floats, n: int) -> NDArray[np.int64]:
    """Rows that span most: the longest, then the longest of what is left of all."""
    left, rows = Y.copy(), []
    for _ in range(n):
        rows.append(int(np.einsum("ij,ij->i", left, left).argmax()))
        unit = left[rows[-1]] / max(float(np.linalg.norm(left[rows[-1]])), 1e-30)
        left = left - np.outer(left @ unit, unit)
    return np.array(rows, np.int64)


def _mixtures(Y: Floats, x: Floats, pairs: NDArray[np.int64]) -> Floats:
    """(m, n): for every encoding the two corners and the λ in [0, 1] with the least error."""
    a, b = pairs.T
    edge = x[a] - x[b]
    length = np.maximum(np.einsum("ij,ij->i", edge, edge), 1e-30)
    product = Y @ x.T
    gram = x @ x.T
    # λ = ⟨y − x_b, x_a − x_b⟩/‖x_a − x_b‖², kept between the ends; ‖y‖² is the same for all pairs.
    slope = product[:, a] - product[:, b] - (gram[a, b] - gram[b, b])
    share = np.clip(slope / length, 0.0, 1.0)
    error = gram[b, b] - 2 * product[:, b] - 2 * share * slope + share**2 * length
    best = error.argmin(axis=1)
    rows = np.arange(len(Y))
    W = np.zeros((len(Y), len(x)))
    W[rows, a[best]] = share[rows, best]
    W[rows, b[best]] = 1 - share[rows, best]
    return W
