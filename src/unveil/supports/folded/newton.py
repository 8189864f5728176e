"""Newton steps with a hard threshold over all public vectors: step 3 of `supports.folded.search`.

    w ← the k largest of w + ⟨p, r⟩/(d·J),   r the residual of the likelihood, J its information

With J = 1 it is the EM algorithm, whose hidden variable is the sign of y. Every step is one product
of the residuals with all public vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.supports.folded.likelihood import Floats, Indices, Model, gradient, log_likelihood
from unveil.supports.folded.screen import top_others
from unveil.supports.folded.survey import Public

LEAST_TOLD = 0.2
"""Least information per pixel in a Newton step. Where signs are lost it tends to 0, and the step
with it to infinity."""


def newton(
    magnitudes: Floats,
    public: Public,
    rows: Indices,
    starts: Indices,
    model: Model,
    steps: int,
    kept: int,
) -> tuple[Indices, NDArray[np.float64], Indices]:
    """Newton steps, hard threshold: the likeliest support seen, sorted, its L, and the `kept` best
    vectors it lacks."""
    n, k = starts.shape
    norm2 = magnitudes.shape[1] * model.power
    current, best = starts.copy(), starts.copy()
    likelihood = np.full(n, -np.inf)
    lacking = np.full((n, kept), -1, np.int64)
    active = np.arange(n)
    for _ in range(steps):
        # 1. The gradient here, and the vectors outside that it favours.
        here = np.sort(current[active], axis=1)
        at = gradient(magnitudes, public.vectors, rows[active], here, model.weight, model.variance)
        values, indices = top_others(at.residual, public, here, kept)
        # 2. The likeliest support so far is kept, since a step may lose.
        up = at.log_likelihood > likelihood[active]
        best[active[up]], likelihood[active[up]], lacking[active[up]] = (
            here[up],
            at.log_likelihood[up],
            indices[up],
        )
        # 3. A step for members and newcomers alike; the k largest weights are the next support.
        step = norm2 * np.clip(at.information, LEAST_TOLD, 1)[:, None]
        weights = np.concatenate([model.weight + at.members / step, values[:, :k] / step], axis=1)
        largest = np.argpartition(-weights, k - 1, axis=1)[:, :k]
        new = np.sort(
            np.take_along_axis(np.concatenate([here, indices[:, :k]], axis=1), largest, axis=1),
            axis=1,
        )
        current[active] = new
        active = active[(new != here).any(axis=1)]
        if len(active) == 0:
            break
    # 4. The last step may have led somewhere new.
    if len(active):
        last = log_likelihood(
            magnitudes, public.vectors, rows[active], current[active], model.weight, model.variance
        )
        up = last > likelihood[active]
        best[active[up]], likelihood[active[up]] = current[active[up]], last[up]
    return np.sort(best, axis=1), likelihood, lacking
