"""Pixels as bytes, for pictures and files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BEYOND = 1.5
"""Up to here a recovered pixel of an image from −1 to 1 may stick out, and is clipped."""


def as_bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels as bytes. −1 … 1 is the range of InstaHide's images; where values go beyond, the
    darkest is black and the brightest white."""
    low, high = float(images.min(initial=0.0)), float(images.max(initial=0.0))
    inside = low >= -BEYOND and high <= BEYOND
    # All images together: one by one each would have a contrast of its own.
    low, high = (-1.0 if low < 0 else 0.0, 1.0) if inside else (low, high)
    scaled = (images.astype(np.float64) - low) / (high - low)
    return np.asarray((255 * scaled.clip(0, 1)).round(), dtype=np.uint8)
