"""k = 2, many encodings: memberships from overlaps that can be read one by one.

The encodings that mix one record overlap pairwise: a clique of about 2m/n rows in the sparse graph
of overlaps, which is a line graph but for some wrong entries. Two rows that share a record have its
whole clique as common neighbours; two that are joined by a wrong entry have next to none. So a
clique is found at any of its rows:

    seed    among the neighbours of a row that share no record with it yet, take the one with most
            of the others as neighbours; these two and their common neighbours
    grow    rows that neighbour at least half of the clique, and have a place free

Large cliques come first: ab, bc and ca are a clique as well. What is left over, doubled or wrong is
put right by exact equations: values are peeled on a few columns, rows that hold at hardly any of
them are dropped, and `leftovers` does the rest.

Cost: for each record the square of a row's overlaps. Nothing is m×m or n×n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from unveil.encodings import Encodings
from unveil.exact.problem import Claim, Indices, Problem
from unveil.exact.values import evidence, gather, peel_pairs, solve_values
from unveil.paper import gram_extract
from unveil.records import Overlaps
from unveil.scheme import Scheme


def recover_sparse(
    problem: Problem,
    *,
    overlaps: Overlaps | None = None,
    rng: np.random.Generator,
    trusted: float = 0.5,
    columns: int = 64,
    slack: float = 16.0,
    deadline: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    memory_limit: int | None = None,
) -> Claim:
    """Records of many encodings of two records each, whose overlaps can be read.

    overlaps : of the encodings, where they are known; None: `gram_extract` without a public part.
    trusted : entries at least this likely to be right take part.
    columns : on which rows are checked before all values are solved.
    slack : how far a row may miss there, in units of `problem.step`.
    """
    if overlaps is None:
        overlaps = gram_extract(
            Encodings(problem.y, Scheme(2)), memory_limit=memory_limit, progress=progress
        )
    members, n = find_cliques(overlaps, trusted)
    whole = np.flatnonzero((members >= 0).all(axis=1) & (members[:, 0] != members[:, 1]))
    whole = whole[evidence(members[whole])]
    if len(whole) < 5:
        return Claim.nothing(problem, "overlaps that cannot be read")
    some = rng.permutation(problem.d)[:columns]
    part = problem.columns(some).rows(whole)
    near = slack * part.step
    x = peel_pairs(part, members[whole], n, near, rng, enough=0.5)
    total = gather(members[whole], x)
    miss = np.abs(np.abs(total if part.c is None else total + part.c) - part.y)
    good = (miss <= near).mean(axis=1) > 0.5
    names = np.full((problem.m, 2), -1)
    names[whole[good]] = members[whole[good]]
    if not good.any():
        return Claim.nothing(problem, "overlaps that cannot be read")
    return solve_values(
        problem,
        names,
        rng=rng,
        deadline=deadline,
        progress=progress,
        memory_limit=memory_limit,
    )


def find_cliques(overlaps: Overlaps, trusted: float = 0.5) -> tuple[Indices, int]:
    """members (m, 2), −1 where a place is free, and how many records there are."""
    matrix = overlaps.matrix
    m = overlaps.m
    row = np.repeat(np.arange(m), np.diff(matrix.indptr))
    keep = row != matrix.indices
    if overlaps.confidence is not None:
        keep &= overlaps.confidence >= trusted
    indptr = np.append(0, np.cumsum(np.bincount(row[keep], minlength=m)))
    indices = matrix.indices[keep].astype(np.int64)
    members = np.full((m, 2), -1)
    expected = max(2.0, len(indices) / max(1, m) / 2)
    n = 0
    for least in sorted({max(3, int(expected / 2)), max(3, int(expected / 4)), 3}, reverse=True):
        n = int(_seed(indptr, indices, members, n, least))
    return members, n


@njit(cache=True, nogil=True)
def _seed(indptr, indices, members, n, least):  # type: ignore[no-untyped-def]
    """Cliques of `least` rows or more, from all rows in turn; members in place, and n."""
    m = len(members)
    stamp = np.full(m, -1, np.int64)
    hits = np.zeros(m, np.int64)
    clique, reached = np.empty(m, np.int64), np.empty(m, np.int64)
    turn = 0
    for i in range(m):
        for _ in range(2):
            if members[i, 1] >= 0:
                break
            # 1. Neighbours with a place free that share no record with this row yet.
            turn += 1
            near = 0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                share = members[i, 0] >= 0 and (
                    members[j, 0] == members[i, 0] or members[j, 1] == members[i, 0]
                )
                if members[j, 1] < 0 and not share:
                    stamp[j] = turn
                    near += 1
            if near + 1 < least:
                break
            # 2. The one with most of the others as neighbours, and what they have in common.
            best, most = -1, 0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                if stamp[j] == turn:
                    degree = 0
                    for s in range(indptr[j], indptr[j + 1]):
                        degree += stamp[indices[s]] == turn
                    if degree > most:
                        best, most = j, degree
            if best < 0:
                break
            clique[0], clique[1], size = i, best, 2
            for s in range(indptr[best], indptr[best + 1]):
                if stamp[indices[s]] == turn:
                    clique[size] = indices[s]
                    size += 1
            # 3. Rows that neighbour at least half of them; a row does not neighbour itself.
            for _again in range(2):
                count = 0
                for t in range(size):
                    c = clique[t]
                    for s in range(indptr[c], indptr[c + 1]):
                        j = indices[s]
                        if hits[j] == 0:
                            reached[count] = j
                            count += 1
                        hits[j] += 1
                grown = 0
                for t in range(count):
                    j = reached[t]
                    if 2 * hits[j] >= size - 1 and hits[j] > 1 and members[j, 1] < 0:
                        clique[grown] = j
                        grown += 1
                    hits[j] = 0
                size = grown
            inside = False
            for t in range(size):
                inside |= clique[t] == i
            if size < least or not inside:
                break
            for t in range(size):
                j = clique[t]
                members[j, 0 if members[j, 0] < 0 else 1] = n
            n += 1
    return n
