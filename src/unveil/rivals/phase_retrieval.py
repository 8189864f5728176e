"""Classical phase retrieval: encodings without a private part, y = |Pᵀw|, each gives its own w.

For d ≥ 2n − 1 pixels and public vectors in general position w is unique up to a sign, whatever it
is (Balan, Casazza, Edidin 2006), and is found by

    spectral     w₀ ← leading eigenvector of Σ_j T(y_j²)·p_j p_jᵀ, T(s) = 1 − 1/s, bounded (Luo,
                 Alghamdi, Lu 2019), scaled to the mean of y²
    then         "alternating"  w ← least squares of y·sign(Pᵀw)   (Netrapalli et al.)
                 "wirtinger"    w ← w − µ·∇Σ(|Pᵀw|² − y²)²         (Candès, Li, Soltanolkotabi 2015)
                 "amplitude"    w ← w − µ·∇Σ(|Pᵀw| − y)², pixels whose |Pᵀw| is small beside y
                                counting less (Wang, Giannakis, Saad, Chen 2018)

y² is in units of its mean, P is whitened, and the spectral matrix is never formed: power iterations
for all encodings are products of (m, d) and (n, d) arrays. With fewer pixels, or where that fails,
w must be sparse: the stepwise search of LearnPublic (`paper.unknown_weights`), the private variance
shrinking towards nothing. With the signs of the mixture fixed the weights solve a linear system. An
encoding is solved when all d equations hold to 1e-4 of its norm: with fewer unknowns than pixels no
wrong support does that. `retrieve` is used by `learn_public` and by the attack alike.

Cost: 4·m·n·d for each of some hundred steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.certificate import certify
from unveil.checks import InputError, Rng, child, root
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch, rows_per_block
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.paper.folded_search import Public, survey_public
from unveil.paper.unknown_weights import learn_weights
from unveil.records import Progress, Recovery

NAME = "phase-retrieval"
Method = Literal["alternating", "wirtinger", "amplitude"]
METHODS: tuple[Method, ...] = ("alternating", "wirtinger", "amplitude")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mixtures:
    """indices (m, k) sorted, padded with −1; weights (m, k), their sum positive; relative residual
    (m,); exact (m,): all equations hold."""

    indices: NDArray[np.int64]
    weights: Floats
    residual: Floats
    exact: NDArray[np.bool_]


def retrieve(
    encodings: Encodings,
    public: Public,
    *,
    k_public: int | None = None,
    limit: int,
    workers: int,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-4,
    near: float = 0.3,
    progress: Progress | None = None,
) -> Mixtures:
    """w of every encoding; k_public only bounds the sparse search. tolerance: relative residual of
    an encoding that counts as solved; near: up to which it counts as a noisy mixture."""
    m, d = encodings.m, encodings.d
    usable = np.flatnonzero(public.usable)
    n = len(usable)
    W, residual = np.zeros((m, n)), np.ones(m)
    # 1. Any w, where there are pixels enough.
    if d >= 2 * n - 1:
        V = public.vectors[usable]
        step = rows_per_block(64 * (d + n), limit, most=4096)
        draw = rng or np.random.default_rng(0)
        for start in range(0, m, step):
            rows = slice(start, start + step)
            W[rows], residual[rows] = retrieve_weights(encodings.magnitudes(rows), V, draw)
            if progress:
                progress("phase retrieval", min(start + step, m), m)
    # 2. Sparse w. Two slots more than members: a wrong vector taken early is dropped once the right
    #    ones are in.
    left = np.flatnonzero(residual > tolerance)
    if len(left) and (d < 2 * n - 1 or (k_public or 9) <= 8):
        some = Encodings(encodings.values[left], encodings.scheme, encodings.pixel_rms)
        k_max, how = 8 if k_public is None else k_public + 2, {"limit": limit, "workers": workers}
        found = learn_weights(some, public, k_public=None, k_max=k_max, progress=progress, **how)
        place = np.full(len(public.vectors), -1)
        place[usable] = np.arange(n)
        for at, support, w in zip(left, found.indices, found.weights, strict=True):
            W[at] = 0
            W[at, place[support[support >= 0]]] = w[support >= 0]
    # 3. Small weights are none: of rounding, or of noise of the size of the residual.
    for i in range(m):
        y = encodings.magnitudes(slice(i, i + 1))[0].astype(np.float64)
        for least in (1e-3, 6 * min(float(residual[i]), near) / np.sqrt(d)):
            support = np.flatnonzero(np.abs(W[i]) > max(least, 1e-3) * np.abs(W[i]).max(initial=0))
            X = public.vectors[usable[support]].astype(np.float64)
            w = _settle(y, X, W[i, support])
            W[i] = 0
            W[i, support] = w * np.copysign(1.0, w.sum())
            residual[i] = np.linalg.norm(np.abs(w @ X) - y) / (np.linalg.norm(y) or 1.0)
            if residual[i] <= tolerance:
                break
        if residual[i] > near:
            W[i] = 0
    size = (W != 0).sum(axis=1)
    width = max(int(size.max(initial=0)), k_public or 0)
    order = np.argsort(W == 0, axis=1, kind="stable")[:, :width]
    weights = np.take_along_axis(W, order, axis=1)
    indices = np.where(weights != 0, usable[order], -1)
    return Mixtures(indices, weights, residual, (residual < tolerance) & (size < d))


def _settle(y: Floats, X: Floats, w: Floats, steps: int = 20) -> Floats:
    """Signs from weights, weights from signs, until nothing changes; X (k, d)."""
    for _ in range(steps):
        new = np.asarray(np.linalg.lstsq(X.T, np.copysign(y, w @ X), rcond=None)[0], np.float64)
        if np.abs(new - w).max(initial=0) < 1e-12:
            return new
        w = new
    return w


def retrieve_weights(
    magnitudes: NDArray[np.float32],
    public: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    method: Method = "amplitude",
) -> tuple[Floats, Floats]:
    """w (m, n) up to one sign per encoding, and the relative residual ‖|Pᵀw| − y‖/‖y‖ (m,)."""
    P = public.astype(np.float64)
    values, vectors = eigh(P @ P.T / P.shape[1])
    keep = values > 1e-10 * max(float(values[-1]), 1e-300)
    whiten = vectors[:, keep] / np.sqrt(values[keep])
    A = whiten.T @ P
    Y = magnitudes.astype(np.float64)
    scale = np.sqrt(np.mean(Y**2, axis=1, keepdims=True))
    Y = Y / np.maximum(scale, 1e-300)
    w = refine(Y, A, spectral(Y, A, rng), method)
    size = np.maximum(np.linalg.norm(Y, axis=1), 1e-300)
    return np.asarray((scale * w) @ whiten.T), np.linalg.norm(np.abs(w @ A) - Y, axis=1) / size


def spectral(Y: Floats, A: Floats, rng: np.random.Generator, steps: int = 150) -> Floats:
    """Unit vectors (m, n) near the truth: power iteration, shifted where eigenvalues may be
    negative; A is white, so that they are no smaller than the least T."""
    T = np.maximum(1 - 1 / np.maximum(Y**2, 1e-12), -3.0)
    shift = np.maximum(0, -T.min(axis=1, keepdims=True))
    v = rng.standard_normal((len(Y), len(A)))
    for _ in range(steps + 1):
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        v = ((v @ A) * T) @ A.T / Y.shape[1] + shift * v
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300))


def refine(Y: Floats, A: Floats, w: Floats, method: Method, beta: float = 5.0) -> Floats:
    """From w (m, n) on, until an encoding's w, of about unit norm, moves less than 1e-7; no more
    vectors than pixels."""
    d, back, todo = A.shape[1], A.T @ np.linalg.inv(A @ A.T), np.arange(len(Y))
    for _ in range({"alternating": 150, "wirtinger": 1200, "amplitude": 500}[method]):
        y, now = Y[todo], w[todo]
        z = now @ A
        target = np.copysign(y, z)
        if method == "alternating":
            new = target @ back
        elif method == "wirtinger":
            new = now - 0.2 * ((z**2 - y**2) * z) @ A.T / d
            # Far off, a quartic throws w away: it is held within twice the norm it must have.
            new *= np.minimum(1, 2 / np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-300))
        else:
            ratio = np.abs(z) / np.maximum(y, 1e-12)
            counts = (1 + beta) * ratio / (ratio + beta)
            new = now - 0.4 * ((z - target) * counts) @ A.T / d
        w[todo] = new
        todo = todo[np.linalg.norm(new - now, axis=1) > 1e-7]
        if not len(todo):
            break
    return np.copysign(Y, w @ A) @ back  # signs are settled


def phase_retrieval(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The public vectors that encodings mix, `members` and `weights` who mixes which. Nothing is
    private here."""
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if scheme.k_private:
        raise InputError(
            f"k_private={scheme.k_private}: attack='phase-retrieval' is for encodings without a "
            "private part; with one, unveil.learn_public finds the public vectors and "
            "attack='exact' the private ones"
        )
    P, limit, clock = as_public(public, encodings), settle_limit(memory_limit), Stopwatch()
    assert P is not None
    found = survey_public(P, limit)
    if not found.count:
        raise InputError("public vectors that are all zero: give those that were mixed")
    how: dict[str, Any] = {"k_public": scheme.k_public, "limit": limit, "progress": progress}
    with clock("phase retrieval"):
        draw = child(root(rng), "spectral")
        mixtures = retrieve(encodings, found, workers=1, rng=draw, **how)
    # The vectors that any encoding uses, encoded again.
    used = np.unique(mixtures.indices[mixtures.indices >= 0])
    if not len(used):
        why = (
            f"none of {m} encodings is a mixture of the public vectors: "
            "a private part, other vectors, or too few pixels"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    rows, slots = np.nonzero(mixtures.indices >= 0)
    at = rows, np.searchsorted(used, mixtures.indices[rows, slots])
    W = sparse.csr_array((mixtures.weights[rows, slots], at), shape=(m, len(used)))
    with clock("certificate"):
        judged = certify(encodings, P[used], W.astype(bool), P, weights=W)
    doubles = {group[0] for group in found.interchangeable}
    reasons = tuple(
        why + (", or one equal to it" if v in doubles else "")
        for v, why in zip(used.tolist(), judged.reasons, strict=True)
    )
    exact = int(mixtures.exact.sum())
    facts = {"public": used.tolist(), "encodings_explained": exact}
    facts |= {"equations": d, "unknowns": found.count}
    return replace(
        judged,
        reasons=reasons,
        attack=NAME,
        explanation="nothing private here: these are the public vectors each encoding mixes; "
        f"{exact} of {m} encodings explained exactly",
        seconds=clock.seconds,
        explained=exact,
        evidence=facts,
    )
