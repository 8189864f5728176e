"""Which pairs are right? Grow a solution on a few hundred pixels from one core, and believe nothing
that does not fit.

Subsets read from overlaps have some wrong rows, and a solver that trusts them all carries one error
everywhere. Here a vertex joins only when two of its encodings agree on its value at nearly all
pixels, which wrong ones never do by chance; an encoding is *right* when both of its vectors are
known and reproduce it. Around that:

  1 grow    from a core that fits, through vertices with two known neighbours that agree, then
            along ears that fit
  2 merge   columns with the same values are one vector
  3 search  an encoding that is not explained is held against all known vectors
  4 add     vectors that two unexplained encodings miss (both: `solve.pairs.unexplained`)

What "fits" means is `model.GROWTH`. k_private = 2. Cost: growing is a few operations per encoding
and pixel.
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
from unveil.solve.pairs.unexplained import (
    LEADS,
    MOST,
    add_missing,
    likely_beside,
    likely_members,
    pair_fits,
    search_pairs,
)

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
        found = search_pairs(hi[left], lo[left], x, names, leads, near)
        hit = found[:, 0] >= 0
        members = members.copy()
        members[left[hit]] = found[hit]
        left, leads = left[~hit], leads[~hit]
        # 4. Add vectors that two of them miss.
        new = 0
        if 2 <= len(left) <= MOST:
            theirs, new = add_missing(hi[left], lo[left], x, leads, near, columns)
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
            and pair_fits(hi, lo, x, i, a, b, near, allowed)
        )
