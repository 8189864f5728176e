"""Is w the only mixture of known vectors with |Pᵀw| = y? A dual certificate. See
`docs/certificate.md`, "Nothing private".

Let Z = Σ λ_p·p·pᵀ over the pixels p of n vectors, with Z·w = 0 and Z positive definite on all that
is orthogonal to w. Another w' with the same magnitudes has w'ᵀZw' = Σ λ_p·y_p² = wᵀZw = 0, so that
w' = ±w. No distribution of P is assumed: where two vectors have the same magnitudes no such Z
exists.

λ is looked for by turns: the nearest Z that pixels can make with Z·w = 0, and the nearest matrix
that is positive definite. Gaussian vectors have one from about 3n to 4n pixels on. Cost: d³/3 once,
then d²·n per encoding and n²·d per turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TURNS = 40
"""Turns in the search for λ. Where there is one, some dozen find it."""
FLOOR = 0.5
"""Eigenvalue that is asked for; those of the target are 1."""
PER_VECTOR, MOST = 8, 2000
"""Pixels that are used: so many per vector, and `MOST` at least where there are as many. More prove
nothing new."""
RIDGE, MORE = 1e-10, 1e-6
"""Added to the diagonal of the kernel, relative to it, so that rounding does not make it singular;
and, relative to its mean, where pixels repeat each other or are zero, so that it truly is."""
CLEARLY, FLATTEST = 10.0, 1e-3
"""The least eigenvalue proves something when it is so many times what is left of Z·w, and this
share of the largest: below, rounding could have made it."""
WORK = 2e11
"""Operations after which no further encoding is looked at: half a minute."""


def only_mixture(V: Floats, W: Floats, miss: Floats) -> Bools:
    """(m, n): the weights of W (m, n) that no other mixture of V (n, d) with the same magnitudes
    lacks.

    miss (m,): largest residual of each encoding; another mixture counts as the same within three
    times as much. Encodings whose vectors are all proved by others are not looked at.
    """
    n, d = V.shape
    out = np.zeros(W.shape, bool)
    step = max(1, d // max(MOST, PER_VECTOR * n))
    V = V[:, ::step]
    d = V.shape[1]
    # 1. Coordinates in which pixels are of one size in all directions: proofs do not ask for them,
    # the search does.
    L = np.linalg.cholesky(V @ V.T / d)
    A = solve_triangular(L, V, lower=True)
    kernel = (A.T @ A) ** 2
    kernel[np.diag_indices(d)] *= 1 + RIDGE
    try:
        factor = cho_factor(kernel, overwrite_a=True)
    except LinAlgError:  # pixels that repeat each other, or at which all vectors are zero
        kernel = (A.T @ A) ** 2
        kernel[np.diag_indices(d)] += MORE * np.trace(kernel) / d
        factor = cho_factor(kernel, overwrite_a=True)
    reach = np.linalg.norm(
        solve_triangular(L, np.eye(n), lower=True), axis=0
    )  # |w_v| ≤ reach·|Lᵀw|
    per_row = d * d * n + TURNS * 2 * d * n * n
    # 2. Encodings, those with most vectors first.
    left = WORK
    proved = np.zeros(n, bool)
    for i in np.argsort(-(W != 0).sum(axis=1), kind="stable"):
        used = W[i] != 0
        if not used.any() or proved[used].all():
            continue
        left -= per_row
        if left < 0:
            break
        u = L.T @ W[i]
        apart = _distance(A, factor, u, 3 * miss[i])
        out[i] = used & (reach * apart < np.abs(W[i]) / 2)
        proved |= out[i]
    return out


def _distance(A: Floats, factor: tuple[Floats, bool], u: Floats, error: float) -> float:
    """How far another u' with |Aᵀu'| = |Aᵀu| up to `error` can be from ±u; infinite if no
    certificate is found."""
    n = len(u)
    size = float(np.linalg.norm(u))
    along = u / size
    t = A.T @ u
    # 1. λ of least distance to a target, with Z·u = 0.
    B = A * (A.T @ along)
    KB = cho_solve(factor, B.T)
    inner = np.linalg.pinv(B @ KB, hermitian=True)
    flat = np.eye(n) - np.outer(along, along)
    target = flat
    for _ in range(TURNS):
        weight = cho_solve(factor, np.einsum("ip,ip->p", A, target @ A))
        weight -= KB @ (inner @ (B @ weight))
        Z = (A * weight) @ A.T
        off = float(np.linalg.norm(Z @ along))
        values, vectors = np.linalg.eigh(
            flat @ (Z + Z.T) @ flat / 2 + 2 * np.abs(Z).sum() * np.outer(along, along)
        )
        least = float(values[0])
        largest = float(np.abs(values[:-1]).max(initial=0.0))
        if least > CLEARLY * off and least > FLATTEST * largest:
            # 2. q orthogonal to u: least·|q|² ≤ q'Zq ≤ what residuals and Z·u ≠ 0 leave. The part
            # along u follows from Σy².
            slack = float(np.abs(weight) @ (2 * np.abs(t) * error + error**2)) + 4 * off * size**2
            return float(2 * np.sqrt(slack / least) + error)
        target = (vectors[:, :-1] * np.maximum(values[:-1], FLOOR)) @ vectors[:, :-1].T
    return float("inf")
