"""Whether encodings are explained up to noise alone: then all of them fit equally well.

A reading that is wrong, such as equal weights where every encoding has its own, leaves some
encodings explained well and others badly, and calls what it leaves noise. Noise that is added to
every pixel leaves the same in all of them, up to chance. Chance is told from the rest by two halves
of the pixels: what an encoding leaves in one half then says nothing of what it leaves in the other.

Encodings of vectors that are used rarely fit better than others, since the vectors were fitted to
them: by the factor 1 − h of least squares, h the encoding's leverage.

Cost: m·n² for leverages and m·d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Recovery
from unveil.scheme import Scheme

EVEN = 0.1
"""Relative spread of squared misfits, beyond chance, up to which they are even: up to 0.05 is
measured under noise alone, 0.11 for two records instead of three, 0.2 to 0.5 for equal weights
instead of own ones."""
FEWEST = 10
"""Encodings from which on a spread is told."""
FREE = 0.2
"""Share 1 − h of an encoding that must be left to noise: of others the misfit says nothing."""


def uneven(values: NDArray[np.float32], recovery: Recovery, scheme: Scheme) -> bool:
    """Whether encodings with k members each are explained some well and others badly."""
    members = recovery.members
    rows = np.flatnonzero(np.diff(members.indptr) == scheme.k_private)
    if len(rows) < FEWEST or recovery.exact or not scheme.fixed_weights:
        return False
    # 1. What is left of every encoding, on both halves of the pixels.
    W = sparse.csr_array(members[rows].astype(np.float64)) * scheme.private_weight
    rest = np.abs(np.abs(W @ recovery.vectors.astype(np.float64)) - np.abs(values[rows]))
    # 2. As if vectors had not been fitted to it.
    inverse = np.linalg.pinv((W.T @ W).toarray(), hermitian=True)
    free = 1 - np.asarray(W.multiply(W @ inverse).sum(axis=1)).ravel()
    rest, free = rest[free > FREE], free[free > FREE]
    if len(rest) < FEWEST:
        return False
    first, second = (np.square(rest[:, half::2]).mean(axis=1) / free for half in (0, 1))
    shared = float(np.mean((first - first.mean()) * (second - second.mean())))
    return shared > EVEN**2 * float(first.mean() * second.mean())
