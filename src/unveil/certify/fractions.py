"""How light can a column of fractions be? A bound that gives every row its own share. See
`docs/certificate.md`, Lemma 8.

Rows have weights ω, t ∈ a/k + integers, 0 < a < k, Wt ∈ {0, ±1}. Let c = (k−2)/k. If g ≥ 0 has

    Wᵀ·(ω − c·g)·W − diag(Wᵀg)   positive semidefinite,

then |Wt| = Σ ω_r·|W_r t| ≥ (k−1)/k·Σ g. With g a multiple of ω that is the bound by one eigenvalue
(`heavy.fractions_heavy`); the best g gives up to twice as much.

  1. g starts as ω. For any g the largest multiple that is allowed is the least eigenvalue s in
     WᵀωW·v = s·(c·WᵀgW + diag(Wᵀg))·v
  2. rows at which the lowest eigenvectors are small get more of g, the others less: the gradient
     of log s + log Σ g, smoothed over several eigenvectors
  3. the best g, a little smaller, is checked by itself

Cost: `STEPS` eigenvalue problems of n×n, a millisecond each at n = 100.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, eigvalsh

from unveil.certify.heavy import ROUNDING

Values = NDArray[np.float64]

STEPS = 50
"""Steps of the search. 300 gain 2 % more, at n = 100 and k = 4 and 6."""

LOWEST = 12
"""Eigenvectors the gradient is taken over. The best g has many that are lowest together."""

SHARP, SHARPER = 10.0, 30
"""An eigenvalue that is a tenth above the least counts e times less, and after 30 steps twice that:
the sum comes to stand for the least one."""

STEP, SHORTER, LONGEST = 1.0, 60, 0.3
"""Length of a step in log g, halved after 60 steps, and the most that one entry changes at once."""

LEAST = 1e-3
"""Part of its mean that g keeps in each row, so that the eigenvalue problem stays definite."""

SMALLER = 1e-4
"""What is taken off g before the check, so that rounding cannot decide it."""


def lightest_fraction(
    W: Values, weight: Values, k: int, start: Values, enough: float
) -> tuple[float, Values]:
    """(a lower bound of |Wt| for columns of fractions, the g it came from); no better than `enough`
    is asked for. 0: no bound.

    W: (rows, vectors), k ones per row, full column rank
    start: g to begin with, positive
    """
    c = (k - 2) / k
    M = W.T @ (weight[:, None] * W)
    g, best = start, (0.0, start)
    for step in range(STEPS):
        # 1. The multiple of g that is allowed.
        lam, U = eigh(M, _taken(W, g, c), subset_by_index=[0, min(LOWEST, W.shape[1]) - 1])
        if lam[0] <= ROUNDING:
            break
        if lam[0] * g.sum() > best[0]:
            best = float(lam[0] * g.sum()), g * lam[0]
            if (k - 1) / k * best[0] * (1 - SMALLER) > enough:
                break
        # 2. Less where the lowest eigenvectors are large.
        p = np.exp(-SHARP * (1 + step / SHARPER) * (lam / lam[0] - 1))
        felt = (c * (W @ U) ** 2 + W @ U**2) @ (p / p.sum())
        change = STEP / (1 + step / SHORTER) * (1 - felt * g.sum())
        g = g * np.exp(np.clip(change, -LONGEST, LONGEST))
        g = np.maximum(g / g.mean(), LEAST)
    # 3. As it is, not as the search has it.
    g = best[1] * (1 - SMALLER)
    return (heavy_fractions(W, weight, k, g), best[1])


def heavy_fractions(W: Values, weight: Values, k: int, g: Values) -> float:
    """What g ≥ 0 proves: every column of fractions weighs at least so much. 0: nothing."""
    rest = W.T @ (weight[:, None] * W) - _taken(W, g, (k - 2) / k)
    if (g < 0).any() or eigvalsh(rest, subset_by_index=[0, 0])[0] < ROUNDING:
        return 0.0
    return float((k - 1) / k * g.sum())


def _taken(W: Values, g: Values, c: float) -> Values:
    """c·WᵀgW + diag(Wᵀg)."""
    return np.asarray(c * (W.T @ (g[:, None] * W)) + np.diag(W.T @ g))
