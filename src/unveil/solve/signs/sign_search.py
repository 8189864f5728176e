"""All signs of a pixel that fit, not one of them: who is determined there, and who is not.

With the subsets known a pixel asks for signs: z_i is hi_i or lo_i, and every relation z_a − z_b −
z_c + z_d = 0 must hold. For vectors in general position one choice for one encoding forces all the
others. Where a pixel takes few values, is constant, or zero in most records, several choices fit.
Luck does not decide then, search does:

  propagate   each relation forbids combinations of its four choices; what is forced is set, until
              nothing is
  search      what is still open is tried, and taken back where it leads to a contradiction
  query       for each encoding that was not forced: can it have the other value too? Then the
              vectors it mixes are in doubt, unless other encodings determine them; otherwise it is
              fixed like the forced ones

Without a public part all signs of a pixel can be turned together: one encoding, of the largest
group that is forced, is set. Of several solutions the one with the least energy Σx² is returned:
the simplest reading of a constant pixel is a constant. A query that takes too long counts as "yes":
then a value is called doubtful that may be determined, never the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.solve.signs.sign_choices import (
    allowed_choices,
    complete_choices,
    forced_choices,
    propagate,
)

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Bools = NDArray[np.bool_]

STEPS = 400
"""Choices tried in the search for a first solution, and a tenth of it for each query, before giving
up."""
STARTS = 12
"""Encodings tried as the one whose sign is set, where there is no public part."""
FEW = 0.9
"""A start that forces so large a share of the encodings is good enough."""
LOWER = 1e-9
"""Share by which a solution must have less energy to be preferred: more than rounding."""
PER_ROW, FEW_PER_ROW = 24, 3
"""Relations used per encoding, each of which takes part in four times as many: all that search can
make use of, and what suffices where values are in general position."""


@dataclass(frozen=True, eq=False)
class SignSystem:
    """Relations among rows 0 … r−1: quads (q, 4) with coefficients ±1; those of row i:
    using[start[i]:start[i+1]]."""

    quads: Index
    signs: Floats
    start: Index
    using: Index


def sign_system(
    quads: Index, members: Index, rng: np.random.Generator, per_row: int = PER_ROW
) -> SignSystem:
    """The relations that the subsets `members` (r, k) confirm, with their signs; `per_row` of them
    for each row, at random."""
    rows, signs = [], []
    for other in (1, 2, 3):
        pair = [0, other]
        rest = [i for i in (1, 2, 3) if i != other]
        one = np.sort(members[quads[:, pair]].reshape(len(quads), 2 * members.shape[1]), axis=1)
        two = np.sort(members[quads[:, rest]].reshape(len(quads), 2 * members.shape[1]), axis=1)
        holds = np.flatnonzero((one == two).all(axis=1))
        sign = np.full((len(holds), 4), -1.0)
        sign[:, pair] = 1.0
        rows.append(quads[holds])
        signs.append(sign)
    quads, sign = np.concatenate(rows), np.concatenate(signs)
    keep = rng.permutation(len(quads))[: per_row * len(members)]
    quads, sign = np.ascontiguousarray(quads[keep]), np.ascontiguousarray(sign[keep])
    order = np.argsort(quads.ravel(), kind="stable")
    start = np.searchsorted(quads.ravel()[order], np.arange(len(members) + 1)).astype(np.int64)
    return SignSystem(quads, sign, start, (order // 4).astype(np.int64))


def search_signs(
    system: SignSystem,
    hi: Floats,
    lo: Floats,
    bound: Floats,
    free: bool,
    solver: Floats,
    members: Index,
    deep: bool = True,
) -> tuple[NDArray[np.int8], Bools]:
    """(choice (r, pixels): +1 for hi, −1 for lo, 0 everywhere where nothing fits; fixed (r,
    pixels): no other choice fits).

    bound (pixels,): residual of a relation that counts as zero; solver (n, r): x = solver·z; free:
    signs can all be turned
    deep: whether to search where propagation alone does not set everything; if not, such pixels are
    left at 0
    """
    # One layout, so that the search is compiled once.
    hi, lo, solver = (np.ascontiguousarray(values) for values in (hi, lo, solver))
    choice = np.zeros(hi.shape, np.int8)
    fixed = np.zeros(hi.shape, np.bool_)
    _search_pixels(
        system.quads,
        system.signs,
        system.start,
        system.using,
        hi,
        lo,
        bound,
        free,
        solver,
        members,
        deep,
        choice,
        fixed,
    )
    return choice, fixed


@njit(cache=True, nogil=True)
def _solved(solver, members, hi, lo, value, p, bound, x):  # type: ignore[no-untyped-def]
    """x of a complete choice, in place; whether it reproduces every row."""
    for v in range(len(solver)):
        x[v] = 0.0
    for r in range(len(value)):
        z = lo[r, p] if value[r] < 0 else hi[r, p]
        if z != 0.0:
            for v in range(len(solver)):
                x[v] += solver[v, r] * z
    return _fits(members, hi, lo, value, p, x, bound)


@njit(cache=True, nogil=True)
def _fits(members, hi, lo, value, p, x, bound):  # type: ignore[no-untyped-def]
    """Whether x reproduces every row."""
    for r in range(len(members)):
        total = 0.0
        for i in range(members.shape[1]):
            total += x[members[r, i]]
        if abs(total - (lo[r, p] if value[r] < 0 else hi[r, p])) > bound:
            return False
    return True


@njit(cache=True, nogil=True)
def _search_pixels(  # type: ignore[no-untyped-def]
    quads, signs, start, using, hi, lo, bounds, free, solver, members, deep, choice, fixed
):
    rows, pixels = hi.shape
    allowed = np.empty(len(quads), np.int32)
    value, other, first = np.zeros(rows, np.int8), np.zeros(rows, np.int8), np.ones(rows, np.int8)
    trail, stack, tried = (
        np.empty(rows + 1, np.int64),
        np.empty(rows + 1, np.int64),
        np.empty(rows + 1, np.int8),
    )
    x, x2 = np.empty(len(solver)), np.empty(len(solver))
    settled, nothing, loose = (
        np.empty(rows, np.bool_),
        np.empty(rows, np.bool_),
        np.empty(rows, np.bool_),
    )
    for p in range(pixels):
        bound = bounds[p]
        # Rows whose two values are one have no sign: they take hi, and count as fixed.
        for r in range(rows):
            nothing[r] = abs(hi[r, p] - lo[r, p]) <= bound
        allowed_choices(quads, signs, hi, lo, p, bound, nothing, allowed)
        # 1. What is forced without any choice, from the start that forces most.
        best, begin = -1, -1
        for attempt in range(min(STARTS, rows) if free else 1):
            row = -1
            if free:
                row = (attempt * 7919) % rows  # a prime: spread over the rows
                while row >= 0 and nothing[row]:
                    row = row + 1 if row + 1 < rows else -1
            size = forced_choices(quads, start, using, allowed, nothing, free, row, value, trail)
            if size > best:
                best, begin = size, row
            if best >= FEW * rows:
                break
        if best < 0 or (best < rows and not deep):
            continue
        # 2. From there a complete solution.
        size = forced_choices(quads, start, using, allowed, nothing, free, begin, value, trail)
        forced = 0
        for r in range(rows):
            settled[r] = value[r] != 0
            loose[r] = False
            first[r] = 1
            forced += settled[r]
        size = complete_choices(
            quads, start, using, allowed, value, trail, size, first, STEPS, stack, tried
        )
        if size < 0:
            continue
        # 3. Queries: which rows that were not forced can have the other value as well? A simpler
        # solution becomes the answer.
        if forced < rows:
            good = _solved(solver, members, hi, lo, value, p, bound, x)
            energy = (x * x).sum()
            for q in range(rows):
                if settled[q] or loose[q]:
                    continue
                size = 0
                for r in range(rows):
                    first[r] = value[r]
                    other[r] = value[r] if settled[r] else 0
                    if settled[r]:
                        trail[size] = r
                        size += 1
                other[q] = -value[q]
                trail[size] = q
                size = propagate(quads, start, using, allowed, other, size, trail, size + 1)
                if size >= 0:
                    size = complete_choices(
                        quads,
                        start,
                        using,
                        allowed,
                        other,
                        trail,
                        size,
                        first,
                        STEPS // 10,
                        stack,
                        tried,
                    )
                else:
                    size = -1
                if size == -1:
                    settled[q] = True
                    continue
                loose[q] = True
                if size < 0:
                    continue
                # All rows that differ between the two solutions can have both values.
                for v in range(len(x)):
                    x2[v] = x[v]
                for r in range(rows):
                    if other[r] != value[r]:
                        loose[r] = True
                        change = (lo[r, p] if other[r] < 0 else hi[r, p]) - (
                            lo[r, p] if value[r] < 0 else hi[r, p]
                        )
                        for v in range(len(x)):
                            x2[v] += solver[v, r] * change
                fits = _fits(members, hi, lo, other, p, x2, bound)
                e = (x2 * x2).sum()
                if fits and (not good or e < energy * (1 - LOWER)):
                    good, energy = True, e
                    for r in range(rows):
                        value[r] = other[r]
                    for v in range(len(x)):
                        x[v] = x2[v]
        for r in range(rows):
            choice[r, p] = value[r]
            fixed[r, p] = settled[r]
