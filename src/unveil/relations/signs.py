"""Signs of all encodings that relations join, pixel by pixel: |Wx| becomes Wx, up to one sign per
encoding and one per pixel.

    R (q, 4 of m)  relations with the signs they have at one pixel
                   (`relations.subspace.relation_matrix`)
    allowed        at another pixel, those of the 16 choices of signs of a relation that make it
                   vanish
    1  set         the sign of one encoding, which is free; encodings that are zero there have none
    2  propagate   what all choices left to a relation have in common is forced, until nothing is

What is forced is proved, whatever the values are. Where values coincide (8-bit images: y_a = y_b
and y_c = y_d) a relation leaves two choices; encodings that hang on it alone keep the sign 0,
unknown, at that pixel. Cost: some 50 operations per relation and pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.parallel import run_blocks, where, worker_count
from unveil.relations.sketch import Floats, Index

BLOCK = 32
"""Pixels that one thread works on at a time."""
ROOTS = 3
"""Encodings tried as the first, at a pixel where the one before forces fewer than half of the
others."""
CHOICE = 200
"""Encodings they are taken from; at a pixel where all of them are zero nothing is forced."""
MINUS = np.array(
    [sum(1 << choice for choice in range(16) if choice >> i & 1) for i in range(4)], dtype=np.int64
)
"""The set of choices, a bit each, that have a minus for the i-th encoding of a relation."""
FITTING = np.array(
    [
        [sum(1 << choice for choice in range(16) if choice & known == bits) for bits in range(16)]
        for known in range(16)
    ],
    dtype=np.int64,
)
"""Those that agree with `bits` for the encodings in `known`."""


def joined(quads: Index, m: int) -> NDArray[np.bool_]:
    """(m,) the largest set of encodings that relations join."""
    if not len(quads):
        return np.zeros(m, bool)
    ends = np.repeat(quads[:, 0], 3), quads[:, 1:].ravel()
    group = connected_components(
        sparse.coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(m, m)), directed=False
    )[1]
    return np.asarray(group == np.bincount(group).argmax())


def relation_rows(R: sparse.csr_array) -> tuple[Index, Floats]:
    """(quads (q, 4), coefficients (q, 4)) of a matrix with four entries per row."""
    return R.indices.reshape(-1, 4).astype(np.int64), R.data.reshape(-1, 4).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SignGraph:
    """Relations, quads (q, 4) with coefficients ±1; those of encoding i:
    using[start[i]:start[i+1]]; roots: where to begin."""

    quads: Index
    coefficients: Floats
    start: Index
    using: Index
    roots: Index


def sign_graph(quads: Index, coefficients: Floats, m: int) -> SignGraph:
    order = np.argsort(quads.ravel(), kind="stable")
    start = np.searchsorted(quads.ravel()[order], np.arange(m + 1)).astype(np.int64)
    # The encodings with most relations come first: they are least likely to be cut off.
    roots = np.argsort(-np.diff(start), kind="stable")[:CHOICE].astype(np.int64)
    return SignGraph(quads, coefficients, start, (order // 4).astype(np.int64), roots)


def propagate_signs(graph: SignGraph, y: NDArray[np.floating], bound: Floats) -> NDArray[np.int8]:
    """(m, pixels): +1 or −1 where relations force it, 0 where they do not. y (m, pixels) ≥ 0; bound
    (pixels,): what is zero."""
    m, pixels = y.shape
    out = np.zeros((m, pixels), np.int8)

    def work(at: int) -> None:
        part = slice(at, min(at + BLOCK, pixels))
        out[:, part] = propagated_block(
            graph, np.ascontiguousarray(y[:, part].T, dtype=np.float64), bound[part]
        ).T

    run_blocks(work, range(0, pixels, BLOCK), worker_count(where().workers))
    return out


def propagated_block(graph: SignGraph, y: Floats, bound: Floats) -> NDArray[np.int8]:
    """The same for y (pixels, m), in one thread: (pixels, m)."""
    return np.asarray(
        _propagated(
            graph.quads, graph.coefficients, graph.start, graph.using, graph.roots, y, bound
        ),
        np.int8,
    )


@njit(cache=True, nogil=True)
def _propagated(quads, coefficients, start, using, roots, y, bound):  # type: ignore[no-untyped-def]
    """(pixels, m) from y (pixels, m)."""
    pixels, m = y.shape
    allowed = np.empty(len(quads), np.int64)
    out = np.zeros((pixels, m), np.int8)
    sign, queue = np.empty(m, np.int8), np.empty(m, np.int64)
    for p in range(pixels):
        # 1. The choices that each relation has: bit i of a choice set, a minus for its i-th
        # encoding.
        for q in range(len(quads)):
            a, b = coefficients[q, 0] * y[p, quads[q, 0]], coefficients[q, 1] * y[p, quads[q, 1]]
            c, d = coefficients[q, 2] * y[p, quads[q, 2]], coefficients[q, 3] * y[p, quads[q, 3]]
            bits = 0
            for choice in range(8):
                total = (
                    (-a if choice & 1 else a)
                    + (-b if choice & 2 else b)
                    + (-c if choice & 4 else c)
                    + d
                )
                if abs(total) <= bound[p]:
                    bits |= 1 << choice | 1 << (15 - choice)
            allowed[q] = bits
        # 2. What the first encoding forces; another one, where that is little.
        best, tried = 0, 0
        for root in roots:
            if y[p, root] <= bound[p] or out[p, root] != 0:
                continue
            size = _force(quads, start, using, allowed, y[p], bound[p], root, sign, queue)
            if size > best:
                best = size
                for i in range(m):
                    out[p, i] = sign[i]
            tried += 1
            if 2 * best > m or tried == ROOTS:
                break
        for i in range(m):
            if out[p, i] == 0 and y[p, i] <= bound[p]:
                out[p, i] = 1
    return out


@njit(cache=True, nogil=True)
def _force(  # type: ignore[no-untyped-def]
    quads, start, using, allowed, y, bound, root, sign, queue
):
    """Signs (m,) that follow from +1 for `root`; how many there are."""
    sign[:] = 0
    sign[root] = 1
    queue[0] = root
    head, size = 0, 1
    while head < size:
        r = queue[head]
        head += 1
        for t in range(start[r], start[r + 1]):
            q = using[t]
            known, bits = 0, 0
            for i in range(4):
                s = sign[quads[q, i]]
                if s != 0:
                    known |= 1 << i
                    if s < 0:
                        bits |= 1 << i
            if known == 15:
                continue
            rest = allowed[q] & FITTING[known, bits]
            if rest == 0:
                continue  # no choice is left: this is no relation
            for i in range(4):
                u = quads[q, i]
                if (
                    sign[u] == 0
                    and y[u] > bound
                    and (rest & MINUS[i] == 0 or rest & MINUS[i] == rest)
                ):
                    sign[u] = -1 if rest & MINUS[i] else 1
                    queue[size] = u
                    size += 1
    return size
