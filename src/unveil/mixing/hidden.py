"""Records from mixtures with own weights whose signs are hidden.

    y_i = |Σ_j Λ_ij·x_j|,   Λ (m, n) with k entries in each row that sum to 1, drawn anew

  shares    for Gaussian values the correlation of |y_i| and |y_j| is a function of z², z the
            correlation of the sums. Two encodings that share one record have z² = P_ia·P_ja, P_ia =
            λ_ia²/Σ_b λ_ib². So z² = PPᵀ off the diagonal. P is not negative and sparse: its columns
            are the skewest in the span of the leading eigenvectors (`corners.skewest_columns`)
  signs     given Λ = √P, rows scaled to sum 1, every value is a problem of its own: find x with
            |Λx| = y. Relaxed reflections (RRR: Elser, Rankenburg, Thibault 2007) between the range
            of Λ and the vectors with magnitudes y
  turns     the alternation of `codes`, signs being those of the fit; under noise of variance v
            their expectation, tanh(y·fit/v)
  values    every value once more by reflections with Λ held; those that are not solved again
  judge     rows reproduced to a thousandth are exact. Under noise Λ from one half of the values
            must explain the other half better than Λ with its rows permuted

Cost: m²·d for the correlations, m·n·d for each of some hundred turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from unveil.mixing.codes import alternate, by_weight
from unveil.mixing.corners import skewest_columns
from unveil.mixing.model import (
    Floats,
    Members,
    Mixture,
    least_squares,
    mixed,
    rms,
    simplex_weights,
    weight_matrix,
)


def find_hidden(
    magnitudes: NDArray[np.float32],
    k: int,
    rng: np.random.Generator,
    *,
    attempts: int = 3,
    some: int = 400,
    rounds: int = 12,
    near: float = 1e-3,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture | None:
    """Records up to one sign per value, and weights; None: nothing explains half of the encodings.

    attempts : int   Numbers of records tried, the likeliest first, while some encodings of many
                     that are explained to rounding are not.
    some : int       Values on which members are found.
    rounds : int     Reflections and alternation in turn.
    near : float     Residual, relative to the rms, of a value that is explained: errors of weights
                     and of records add up.
    """
    best: Mixture | None = None
    for choice in range(attempts):
        found = _attempt(magnitudes, k, rng, choice, some, rounds, near, progress)
        if found is not None and (best is None or _worth(found) > _worth(best)):
            best = found
        if best is None or not best.exact or best.fits.all():
            break
    return best


def _worth(found: Mixture) -> tuple[bool, int]:
    return found.exact, int(found.fits.sum())


def _attempt(
    magnitudes: NDArray[np.float32],
    k: int,
    rng: np.random.Generator,
    choice: int,
    some: int,
    rounds: int,
    near: float,
    progress: Callable[[int, int], None] | None,
) -> Mixture | None:
    """One attempt, with the number of records at this place of the likeliest."""
    Y = magnitudes.astype(np.float64)
    m, d = Y.shape
    scale = rms(Y)
    shares = _shares(squared_correlations(magnitudes), k, choice)
    if shares is None:
        return None
    members, weights, n = shares
    part = np.sort(rng.permutation(d)[:some])
    y = Y[:, part]
    usual = scale
    trust = np.where(weights.min(axis=1) > 0.1, 1.0, 1e-2)
    for turn in range(rounds):
        # 1. Signs by reflections, then codes, signs and records in turn.
        W = weight_matrix(members, weights, n)
        x = solve_magnitudes(y, W, rng, trust=trust)
        fit = alternate(y, x, k, signs=_signs_of(y, 0.0), first_fit=W @ x, turns=40, fine=1e-6)
        if fit is None:
            return None
        members, weights, x = fit.members, fit.weights, fit.values
        # 2. Rows that are nearly explained: values with a wrong sign leave weights a little off.
        off = np.abs(np.abs(mixed(x, members, weights)) - y)
        typical = np.median(off, axis=1)
        usual, good = float(np.median(typical)), typical <= 30 * near * scale
        if progress:
            progress(turn + 1, rounds)
        if good.mean() > 0.98 and usual <= 2 * near * scale:
            break
        trust = 1 / (1 + (typical / max(usual, near * scale)) ** 2)
    if 2 * good.sum() >= m:
        return _every_value(Y, members, weights, n, good, rng, near * scale)
    return _noisy(Y, members, weights, n, usual / 0.6745, rng)


def squared_correlations(magnitudes: NDArray[np.float32]) -> Floats:
    """(m, m) estimates of z² from the correlations of magnitudes; the diagonal means nothing.

    For standard normals u, v with correlation z, cov(|u|, |v|) = (2/π)(√(1−z²) + z·asin z − 1) and
    var |u| = 1 − 2/π. Below zero the estimate goes on along the tangent z², so that it has no bias.
    """
    F = magnitudes - magnitudes.mean(axis=1, keepdims=True)
    F /= np.maximum(np.linalg.norm(F, axis=1, keepdims=True), np.float32(1e-30))
    observed = np.asarray(F @ F.T, np.float64) * (1 - 2 / np.pi)
    z = np.linspace(0, 1, 2001)
    folded = 2 / np.pi * (np.sqrt(1 - z * z) + z * np.arcsin(z) - 1)
    return np.where(observed < 0, np.pi * observed, np.interp(observed, folded, z * z))


def _shares(
    Z: Floats,
    k: int,
    choice: int,
    *,
    window: tuple[float, float] = (0.7, 1.4),
    spread: float = 0.1,
    fillings: int = 4,
) -> tuple[Members, Floats, int] | None:
    """Members, weights (m, k) and the number of records from Z ≈ PPᵀ; None where Z tells of no
    more than k records. choice: 0 takes the likeliest number, 1 the next, and so on.

    window, spread    n is sought between these multiples of 1/(mean of Z), which it is for subsets
                      drawn uniformly, at the largest drop of the spectrum; log n is trusted to lie
                      within `spread`.
    fillings : int    Times that the diagonal is filled in from the space found.
    """
    Z, m = Z.copy(), len(Z)
    np.fill_diagonal(Z, 0)
    mean = float(Z.sum()) / max(1, m * (m - 1))
    if m < k + 3 or mean <= 1 / m:
        return None
    low, high = (int(np.clip(side / mean, k + 1, m - 1)) for side in window)
    np.fill_diagonal(Z, 1.5 / (k + 0.5))
    for _ in range(fillings):
        sizes, vectors = eigh(Z, subset_by_index=[m - high - 1, m - 1])
        sizes, vectors = np.maximum(sizes[::-1], 1e-12), vectors[:, ::-1]
        counts = np.arange(low, high + 1)
        drop = np.log(sizes[low - 1 : high] / sizes[low : high + 1])
        likely = drop * np.exp(-0.5 * (np.log(counts * mean) / spread) ** 2)
        n = int(counts[np.argsort(-likely, kind="stable")[min(choice, len(counts) - 1)]])
        R = vectors[:, :n] * np.sqrt(sizes[:n])
        np.fill_diagonal(Z, np.einsum("ij,ij->i", R, R))
    if n <= k:
        return None
    # The frame of the columns, by least squares from the k largest entries of each row.
    P = np.maximum(vectors[:, :n] @ skewest_columns(np.ascontiguousarray(vectors[:, :n])), 0)
    for _ in range(3):
        members = np.argpartition(-P, k - 1, axis=1)[:, :k].astype(np.int64)
        shares = np.maximum(np.take_along_axis(P, members, 1), 0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)
        frame = least_squares(weight_matrix(members, shares, n), R)
        if frame is None:
            return None
        P = np.linalg.lstsq(frame.T, R.T, rcond=None)[0].T
    members = np.argpartition(-P, k - 1, axis=1)[:, :k].astype(np.int64)
    weights = np.sqrt(np.maximum(np.take_along_axis(P, members, 1), 1e-4))
    weights /= weights.sum(axis=1, keepdims=True)
    return *by_weight(members, weights), n


def solve_magnitudes(
    y: Floats,
    W: sparse.csr_array,
    rng: np.random.Generator,
    *,
    trust: Floats | None = None,
    steps: int = 200,
    step: float = 0.5,
    polish: int = 10,
    close: float = 0.03,
    block: int = 256,
) -> Floats:
    """x (n, p) with |Wx| near y (m, p), every column by itself, from random signs.

    trust (m,)       How much each row counts.
    steps, step      Relaxed reflections and their size.
    polish : int     Steps of least squares with the signs of the fit, at the end.
    close : float    Distance from the magnitudes, relative to them, at which reflections end.
    block : int      Columns at a time: what stays in the cache.
    """
    root = np.ones(len(y)) if trust is None else np.sqrt(trust)
    A = W.toarray() * root[:, None]
    Q = np.linalg.qr(A)[0].astype(np.float32)
    b = (y * root[:, None]).astype(np.float32)
    signs = np.empty_like(b)
    for start in range(0, b.shape[1], block):
        part = b[:, start : start + block]
        v = np.copysign(part, rng.standard_normal(part.shape).astype(np.float32))
        size = np.linalg.norm(part, axis=0)
        for turn in range(steps):
            near = Q @ (Q.T @ v)
            if turn % 10 == 0:
                miss = np.linalg.norm(np.abs(near) - part, axis=0)
                if (miss <= close * size).all():
                    break
            v += np.float32(step) * (np.copysign(part, 2 * near - v) - near)
        near = Q @ (Q.T @ v)
        for _ in range(polish):
            near = Q @ (Q.T @ np.copysign(part, near))
        signs[:, start : start + block] = near
    return np.asarray(np.linalg.lstsq(A, np.copysign(y * root[:, None], signs), rcond=None)[0])


def _signs_of(y: Floats, noise: float) -> Callable[[Floats], Floats]:
    """The rows with the signs of a fit, or under noise with what is expected of them."""

    def signs(fit: Floats) -> Floats:
        if noise == 0:
            return np.copysign(y, fit)
        return np.asarray(y * np.tanh(np.clip(y * fit / noise**2, -30, 30)))

    return signs


def _every_value(
    Y: Floats,
    members: Members,
    weights: Floats,
    n: int,
    good: NDArray[np.bool_],
    rng: np.random.Generator,
    bound: float,
    *,
    tries: int = 6,
    turns: int = 20,
) -> Mixture | None:
    """All values with members held: reflections, then weights and records in turn, again for
    values that are not solved; then members of all rows once more."""
    m, d = Y.shape
    x, solved = np.zeros((n, d)), np.zeros(d, bool)
    rows = np.flatnonzero(good)
    for attempt in range(tries):
        W = weight_matrix(members[rows], weights[rows], n)
        todo = np.flatnonzero(~solved)
        # A few values that are left get several starts each.
        starts = np.tile(todo, np.clip(256 // len(todo), 1, 32))
        y = Y[np.ix_(rows, starts)]
        several = solve_magnitudes(y, W, rng, steps=200 * (1 + attempt))
        missed = np.linalg.norm(np.abs(W @ several) - y, axis=0).reshape(-1, len(todo))
        x[:, todo] = several[:, missed.argmin(axis=0) * len(todo) + np.arange(len(todo))]
        # Weights from the values that are solved best, records at all of them.
        for _ in range(turns):
            total = mixed(x, members, weights)
            miss = np.quantile(np.abs(np.abs(total[rows]) - Y[rows]), 0.95, axis=0)
            best = miss <= max(float(np.median(miss)), bound)
            before = weights
            weights = simplex_weights(np.copysign(Y, total)[:, best], x[:, best], members)
            W = weight_matrix(members[rows], weights[rows], n)
            new = least_squares(W, np.copysign(Y[rows], W @ x))
            if new is None:
                return None
            x = new
            if np.abs(weights - before)[rows].max() < 1e-7:
                break
        off = np.abs(np.abs(mixed(x, members, weights)) - Y)
        # A wrong row spoils the fit of others a little, and they must not go with it.
        worst = np.quantile(off, 0.9, axis=1)
        rows = np.flatnonzero(worst <= max(bound, 4 * float(np.median(worst[rows]))))
        if 2 * len(rows) < m:
            return None
        solved = off[rows].max(axis=0) <= bound
        if solved.all():
            break
    # Rows that the search gave up choose again, signs by the vector they are most like.
    left = np.setdiff1d(np.arange(m), rows)
    if len(left):
        members, weights = members.copy(), weights.copy()
        folded, bright = (np.abs(v) - np.abs(v).mean(axis=1, keepdims=True) for v in (Y[left], x))
        nearest = (folded @ bright.T / (np.linalg.norm(bright, axis=1) + 1e-30)).argmax(axis=1)
        total = x[nearest]
        for _ in range(turns):
            fit = alternate(np.copysign(Y[left], total), x, members.shape[1], turns=1)
            if fit is None:
                break
            members[left], weights[left] = fit.members, fit.weights
            total = mixed(x, fit.members, fit.weights)
    off = np.abs(np.abs(mixed(x, members, weights)) - Y).max(axis=1)
    fits = off <= bound
    return Mixture(x, members, weights, fits, float(off[fits].max(initial=0.0)), True)


def _noisy(
    Y: Floats,
    members: Members,
    weights: Floats,
    n: int,
    noise: float,
    rng: np.random.Generator,
    *,
    turns: int = 15,
    margin: float = 0.9,
) -> Mixture | None:
    """All values under noise; None: weights with their rows permuted explain nearly as much.

    margin : float    Residual, as a share of that with permuted rows, up to which Λ is believed.
    """
    m = len(Y)

    def residual(W: sparse.csr_array) -> tuple[Floats, float]:
        x = solve_magnitudes(Y, W, rng)
        for _ in range(turns):
            new = least_squares(W, _signs_of(Y, noise)(W @ x))
            x = x if new is None else new
        return x, float(np.median(np.abs(np.abs(W @ x) - Y)))

    W = weight_matrix(members, weights, n)
    x, missed = residual(W)
    chance = residual(sparse.csr_array(W[rng.permutation(m)]))[1]
    if missed > margin * chance:
        return None
    weights = simplex_weights(_signs_of(Y, noise)(W @ x), x, members)
    off = np.abs(np.abs(mixed(x, members, weights)) - Y)
    typical = np.median(off, axis=1)
    free = max(1 - n / m, 1 / m)
    size = float(np.median(typical)) / 0.6745 / np.sqrt(free)
    return Mixture(x, members, weights, typical <= 2 * np.median(typical), size, False)
