"""The public part where signs are kept: y = Σ_{i∈S} b·p_i + private part, linear, so that plain
products find it.

Matching pursuit with a known weight: the vector that takes most off ‖r‖² is 2b⟨p, r⟩ − b²‖p‖²
ahead; k_public times, then each choice is taken back and made again with the others in place, until
nothing changes. The private part is noise of the size of a private pixel: products have a signal of
b‖p‖² against a noise of √(rest of the variance)·‖p‖. Cost m·n_public·d per choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.paper.folded_search import Floats
from unveil.parallel import rows_per_block
from unveil.records import Progress

SWEEPS = 3
"""Rounds in which each choice is taken back and made again, with the others in place."""


def pursue(
    Y: Floats, public: Floats, k: int, weight: float, limit: int, progress: Progress | None = None
) -> NDArray[np.int64]:
    """(m, k) sorted: the public vectors of each encoding, each with the same weight."""
    m, d = Y.shape
    out = np.empty((m, k), np.int64)
    b = np.float32(weight)
    price = b * b / 2 * np.einsum("ij,ij->i", public, public)
    step = rows_per_block(8 * (len(public) + 2 * d), limit // 4, most=1024)
    for start in range(0, m, step):
        rest = np.array(Y[start : start + step], np.float32)
        rows = np.arange(len(rest))
        chosen = np.full((len(rest), k), -1, np.int64)
        for turn in range((1 + SWEEPS) * k):
            slot = turn % k
            before = chosen[:, slot].copy()
            # After the first round every turn takes one choice back.
            if turn >= k:
                rest += b * public[before]
            gain = b * (rest @ public.T) - price
            # A vector is chosen once.
            others = np.delete(chosen, slot, axis=1)
            for column in others.T:
                gain[rows[column >= 0], column[column >= 0]] = -np.inf
            chosen[:, slot] = gain.argmax(axis=1)
            rest -= b * public[chosen[:, slot]]
        out[start : start + step] = np.sort(chosen, axis=1)
        if progress:
            progress("learn public", min(start + step, m), m)
    return out
