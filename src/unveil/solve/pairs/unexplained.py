"""Encodings that nobody explains yet, held against the pairs of vectors that are known.

A matched filter on y² and x² names the likeliest members of an encoding. Then two questions:

  search  is it the sum of one of these and of any other known vector? A few pixels rule out nearly
          every partner
  add     do two encodings miss the same vector? They do when ±y_i − x_a and ±y_j − x_b agree at
          nearly all pixels, a and b being what the filter names

k_private = 2; what "fits" means is `model.GROWTH`. Cost: n·d' + 4n·(a dozen) per encoding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.solve.model import GROWTH
from unveil.solve.pairs.pair_graph import (
    Index,
    Sums,
)

BRIGHTEST = 5
"""Squares beyond so many times their mean count no more: a few bright pixels would outweigh all."""
BLOCK = 1024
"""Encodings at a time: n times as many numbers."""
LEADS = 4
"""Likely members tried for each unexplained encoding."""
FIRST = 8
"""Pixels that rule out a partner where it misses all of them: a right one misses one in ten."""
MOST = 4000
"""Unexplained encodings compared with each other at most; more of them mean that something else is
wrong."""


def likely_members(y: NDArray[np.floating[Any]], x: NDArray[np.floating[Any]], most: int) -> Index:
    """(rows, most): the vectors whose squares follow y² most closely, as positions in x."""

    def feature(v: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        square = v**2
        mean = np.maximum(square.mean(axis=1, keepdims=True), 1e-30)
        square = np.minimum(square / mean, BRIGHTEST)
        return np.asarray(square - square.mean(axis=1, keepdims=True), dtype=np.float32)

    vectors = feature(x)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    out = np.empty((len(y), most), np.int64)
    for s in range(0, len(y), BLOCK):
        _largest(feature(y[s : s + BLOCK]) @ vectors.T, out[s : s + BLOCK])
    return out


def likely_beside(hi: Sums, lo: Sums, x: Sums, most: int) -> Index:
    """`likely_members` where a public part c is known: y² − c² = q² + 2cq for a private part q, so
    that a member x of it shows in x² and, with its sign, in 2cx. In sums, y² − c² = −hi·lo and
    2c = −(hi + lo)."""
    squares = np.asarray(x**2 - (x**2).mean(axis=1, keepdims=True), dtype=np.float32)
    vectors, out = np.asarray(x, dtype=np.float32), np.empty((len(hi), most), np.int64)
    for s in range(0, len(hi), BLOCK):
        rows = slice(s, s + BLOCK)
        above = -hi[rows] * lo[rows]
        top = BRIGHTEST * np.abs(above).mean(axis=1, keepdims=True)
        above = np.clip(above, -top, top)
        with_sign = np.asarray(-above * (hi[rows] + lo[rows]), dtype=np.float32)
        likeness = with_sign @ vectors.T + np.asarray(above, dtype=np.float32) @ squares.T
        _largest(likeness, out[rows])
    return out


def search_pairs(hi: Sums, lo: Sums, x: Sums, names: Index, leads: Index, near: float) -> Index:
    """(rows, 2): the two of the known vectors `names` that reproduce each row, one of them among
    its leads; −1 where there are none."""
    found = np.empty((len(hi), 2), np.int64)
    _search(hi, lo, x, names, leads, near, GROWTH.share, found)
    return found


def add_missing(
    hi: Sums, lo: Sums, x: Sums, leads: Index, near: float, columns: int
) -> tuple[Index, int]:
    """(members of the rows that share a new vector, −1 for others; how many new ones), by pairs of
    unexplained rows."""
    members = np.full((len(hi), 2), -1, np.int64)
    return members, int(_shared_missing(hi, lo, x, leads, near, GROWTH.share, columns, members))


@njit(cache=True, nogil=True)
def pair_fits(hi, lo, x, i, a, b, near, allowed):  # type: ignore[no-untyped-def]
    """Whether x_a + x_b is one of row i's two sums, at all but `allowed` pixels."""
    missed = 0
    for p in range(x.shape[1]):
        total = x[a, p] + x[b, p]
        if min(abs(total - hi[i, p]), abs(total - lo[i, p])) >= near:
            missed += 1
            if missed > allowed:
                return False
    return True


