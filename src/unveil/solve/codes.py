"""Codes: which few of many vectors an encoding mixes, and with which weights; y = Σ λ_j·a_j, λ
positive, sum 1.

  members  orthogonal matching pursuit (Pati, Rezaiifar, Krishnaprasad, Asilomar 1993): again and
           again the vector that agrees most with what is left
  weights  least squares on the members

Cost: m·n·d for the products, m·n·k² for the pursuit.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.solve.model import Members

RIDGE = 1e-10
"""Added to the diagonal of a Gram matrix, relative to its mean."""
BLOCK = 4000
"""Encodings whose products with all vectors are held at a time."""

Floats = NDArray[np.float64]


def members_of(
    Z: Floats, A: Floats, k: int, products: NDArray[np.float32] | None = None
) -> Members:
    """(m, k) by orthogonal matching pursuit; in single precision, which suffices to choose.

    products (m, q): those of Z with the first q vectors, where they are known
    """
    single = A.astype(np.float32)
    gram = single @ single.T
    size = np.sqrt(np.maximum(np.diag(gram), np.float32(1e-30)))
    members = np.empty((len(Z), k), np.int64)
    for start in range(0, len(Z), BLOCK):
        part = slice(start, start + BLOCK)
        rows = Z[part].astype(np.float32)
        if products is None:
            inner = rows @ single.T
        else:
            new = rows @ single[products.shape[1] :].T
            inner = np.concatenate([products[part], new], axis=1)
        _pursue(inner, gram, size, members[part])
    return members


def weights_of(Z: Floats, A: Floats, members: Members) -> Floats:
    """Not negative, sum 1, by least squares on the edges from the last member of each row."""
    last = A[members[:, -1]]
    edges = [A[members[:, j]] - last for j in range(members.shape[1] - 1)]
    gram = np.stack([[np.einsum("ij,ij->i", a, b) for b in edges] for a in edges]).transpose(
        2, 0, 1
    )
    right = np.stack([np.einsum("ij,ij->i", a, Z - last) for a in edges], axis=1)
    gram += (RIDGE * np.einsum("ijj->i", gram)[:, None, None] + 1e-300) * np.eye(len(edges))
    free = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    weights = np.maximum(np.column_stack([free, 1 - free.sum(axis=1)]), 0.0)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def mixed(A: Floats, members: Members, weights: Floats) -> Floats:
    out = np.zeros((len(members), A.shape[1]))
    for j in range(members.shape[1]):
        out += weights[:, j, None] * A[members[:, j]]
    return out


def matrix_of(members: Members, weights: Floats, n: int) -> sparse.csr_array:
    m, k = members.shape
    at = np.repeat(np.arange(m), k), members.ravel()
    return sparse.csr_array((weights.ravel(), at), shape=(m, n))


@njit(cache=True, nogil=True)
def _pursue(
    inner: NDArray[np.float32],
    gram: NDArray[np.float32],
    size: NDArray[np.float32],
    members: NDArray[np.int64],
) -> None:
    """Fills members (m, k): again and again the corner that agrees most with what is left, all
    weights anew after each; by Cholesky factors that grow by a row."""
    m, n = inner.shape
    k = members.shape[1]
    factor, right, w = np.zeros((k, k)), np.zeros(k), np.zeros(k)
    rest = np.empty(n, np.float32)
    for i in range(m):
        rest[:] = inner[i]
        for j in range(k):
            # 1. The corner that agrees most.
            best, top = 0, -np.inf
            for a in range(n):
                if rest[a] > top * size[a]:
                    again = False
                    for t in range(j):
                        again |= members[i, t] == a
                    if not again:
                        best, top = a, rest[a] / size[a]
            members[i, j] = best
            if j == k - 1:
                break
            # 2. The factor's new row, and weights.
            for t in range(j):
                value = float(gram[best, members[i, t]])
                for s in range(t):
                    value -= factor[j, s] * factor[t, s]
                factor[j, t] = value / factor[t, t]
            value = float(gram[best, best])
            for s in range(j):
                value -= factor[j, s] ** 2
            factor[j, j] = np.sqrt(max(value, 1e-12))
            value = float(inner[i, best])
            for s in range(j):
                value -= factor[j, s] * right[s]
            right[j] = value / factor[j, j]
            for t in range(j, -1, -1):
                value = right[t]
                for s in range(t + 1, j + 1):
                    value -= factor[s, t] * w[s]
                w[t] = value / factor[t, t]
            # 3. What is left.
            rest[:] = inner[i]
            for t in range(j + 1):
                row, share = gram[members[i, t]], np.float32(w[t])
                for a in range(n):
                    rest[a] -= share * row[a]
