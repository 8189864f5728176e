"""Could a vector have taken in a public vector that the list has wrongly?

Say public vector h is listed as p and was mixed as p' = p + e. Rows with h then fit no sum of
vectors, except where a private one has taken e in: x' = x + τ·e with Wτ = q on the rows that are
explained, q being 1 in those with h. The values of such vectors hang on the list alone: these rows
would look just as good if it were wrong. Where other rows with h are not explained, a vector with
τ ≠ 0 is in doubt. With a right list τ hardly ever exists, since rows with h are those of no
combination of private vectors. A public vector that stands in every row has one, τ = 1/k for all;
then rows left over say nothing about it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsqr

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

SOLVED = 1e-6
"""Largest entry of Wτ − q where τ counts as found, and smallest of τ that counts: W has whole
numbers, so that a true τ misses by rounding, and another one by tenths."""
MOST = 300
"""Public vectors looked at, those first whose rows are explained most rarely: each takes a least
squares of its own."""


def taking_in(members: Index, n: int, names: Index, left: Index) -> Flags:
    """(n,) vectors that could have. members (rows, k), names (rows, k_public): private and public
    vectors of the rows that are explained; left (others, k_public): public ones of all other
    rows."""
    out = np.zeros(n, bool)
    if not len(left) or not len(members):
        return out
    # 1. Public vectors of both kinds of rows, but not of all.
    width = int(max(names.max(initial=0), left.max(initial=0))) + 1
    good, bad = (
        np.bincount(np.unique(np.arange(len(x))[:, None] * width + x) % width, minlength=width)
        for x in (names, left)
    )
    suspects = np.flatnonzero((good > 0) & (bad > 0) & (good + bad < len(names) + len(left)))
    suspects = suspects[np.argsort(good[suspects] / bad[suspects], kind="stable")][:MOST]
    # 2. For each of them τ, where there is one.
    rows, k = members.shape
    W = sparse.csr_array((np.ones(rows * k), members.ravel(), np.arange(rows + 1) * k), (rows, n))
    for h in suspects:
        q = (names == h).any(axis=1).astype(np.float64)
        # To the last digit, as far as double precision goes.
        tau = lsqr(W, q, atol=1e-14, btol=1e-14, iter_lim=1000)[0]
        if np.abs(W @ tau - q).max() <= SOLVED:
            out |= np.abs(tau) > SOLVED
    return out