@njit(cache=True, nogil=True)
def _begins(hi, lo, x, i, a, b, near):  # type: ignore[no-untyped-def]
    """Whether x_a + x_b is one of row i's two sums at one of the first pixels at least."""
    for p in range(min(FIRST, x.shape[1])):
        total = x[a, p] + x[b, p]
        if min(abs(total - hi[i, p]), abs(total - lo[i, p])) < near:
            return True
    return False


@njit(cache=True, nogil=True)
def _largest(likeness, out):  # type: ignore[no-untyped-def]
    """Where the largest of each row are, best first; the first ones where they are equal."""
    most = out.shape[1]
    value = np.empty(most, likeness.dtype)
    for i in range(len(likeness)):
        value[:] = -np.inf
        out[i] = 0
        for j in range(likeness.shape[1]):
            if likeness[i, j] > value[most - 1]:
                c = most - 1
                while c > 0 and likeness[i, j] > value[c - 1]:
                    value[c], out[i, c] = value[c - 1], out[i, c - 1]
                    c -= 1
                value[c], out[i, c] = likeness[i, j], j


@njit(cache=True, nogil=True)
def _search(hi, lo, x, names, leads, near, share, found):  # type: ignore[no-untyped-def]
    """The pair of known vectors that reproduces each row, one of them among its leads; −1 where
    there is none."""
    allowed = (1 - share) * x.shape[1]
    for i in range(len(hi)):
        found[i] = -1
        # 1. Mostly both are among the leads.
        for q in range(leads.shape[1]):
            for c in range(q):
                a, b = leads[i, c], leads[i, q]
                if found[i, 0] < 0 and a != b and pair_fits(hi, lo, x, i, a, b, near, allowed):
                    found[i, 0], found[i, 1] = a, b
        # 2. Else one is, and the other is any.
        for a in leads[i]:
            if found[i, 0] >= 0:
                break
            for b in names:
                if (
                    a != b
                    and _begins(hi, lo, x, i, a, b, near)
                    and pair_fits(hi, lo, x, i, a, b, near, allowed)
                ):
                    found[i, 0], found[i, 1] = a, b
                    break


@njit(cache=True, nogil=True)
def _shared_missing(  # type: ignore[no-untyped-def]
    hi, lo, x, leads, near, share, columns, members
):
    """Rows i, j that agree on a missing vector given different leads a, b: members in place; the
    number of new columns."""
    pixels = x.shape[1]
    allowed = (1 - share) * pixels
    new = 0
    # 1. Pairs of rows, at least one of which has no members yet.
    for i in range(len(hi)):
        for j in range(i + 1, len(hi)):
            if members[i, 0] >= 0 and members[j, 0] >= 0:
                continue
            for a in leads[i]:
                if members[i, 0] >= 0 and members[i, 0] != a:
                    continue
                agreed = False
                for b in leads[j]:
                    if a == b or (members[j, 0] >= 0 and members[j, 0] != b):
                        continue
                    # 2. Without a and b, do both leave the same vector, at nearly all pixels?
                    missed = 0
                    for p in range(pixels):
                        u, w = hi[i, p] - x[a, p] + x[b, p], lo[i, p] - x[a, p] + x[b, p]
                        close = min(
                            min(abs(u - hi[j, p]), abs(u - lo[j, p])),
                            min(abs(w - hi[j, p]), abs(w - lo[j, p])),
                        )
                        if close >= near:
                            missed += 1
                            if missed > allowed:
                                break
                    # 3. A new vector for both, or the one that the other row has already.
                    if missed <= allowed:
                        if members[i, 0] < 0 and members[j, 0] < 0:
                            members[i, 0], members[i, 1] = a, columns + new
                            members[j, 0], members[j, 1] = b, columns + new
                            new += 1
                        elif members[i, 0] < 0:
                            members[i, 0], members[i, 1] = a, members[j, 1]
                        else:
                            members[j, 0], members[j, 1] = b, members[i, 1]
                        agreed = True
                        break
                if agreed:
                    break
    return new
