"""Vectors that only two or three encodings use: found by exact coincidence once everything else is solved.

For an encoding left unexplained, let r be the sum of its best k−1 known vectors. If that guess is right, the missing vector is +y − r or −y − r
at each pixel. Two encodings that miss the same vector agree, at every pixel, in one of the four combinations of signs;
two that do not agree at a few pixels by chance. So pairs of unexplained encodings are compared at all pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.solve.feedback import best_partners


def complete(
    magnitudes: NDArray[np.float32], x: NDArray[np.float64], k: int, rows: NDArray[np.int64], tolerance: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(explained rows, their members, number of new columns): y = |Σ x| with unit weights, new columns count from len(x) on."""
    n = len(x)
    x32 = x.astype(np.float32)
    known = np.arange(n)
    partners = np.array([best_partners(magnitudes[i], x32, np.arange(k), known, np.ones(n, bool)) for i in rows])
    rest = x[partners].sum(axis=1)
    y = magnitudes[rows].astype(np.float64)
    plus, minus = y - rest, -y - rest
    done_rows: list[int] = []
    members: list[list[int]] = []
    free = np.ones(len(rows), bool)
    new = 0
    for i in range(len(rows)):
        if not free[i]:
            continue
        apart = np.minimum(
            np.minimum(np.abs(plus[i] - plus), np.abs(plus[i] - minus)),
            np.minimum(np.abs(minus[i] - plus), np.abs(minus[i] - minus)),
        )
        group = np.flatnonzero(((apart < tolerance).mean(axis=1) > 0.99) & free)
        if len(group) < 2:
            continue
        for r in group:
            done_rows.append(int(rows[r]))
            members.append([*partners[r].tolist(), n + new])
        free[group] = False
        new += 1
    return np.array(done_rows, dtype=np.int64), np.array(members, dtype=np.int64).reshape(-1, k), new
