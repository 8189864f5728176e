"""What the other encodings say about the solution of a floral, pixel by pixel.

If x are private vectors, an encoding that uses those in b ∈ {0,1}^{k+2} is folded normal around its
known part,

    y = |a·⟨b, x⟩ + c + g|,     g ~ N(0, a²·(k − ‖b‖²)·v).                                     (*)

Two questions are put to them, both answered in nats of log-likelihood.

`reading`: is it the other family of sets (`paper.floral`)? For a sunflower x_i = (Σ core +
Σ petals)/k − petal_i; these are orthogonal again, so (*) holds with b = g/k − σ (g shared vectors,
petals σ), or with b = 1 − σ, 2 ≤ |b| ≤ k.

`excess`: is it any of the two? With a wrong k other sets can satisfy the equations of a floral:
encodings c + x_a + x_b with a fixed c look like pairs of x + c/2, sums of two vectors like single
ones. Then other encodings ask for fractions in b. What a free b and variance gain over the best
whole b must stay within chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.engine.folded import log_density, maximise

PIXELS = 4096
"""Enough for tens of nats per encoding; more pixels only cost time."""
SMALLEST = 1e-3
"""Smallest share of the variance the unknown part is given: encodings of known vectors only have
none."""
FINITE, SIGMAS, SPARE = 1.2, 6.0, 10.0
"""Free coefficients contradict when they gain more than expected, a fifth more for finite pixels,
and so many standard deviations; ten nats beyond, where hardly anybody was asked."""
STEPS = 30
"""Of expectation–maximisation; for known signs, as nearly all are, it is done in a few."""
OFF_ZERO = 0.05
"""Added to the start of every coefficient: at zero nothing would break the tie between the signs of
y."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Per encoding: nats for "subsets" against "sunflower"; what free coefficients gain over whole
    ones."""

    reading: NDArray[np.float64]
    excess: NDArray[np.float64]

    def contradicts(self, k: int) -> bool:
        """Whether free coefficients gain more than chance allows. Each encoding frees k+3 numbers,
        which gain ½χ² with as many degrees of freedom; the bound is six standard deviations up,
        with a fifth of the mean for finite pixels."""
        mean = len(self.excess) * (k + 3) / 2
        return bool(self.excess.sum() > FINITE * mean + SIGMAS * np.sqrt(mean) + SPARE)


def gather_evidence(
    magnitudes: NDArray[np.float32],
    tau: NDArray[np.float64],
    vectors: NDArray[np.float64],
    weight: float,
    offsets: NDArray[np.float64] | None = None,
) -> Evidence:
    """Ask the encodings `magnitudes` (rows, d), whose overlaps suggest fractions `tau` (rows, k+2)
    of `vectors` (k+2, d)."""
    X = vectors[:, :PIXELS]
    k = len(X) - 2
    v = float(np.mean(X**2))
    Y = magnitudes[:, :PIXELS].astype(np.float64)
    C = np.zeros_like(Y) if offsets is None else offsets[:, :PIXELS]
    free, variance = _fit_freely(Y, C, X, weight, tau, SMALLEST * k * weight**2 * v)
    reading, excess = np.empty(len(Y)), np.empty(len(Y))
    # Each encoding: the best whole coefficients of either reading, and the free ones.
    for row, (y, c) in enumerate(zip(Y, C, strict=True)):
        B, whole, shared = _candidates(tau[row], free[row], k)
        spread = np.maximum(k - (B**2).sum(axis=1), SMALLEST * k)[:, None] * weight**2 * v
        fit = log_density(y, weight * B @ X + c, spread).sum(axis=1)
        best = log_density(y, weight * free[row] @ X + c, variance[row]).sum()
        reading[row] = fit[whole].max() - fit[shared].max()
        excess[row] = best - fit[whole].max()
    return Evidence(reading, excess)


def _fit_freely(
    Y: NDArray[np.float64],
    C: NDArray[np.float64],
    X: NDArray[np.float64],
    weight: float,
    start: NDArray[np.float64],
    smallest: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Maximum likelihood of (b, variance) in (*) by EM, all encodings at once; the hidden variable
    is the sign of y."""
    solve = np.linalg.pinv(weight * X)
    power = (Y**2).mean(axis=1)

    def left(likely: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
        rest = power - 2 * (likely * mean).mean(axis=1) + (mean**2).mean(axis=1)
        return np.asarray(np.maximum(rest, smallest)[:, None])

    b, variance = maximise(
        Y,
        start + OFF_ZERO,
        np.maximum(power / 2, smallest)[:, None],
        lambda b: weight * b @ X + C,
        lambda likely, _: (likely - C) @ solve,
        STEPS,
        left,
    )
    return b, variance[:, 0]


def _candidates(
    tau: NDArray[np.float64], free: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Coefficients b worth trying, and which of them each reading allows: near tau, near the free
    fit, and the simplest."""
    names = k + 2
    one = np.eye(names)
    near = [sign * b for b in (tau, free) for sign in (1, -1)]
    subsets = np.vstack([np.zeros(names), one, *(np.clip(np.rint(b), 0, 1) for b in near)])
    # Fractions g/k − petals: of g shared vectors those that are no petals are of the core, k − 2 at
    # most.
    fractions = []
    for g in range(1, k):
        for petals in (np.zeros(names), *one, *(np.clip(np.rint(g / k - b), 0, 1) for b in near)):
            if 0 <= g - petals.sum() <= k - 2:
                fractions.append(g / k - petals)
    size = subsets.sum(axis=1)
    B = np.vstack([subsets, *fractions]) if fractions else subsets
    whole = np.arange(len(B)) < len(subsets)
    whole[: len(subsets)] &= size <= k
    shared = np.arange(len(B)) >= len(subsets)
    shared[: len(subsets)] |= (size == 0) | ((size >= 2) & (size <= k))
    return B, whole, shared
