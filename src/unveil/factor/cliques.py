"""Which private vectors does every encoding use? From sparse overlaps of many encodings, a few of
them wrong.

The encodings that use one vector overlap pairwise: a clique of about mk/n rows in the graph of
overlaps. Two encodings that share nothing, or that are joined by a wrong entry, have next to no
common neighbours. So cliques are found locally:

  seed     at a row with fewer than k columns: among its neighbours that share no column with it yet take the one with most
           of the others as neighbours; the two and what they have in common are the seed
  grow     C ← the rows that neighbour at least half as much of C as the members of C do on average
  refine   every row takes the k columns that most exceed half of the overlaps a member has; entries count with their
           confidence; to a fixed point. Columns that are much less dense than most are two vectors
           in one, or nothing: they are dropped
  again    seeding goes on in what is not explained, for smaller and smaller cliques: with k = 2 the encodings ab, bc, ca are
           a clique as well, and are told apart from a vector by the larger cliques of a, b and c,
           which come first

The number of vectors is not needed. Rows for which fewer than k columns are found keep −1 in the
free places. Cost: a constant number of passes over the overlaps, each k lookups per entry; for each
vector the square of a row's overlaps. Memory: a copy of the overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Overlaps

TRUSTED = 0.5
"""Entries at least this likely to be right take part."""
LOOSE = 0.6
"""Columns whose members overlap less often than this share of the median are not cliques."""


@dataclass(frozen=True, eq=False)
class Subsets:
    """members (m, k): the columns of each row, −1 in free places, which come last; columns: how
    many there are."""

    members: NDArray[np.int64]
    columns: int

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Rows all of whose k columns are found."""
        return np.asarray(self.members[:, -1] >= 0)


def find_cliques(overlaps: Overlaps, *, rounds: int = 3) -> Subsets:
    """The columns of every row, from the largest cliques to pairs."""
    k, m = overlaps.k_private, overlaps.m
    graph, single = _graph(overlaps)
    # A row's overlaps sum to those with its k cliques.
    expected = max(2.0, graph.nnz / max(1, m) / k)
    members = np.full((m, k), -1, np.int64)
    columns = 0
    for turn in range(rounds):
        for least in sorted(
            {max(2, int(expected / 2)), max(2, int(expected / 4)), 3, 2}, reverse=True
        ):
            if turn == 0 and least == 2:  # pairs only once the rest is in order
                continue
            columns = int(_seed(graph.indptr, graph.indices, single, members, columns, least))
        members, columns = _refine(graph, members, columns)
    return Subsets(members, columns)


def _graph(overlaps: Overlaps) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
    """Confidence of every trusted entry off the diagonal, and which of them are 1."""
    matrix = overlaps.matrix
    weight = np.ones(matrix.nnz, np.float32) if overlaps.confidence is None else overlaps.confidence
    row = np.repeat(np.arange(overlaps.m, dtype=matrix.indices.dtype), np.diff(matrix.indptr))
    keep = (weight >= TRUSTED) & (row != matrix.indices)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[keep], minlength=overlaps.m))])
    return sparse.csr_array(
        (weight[keep], matrix.indices[keep], indptr), shape=matrix.shape
    ), matrix.data[keep] == 1


def _refine(
    graph: sparse.csr_array, members: NDArray[np.int64], columns: int, steps: int = 8
) -> tuple[NDArray[np.int64], int]:
    """Every row takes its best columns until nothing changes; copies are merged, columns of fewer
    than two rows dropped."""
    for _ in range(steps):
        within, size = _within(graph.indptr, graph.indices, graph.data, members, columns)
        # The median over members, not over columns: noise makes many small cliques.
        typical = np.median(within[members[members >= 0]]) if columns else 0.0
        within[within < LOOSE * typical] = np.inf
        new = _take_best(graph.indptr, graph.indices, graph.data, members, within, size)
        done = np.array_equal(np.sort(new, axis=1), np.sort(members, axis=1))
        members, columns = _renamed(_merged(new, columns), columns)
        if done:
            break
    return members, columns


