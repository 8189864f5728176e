"""Relations that others support, where some hold by chance.

Where columns are few and take few values, any four encodings may fulfil a relation by luck. True
relations hang together: with z_a − z_b = z_c − z_d and z_c − z_d = z_e − z_f the pair (a, b) is in
two of them, and in a release of many encodings in several. Those that hold by chance are alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

SPLITS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))
"""Four encodings as two pairs."""


def support(quads: Index) -> Index:
    """(relations,) in how many relations both pairs of it are, itself included, for the best of the
    three ways to split quads (r, 4), sorted, into pairs."""
    if not len(quads):
        return np.empty(0, np.int64)
    base = int(quads.max()) + 1
    pairs = np.stack(
        [
            np.stack([quads[:, a] * base + quads[:, b], quads[:, c] * base + quads[:, d]], axis=1)
            for a, b, c, d in SPLITS
        ],
        axis=1,
    )
    _, name, count = np.unique(pairs, return_inverse=True, return_counts=True)
    times = count[name.reshape(pairs.shape)]
    return np.asarray(times.min(axis=2).max(axis=1), np.int64)
