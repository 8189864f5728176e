"""Which law did the weights follow? Told from weights as found, up to the scale that images share
with them.

Two statistics do not change with that scale: in every encoding the weights over its largest one,
and the spread of what the private ones weigh together. Laws are compared by the distance of the
quantiles of the first plus the difference of the second. Found weights are noisy, but the laws are
far apart: see docs/natural_images.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.encode.weights import possible_laws, sample_weights
from unveil.scheme import Scheme

Floats = NDArray[np.float32]
DRAWS = 20_000
"""Encodings drawn from each law: quantiles are sure to a percent, and laws are farther apart."""
QUANTILES = np.linspace(0.02, 0.98, 49)
"""Where shapes are compared: the ends are left to outliers."""
EMPTY = 1e-9
"""Guards divisions: an encoding may have lost all its weights."""
FITS = 1.5
"""Encodings that fit so much worse than the median say nothing of their weights."""


def likeliest_law(
    weights: NDArray[np.float32],
    misfit: NDArray[np.float32],
    scheme: Scheme,
    rng: np.random.Generator,
) -> Scheme:
    """The scheme with the law that the weights (m, k_private) follow best; of laws that cannot be
    told apart, the first."""
    found = _shape(weights[misfit <= FITS * np.median(misfit)].astype(np.float64))
    # Rounded, since laws that cannot be told apart must not be chosen by the noise of draws.
    schemes = possible_laws(scheme)
    return min(
        schemes,
        key=lambda one: round(
            _distance(found, _shape(sample_weights(one, DRAWS, rng)[:, : scheme.k_private])), 2
        ),
    )


def _shape(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Quantiles of the weights over the largest of their encoding, the largest left out; the spread
    of their sum."""
    ordered = np.sort(weights, axis=1)
    total = ordered.sum(axis=1)
    shares = ordered[:, :-1] / np.maximum(ordered[:, -1:], EMPTY)
    quantiles = np.quantile(shares, QUANTILES) if shares.size else np.zeros(len(QUANTILES))
    return quantiles, float(total.std() / max(total.mean(), EMPTY))


def _distance(
    one: tuple[NDArray[np.float64], float], other: tuple[NDArray[np.float64], float]
) -> float:
    return float(np.abs(one[0] - other[0]).mean() + abs(one[1] - other[1]))
