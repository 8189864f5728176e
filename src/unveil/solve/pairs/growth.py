"""Which pairs are right? Grow a solution on a few hundred pixels from one core, and believe nothing
that does not fit.

Subsets read from overlaps have some wrong rows, and a solver that trusts them all carries one error
everywhere. Here a vertex joins only when two of its encodings agree on its value at nearly all
pixels, which wrong ones never do by chance; an encoding is *right* when both of its vectors are
known and reproduce it. Around that:

  1 grow    from a core that fits, through vertices with two known neighbours that agree, then
            along ears that fit
  2 merge   columns with the same values are one vector
  3 search  an encoding that is not explained is held against all known vectors: a matched filter
            on y² and x² names the likeliest members, and for each of them every partner is tried,
            until a few pixels rule it out
  4 add     two unexplained encodings miss the same vector when ±y_i − x_a and ±y_j − x_b agree at
            nearly all pixels; a and b are again what the matched filter names

What "fits" means is `model.GROWTH`. k_private = 2. Cost: growing is a few operations per encoding
and pixel; searching n·d' + 4n·(a dozen) per unexplained encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from unveil.records import Progress
from unveil.solve.model import GROWTH, rms
from unveil.solve.pairs.pair_graph import (
    Index,
    PairGraph,
    Sums,
    find_core,
    find_ears,
    pair_graph,
    solve_core,
    solve_ear,
    triangles,
)
from unveil.solve.pairs.peeling import sums

SHARE = GROWTH.share
ROUNDS = 8
"""Of growing, merging, searching and adding; it ends by itself where nothing changes."""
CORES = 40
"""Cores tried until one leads to more than half of the vectors."""
EARS = 64
"""Ears looked at before what they add is spread further."""
PROBE, PROBES = 6, 30
"""Columns are compared where they are neighbours on one of some handfuls of so many pixels: chance
spoils few pixels, so that two equal columns agree on one handful at least."""
BRIGHTEST = 5
"""Squares beyond so many times their mean count no more: a few bright pixels would outweigh all."""
BLOCK = 1024
"""Encodings at a time: n times as many numbers."""
LEADS = 4
"""Likely members tried for each unexplained encoding."""
MOST = 4000
"""Unexplained encodings compared with each other at most; more of them mean that something else is
wrong."""


@dataclass(frozen=True, eq=False)
class Growth:
    """members (m, 2), −1 where not known; right (m,): rows reproduced by known vectors; columns:
    names in use."""

    members: Index
    right: NDArray[np.bool_]
    columns: int
    rounds: int


def grow_pairs(
    magnitudes: NDArray[np.float32],
    a: float,
    members: Index,
    columns: int,
    rng: np.random.Generator,
    *,
    offsets: NDArray[np.float32] | None = None,
    progress: Progress | None = None,
) -> Growth:
    """Grow, merge, search and add until nothing changes; `magnitudes` (m, p) on the pixels to use,
    `offsets` the public part of the encodings there."""
    hi, lo = sums(magnitudes, offsets, a)
    near = GROWTH.near * rms(magnitudes) / a
    m = len(members)
    right = np.zeros(m, bool)
    turn = 0
    while turn < ROUNDS:
        turn += 1
        # 1–2. Grow and merge.
        merged, right, x, known = right_pairs(hi, lo, members, columns, near, rng)
        changed = not np.array_equal(merged, members)
        members = merged
        if progress:
            progress("settling pairs", int(right.sum()), m)
        left = np.flatnonzero(~right)
        if not len(left) or known.sum() < 4:
            break
        # 3. Search the pair of each row that is left.
        names = np.flatnonzero(known)
        if offsets is None:
            leads = names[likely_members(hi[left], x[names], LEADS)]
        else:
            leads = names[likely_beside(hi[left], lo[left], x[names], LEADS)]
        found = np.empty((len(left), 2), np.int64)
        _search(hi[left], lo[left], x, names, leads, near, SHARE, found)
        hit = found[:, 0] >= 0
        members = members.copy()
        members[left[hit]] = found[hit]
        left, leads = left[~hit], leads[~hit]
        # 4. Add vectors that two of them miss.
        new = 0
        if 2 <= len(left) <= MOST:
            theirs, new = _add(hi[left], lo[left], x, leads, near, columns)
            fresh = theirs[:, 0] >= 0
            # Rows that a new vector joins may have had a column of their own for it: the growth
            # finds out which is right.
            members[left[fresh]] = theirs[fresh]
            columns += new
        if not (hit.any() or new or changed):
            break
    return Growth(members, right, columns, turn)


def near_sums(hi: Sums) -> float:
    """What counts as the same value, for encodings whose sums are `hi` or lower."""
    return GROWTH.near * rms(hi)


def right_pairs(
    hi: Sums, lo: Sums, members: Index, columns: int, near: float, rng: np.random.Generator
) -> tuple[Index, NDArray[np.bool_], Sums, NDArray[np.bool_]]:
    """(members once equal columns are one, which rows are right, x, which columns of x are
    known)."""
    x, known = grow(hi, lo, members, columns, near, rng)
    merged = merge_equal(x, known, members, near)
    merged[merged[:, 0] == merged[:, 1]] = -1  # a vector with itself is no pair
    return merged, _right(hi, lo, x, known, merged, near), x, known


def grow(
    hi: Sums,
    lo: Sums,
    members: Index,
    columns: int,
    near: float,
    rng: np.random.Generator,
) -> tuple[Sums, NDArray[np.bool_]]:
    """x (columns, pixels) and which columns are known: the best of the first cores that lead
    anywhere."""
    graph = pair_graph(members, columns, np.asarray((members >= 0).all(axis=1)))
    found = triangles(graph)
    best: tuple[Sums, NDArray[np.bool_]] = np.zeros((columns, hi.shape[1])), np.zeros(columns, bool)
    used = int((graph.degree >= 2).sum())
    for start in rng.permutation(len(found))[:CORES]:
        core = find_core(graph, found, int(start))
        if core is None or best[1][core.first].all():  # it would lead to the same place
            continue
        vertices, values, misfit = solve_core(graph, core, hi, lo)
        if (misfit < near).mean() < SHARE:
            continue
        x, known = np.zeros_like(best[0]), np.zeros(columns, bool)
        x[vertices], known[vertices] = values, True
        _grow_on(graph, hi, lo, x, known, near)
        if known.sum() > best[1].sum():
            best = x, known
        if 2 * best[1].sum() > used:
            break
    return best


def _grow_on(
    graph: PairGraph, hi: Sums, lo: Sums, x: Sums, known: NDArray[np.bool_], near: float
) -> None:
    """From what is known, in place."""
    banned = np.zeros(len(hi), bool)
    while True:
        _spread(graph.indptr, graph.neighbour, graph.row, hi, lo, x, known, near, SHARE)
        ears = find_ears(graph, known, banned, EARS)
        if not ears:
            return
        for ear in ears:
            values, misfit, _ = solve_ear(ear, x, hi, lo, near)
            if (misfit < near).mean() >= SHARE:
                x[ear.vertices[1:-1]], known[ear.vertices[1:-1]] = values, True
                break
            banned[ear.rows[1 : len(ear.rows) - 1]] = True


def _right(
    hi: Sums, lo: Sums, x: Sums, known: NDArray[np.bool_], members: Index, near: float
) -> NDArray[np.bool_]:
    """Rows that their members reproduce."""
    out = np.zeros(len(members), bool)
    _fits(hi, lo, x, known, members, near, SHARE, out)
    return out


def merge_equal(
    x: NDArray[np.floating[Any]], known: NDArray[np.bool_], members: Index, near: float
) -> Index:
    """Columns with equal values at nearly all pixels get one name."""
    names = np.flatnonzero(known)
    name = np.arange(len(x))
    for s in range(0, max(1, min(x.shape[1] - PROBE + 1, PROBES)), PROBE):
        close = sorted(cKDTree(x[names, s : s + PROBE]).query_pairs(3 * near))
        for i, j in names[np.array(close, dtype=np.int64).reshape(-1, 2)]:
            if name[i] != name[j] and (np.abs(x[i] - x[j]) < near).mean() >= SHARE:
                name[name == max(name[i], name[j])] = min(name[i], name[j])
    return np.where(members >= 0, name[members], -1)


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
        likeness = feature(y[s : s + BLOCK]) @ vectors.T
        out[s : s + BLOCK] = np.argpartition(-likeness, most - 1, axis=1)[:, :most]
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
        out[rows] = np.argpartition(-likeness, most - 1, axis=1)[:, :most]
    return out


def _add(hi: Sums, lo: Sums, x: Sums, leads: Index, near: float, columns: int) -> tuple[Index, int]:
    """(members of the rows that share a new vector, −1 for others; how many new ones), by pairs of
    unexplained rows."""
    members = np.full((len(hi), 2), -1, np.int64)
    return members, int(_shared_missing(hi, lo, x, leads, near, SHARE, columns, members))


@njit(cache=True, nogil=True)
def _spread(indptr, neighbour, row, hi, lo, x, known, near, share):  # type: ignore[no-untyped-def]
    """Vertices with two known neighbours that agree, until there are none; x and known in place."""
    n, pixels = x.shape
    need = share * pixels
    # 1. A queue of vertices with two known neighbours.
    queue = np.empty(indptr[n] + n, np.int64)
    count = np.zeros(n, np.int64)
    tail = 0
    for v in range(n):
        if not known[v]:
            for t in range(indptr[v], indptr[v + 1]):
                count[v] += known[neighbour[t]]
            if count[v] >= 2:
                queue[tail] = v
                tail += 1
    head = 0
    agrees = np.zeros(n + 1, np.bool_)
    while head < tail:
        v = queue[head]
        head += 1
        if known[v]:
            continue
        # 2. Each known neighbour a allows two values of v at a pixel; which other neighbours b
        # agree with one of them at nearly all pixels?
        s, e = indptr[v], indptr[v + 1]
        found = False
        for r in range(s, e):
            a, i = neighbour[r], row[r]
            if not known[a]:
                continue
            for t in range(s, e):
                agrees[t - s] = False
                b, j = neighbour[t], row[t]
                if not known[b] or t == r:
                    continue
                fits, missed = 0, 0
                for p in range(pixels):
                    u, w = hi[i, p] - x[a, p] + x[b, p], lo[i, p] - x[a, p] + x[b, p]
                    close = min(
                        min(abs(u - hi[j, p]), abs(u - lo[j, p])),
                        min(abs(w - hi[j, p]), abs(w - lo[j, p])),
                    )
                    if close < near:
                        fits += 1
                    else:
                        missed += 1
                        if missed > pixels - need:
                            break
                agrees[t - s] = fits >= need
                found |= agrees[t - s]
            if found:
                # 3. The value that fits those better; one outlier counts a hundred times `near` at
                # most.
                for p in range(pixels):
                    one = two = 0.0
                    for t in range(s, e):
                        if agrees[t - s]:
                            b, j = neighbour[t], row[t]
                            u, w = hi[i, p] - x[a, p] + x[b, p], lo[i, p] - x[a, p] + x[b, p]
                            one += min(min(abs(u - hi[j, p]), abs(u - lo[j, p])), 100 * near)
                            two += min(min(abs(w - hi[j, p]), abs(w - lo[j, p])), 100 * near)
                    x[v, p] = (hi[i, p] if one <= two else lo[i, p]) - x[a, p]
                break
        # 4. Its neighbours may now have two known ones.
        if found:
            known[v] = True
            for t in range(s, e):
                u = neighbour[t]
                if not known[u]:
                    count[u] += 1
                    if count[u] >= 2:
                        queue[tail] = u
                        tail += 1


@njit(cache=True, nogil=True)
def _pair_fits(hi, lo, x, i, a, b, near, allowed):  # type: ignore[no-untyped-def]
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
def _fits(hi, lo, x, known, members, near, share, out):  # type: ignore[no-untyped-def]
    """out (rows,): both members are known, and reproduce the row."""
    allowed = (1 - share) * x.shape[1]
    for i in range(len(members)):
        a, b = members[i, 0], members[i, 1]
        out[i] = (
            a >= 0
            and b >= 0
            and known[a]
            and known[b]
            and _pair_fits(hi, lo, x, i, a, b, near, allowed)
        )


@njit(cache=True, nogil=True)
def _search(hi, lo, x, names, leads, near, share, found):  # type: ignore[no-untyped-def]
    """The pair of known vectors that reproduces each row, one of them among its leads; −1 where
    there is none."""
    allowed = (1 - share) * x.shape[1]
    for i in range(len(hi)):
        found[i] = -1
        for a in leads[i]:
            for b in names:
                if a != b and _pair_fits(hi, lo, x, i, a, b, near, allowed):
                    found[i, 0], found[i, 1] = a, b
                    break
            if found[i, 0] >= 0:
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
