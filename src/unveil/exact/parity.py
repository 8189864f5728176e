"""Memberships from exact relations alone: any k, data of any distribution, any number of columns.

A relation u_a − u_b = u_c − u_e (`relations`) says that the multisets S_a + S_e and S_b + S_c are
the same. So every record is in an even number of the four encodings: modulo 2, with w_j ∈ {0, 1}^m
the column of W that belongs to record j,

    ⟨w_j, 1_{a,b,c,e}⟩ = 0   for every record j and every relation.

Where relations are many, these columns span all solutions: over the field of two elements the null
space of the relations is the code spanned by the columns of W, and by the vector of ones where k is
even. Its dimension is the number of records, and its lightest words are the columns themselves: the
sum of two of them has about twice their weight. No value, no sign and no statistic is used.

    1  R ← relations between encodings, each encoding in several of them
    2  a basis of the null space of R, by elimination on packed bits
    3  light words: in systematic form with respect to a random set of positions the rows of the
       basis that have a single record there (Prange 1962), repeated until nothing new is found
    4  the lightest independent words are the columns of W; rows with k of them are known

Relations need about n^(k/2) encodings. Cost: m³/64 operations for the elimination.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.exact.leftovers import complete
from unveil.exact.problem import Claim, Indices, Problem, Progress, late
from unveil.exact.relations import as_rows, difference_classes
from unveil.exact.values import solve_values

Bits = NDArray[np.bool_]


def recover_by_parity(
    problem: Problem,
    *,
    rng: np.random.Generator,
    columns: int = 64,
    each: int = 12,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """Records of encodings that have many relations, whatever their values look like.

    columns : on which relations are searched; a few continuous ones rule out chance.
    each : relations per encoding after which the search ends.
    """
    some = np.sort(rng.permutation(problem.d)[:columns])
    quads = find_quadruples(
        problem.columns(some), rng, each=each, deadline=deadline, progress=progress
    )
    members = members_by_parity(quads, problem.m, problem.k, rng)
    if members is None:
        return Claim.nothing(problem, "too few relations between the encodings")
    claim = solve_values(
        problem,
        members,
        rng=rng,
        deadline=deadline,
        progress=progress,
    )
    claim = complete(problem, claim, rng=rng, deadline=deadline, progress=progress)
    return Claim(claim.vectors, claim.members, claim.open, "relations between encodings")


def find_quadruples(
    part: Problem,
    rng: np.random.Generator,
    *,
    each: int,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Indices:
    """(q, 4) encodings of relations, until there are `each` of them per encoding."""
    rows = as_rows(part, rng)
    quads: list[Indices] = []
    for done, classes in difference_classes(rows, rng):
        quads += [np.append(pairs[0], other) for pairs in classes for other in pairs[1:]]
        if progress:
            progress("relations", int(100 * done), 100)
        if len(quads) >= each * part.m or late(deadline):
            break
    out = np.array(quads, dtype=np.int64).reshape(-1, 4)
    return out[(np.diff(np.sort(out, axis=1), axis=1) > 0).all(axis=1)]


def members_by_parity(
    quads: Indices,
    m: int,
    k: int,
    rng: np.random.Generator,
    *,
    fewest: int = 3,
    rounds: int = 400,
    share: float = 0.5,
) -> Indices | None:
    """(m, k) the records of every encoding, −1 where they are not known; None where relations are
    too few.

    fewest : relations that an encoding must be in: each one less leaves a spurious word.
    rounds : sets of positions tried for light words.
    share : of the encodings in use, which must end with exactly k records.
    """
    # 1. Encodings that are in enough relations.
    while len(quads):
        count = np.bincount(quads.ravel(), minlength=m)
        keep = (count[quads] >= fewest).all(axis=1)
        if keep.all():
            break
        quads = quads[keep]
    rows = np.unique(quads)
    if len(rows) < k + 2 or len(quads) < len(rows) / 2:
        return None
    # 2. The code.
    place = np.zeros(m, np.int64)
    place[rows] = np.arange(len(rows))
    basis = _null_space(place[quads], len(rows))
    n = len(basis)
    if not k < n < len(rows):
        return None
    # 3–4. Its lightest words; each record has about |rows|·k/n encodings.
    words = _light_words(basis, rng, rounds, 0.25 * len(rows) * k / n)
    chosen = _independent(words)
    if k % 2 == 0:
        # The columns of W sum to zero then: n − 1 of them are independent, and the last is their
        # sum. What is left of the code needs the vector of ones.
        chosen = chosen[: n - 1]
        chosen = np.vstack([chosen, chosen.sum(axis=0) % 2 == 1])
    whole = np.flatnonzero(chosen.sum(axis=0) == k)
    if len(whole) < share * len(rows):
        return None
    members = np.full((m, k), -1)
    members[rows[whole]] = np.nonzero(chosen[:, whole].T)[1].reshape(-1, k)
    return members


def _null_space(quads: Indices, m: int) -> Bits:
    """(n, m): a basis of the vectors with an even number of ones in each quadruple."""
    words = (m + 63) // 64
    pivot = np.zeros((m, words), np.uint64)
    used = np.zeros(m, np.bool_)
    _eliminate(quads, pivot, used)
    free = np.flatnonzero(~used)
    # Pivot rows are zero left of their pivot: solve from the last one upwards.
    out = np.zeros((len(free), m), bool)
    out[np.arange(len(free)), free] = True
    bits = np.unpackbits(pivot.view(np.uint8), axis=1, bitorder="little")[:, :m].astype(np.uint8)
    for p in np.flatnonzero(used)[::-1]:
        out[:, p] = (out[:, p + 1 :].astype(np.int64) @ bits[p, p + 1 :]) % 2 == 1
    return out


@njit(cache=True, nogil=True)
def _eliminate(quads, pivot, used):  # type: ignore[no-untyped-def]
    """Row echelon form of the relations in packed bits: pivot[p] has its first one at p."""
    words = pivot.shape[1]
    row = np.zeros(words, np.uint64)
    one = np.uint64(1)
    for r in range(len(quads)):
        row[:] = 0
        for q in range(4):
            i = quads[r, q]
            row[i >> 6] ^= one << np.uint64(i & 63)
        p = 0
        while p < len(used):
            if row[p >> 6] == 0:
                p = ((p >> 6) + 1) << 6
                continue
            if (row[p >> 6] >> np.uint64(p & 63)) & one:
                if not used[p]:
                    pivot[p] = row
                    used[p] = True
                    break
                for w in range(p >> 6, words):
                    row[w] ^= pivot[p, w]
            p += 1


def _light_words(
    basis: Bits, rng: np.random.Generator, rounds: int, least: float, *, patience: int = 60
) -> Bits:
    """Words of the code with at least `least` ones, sorted by weight: those that are rows of a
    basis in systematic form, for random positions; until `patience` rounds bring none among the 2n
    lightest."""
    n = len(basis)
    found: dict[bytes, Bits] = {}
    still = 0
    code = basis.copy()
    heaviest = np.inf
    for _ in range(rounds):
        code = _systematic(code, rng.permutation(code.shape[1]))
        fresh = False
        for word in code:
            weight = int(word.sum())
            key = np.packbits(word).tobytes()
            if least <= weight < heaviest and key not in found:
                found[key] = word.copy()
                fresh = True
        if len(found) >= 2 * n:
            weights = sorted(int(w.sum()) for w in found.values())
            heaviest = min(heaviest, weights[2 * n - 1] + 1)
        still = 0 if fresh else still + 1
        if still >= patience:
            break
    words = sorted(found.values(), key=lambda w: int(w.sum()))
    return np.array(words, dtype=bool).reshape(-1, basis.shape[1])


@njit(cache=True, nogil=True)
def _systematic(code, order):  # type: ignore[no-untyped-def]
    """The same code with a unit matrix at the first positions of `order` that allow it."""
    code = code.copy()
    done = 0
    for p in order:
        at = -1
        for r in range(done, len(code)):
            if code[r, p]:
                at = r
                break
        if at < 0:
            continue
        for t in range(code.shape[1]):
            code[at, t], code[done, t] = code[done, t], code[at, t]
        for r in range(len(code)):
            if r != done and code[r, p]:
                for t in range(code.shape[1]):
                    code[r, t] ^= code[done, t]
        done += 1
        if done == len(code):
            break
    return code


@njit(cache=True, nogil=True)
def _independent(words):  # type: ignore[no-untyped-def]
    """The first words that are independent of those before them."""
    reduced = words.copy()
    keep = np.zeros(len(words), np.bool_)
    lead = np.full(words.shape[1], -1, np.int64)
    for r in range(len(words)):
        for p in range(words.shape[1]):
            if reduced[r, p]:
                if lead[p] < 0:
                    lead[p] = r
                    keep[r] = True
                    break
                for t in range(words.shape[1]):
                    reduced[r, t] ^= reduced[lead[p], t]
    return words[keep]
