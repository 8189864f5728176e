"""Private vectors from known members when all else is noise: y = |Wx + ε|, at every pixel by
itself.

Carlini et al. (2020) minimise Σ(|Wx| − y)² by gradient descent, and leave the public part to be
noise. Where that noise is as strong as the private part, |Wx| is not the mean of y, and the minimum
is far off. The likelihood of the same model is

    Σ log cosh(y·μ/τ²) − μ²/2τ² − ‖x‖²/2v,     μ = Wx, τ² the variance of ε, v that of x,

which is that sum of squares when τ is small. Of two starts the likelier one is kept, pixel by
pixel:

    spectral   E[y²] = μ² + τ²: least squares of y² on W∘W give x². Cross terms are left,
               Σ_i rest_i·w_i w_iᵀ ≈ c·xxᵀ; their largest eigenvector has the signs
    reflected  relaxed reflections between {|v| = y} and {Wx} (`solve.affine_rrr`): better where
               there is little noise

Then expectation–maximisation: x ← ridge fit to y·tanh(y·μ/τ²), τ² ← the mean square of what is
left. Values are up to one sign per pixel, common to all vectors. O(m·k + n²) per pixel and step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.folded import log_2cosh, lost, maximise
from unveil.records import Progress
from unveil.solve.affine_rrr import solve_all
from unveil.solve.pixels.pixels import Block, solved_blocks

POWER = 60
"""Power iterations: what matters are signs, which need no precise eigenvector."""
SHIFT_AT, SHIFT = 15, np.float32(0.8)
"""From this iteration on the matrix is shifted by this share of its largest eigenvalue in size,
known by then: the largest positive one wins."""
REFLECTIONS = 100
"""Steps of relaxed reflections: they only have to give a start."""
STEPS = 50
"""Steps of expectation–maximisation; the likelihood hardly grows at the end."""
LITTLE = 0.25
"""Share of noise beyond which reflections lead nowhere."""
RIDGE = 1e-3
"""Ridge of energies x², by their mean normal equation; the noise has a billionth, to solve only."""
DARKEST = np.float32(1e-3)
"""Least x² by the mean one of its pixel: estimates may be negative."""
MOST_SPENT = 0.9
"""Share of the equations that unknowns may use up, in the estimate of the noise: with n near m it
would be divided by nothing."""
SAMPLE = 512
"""Pixels from which the standard error is estimated."""
FLOOR = 1e-6
"""Variances are at least so much of the mean square of y."""

Values = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FoldedFit:
    """values (n, d); noise (d,): standard deviation of ε; error (n,): standard error of a pixel,
    from the curvature of the likelihood where the values are, should they be in the wrong basin."""

    values: Values
    noise: Values
    error: Values


def folded_least_squares(
    y: NDArray[np.float32],
    members: NDArray[np.int64],
    weights: Values,
    n: int,
    noise: float,
    rng: np.random.Generator,
    *,
    block: int = 128,
    progress: Progress | None = None,
) -> FoldedFit:
    """x (n, d) from y (m, d), row i being members[i] with weights[i]; noise: the share of E[y²]
    that is not theirs, to start from."""
    m, k = members.shape
    d = y.shape[1]
    W = sparse.csr_array(
        (weights.ravel().astype(np.float32), members.ravel(), np.arange(m + 1) * k), shape=(m, n)
    )
    W.sum_duplicates()
    system = FoldedSystem(W, members, weights, noise)
    values, tau2 = np.zeros((n, d)), np.zeros(d)
    blocks = solved_blocks(_solved, (system, y), d, rng, block=block, progress=progress)
    for pixels, found in blocks:
        values[:, pixels], tau2[pixels] = found
    return FoldedFit(
        values,
        np.sqrt(tau2),
        _standard_error(system, y[:, :SAMPLE], values[:, :SAMPLE], tau2[:SAMPLE]),
    )


class FoldedSystem:
    """W and what all pixels need of it."""

    def __init__(
        self, W: sparse.csr_array, members: NDArray[np.int64], weights: Values, noise: float
    ) -> None:
        m, n = W.shape
        self.W, self.Wt = W, sparse.csr_array(W.T)
        self.members, self.weights, self.noise = members, weights, noise
        self.squares = sparse.csr_array(W.multiply(W))
        energy = np.hstack([self.squares.toarray(), np.ones((m, 1))]).astype(np.float64)
        normal = energy.T @ energy
        ridge = np.full(n + 1, RIDGE * np.trace(normal[:n, :n]) / n)
        ridge[n] = 1e-9  # the noise: as good as free
        self.energy = energy.astype(np.float32)
        self.of_energy = np.linalg.solve(normal + np.diag(ridge), energy.T).astype(np.float32)
        spectrum, vectors = np.linalg.eigh((self.Wt @ W).toarray().astype(np.float64))
        self.spectrum, self.vectors = (
            np.maximum(spectrum, 0).astype(np.float32),
            vectors.astype(np.float32),
        )

    def fit(self, signed: Floats, ridge: Floats) -> Floats:
        """Least squares with a ridge of its own for every pixel."""
        parts = self.vectors.T @ (self.Wt @ signed)
        parts /= self.spectrum[:, None] + np.maximum(ridge, np.float32(FLOOR) * self.spectrum[-1])
        return np.asarray(self.vectors @ parts)


def _solved(
    shared: tuple[FoldedSystem, NDArray[np.float32]], block: Block
) -> tuple[Values, Values]:
    """Values and the variance of the noise at these pixels."""
    system, Y = shared
    pixels, rng = block
    power = np.mean(np.square(Y[:, pixels], dtype=np.float64), axis=0) + 1e-30
    # A pixel's own scale, so that one that is always dark is as good as any other.
    y = np.asarray(Y[:, pixels] / np.sqrt(power), np.float32)
    first, variance = _spectral(system, y, rng)
    starts = [first]
    if system.noise < LITTLE:
        guess, even = rng.standard_normal(y.shape).astype(np.float32), np.ones(len(y))
        again, _ = solve_all(
            y, None, system.members, len(first), even, system.weights, guess, steps=REFLECTIONS
        )
        starts.append(again)
    # The likelier of the two starts, pixel by pixel.
    best, x, noise = np.full(y.shape[1], -np.inf), first, np.zeros(y.shape[1])
    for start in starts:
        found, left = _maximise(system, y, start, variance)
        fit = _likelihood(system, y, found, left, variance)
        better = fit > best
        best = np.where(better, fit, best)
        x, noise = np.where(better, found, x), np.where(better, left, noise)
    return x * np.sqrt(power), noise * power


def _spectral(system: FoldedSystem, y: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Values from energies and cross terms, and the variance of x at each pixel."""
    n = system.W.shape[1]
    # 1. Least squares of y² give x²; cross terms are left.
    energy = y**2
    parts = system.of_energy @ energy
    rest = energy - system.energy @ parts
    mean = np.maximum(parts[:n].mean(axis=0), 0)
    size = np.maximum(parts[:n], DARKEST * mean + np.float32(FLOOR))
    # 2. The largest eigenvector of the cross terms.
    diagonal = system.squares.T @ rest
    v = rng.standard_normal((n, y.shape[1])).astype(np.float32)
    shift = np.zeros(y.shape[1], np.float32)
    for turn in range(POWER):
        v /= np.linalg.norm(v, axis=0) + 1e-30
        new = system.Wt @ (rest * (system.W @ v)) - diagonal * v
        if turn == SHIFT_AT:
            shift = SHIFT * np.linalg.norm(new, axis=0)
        v = new + shift * v
    # 3. Its signs with the size of x, half-way to its own values: both are noisy, differently.
    v *= np.sqrt(size.sum(axis=0) / np.maximum((v**2).sum(axis=0), 1e-30))
    return (np.copysign(np.sqrt(size), v) + v) / 2, size.mean(axis=0)


