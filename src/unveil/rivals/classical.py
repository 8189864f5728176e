"""Classical phase retrieval, all encodings at once: w from y = |Pᵀw|, one equation per pixel,
nothing known of w.

    spectral     w₀ ← leading eigenvector of Σ_j T(y_j²)·p_j p_jᵀ, scaled to the mean of y². T decides how few will do:
                 "plain"     T(s) = s                    (Netrapalli, Jain, Sanghavi, NIPS 2013)
                 "truncated" T(s) = s where s ≤ 9        (Chen, Candès, NIPS 2015)
                 "optimal"   T(s) = 1 − 1/s, bounded     (Luo, Alghamdi, Lu, IEEE Trans. Signal Processing 67, 2019; after
                             Lu, Li 2017 and Mondelli, Montanari 2018)
    alternating  w ← least squares of y·sign(Pᵀw)        (Netrapalli, Jain, Sanghavi)
    wirtinger    w ← w − µ·gradient of Σ(|Pᵀw|² − y²)²   (Candès, Li, Soltanolkotabi, IEEE Trans. Information Theory 61, 2015)
    amplitude    w ← w − µ·gradient of Σ(|Pᵀw| − y)², reweighted: pixels whose |Pᵀw| is small
                 beside y count less (Wang, Giannakis, Saad, Chen, IEEE Trans. Signal Processing 66,
                 2018)

y² is in units of its mean. The spectral matrix of one encoding is never formed: power iterations
for all encodings are products of (m, d) and (n, d) arrays. P is whitened first, P ←
(PPᵀ/d)^{−1/2}P, so that public vectors may be correlated. Cost: 4·m·n·d for each of some hundred
steps, n³ once. They need d well above n, whatever the number of vectors in a mixture.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.records import Progress

Start = Literal["plain", "truncated", "optimal"]
Method = Literal["alternating", "wirtinger", "amplitude"]
STARTS: tuple[Start, ...] = ("plain", "truncated", "optimal")
METHODS: tuple[Method, ...] = ("alternating", "wirtinger", "amplitude")
POWER_STEPS = 150
CUT = 9.0
LEAST = -3.0
"""The optimal preprocessing is unbounded below: pixels near zero would decide alone."""
STEPS = {"alternating": 150, "wirtinger": 1200, "amplitude": 500}
RATE = {"wirtinger": 0.2, "amplitude": 0.8}
CONVERGED = 1e-7
BETA = 5.0
"""Reweighting: a pixel counts r/(r + β), r = |Pᵀw|/y."""

Floats = NDArray[np.float64]


def retrieve_weights(
    magnitudes: NDArray[np.float32],
    public: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    start: Start = "optimal",
    method: Method = "amplitude",
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    """w (m, n) up to one sign per encoding, and the relative residual ‖|Pᵀw| − y‖/‖y‖ (m,)."""
    P = public.astype(np.float64)
    d = P.shape[1]
    values, vectors = eigh(P @ P.T / d)
    keep = values > 1e-10 * max(float(values[-1]), 1e-300)
    whiten = vectors[:, keep] / np.sqrt(values[keep])
    A = whiten.T @ P
    Y = magnitudes.astype(np.float64)
    scale = np.sqrt(np.mean(Y**2, axis=1, keepdims=True))
    Y = Y / np.maximum(scale, 1e-300)
    w = spectral(Y, A, start, rng)
    w = refine(Y, A, w, method, progress)
    residual = np.linalg.norm(np.abs(w @ A) - Y, axis=1) / np.maximum(
        np.linalg.norm(Y, axis=1), 1e-300
    )
    return np.asarray((scale * w) @ whiten.T), residual


def spectral(Y: Floats, A: Floats, start: Start, rng: np.random.Generator) -> Floats:
    """Unit vectors (m, n) near the truth: power iteration, shifted where eigenvalues may be
    negative."""
    T = preprocessed(Y**2, start)
    d = Y.shape[1]
    # A is white, so that eigenvalues are no smaller than the least T.
    shift = np.maximum(0, -T.min(axis=1, keepdims=True))
    v = rng.standard_normal((len(Y), len(A)))
    for _ in range(POWER_STEPS):
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        v = ((v @ A) * T) @ A.T / d + shift * v
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300))


def preprocessed(s: Floats, start: Start) -> Floats:
    if start == "plain":
        return s
    if start == "truncated":
        return np.where(s <= CUT, s, 0.0)
    return np.maximum(1 - 1 / np.maximum(s, 1e-12), LEAST)


def refine(
    Y: Floats, A: Floats, w: Floats, method: Method, progress: Progress | None = None
) -> Floats:
    """From w (m, n) on, until nothing changes."""
    n, d = A.shape
    inverse = np.linalg.inv(A @ A.T) if method == "alternating" and n <= d else None
    todo = np.arange(len(Y))
    for step in range(STEPS[method]):
        y, now = Y[todo], w[todo]
        z = now @ A
        if method == "alternating":
            target = np.copysign(y, z)
            new = (
                target @ A.T @ inverse
                if inverse is not None
                else now + (target - z) @ np.linalg.pinv(A)
            )
        elif method == "wirtinger":
            new = now - RATE[method] * ((z**2 - y**2) * z) @ A.T / d
            # Far off, a quartic throws w away: it is held within twice the norm it must have.
            new *= np.minimum(1, 2 / np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-300))
        else:
            ratio = np.abs(z) / np.maximum(y, 1e-12)
            new = (
                now
                - RATE[method]
                * ((z - np.copysign(y, z)) * (ratio / (ratio + BETA)) * (1 + BETA))
                @ A.T
                / d
                / 2
            )
        w[todo] = new
        moved = np.linalg.norm(new - now, axis=1)
        todo = todo[moved > CONVERGED]
        if progress and step % 10 == 0:
            progress("phase retrieval", step, STEPS[method])
        if not len(todo):
            break
    if method != "alternating" and n <= d:  # a last step in exact arithmetic: signs are settled
        w = np.copysign(Y, w @ A) @ A.T @ np.linalg.inv(A @ A.T)
    return w
