"""Without public images encodings do not say which sign a pixel has in all images together:
smoothness alone does.

Flipping one pixel in every image changes no encoding, so that a whole region of all images can come
back inverted, with a clean edge that nothing repairs. Under the prior the edge is unlikely. With
precision P the signs t of pixels should maximise

    −½ Σ_i (t∘x_i − μ)ᵀ P (t∘x_i − μ)  =  ½ Σ_pq t_p t_q K_pq + Σ_p t_p h_p + const,   K = −P ∘ Σ_i x_i x_iᵀ

P couples near pixels strongly and far ones hardly, so that pixels are joined pair by pair, then
region by region, the strongest coupling per pixel first, with the sign that the sum of all
couplings between the two asks for. The leading eigenvector of K, which serves noisy images at the
start (`images.pixel_signs`), does not see such edges: with correlations in place of P the inverted
region even scores better.

O(d²·n) for K, O(d²) on average for the joining.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.images.prior import ImagePrior

FLOOR = 0.03
"""Variance of detail that the prior's components do not know."""
LARGEST = 6000
"""Pixels up to which a matrix of all pairs of them is formed."""
GREEDY = 100


def common_signs(images: NDArray[np.float32], prior: ImagePrior) -> NDArray[np.float32]:
    """(d,) signs by which images (n, d) become likelier; ones where they are likeliest as they are,
    or too large."""
    d = images.shape[1]
    if d > LARGEST:
        return np.ones(d, np.float32)
    K, h = couplings(images, prior)
    signs = joined(K.copy())
    signs = -signs if signs @ h < 0 else signs
    for _ in range(GREEDY):
        gain = signs * (K @ signs + h)
        worst = int(gain.argmin())
        if gain[worst] >= 0:
            break
        signs[worst] *= -1
    ones = np.ones(d)
    better = signs @ K @ signs + 2 * signs @ h > ones @ K @ ones + 2 * ones @ h
    return (signs if better else ones).astype(np.float32)


def couplings(
    images: NDArray[np.float32], prior: ImagePrior
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """K (d, d) with a zero diagonal, and h (d,)."""
    B = prior.basis.astype(np.float64)
    P = -(B * (prior.variances / (prior.variances + FLOOR))) @ B.T
    P[np.diag_indices(len(P))] += 1
    h = images.sum(axis=0, dtype=np.float64) * (P @ prior.mean)
    P *= -(images.T @ images)
    P[np.diag_indices(len(P))] = 0
    return P, h


@njit(cache=True, nogil=True)
def joined(C):  # type: ignore[no-untyped-def]
    """Signs (d,) from couplings (d, d), which are overwritten."""
    d = len(C)
    size = np.ones(d)
    alive = np.ones(d, np.bool_)
    region = np.arange(d)
    sign = np.ones(d)
    partner = np.zeros(d, np.int64)
    pull = np.empty(d)
    for i in range(d):
        partner[i], pull[i] = _strongest(C, size, alive, i)
    for _ in range(d - 1):
        a, most = -1, -1.0
        for i in range(d):
            if alive[i] and pull[i] > most:
                a, most = i, pull[i]
        b = partner[a]
        s = 1.0 if C[a, b] >= 0 else -1.0
        for p in range(d):
            if region[p] == b:
                region[p] = a
                sign[p] *= s
        alive[b] = False
        size[a] += size[b]
        for j in range(d):
            if alive[j] and j != a:
                C[a, j] += s * C[b, j]
                C[j, a] = C[a, j]
        partner[a], pull[a] = _strongest(C, size, alive, a)
        for j in range(d):
            if alive[j] and j != a:
                if partner[j] == a or partner[j] == b:
                    partner[j], pull[j] = _strongest(C, size, alive, j)
                else:
                    v = abs(C[a, j]) / min(size[a], size[j])
                    if v > pull[j]:
                        partner[j], pull[j] = a, v
    return sign


@njit(cache=True, nogil=True)
def _strongest(C, size, alive, i):  # type: ignore[no-untyped-def]
    """The region that pulls most on i, per pixel of the smaller of the two."""
    best, pull = -1, -1.0
    for j in range(len(C)):
        if alive[j] and j != i:
            v = abs(C[i, j]) / min(size[i], size[j])
            if v > pull:
                best, pull = j, v
    return best, pull
