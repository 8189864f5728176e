"""A long list is sieved: products on part of the pixels say which vectors are worth all of them.

The screen sees a member of an encoding at

    0.96·ρ²·√pixels standard deviations,    ρ² the member's share of the variance of a pixel,

where 0.96 is what clipping leaves, and its own noise is 1 + 1.75·ρ² of them (both by simulation,
for ρ² of 1/8 to 1/2). Of n vectors the 256 best on part of the pixels lie above a line that grows
like √(2·log(n/256)). So many pixels are taken that a member is above it by three times its noise,
and the 256 are scored on all pixels. The gradient, once a member is known, tells the others better
than the screen does, and gets the same pixels: so it finds a member that the sieve has missed, one
in 700. Cost: n·(some pixels) for each encoding instead of n·d.

Only for independent Gaussian pixels: neighbours that are alike say less than their number.
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit
from scipy.stats import norm

from unveil.mapped import let_go
from unveil.supports.folded.likelihood import Floats, Indices, Model

FROM = 50_000
"""Vectors from which on a list is sieved: a pass over fewer takes seconds."""
SIEVED = 256
"""Vectors that are scored on all pixels: twice the pool of the first round."""
ABOVE = 3.0
"""Times its noise that a member is above the line of the sieve: one in 700 is not."""
CLIPPED, NOISIER = 0.96, 1.75
"""What clipping leaves of the signal of Σ y²p², and how its noise grows with ρ²; by simulation."""
WORTH = 0.7
"""Share of the pixels beyond which a sieve saves too little."""
AT_ONCE = 16
"""Encodings whose vectors are read before pages are let go: some hundred megabytes."""


def sieve_pixels(model: Model, count: int, d: int) -> int:
    """How many of d pixels a list of `count` vectors is sieved on; 0: it is not."""
    if count < FROM:
        return 0
    share = model.spread / (model.variance + model.k * model.spread)
    line = float(norm.isf(SIEVED / count)) + ABOVE * (1 + NOISIER * share)
    pixels = (line / (CLIPPED * share)) ** 2
    return int(-(-pixels // 16)) * 16 if pixels <= WORTH * d else 0


def scored(rows: Floats, vectors: Floats, indices: Indices, clip: float) -> Floats:
    """⟨row, p⟩, or ⟨row, min(p², clip)⟩ where clip > 0, for the vectors of each row; −inf where the
    index is −1."""
    out = np.empty(indices.shape, np.float32)
    for start in range(0, len(rows), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        _score(rows[part], vectors, indices[part], float32(clip), out[part])
        let_go(vectors)
    return out


@njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True, nogil=True)
def _score(rows, P, indices, clip, out):  # type: ignore[no-untyped-def]
    for t in range(rows.shape[0]):
        row = rows[t]
        for c in range(indices.shape[1]):
            if indices[t, c] < 0:
                out[t, c] = -np.inf
                continue
            p = P[indices[t, c]]
            s = float32(0)
            if clip > 0:
                for j in range(len(row)):
                    s += row[j] * min(p[j] * p[j], clip)
            else:
                for j in range(len(row)):
                    s += row[j] * p[j]
            out[t, c] = s
