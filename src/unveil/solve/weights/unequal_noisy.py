"""Weights that are unequal and unknown, under noise: y = |Σ λ_j x_j + ε|, λ ≥ 0, Σ λ = 1.

No encoding is explained exactly, but the feedback (`solve.weights.unequal`) has nearly all members
right and weights to a few hundredths. From there:

  1 in turn   weights with vectors held, vectors with weights held, by least squares with likely
              signs: that of an encoding smaller than the noise is a mean of both; then all rows
              choose their members again. On the pixels of the feedback
  2 pixels    every pixel from the best of several starts, weights held (`solve.pixels.noisy`)
  3 again     1, on all pixels
  4 chance    what the fit says beyond chance. A weight costs what it takes to write it down as
              precisely as the pixels tell it

Cost: that of `solve.pixels.noisy` once, and a few dozen passes over the encodings.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.folded import information, signed
from unveil.records import Progress
from unveil.solve.model import MEDIAN, TWICE_THE_NOISE, Values, rms, touched_by_null
from unveil.solve.pixels.chance import fit_nats, spare_nats
from unveil.solve.pixels.noisy import NoisySolution, every_pixel
from unveil.solve.weights.unequal import (
    WeightedAssignment,
    least_squares,
    mixed,
    reassign,
    scaled,
)
from unveil.solve.weights.unequal_pixels import PIXELS, Explained, named

TURNS, ROUNDS = 10, 3
"""Turns between weights and vectors, and times that rows choose their members again: the noise
that is left changes by less than a thousandth after that."""
LEAST_TOLD = 0.02
"""The least that a magnitude is taken to say of its sum: where signs tell nothing, errors are not
blown up beyond bounds."""
MOST_SPENT = 0.9
"""The largest share of freedom that a fit is taken to use up."""
RIDGE = 1e-9
"""Added to WᵀW, relative to its mean: a vector that no row determines must not stop the others."""


def solve_noisy_weights(
    magnitudes: Values,
    found: WeightedAssignment,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> NoisySolution | None:
    """Vectors and weights from all rows of `found`, whether exact or not, in the units of the
    magnitudes; None: less than half of the rows fit like the others."""
    m, d = magnitudes.shape
    scale = np.float32(rms(magnitudes))
    y = magnitudes / scale
    present = Explained(np.arange(m), found.members, found.weights)
    # 1. Members and weights where they were found, then under one name for each vector.
    some = np.ascontiguousarray(y[:, : found.x.shape[1]])
    present, x = named(present, found.x.astype(np.float64) / scale)
    if 2 * len(present.rows) < m or len(present.rows) <= len(x):
        return None
    present, x = _rounds(some, present, x)
    # 2. Every pixel.
    rows = present.rows
    noise = _noise(y[rows][:, : some.shape[1]], present, x)
    x = every_pixel(
        y[rows], None, present.members, len(x), present.weights, noise, rng, progress=progress
    )
    # 3. Members and weights from all pixels; rows that fit like the others.
    present, x = _rounds(y, present, x)
    rows = present.rows
    if 2 * len(rows) < m or len(rows) <= len(x):
        return None
    # 4. How well each vector is known, and what the fit says beyond chance.
    fit = mixed(x, present.members, present.weights)
    noise = _noise(y[rows], present, x)
    W = _matrix(present, len(x))
    gram = (W.T @ W).toarray()
    told = max(information(y[rows], fit, noise**2), LEAST_TOLD)
    error = noise * np.sqrt(np.diag(np.linalg.pinv(gram, hermitian=True)) / told)
    nats = fit_nats(y[rows], np.abs(fit), noise, rng)
    k = present.members.shape[1]
    spare = spare_nats(nats, len(rows), len(x), k, m, d)
    spare -= len(rows) * k * log(1 + np.sqrt(d) / noise)
    determined = ~touched_by_null(gram)
    return NoisySolution(
        x * scale,
        rows,
        present.members,
        noise * float(scale),
        error * float(scale),
        determined,
        nats,
        spare,
        present.weights,
    )


def _rounds(
    y: Values, present: Explained, x: NDArray[np.float64]
) -> tuple[Explained, NDArray[np.float64]]:
    """Vectors, weights and members in turn, on the pixels of y (m, pixels) and x; in the end the
    rows that fit like the others."""
    for _ in range(ROUNDS):
        present, x = _in_turn(y[present.rows], present, x)
        # Everybody again: rows that were left out may fit now.
        part, few = y[:, :PIXELS], x[:, :PIXELS].astype(np.float32)
        k = present.members.shape[1]
        members = np.zeros((len(y), k), np.int64)
        weights = np.zeros((len(y), k))
        members[present.rows], weights[present.rows] = present.members, present.weights
        members, weights = reassign(part, few, members, weights)
        everyone = Explained(np.arange(len(y)), members, weights)
        noise = _noise(part[present.rows], present, few)
        missed = np.median(np.abs(np.abs(mixed(few, members, weights)) - part), axis=1) / MEDIAN
        keep = missed <= TWICE_THE_NOISE * noise
        present, x = named(Explained(everyone.rows[keep], members[keep], weights[keep]), x)
        if len(present.rows) <= len(x):
            break
    return _in_turn(y[present.rows], present, x) if len(present.rows) > len(x) else (present, x)


def _in_turn(
    y: Values, present: Explained, x: NDArray[np.float64]
) -> tuple[Explained, NDArray[np.float64]]:
    """Weights and vectors by least squares with likely signs, y (rows, pixels)."""
    members, weights = present.members, present.weights
    variance = _noise(y, present, x) ** 2
    for _ in range(TURNS):
        # Weights with vectors held, then vectors with weights held; signs renewed in between.
        likely = signed(y, mixed(x, members, weights), variance)
        weights = least_squares(likely, x, members, x @ x.T)
        weights, x = scaled(members, weights, x)
        W = _matrix(Explained(present.rows, members, weights), len(x))
        gram = (W.T @ W).toarray()
        gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        x = np.linalg.solve(gram, W.T @ signed(y, W @ x, variance))
    return Explained(present.rows, members, weights), np.asarray(x, np.float64)


def _noise(y: Values, present: Explained, x: Values | NDArray[np.float64]) -> float:
    """From the median residual, with the share of freedom that the fit uses up put back."""
    miss = np.abs(np.abs(mixed(x, present.members, present.weights)) - y)
    spent = min(MOST_SPENT, len(x) / max(1, len(y)))
    return max(float(np.median(miss) / MEDIAN / np.sqrt(1 - spent)), float(np.finfo("f4").eps))


def _matrix(present: Explained, n: int) -> sparse.csr_array:
    """(rows, n) the weights of every row."""
    rows, k = present.members.shape
    return sparse.csr_array(
        (present.weights.ravel(), present.members.ravel(), np.arange(rows + 1) * k),
        shape=(rows, n),
    )
