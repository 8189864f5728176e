"""Small tools on the rows of a design: what hangs together, what lies inside a set of vectors. Used
by `certify.design` and its parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components

Index = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOT_ZERO = 3e-5
"""Entries of the projection above this are not zero: errors of a solve are below 1e-9 where one
succeeds at all."""


def linked(members: Index, n: int) -> Index:
    """Vectors linked by rows carry one label."""
    # A star from each row's first member links as well as all pairs do.
    first = np.repeat(members[:, 0], members.shape[1] - 1)
    graph = sparse.coo_array(
        (np.ones(len(first), np.int8), (first, members[:, 1:].ravel())), shape=(n, n)
    )
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def local_rows(members: Index, inside: Flags) -> tuple[Index, Index]:
    """The rows inside the set, with names counted from 0, and the names themselves."""
    names = np.flatnonzero(inside)
    number = np.full(len(inside), -1, np.int64)
    number[names] = np.arange(len(names))
    return number[members[inside[members].all(axis=1)]], names


def gram(members: Index, n: int, weight: Values | None = None) -> Values:
    """WᵀωW, dense."""
    m, k = members.shape
    W = sparse.csr_array(
        (np.ones(m * k), (np.repeat(np.arange(m), k), members.ravel())), shape=(m, n)
    )
    return np.asarray(
        (W.T @ (W if weight is None else W * weight[:, None])).toarray(), dtype=np.float64
    )


def connected_rows(members: Index, n: int) -> bool:
    """Whether only D = ±1 keeps the column space. W has full column rank.

    The projection Π = W(WᵀW)⁻¹Wᵀ commutes with any D that does: rows are linked where Π is not 0.
    One solve is a row of Π.
    """
    try:
        factor = cho_factor(gram(members, n))
    except LinAlgError:
        return False
    # From row 0 on: each row asked shows all rows it is linked with.
    reached = np.arange(len(members)) == 0
    asked = np.zeros(len(members), bool)
    while not reached.all():
        ask = np.flatnonzero(reached & ~asked)[:1]
        if not len(ask):
            return False
        asked[ask] = True
        unit = np.zeros(n)
        unit[members[ask[0]]] = 1
        reached |= np.abs(cho_solve(factor, unit)[members].sum(axis=1)) > NOT_ZERO
    return True
