"""Private images to start from: magnitudes and relative signs, one pixel at a time, from the
squares of encodings.

    y² = Σ λ_j²x_j² + 2 Σ_{j<l} λ_jλ_l x_j x_l + public energy + …

Least squares gives x_j² at every pixel. What is left is mostly cross terms: M_p = Σ_i
residual_i·L_i L_iᵀ (L_i the expected weights of encoding i, diagonal removed) is near a multiple of
x xᵀ, so its largest eigenvector holds the values of all images at that pixel, up to one sign
(`pixel_signs` finds that). M_p is never formed: power iteration through the sparse L, all pixels of
a block at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.parallel import run_blocks, where, worker_count

BLOCK = 256
ROUNDS = 60
RIDGE = 0.05


def cross_terms(
    Y: NDArray[np.float32],
    weights: sparse.csr_array,
    squares: sparse.csr_array,
    rng: np.random.Generator,
    *,
    public: bool = True,
) -> NDArray[np.float32]:
    """Images (n, d), each pixel with a sign of its own.

    weights, squares: expected λ and λ² (m, n); public: whether there are public images too
    """
    m, n = weights.shape
    L = weights.astype(np.float32)
    L2 = L.multiply(L).tocsr().astype(np.float32)
    total = np.asarray(L.sum(axis=1)).ravel()
    columns = [squares.toarray()]
    if public:
        rest = np.clip(1 - total, 0.05, 0.75)
        columns += [
            np.ones((m, 1)),
            (rest**2)[:, None],
            ((total**2 - np.asarray(L2.sum(axis=1)).ravel()) / 2)[:, None],
        ]
    Q = np.concatenate(columns, axis=1).astype(np.float64)
    normal = Q.T @ Q
    ridge = np.full(len(normal), 1e-8)
    ridge[:n] = RIDGE * np.trace(normal[:n, :n]) / n
    solve = np.linalg.solve(normal + np.diag(ridge), Q.T).astype(np.float32)
    Q32 = Q.astype(np.float32)
    start = rng.standard_normal(n).astype(np.float32)
    out = np.empty((n, Y.shape[1]), np.float32)
    LT, L2T = L.T.tocsr(), L2.T.tocsr()

    def task(pixels: slice) -> None:
        energy = Y[:, pixels] ** 2
        coefficients = solve @ energy
        residual = energy - Q32 @ coefficients
        magnitude = np.clip(coefficients[:n], 0.001, 1)
        diagonal = L2T @ residual
        v = np.repeat(start[:, None], energy.shape[1], axis=1)
        shift = np.zeros(energy.shape[1], np.float32)
        for turn in range(ROUNDS):
            v /= np.linalg.norm(v, axis=0) + 1e-30  # a pixel that is always black leaves nothing
            new = LT @ (residual * (L @ v)) - diagonal * v
            if (
                turn == 15
            ):  # the largest magnitude is known by now: shift, so that the largest eigenvalue wins
                shift = 0.8 * np.linalg.norm(new, axis=0)
            v = new + shift * v
        v *= np.sqrt(magnitude.sum(axis=0) / np.maximum((v**2).sum(axis=0), 1e-30))
        out[:, pixels] = 0.5 * np.sign(v) * np.sqrt(magnitude) + 0.5 * v

    run_blocks(
        task,
        [slice(s, s + BLOCK) for s in range(0, Y.shape[1], BLOCK)],
        worker_count(where().workers),
    )
    return out
