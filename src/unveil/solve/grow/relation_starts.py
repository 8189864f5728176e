"""Signs to start from under noise: relations believed in the order of how clear they are, pixel by
pixel.

At a pixel a relation of four encodings with known subsets has eight combinations of signs, up to a
common one. The best of them is right the more surely, the farther the second best is behind. So
relations are taken in that order, and each one ties the signs of its encodings to each other,
unless clearer ones have done so already: a spanning forest of the clearest relations, as Kruskal's.
What comes out is a start for `solve.pixels.noisy`, no more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from unveil.parallel import run_blocks, where, worker_count
from unveil.solve.model import Values, incidence
from unveil.solve.signs.sign_search import Floats, Index, sign_system

PER_ROW = 12
"""Relations used per encoding: enough for each to have some clear ones at every pixel."""
BLOCK = 64
"""Pixels at a time, one thread each."""


def start_from_relations(
    y: Values, members: Index, n: int, quads: Index, rng: np.random.Generator
) -> Floats:
    """x (n, d) of |Σx| = y (rows, d), nearly, by least squares of the signs that relations
    suggest."""
    d = y.shape[1]
    system = sign_system(quads, members, rng, PER_ROW)
    solver = np.linalg.pinv(incidence(members, n))
    x = np.zeros((n, d))

    def solve(block: slice) -> None:
        part = y[:, block].astype(np.float64)
        sign = np.zeros(part.shape, np.int8)
        _forest(system.quads, system.signs, part, sign)
        x[:, block] = solver @ (sign * part)

    blocks = [slice(s, min(s + BLOCK, d)) for s in range(0, d, BLOCK)]
    run_blocks(solve, blocks, worker_count(where().workers))
    return x


@njit(cache=True, nogil=True)
def _root(parent, parity, r):  # type: ignore[no-untyped-def]
    """(root of r, sign of r relative to it), with the path shortened by halves."""
    sign = 1
    while parent[r] != r:
        up = parent[r]
        sign *= parity[r]
        parity[r] *= parity[up]
        parent[r] = parent[up]
        if parent[r] != up:
            sign *= parity[up]
            r = parent[r]
        else:
            r = up
    return r, sign


@njit(cache=True, nogil=True)
def _forest(quads, coefficients, y, out):  # type: ignore[no-untyped-def]
    """out (rows, pixels): a sign for every row; rows that no relation reaches take +1."""
    rows, pixels = y.shape
    count = len(quads)
    margin = np.empty(count)
    choice = np.empty(count, np.int64)
    parent, parity = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for p in range(pixels):
        for q in range(count):
            best, second, at = np.inf, np.inf, 0
            for c in range(8):
                total = 0.0
                for i in range(4):
                    z = coefficients[q, i] * y[quads[q, i], p]
                    total += -z if c >> i & 1 else z
                total = abs(total)
                if total < best:
                    best, second, at = total, best, c
                elif total < second:
                    second = total
            margin[q], choice[q] = best - second, at
        for r in range(rows):
            parent[r], parity[r] = r, 1
        # The clearest relations first; one that would only repeat what they tied is passed over.
        for q in np.argsort(margin):
            first = quads[q, 0]
            own = -1 if choice[q] & 1 else 1
            for i in range(1, 4):
                relative = own * (-1 if choice[q] >> i & 1 else 1)
                u, su = _root(parent, parity, first)
                v, sv = _root(parent, parity, quads[q, i])
                if u != v:
                    parent[v] = u
                    parity[v] = su * sv * relative
        for r in range(rows):
            out[r, p] = _root(parent, parity, r)[1]
