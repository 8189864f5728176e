"""No private part (k_private = 0): sparse phase retrieval, y = |Σ_{i∈S} w_i p_i| exactly.

The stepwise search of `supports.weights.stepwise`, with the private variance shrinking towards
nothing, finds support and signs; with the signs of the mixture fixed the weights solve a linear
system, in double precision. One sign per encoding is lost. An encoding counts as solved when the d
equations hold to 1e-4 of its norm: with fewer unknowns than pixels, no wrong support does that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.records import Encodings, Progress
from unveil.supports.folded.likelihood import Indices
from unveil.supports.folded.survey import Public
from unveil.supports.weights.stepwise import K_MAX, learn_weights

TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Solved:
    """indices (m, k) sorted, padded with −1; weights (m, k) up to one sign per encoding; relative
    residual (m,)."""

    indices: Indices
    weights: NDArray[np.float64]
    residual: NDArray[np.float64]


def retrieve(
    encodings: Encodings,
    public: Public,
    *,
    k_public: int | None = None,
    signed: bool = False,
    limit: int,
    workers: int,
    progress: Progress | None = None,
) -> Solved:
    """w of every encoding without a private part; k_public, when given, only bounds the search."""
    # Two slots more than members: a wrong vector taken early is dropped once the right ones are in.
    k_max = K_MAX if k_public is None else k_public + 2
    found = learn_weights(
        encodings,
        public,
        k_public=None,
        k_max=k_max,
        signed=signed,
        limit=limit,
        workers=workers,
        progress=progress,
    )
    weights, residual = found.weights, np.empty(encodings.m)
    for i, support in enumerate(found.indices):
        used = support >= 0
        X = public.vectors[support[used]].T.astype(np.float64)
        y = encodings.magnitudes(slice(i, i + 1))[0].astype(np.float64)
        w = _fixed_point(X, y, weights[i, used])
        weights[i, used] = w
        residual[i] = np.linalg.norm(np.abs(X @ w) - y) / (np.linalg.norm(y) or 1.0)
    return Solved(found.indices, weights, residual)


def _fixed_point(
    X: NDArray[np.float64], y: NDArray[np.float64], w: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Signs from weights, weights from signs, until nothing changes."""
    for _ in range(20):
        new = np.asarray(np.linalg.lstsq(X, np.copysign(y, X @ w), rcond=None)[0], np.float64)
        if np.abs(new - w).max(initial=0) < 1e-12:
            return new
        w = new
    return w
