"""Gaussian images (`defn:gaussian_images`): every pixel an independent draw from N(0, 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaussian_vectors(n: int, d: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """n standard Gaussian vectors with d pixels."""
    return rng.standard_normal((n, d), dtype=np.float32)
