"""The folded likelihood where pixels are correlated along a tree: signs are lost, but neighbours
lose theirs together.

    y = |μ_S + g|,   g_j = ν_j + slope_j·(g_parent − ν_parent) + N(0, v_j)      (`supports.correlated.pixel_law`: Noise)
    L = log Σ_s Π_j N(s_j·y_j; …),   the sum over all 2^d signs

On a tree that sum is exact in one pass from the leaves to the root, two numbers per pixel: each
pixel tells its parent how well everything below is explained under either sign of the parent. A
pass back gives E[s_j], and with it

    ∂L/∂μ = Q·(E[s]∘y − μ),   Q the precision of g                              the residual, for products with new vectors.

Without links this is L of `supports.folded.likelihood`. Messages are normalised where they are
sent, and the logarithms of their norms are terms that add up to L, one per pixel. The difference of
two supports, D, is a sum of such terms with V the sum of their
squares: what tells whether D is many pixels that agree or a few that shout
(`supports.correlated.tree_search`).
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from unveil.supports.correlated.pixel_law import Noise
from unveil.supports.folded.likelihood import Floats, Indices

CAP = float32(10)
"""Nats one pixel may cost: a Gaussian one costs more once in 10⁵, an outlier would outvote all
others without it."""


def tree_likelihood(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    weight: float,
    noise: Noise,
    *,
    soft: bool = True,
) -> NDArray[np.float64]:
    """L of encoding rows[t] at supports[t] (N, k), for all t; members < 0 are left out.

    soft=False takes the best signs instead of the sum over all: several times faster, good for
    ranking.
    """
    out = np.empty(len(rows))
    _likelihoods(magnitudes, public, rows, supports, float32(weight), *noise[:5], soft, out)
    return out + noise.constant


def tree_difference(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    rivals: Indices,
    weight: float,
    noise: Noise,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """D = L(supports[t]) − L(rivals[t, c]) (N, C), and V, the sum of the squares of its terms;
    rivals (N, C, k)."""
    shape = rivals.shape[:2]
    difference, squares = np.empty(shape), np.empty(shape)
    _differences(
        magnitudes, public, rows, supports, rivals, float32(weight), *noise[:5], difference, squares
    )
    return difference, squares


def tree_residual(
    magnitudes: Floats,
    public: Floats,
    rows: Indices,
    supports: Indices,
    weight: float,
    noise: Noise,
) -> Floats:
    """∂L/∂μ (N, d) of encoding rows[t] at supports[t]; members < 0 are left out."""
    out = np.empty((len(rows), magnitudes.shape[1]), np.float32)
    _residuals(magnitudes, public, rows, supports, float32(weight), *noise[:5], out)
    return out


@njit(fastmath=True, inline="always")
def _cost(h, e):  # type: ignore[no-untyped-def]
    """e²/(2v), capped."""
    return min(h * e * e, CAP)


@njit(fastmath=True, inline="always")
def _either(a, b):  # type: ignore[no-untyped-def]
    """log(eᵃ + eᵇ)."""
    gap = abs(a - b)
    # Beyond 17 the smaller one is less than float32 can tell.
    return max(a, b) + (np.log(float32(1) + np.exp(-gap)) if gap < float32(17) else float32(0))


@njit(fastmath=True, inline="always")
def _mix(P, support, weight, order, mean, mu):  # type: ignore[no-untyped-def]
    """The centre of the signed encoding, in the order of the law."""
    for j in range(len(mu)):
        mu[j] = mean[j]
    for q in range(len(support)):
        if support[q] >= 0:
            p = P[support[q]]
            for j in range(len(mu)):
                mu[j] += weight * p[order[j]]


@njit(fastmath=True, inline="always")
def _upward(y, mu, parent, slope, half, soft, plus, minus, sent_plus, sent_minus, terms):  # type: ignore[no-untyped-def]
    """plus, minus: what a pixel's subtree says of its sign; sent: its message to the parent; terms
    add up to L."""
    d = len(y)
    plus[:] = 0
    minus[:] = 0
    for j in range(d - 1, -1, -1):
        h = half[j]
        if slope[j] == 0:
            a = plus[j] - _cost(h, y[j] - mu[j])
            b = minus[j] - _cost(h, y[j] + mu[j])
            terms[j] = _either(a, b) if soft else max(a, b)
            continue
        up = parent[j]
        shift = slope[j] * mu[up] - mu[j]
        lean = slope[j] * y[up]
        # Signs of the pixel and of its parent: ++, −+, +−, −−.
        a = plus[j] - _cost(h, y[j] + shift - lean)
        b = minus[j] - _cost(h, -y[j] + shift - lean)
        high = _either(a, b) if soft else max(a, b)
        a = plus[j] - _cost(h, y[j] + shift + lean)
        b = minus[j] - _cost(h, -y[j] + shift + lean)
        low = _either(a, b) if soft else max(a, b)
        norm = _either(high, low) if soft else max(high, low)
        terms[j] = norm
        sent_plus[j] = high - norm
        sent_minus[j] = low - norm
        plus[up] += high - norm
        minus[up] += low - norm


@njit(fastmath=True, cache=True, nogil=True)
def _likelihoods(Y, P, rows, supports, weight, order, parent, slope, half, mean, soft, out):  # type: ignore[no-untyped-def]
    d = Y.shape[1]
    work = np.empty((6, d), np.float32)
    y, mu = work[0], work[1]
    terms = np.empty(d, np.float32)
    for t in range(len(rows)):
        if t == 0 or rows[t] != rows[t - 1]:
            for j in range(d):
                y[j] = Y[rows[t], order[j]]
        _mix(P, supports[t], weight, order, mean, mu)
        _upward(y, mu, parent, slope, half, soft, work[2], work[3], work[4], work[5], terms)
        total = 0.0
        for j in range(d):
            total += terms[j]
        out[t] = total


@njit(fastmath=True, cache=True, nogil=True)
def _differences(  # type: ignore[no-untyped-def]
    Y, P, rows, supports, rivals, weight, order, parent, slope, half, mean, out, squares
):
    d = Y.shape[1]
    work = np.empty((6, d), np.float32)
    y, mu = work[0], work[1]
    ours = np.empty(d, np.float32)
    theirs = np.empty(d, np.float32)
    for t in range(len(rows)):
        for j in range(d):
            y[j] = Y[rows[t], order[j]]
        _mix(P, supports[t], weight, order, mean, mu)
        _upward(y, mu, parent, slope, half, True, work[2], work[3], work[4], work[5], ours)
        for c in range(rivals.shape[1]):
            _mix(P, rivals[t, c], weight, order, mean, mu)
            _upward(y, mu, parent, slope, half, True, work[2], work[3], work[4], work[5], theirs)
            total = 0.0
            square = 0.0
            for j in range(d):
                e = float(ours[j]) - float(theirs[j])
                total += e
                square += e * e
            out[t, c] = total
            squares[t, c] = square


@njit(fastmath=True, cache=True, nogil=True)
def _residuals(Y, P, rows, supports, weight, order, parent, slope, half, mean, out):  # type: ignore[no-untyped-def]
    d = Y.shape[1]
    work = np.empty((6, d), np.float32)
    y, mu, plus, minus = work[0], work[1], work[2], work[3]
    terms = np.empty(d, np.float32)
    for t in range(len(rows)):
        for j in range(d):
            y[j] = Y[rows[t], order[j]]
        _mix(P, supports[t], weight, order, mean, mu)
        _upward(y, mu, parent, slope, half, True, plus, minus, work[4], work[5], terms)
        # From the root on, plus and minus become the whole evidence for either sign.
        for j in range(d):
            h = half[j]
            if slope[j] == 0:
                plus[j] -= _cost(h, y[j] - mu[j])
                minus[j] -= _cost(h, y[j] + mu[j])
                continue
            up = parent[j]
            high = plus[up] - work[4, j]
            low = minus[up] - work[5, j]
            shift = slope[j] * mu[up] - mu[j]
            lean = slope[j] * y[up]
            plus[j] += _either(
                high - _cost(h, y[j] + shift - lean), low - _cost(h, y[j] + shift + lean)
            )
            minus[j] += _either(
                high - _cost(h, -y[j] + shift - lean), low - _cost(h, -y[j] + shift + lean)
            )
        # Q = (1 − B)ᵀ·diag(1/v)·(1 − B), B the slopes.
        for j in range(d):
            plus[j] = y[j] * np.tanh(float32(0.5) * (plus[j] - minus[j])) - mu[j]
        for j in range(d):
            e = plus[j]
            if slope[j] != 0:
                e -= slope[j] * plus[parent[j]]
            # Beyond the cap a pixel says nothing more.
            minus[j] = 2 * half[j] * e if half[j] * e * e < CAP else float32(0)
        r = out[t]
        for j in range(d):
            r[order[j]] = minus[j]
        for j in range(d):
            if slope[j] != 0:
                r[order[parent[j]]] -= slope[j] * minus[j]