def _merged(members: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    """One name for columns that share more than half of the smaller one, where that is more than
    chance (4 rows or more)."""
    m = len(members)
    row, place = np.nonzero(members >= 0)
    W = sparse.csr_array(
        (np.ones(len(row), np.int32), (row, members[row, place])), shape=(m, columns)
    )
    shared = sparse.triu(W.T @ W, 1).tocoo()
    size = np.bincount(members[row, place], minlength=columns)
    alike = shared.data > 0.5 * np.minimum(size[shared.row], size[shared.col])
    alike &= shared.data >= 4
    if not alike.any():
        return members
    name = np.arange(columns)
    for i, j in zip(shared.row[alike], shared.col[alike], strict=True):
        name[name == name[j]] = name[i]
    out = np.where(members >= 0, name[members], -1)
    out = -np.sort(-out, axis=1)
    out[:, 1:][(out[:, 1:] == out[:, :-1])] = -1
    return out


def _renamed(members: NDArray[np.int64], columns: int) -> tuple[NDArray[np.int64], int]:
    """Columns of two rows or more are numbered again; free places last."""
    size = np.bincount(members[members >= 0], minlength=columns)
    name = np.full(columns + 1, -1, np.int64)
    kept = np.flatnonzero(size >= 2)
    name[kept] = np.arange(len(kept))
    return -np.sort(-name[members], axis=1), len(kept)


@njit(cache=True, nogil=True)
def _share(members, i, j):  # type: ignore[no-untyped-def]
    for p in range(members.shape[1]):
        c = members[i, p]
        if c < 0:
            break
        for q in range(members.shape[1]):
            if members[j, q] == c:
                return True
    return False


@njit(cache=True, nogil=True)
def _seed(indptr, indices, single, members, columns, least):  # type: ignore[no-untyped-def]
    """Cliques of `least` rows or more from all rows in turn; members in place (free places last);
    the number of columns."""
    m, k = members.shape
    filled = np.zeros(m, np.int64)
    for i in range(m):
        while filled[i] < k and members[i, filled[i]] >= 0:
            filled[i] += 1
    stamp = np.full(m, -1, np.int64)
    hits = np.zeros(m, np.int64)
    touched = np.empty(m, np.int64)
    clique = np.empty(m, np.int64)
    near = np.empty(m, np.int64)
    turn = 0
    for i in range(m):
        while filled[i] < k:
            # 1. neighbours that no column explains
            turn += 1
            count = 0
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                if filled[j] < k and not _share(members, i, j):
                    near[count] = j
                    stamp[j] = turn
                    count += 1
            if count + 1 < least:
                break
            # 2. the one that has most others as neighbours; with it, what they have in common. Rows
            # that share two vectors have the cliques of both in common.
            best, most = -1, -1
            for t in range(indptr[i], indptr[i + 1]):
                j = indices[t]
                if stamp[j] != turn or not single[t]:
                    continue
                degree = 0
                for q in range(indptr[j], indptr[j + 1]):
                    degree += stamp[indices[q]] == turn
                if degree > most:
                    best, most = j, degree
            if best < 0:
                break
            size = 2
            clique[0], clique[1] = i, best
            for q in range(indptr[best], indptr[best + 1]):
                if stamp[indices[q]] == turn:
                    clique[size] = indices[q]
                    size += 1
            # 3. grow: rows with at least half the neighbours in the clique that its members have on
            # average
            for _ in range(4):
                reached = 0
                for t in range(size):
                    c = clique[t]
                    for q in range(indptr[c], indptr[c + 1]):
                        j = indices[q]
                        if hits[j] == 0:
                            touched[reached] = j
                            reached += 1
                        hits[j] += 1
                inside = 0
                for t in range(size):
                    inside += hits[clique[t]]
                bound = 0.5 * inside / size
                turn += 1
                for t in range(size):
                    stamp[clique[t]] = turn
                grown = 0
                changed = False
                for t in range(reached):
                    j = touched[t]
                    # A member does not neighbour itself.
                    if hits[j] + (stamp[j] == turn) > bound + 0.5 and (
                        filled[j] < k or stamp[j] == turn
                    ):
                        near[grown] = j
                        grown += 1
                        changed |= stamp[j] != turn
                    hits[j] = 0
                changed |= grown != size
                size = grown
                for t in range(size):
                    clique[t] = near[t]
                if not changed:
                    break
            # 4. accept it as a column
            has = False
            for t in range(size):
                has |= clique[t] == i
            if size < least or not has:
                break
            for t in range(size):
                j = clique[t]
                members[j, filled[j]] = columns
                filled[j] += 1
            columns += 1
    return columns


@njit(cache=True, nogil=True)
def _within(indptr, indices, weight, members, columns):  # type: ignore[no-untyped-def]
    """For each column: the mean weight that its members have with each other, and its size."""
    m, k = members.shape
    total = np.zeros(columns)
    size = np.zeros(columns, np.int64)
    for i in range(m):
        for p in range(k):
            if members[i, p] >= 0:
                size[members[i, p]] += 1
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            for p in range(k):
                c = members[i, p]
                if c < 0:
                    break
                for q in range(k):
                    if members[j, q] == c:
                        total[c] += weight[t]
    return total / np.maximum(size * (size - 1), 1), size


@njit(cache=True, nogil=True)
def _take_best(indptr, indices, weight, members, within, size):  # type: ignore[no-untyped-def]
    """The k columns by which the weight of a row most exceeds half of what their members have:
    where two fit, the larger."""
    m, k = members.shape
    out = np.full((m, k), -1, np.int64)
    total = np.zeros(len(size))
    touched = np.empty(len(size), np.int64)
    score = np.empty(k)
    for i in range(m):
        reached = 0
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            for q in range(k):
                c = members[j, q]
                if c < 0:
                    break
                if total[c] == 0:
                    touched[reached] = c
                    reached += 1
                total[c] += weight[t]
        score[:] = 0
        for t in range(reached):
            c = touched[t]
            own = 0
            for p in range(k):
                own += members[i, p] == c
            gain = total[c] - 0.5 * within[c] * max(1, size[c] - own)
            total[c] = 0
            if gain <= 0:
                continue
            # Insertion among the k best; the lower name wins where two are equal.
            p = k - 1
            if not (gain > score[p] or (gain == score[p] and c < out[i, p])):
                continue
            while p > 0 and (gain > score[p - 1] or (gain == score[p - 1] and c < out[i, p - 1])):
                score[p], out[i, p] = score[p - 1], out[i, p - 1]
                p -= 1
            score[p], out[i, p] = gain, c
    return out
