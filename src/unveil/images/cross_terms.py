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

from unveil.gram.sparse_rows import there_and_back
from unveil.images.sign_fields import REST
from unveil.parallel import run_blocks, where, worker_count

BLOCK = 256
"""Pixels treated at once: products stay matrix products, and blocks fit the cache."""
ROUNDS = 60
"""Power iterations: what matters are signs, which need no precise eigenvector."""
SHIFT_AT, SHIFT = 15, 0.8
"""From this iteration on the matrix is shifted by this share of its largest eigenvalue, known by
then, so that the largest one wins and not the largest in size."""
RIDGE = 0.05
"""Ridge of energies x², by their mean normal equation: images with few encodings are not blown
up."""
FREE = 1e-8
"""Ridge of the other coefficients: enough to solve, too little to bind them."""
DARKEST = 1e-3
"""Least x², since estimates may be negative; pixels are in [−1, 1], so that the largest is 1."""


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
    # 1. Energies: least squares of y² on λ², and with public images on the energy of these.
    m, n = weights.shape
    L = weights.astype(np.float32)
    L2 = L.multiply(L).tocsr().astype(np.float32)
    total = np.asarray(L.sum(axis=1)).ravel()
    columns = [squares.toarray()]
    if public:
        rest = np.clip(1 - total, *REST)
        columns += [
            np.ones((m, 1)),
            (rest**2)[:, None],
            ((total**2 - np.asarray(L2.sum(axis=1)).ravel()) / 2)[:, None],
        ]
    Q = np.concatenate(columns, axis=1).astype(np.float64)
    normal = Q.T @ Q
    ridge = np.full(len(normal), FREE)
    ridge[:n] = RIDGE * np.trace(normal[:n, :n]) / n
    solve = np.linalg.solve(normal + np.diag(ridge), Q.T).astype(np.float32)
    Q32 = Q.astype(np.float32)
    start = rng.standard_normal(n).astype(np.float32)
    out = np.empty((n, Y.shape[1]), np.float32)
    L2T = L2.T.tocsr()

    def task(pixels: slice) -> None:
        # 2. x² at these pixels, and what cross terms it leaves of y².
        energy = Y[:, pixels] ** 2
        coefficients = solve @ energy
        residual = energy - Q32 @ coefficients
        magnitude = np.clip(coefficients[:n], DARKEST, 1)
        # 3. The largest eigenvector of the cross terms, by power iteration.
        diagonal = L2T @ residual
        v = np.repeat(start[:, None], energy.shape[1], axis=1)
        shift = np.zeros(energy.shape[1], np.float32)
        for turn in range(ROUNDS):
            v /= np.linalg.norm(v, axis=0) + 1e-30  # a pixel that is always black leaves nothing
            new = there_and_back(L, residual, v) - diagonal * v
            if turn == SHIFT_AT:
                shift = SHIFT * np.linalg.norm(new, axis=0)
            v = new + shift * v
        # 4. Its signs with the energies' size, half-way to its own: both are noisy, differently.
        v *= np.sqrt(magnitude.sum(axis=0) / np.maximum((v**2).sum(axis=0), 1e-30))
        out[:, pixels] = 0.5 * np.sign(v) * np.sqrt(magnitude) + 0.5 * v

    run_blocks(
        task,
        [slice(s, s + BLOCK) for s in range(0, Y.shape[1], BLOCK)],
        worker_count(where().workers),
    )
    return out
