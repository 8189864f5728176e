"""One sign per pixel, common to all images, found from what neighbouring pixels have in common.

At two pixels the values of all images correlate as the prior says, up to the two signs: the signs
are the leading eigenvector of K = corr(values)∘corr(prior), improved greedily. The sign of the
whole comes from the prior's mean image, where there is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STARTS, ROUNDS, GREEDY = 3, 150, 30


def synchronise(
    images: NDArray[np.float32],
    correlation: NDArray[np.float32],
    mean: NDArray[np.float32],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """The images (n, d) with the sign of every pixel set."""
    v = images / (np.linalg.norm(images, axis=0) + 1e-9)
    K = (v.T @ v) * correlation
    np.fill_diagonal(K, 0)
    u = rng.standard_normal((len(K), STARTS)).astype(np.float32)
    for _ in range(ROUNDS):
        u = K @ u
        u = np.linalg.qr(u)[0].astype(np.float32)
    # Candidates: the leading vectors themselves; the best after greedy flips.
    best, value = np.ones(len(K), np.float32), -np.inf
    for column in u.T:
        signs = np.where(column < 0, -1, 1).astype(np.float32)
        for _ in range(GREEDY):
            flipped = np.where(K @ signs < 0, -1, 1).astype(np.float32)
            if np.array_equal(flipped, signs):
                break
            signs = flipped
        fit = float(signs @ K @ signs)
        if fit > value:
            best, value = signs, fit
    out = images * best
    return -out if out.mean(axis=0) @ mean < 0 else out
