"""Gaussian images (`defn:gaussian_images`): every pixel an independent draw from N(0, 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.parallel import must_fit


def gaussian_vectors(n: int, d: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """n standard Gaussian vectors with d pixels."""
    must_fit(4 * n * d, f"{n:,} vectors of {d:,} pixels", cure="lower their number or d")
    return rng.standard_normal((n, d), dtype=np.float32)
