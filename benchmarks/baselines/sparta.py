"""SPARTA, sparse truncated amplitude flow (Wang, Zhang, Giannakis, Akçakaya & Chen, IEEE TSP 66,
2018; arXiv:1611.07641).

    min (1/d) Σ_j (y_j − |⟨p_j, w⟩|)²  subject to  ‖w‖₀ ≤ k

Published steps:
1. Support Ŝ: the k largest of (1/d) Σ_j y_j²·p_j².
2. Orthogonality-promoting start: over the ⌈d/6⌉ pixels of largest y_j/‖[p_j]_Ŝ‖, the top
eigenvector of
   Σ_j p_j p_jᵀ/‖p_j‖² on Ŝ, scaled to the norm of w.
3. Truncated amplitude gradient with hard thresholding: u = ⟨p_j, w⟩, T = {j: |u_j| ≥ y_j/(1+γ)},
   w ← the k largest entries of w − (μ/d) Σ_{j∈T} (u_j − y_j·sign u_j)·p_j.

Private part: the model has none. It is left to the gradient as noise; only ‖w‖² = mean(y²) −
private_variance is corrected. Ours, because it helps here: y² is centred in step 1, which removes
the common part of all sums; 25 columns instead of k go into step 2, as many as diagonal
thresholding keeps, and the result is cut to k; γ = 4, since with noise in y the published
truncation (γ about 1) throws away pixels that are good. μ = 1.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

SCREENED = 25
STEP, GAMMA = 1.0, 4.0
STEPS, TOLERANCE = 60, 1e-4


def support(
    y: NDArray[np.float32],
    public: NDArray[np.float32],
    k: int,
    *,
    private_variance: float = 0.0,
    screened: int = SCREENED,
) -> NDArray[np.int64]:
    m, d = y.shape
    n = len(public)
    power = (y * y).mean(axis=1, keepdims=True)
    norm = np.sqrt(np.maximum(power - private_variance, 0.1 * power))
    # 1. support by screening
    screened = min(n, max(k, screened))
    marginal = (y * y - power) @ np.square(public).T
    chosen = np.argpartition(-marginal, screened - 1, axis=1)[:, :screened]
    # 2. orthogonality-promoting start on it
    w = np.zeros((m, n), np.float32)
    for i in range(m):
        P = public[chosen[i]]
        length = np.linalg.norm(P, axis=0)
        far = np.argsort(-y[i] / length)[: ceil(d / 6)]
        Q = P[:, far] / length[far]
        w[i, chosen[i]] = norm[i] * np.linalg.eigh(Q @ Q.T)[1][:, -1]
    w, kept = _threshold(w, k)
    # 3. truncated amplitude gradient with hard thresholding
    for _ in range(STEPS):
        u = sparse.csr_array(w) @ public
        residual = np.where(np.abs(u) >= y / (1 + GAMMA), u - y * np.sign(u), 0)
        before = w
        w, kept = _threshold(w - (STEP / d) * (residual @ public.T), k)
        if np.abs(w - before).max() <= TOLERANCE * norm.max():
            break
    return kept


def _threshold(w: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k entries of largest modulus in each row, the rest zero; and where they are."""
    kept = np.sort(np.argpartition(-np.abs(w), k - 1, axis=1)[:, :k], axis=1)
    out = np.zeros_like(w)
    np.put_along_axis(out, kept, np.take_along_axis(w, kept, axis=1), axis=1)
    return out, kept
