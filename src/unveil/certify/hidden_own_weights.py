"""May a vector be called verified where signs are hidden and every encoding has weights of its own,
three records or more in each? See `docs/certificate.md`, "Signs hidden".

|WX| is given, W with k entries above 0 in each row that sum to 1. Another reading is W'X' = S∘(WX)
for some matrix S of signs, with no more vectors than ours.

  signs    columns of S∘(WX) are D_c·W·x_c, D_c a diagonal of signs, x_c the values of pixel c. They
           lie in a space of dimension n. Vectors in general position of the spaces D_c·range(W) do
           so only if all these spaces are one, as soon as there are n + 1 of them (Rado; Lovász
           1977). Then D_c·D_1 maps range(W) into itself, which splits the rows of W into two sets
           whose ranks add up to n, unless it is ±1. No such set: the rows of W are a connected
           matroid
  weights  so S = a·bᵀ. b is the sign per pixel that is open anyway. D_a·W' = WT, and Theorem 5
           (`certify.own_weights`) makes T a permutation times a diagonal; W' being positive with
           rows that sum to 1, a = 1 and the diagonal is 1
  general  values and weights in levels are not in general position: nothing is verified
  position
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr
from scipy.sparse.csgraph import connected_components

from unveil.certify.own_weights import FAINT, FLATTEST, certify_own_weights, in_levels
from unveil.records import VERIFIED
from unveil.solve.model import rms
from unveil.solve.simplex import Corners

LEVELS = (1e-5, 1e-4, 1e-3)
"""How near weights, and values in units of their rms, may be to be the same: they are found to
between five and three digits."""
SOME_PIXELS = 200
"""Pixels whose values are looked at for levels."""
NONE = 1e-4
"""A coefficient below it ties no two rows together."""


def certify_hidden_own_weights(found: Corners) -> tuple[NDArray[np.bool_], str]:
    """Which vectors no other reading lacks, and what speaks against all, in words.

    found: the solution with the signs it gives to the encodings
    """
    n, d = found.values.shape
    none = np.zeros(n, bool)
    if d <= n:
        return none, f"{d} pixels for {n} vectors: too few to rule out other signs"
    sizes = np.linalg.svd(found.values, compute_uv=False)
    if sizes[-1] < FLATTEST * sizes[0]:
        return none, "records that are combinations of others: encodings can be read in another way"
    values = np.abs(found.values[:, :: -(-d // SOME_PIXELS)]) / max(rms(found.values), 1e-300)
    clear = np.asarray((found.weights > FAINT).all(axis=1))
    weights = found.weights[clear][:, :-1]
    if any(in_levels(values, near) or in_levels(weights, near) for near in LEVELS):
        return none, "values or weights in few levels: other readings are not excluded"
    status, _ = certify_own_weights(found, grow=False)
    known = np.asarray(status == VERIFIED)
    inside = np.flatnonzero(clear & known[found.members].all(axis=1))
    if known.any() and not _connected(found.matrix[inside][:, np.flatnonzero(known)].toarray()):
        return none, "encodings fall into parts whose signs are their own"
    return known, ""


def _connected(W: NDArray[np.float64]) -> bool:
    """Whether the rows are a connected matroid: no two parts have ranks that add up to that of all.

    Rows are combinations of those of a basis, and tied to the ones they need; a matroid is
    connected if these ties are (Oxley, Matroid Theory, 4.1)."""
    m, n = W.shape
    order = qr(W.T, mode="r", pivoting=True)[1]
    basis, others = order[:n], order[n:]
    if m <= n:
        return False
    # A row in terms of the basis: w = c·B.
    C = np.linalg.solve(W[basis].T, W[others].T).T
    ties = sparse.coo_array(np.abs(C) > NONE)
    graph = sparse.coo_array((np.ones(ties.nnz), (ties.row + n, ties.col)), shape=(m, m))
    return bool(connected_components(graph, directed=False)[0] == 1)
