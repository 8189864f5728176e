"""Do the encodings determine a vector at all, with all signs known? Not where a null vector of W
touches it: bipartite pieces for k = 2, vectors that always occur together, ones used once.

For pairs by the double cover of their graph, O(m); else by the eigenvectors of WᵀW, or, where that
is too large, by what least squares does not see of a random vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr

from unveil.solve.model import (
    TOUCHED,
    touched_by_null,
)

TRIALS = 3
"""Random vectors that must all be seen: one lies outside every null vector with probability 0, and
rounding is what is left."""
SOLVED = 1e-12
"""Relative residual at which an iterative solve ends: the null part is then known to 1e-6."""
DENSE = 2000
"""Vectors up to which null vectors come from one dense decomposition."""


def incidence(members: NDArray[np.int64], n: int) -> sparse.csr_array:
    m, k = members.shape
    return sparse.csr_array(
        (np.ones(m * k), (np.repeat(np.arange(m), k), members.ravel())), shape=(m, n)
    )


def undetermined_by(members: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Vectors that some null vector of W touches."""
    if members.shape[1] == 2:
        return _bipartite(members, n)
    if n > DENSE:
        return _touched_by_null(members, n)
    W = incidence(members, n)
    return touched_by_null((W.T @ W).toarray())


def _bipartite(members: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """k = 2: a null vector is ±1 on a bipartite component and 0 on others. In the double cover,
    where every edge joins a vector with the copy of its partner, a bipartite component falls apart
    into two."""
    u, v = members.T
    ends = np.concatenate([u, v]), np.concatenate([v, u]) + n
    cover = sparse.coo_array((np.ones(2 * len(members), np.int8), ends), shape=(2 * n, 2 * n))
    group = connected_components(cover, directed=False)[1]
    return np.asarray(group[:n] != group[n:])


def _touched_by_null(members: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """z − W⁺Wz is the part of a random z in the null space: nonzero, almost surely, exactly where a
    null vector is. Where the iteration has not come to an end more is left over, and more is called
    undetermined."""
    W = incidence(members, n)
    out = np.zeros(n, bool)
    for trial in range(TRIALS):
        z = np.random.default_rng(trial).standard_normal(n)
        seen = lsmr(W, W @ z, atol=SOLVED, btol=SOLVED, maxiter=4000)[0]
        out |= np.abs(z - seen) > TOUCHED
    return out
