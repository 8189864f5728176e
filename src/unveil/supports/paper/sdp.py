"""LearnPublic by the paper's semidefinite program (`alg:public_attack`, `eq:sdp`), solved by our
own ADMM.

    max ⟨Z, M̃⟩  subject to  Z ⪰ 0, Tr Z = 1, Σ_ij |Z_ij| ≤ k_public

Z is split into a copy on the spectraplex (one eigendecomposition per step) and a copy on the ℓ1
ball (one sort per step). The multiplier V of the split certifies the answer: λ_max(M̃ − V) +
k·max|V| is an upper bound for every V, so the distance from it to ⟨Z, M̃⟩ bounds the error. Cost
O(n³) per step, a few hundred steps: usable to n_public of a few hundred. The paper cites an
interior-point method of cost n^{2ω+1}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh


@dataclass(frozen=True, eq=False)
class SdpSolution:
    """Z (n, n), feasible; its value ⟨Z, M̃⟩; an upper bound on every feasible value; steps
    taken."""

    matrix: NDArray[np.float64]
    value: float
    bound: float
    steps: int


def solve_sdp(
    moment: NDArray[np.float64], k_public: int, *, tolerance: float = 1e-4, max_steps: int = 2000
) -> SdpSolution:
    """The sparse-PCA program; stops when the certified gap is below tolerance·max(1, |value|)."""
    n = len(moment)
    # A common scale makes one step length serve every instance.
    scale = float(np.abs(moment).max()) or 1.0
    M = moment / scale
    step = 1.0 / max(1, k_public)
    U = np.zeros((n, n))
    V = np.zeros((n, n))  # scaled multiplier
    Z, value, bound, steps = U, -np.inf, np.inf, 0
    for steps in range(1, max_steps + 1):
        Z = _onto_spectraplex(U - V + step * M)
        relaxed = 1.6 * Z + (1 - 1.6) * U
        U = _onto_l1_ball(relaxed + V, float(k_public))
        V = V + relaxed - U
        if steps % 10 == 0 or steps == max_steps:
            feasible = _make_feasible(Z, k_public)
            value = float(np.vdot(feasible, M))
            Y = V / step
            top = float(eigh(M - Y, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
            bound = min(bound, top + k_public * float(np.abs(Y).max()))
            if bound - value <= tolerance * max(1.0, abs(value)):
                break
    return SdpSolution(_make_feasible(Z, k_public), value * scale, bound * scale, steps)


def top_coordinates(matrix: NDArray[np.float64], k: int) -> tuple[NDArray[np.int64], float]:
    """The k largest |entries| of the top eigenvector, sorted, and how far the k-th stands from the
    next, in [0, 1]."""
    n = len(matrix)
    vector = np.abs(eigh(matrix, subset_by_index=[n - 1, n - 1])[1][:, 0])
    order = np.argsort(-vector, kind="stable")
    margin = (
        1.0 - vector[order[k]] / vector[order[k - 1]]
        if k < n and vector[order[k - 1]] > 0
        else float(k >= n)
    )
    return np.sort(order[:k]), float(margin)


def _onto_spectraplex(A: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = eigh((A + A.T) / 2, driver="evd")
    weights = _onto_simplex(values, 1.0)
    keep = weights > 0
    return (vectors[:, keep] * weights[keep]) @ vectors[:, keep].T


def _onto_simplex(v: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(v) + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(v - shift, 0))


def _onto_l1_ball(A: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    size = np.abs(A)
    if size.sum() <= radius:
        return A
    return np.sign(A) * _onto_simplex(size.ravel(), radius).reshape(A.shape)


def _make_feasible(Z: NDArray[np.float64], k_public: int) -> NDArray[np.float64]:
    """Z mixed with its own diagonal, whose ℓ1 norm is 1, by just as much as the ℓ1 constraint asks
    for."""
    size = float(np.abs(Z).sum())
    if size <= k_public:
        return Z
    share = (k_public - 1.0) / (size - 1.0)
    return share * Z + (1 - share) * np.diag(np.diag(Z))
