"""Which of the corners are public vectors? For attacks that find private and public ones alike,
since weights are unknown (`attacks.unmix`, `attacks.unmask`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAME = 1e-3
"""How near to a public vector a corner must be to be one, relative to its size."""
WITNESSES = 2
"""Public vectors that must agree on the sign of every pixel: one could be a private vector that is
its mirror image."""

Floats = NDArray[np.float64]


def public_corners(values: Floats, P: NDArray[np.float32] | None) -> NDArray[np.int64]:
    """(n,) which public vector each corner is, −1: none."""
    out = np.full(len(values), -1, np.int64)
    for i, value in enumerate(values if P is not None and len(P) else ()):
        apart = np.linalg.norm(P - value, axis=1)
        if apart.min() <= SAME * np.linalg.norm(value):
            out[i] = apart.argmin()
    return out


def public_signs(values: Floats, P: NDArray[np.float32] | None) -> Floats | None:
    """(d,) the sign per pixel, common to all corners, with which public vectors are among them;
    None: they do not tell."""
    if P is None or not len(P):
        return None
    at = public_corners(np.abs(values), np.abs(P))
    found = np.flatnonzero(at >= 0)
    if len(found) < WITNESSES:
        return None
    theirs = P[at[found]].astype(np.float64)
    agree = values[found] * theirs
    clear = np.abs(theirs) > SAME * np.sqrt(np.mean(theirs**2))
    plus, minus = (clear & (agree > 0)).any(axis=0), (clear & (agree < 0)).any(axis=0)
    # A pixel without a clear value, or with both signs, stays open, and with it all others: what is
    # signed is signed everywhere.
    return None if (plus == minus).any() else np.where(plus, 1.0, -1.0)