def _maximise(
    system: FoldedSystem, y: Floats, x: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Expectation–maximisation of x and τ²."""
    m, n = system.W.shape
    spent = 1 - min(MOST_SPENT, n / m)
    tau2 = np.full(y.shape[1], max(system.noise, FLOOR), np.float32)

    def left(likely: Floats, mean: Floats) -> Floats:
        # y² has mean 1 here.
        rest = 1 + np.mean(mean * (mean - 2 * likely), axis=0, dtype=np.float64)
        return np.clip(rest / spent, FLOOR, 1.0).astype(np.float32)

    return maximise(
        y,
        x,
        tau2,
        lambda x: system.W @ x,
        lambda likely, tau2: system.fit(likely, tau2 / variance),
        STEPS,
        left,
    )


def _likelihood(
    system: FoldedSystem, y: Floats, x: Floats, tau2: Floats, variance: Floats
) -> Values:
    mean = system.W @ x
    fit = log_2cosh(np.abs(y * mean) / tau2) - (y**2 + mean**2) / (2 * tau2) - np.log(tau2) / 2
    return np.asarray(fit.sum(axis=0, dtype=np.float64) - (x**2).sum(axis=0) / (2 * variance))


def _standard_error(
    system: FoldedSystem, y: NDArray[np.float32], x: Values, tau2: Values
) -> Values:
    """The observed information, averaged over pixels: a sign that is in doubt takes away from what
    an encoding tells."""
    variance = np.mean(x**2, axis=0) + 1e-30
    told = np.mean((1 - lost(y, system.W @ x, tau2)) * variance / tau2, axis=1)
    information = (
        system.Wt @ sparse.diags_array(np.maximum(told, 0)) @ system.W
    ).toarray() + np.eye(len(x))
    return np.asarray(np.sqrt(np.mean(variance) * np.diag(np.linalg.inv(information))))
