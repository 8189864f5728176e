"""Similarities from exact relations, for data of any distribution and any k.

A relation u_a − u_b = u_c − u_e (`relations`) fixes the signs of its four encodings at every
column, up to one sign for all of them; which of them stand on which side changes signs of whole
rows only.
Along the graph of relations all encodings are signed, up to one sign per column, which is lost for
good, and one per row: |WX| has become Z = D·W·X with D = diag(±1). Statistics are not needed now:

    range(Z) = D·range(W)      if there are more columns than records,
    D·1 ∈ range(Z)             since all rows of W sum to k: a vector of ±1, found by reflections,
    W(WᵀW)⁻¹Wᵀ = D·UUᵀ·D       with U a basis of range(Z): large where encodings share a record,

whatever the records look like. It takes the place of S in the heat bath of `overlaps`.

Relations need about n^(k/2) encodings, and rank n more than n columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.exact.overlaps import Similarity, draw_members
from unveil.exact.problem import Claim, Indices, Problem
from unveil.exact.relations import as_rows, difference_classes
from unveil.exact.similarities import finish
from unveil.exact.values import late

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]


def recover_by_signs(
    problem: Problem,
    *,
    rng: np.random.Generator,
    columns: int = 400,
    sweeps: int = 100,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Claim:
    """Records of encodings that have many relations, whatever their values look like.

    columns : on which encodings are signed: those at which values agree by chance least often.
    sweeps : of the heat bath.
    """
    nothing = Claim.nothing(problem, "too few relations between the encodings")
    if problem.c is not None:
        return nothing
    some = np.sort(rng.permutation(problem.d)[:columns])
    part = problem.columns(some)
    quads = _quadruples(part, rng, deadline, progress)
    if len(quads) < problem.m:
        return nothing
    found = signed_similarity(part, quads, rng)
    if found is None:
        return nothing
    similar, rows = found
    members, certain = draw_members(
        similar, problem.k, similar.n, rng, sweeps=sweeps, spare=0.0, progress=progress
    )
    start = np.argsort(rng.random((problem.m, int(members.max()) + 1)), axis=1)[:, : problem.k]
    sure = np.zeros(problem.m)
    start[rows], sure[rows] = members, certain
    claim = finish(problem, start, sure, rng=rng, deadline=deadline, progress=progress)
    return Claim(claim.vectors, claim.members, claim.open, "relations that sign all encodings")


def _quadruples(
    part: Problem,
    rng: np.random.Generator,
    deadline: float | None,
    progress: Progress | None,
    *,
    enough: int = 12,
) -> Indices:
    """(q, 4) encodings of relations; `enough` of them for each encoding."""
    rows = as_rows(part, rng)
    quads: list[Indices] = []
    for done, classes in difference_classes(rows.at(rows.columns), rng):
        quads += [np.append(pairs[0], other) for pairs in classes for other in pairs[1:]]
        if progress:
            progress("relations", int(100 * done), 100)
        if len(quads) >= enough * part.m or late(deadline):
            break
    out = np.array(quads, dtype=np.int64).reshape(-1, 4)
    return out[(np.diff(np.sort(out, axis=1), axis=1) > 0).all(axis=1)]


def signed_similarity(
    part: Problem,
    quads: Indices,
    rng: np.random.Generator,
    *,
    passes: int = 30,
    most: float = 0.9,
    gap: float = 1e-4,
) -> tuple[Similarity, Indices] | None:
    """The similarity of encodings that relations sign, and which they are; None where they are too
    few.

    passes : over all relations. most : share of the columns at which a row must be signed.
    gap : singular values below this share of the largest are rounding.
    """
    sign = np.zeros(part.y.shape, np.int8)
    sign[np.bincount(quads.ravel()).argmax()] = 1
    _spread(quads, part.y.astype(np.float64), 4 * part.step, sign, passes)
    rows = np.flatnonzero((sign != 0).mean(axis=1) > most)
    whole = np.flatnonzero((sign[rows] != 0).all(axis=0)) if len(rows) else np.empty(0, int)
    Z = (sign * part.y)[np.ix_(rows, whole)]
    if min(Z.shape) < part.k + 2:
        return None
    U, size, _ = np.linalg.svd(Z, full_matrices=False)
    n = int((size > gap * size[0]).sum())
    if n >= min(Z.shape) or n <= part.k:
        return None
    U = U[:, :n]
    turn = unit_signs(U, rng)
    P = turn[:, None] * (U @ U.T) * turn
    # Its entries are about (q − k²/n)·n/(mk).
    S = np.asarray((P - P.mean()) * len(rows) * part.k / n, dtype=np.float32)
    np.fill_diagonal(S, 0.0)
    mean = np.arange(part.k + 1.0) - part.k**2 / n
    variance = np.full(part.k + 1, max(float(np.var(S[S < 0.5])), 1e-4))
    return Similarity(S, mean, variance, n, 0.0), rows


def unit_signs(
    U: Floats, rng: np.random.Generator, *, tries: int = 40, steps: int = 600, beta: float = 0.5
) -> Floats:
    """The vector D·1 of ±1 in the range of U (m, n), by relaxed reflections.

    It is not the only one: turning the signs of all rows of one record gives another, with
    t_j = 1/k − 2 in place of 1/k. Right signs make overlaps positive, so that the cubes of the
    similarities sum to most."""
    P = U @ U.T
    v = rng.standard_normal((len(U), tries))
    for _ in range(steps):
        onto = U @ (U.T @ v)
        v = v + beta * (np.sign(2 * onto - v) - onto)
    s = np.where(U @ (U.T @ v) < 0, -1.0, 1.0)
    loss = np.abs(s - U @ (U.T @ s)).max(axis=0)
    good = np.flatnonzero(loss < max(1e-3, float(loss.min()) + 1e-9))
    cubes = P**3
    return np.asarray(max((s[:, g] for g in good), key=lambda t: float(t @ cubes @ t)))


@njit(cache=True, nogil=True)
def _pattern(y, near, a, b, c, e, p):  # type: ignore[no-untyped-def]
    """Signs of b, c, e relative to a with ±y_a ± y_b ± y_c ± y_e = 0 as bits; −1 if not unique."""
    found = -1
    for choice in range(8):
        s = y[a, p]
        s += y[b, p] if choice & 1 else -y[b, p]
        s += y[c, p] if choice & 2 else -y[c, p]
        s += y[e, p] if choice & 4 else -y[e, p]
        if abs(s) <= near:
            if found >= 0:
                return -1
            found = choice
    return found


@njit(cache=True, nogil=True)
def _spread(quads, y, near, sign, passes):  # type: ignore[no-untyped-def]
    """Signs of all rows, in place, from the one row that has them, relation by relation. Where a
    relation contradicts signs that both sides know, it is false, and says nothing."""
    d = y.shape[1]
    guess = np.zeros((4, d), np.int8)
    order = np.empty(4, np.int64)
    known = np.zeros(len(sign), np.int64)
    for i in range(len(sign)):
        for p in range(d):
            known[i] += sign[i, p] != 0
    for _ in range(passes):
        changed = False
        for r in range(len(quads)):
            lead, least = 0, d
            for i in range(4):
                if known[quads[r, i]] > known[quads[r, lead]]:
                    lead = i
                least = min(least, known[quads[r, i]])
            if known[quads[r, lead]] == 0 or least == d:
                continue
            for i in range(4):
                order[i] = quads[r, (lead + i) % 4]
            for p in range(d):
                s = sign[order[0], p]
                bits = -1
                if s != 0:
                    bits = _pattern(y, near[p], order[0], order[1], order[2], order[3], p)
                for i in range(1, 4):
                    guess[i, p] = 0 if bits < 0 else (s if (bits >> (i - 1)) & 1 else -s)
            for i in range(1, 4):
                t = order[i]
                same = both = 0
                for p in range(d):
                    if guess[i, p] != 0 and sign[t, p] != 0:
                        both += 1
                        same += guess[i, p] == sign[t, p]
                if both and min(same, both - same) > 0.05 * both:
                    continue
                turn = -1 if 2 * same < both else 1
                for p in range(d):
                    if sign[t, p] == 0 and guess[i, p] != 0:
                        sign[t, p] = turn * guess[i, p]
                        known[t] += 1
                        changed = True
        if not changed:
            break
