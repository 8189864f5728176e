"""Which values are determined, once it is known who mixes whom? Column by column, |Wx + c| = y.

    general position  a record whose value is neither 0 nor tied to another's holds the signs of its
                      rows together (docs/certificate.md, Theorem 3). If the rows that hang together
                      by such records have full rank, the column has one solution up to its sign
    all solutions     every choice of signs at a few rows that determine a few records (pairs: an
                      odd cycle), then record by record two values each, of which those stay that
                      fit. No general position is assumed
    many rows         columns of few levels or of rounded values: another solution changes a large
                      share of all records (proved by the second eigenvalue of the design), and then
                      random rows agree with one of 2^n candidates with a chance that is bounded
    one by one        another value of a record whose partners are known needs the same sum of
                      partners in all of its rows

What none of these settles is open.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.sparse.csgraph import breadth_first_order

from unveil.certificate.claim import Claim
from unveil.certificate.design import Design, least_eigenvalue
from unveil.certificate.few_records import independent_rows

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def determined(
    claim: Claim,
    inner: Flags,
    certain: Flags,
    fine: Flags,
    holding: Flags,
    *,
    few: int = 30,
    searched: float = 1e7,
) -> Flags:
    """(n, d): values that all solutions share, up to one sign of the column where nothing public is
    mixed in.

    inner: the set whose memberships were proved together; holding: those of them that hold the
    signs of their rows together where they are free; certain: all whose memberships are proved
    few: records at which a search for all solutions begins
    searched: records times columns that it may try
    """
    n, d = claim.X.shape
    keep = certain[claim.rows].all(axis=1)
    rows, offset = claim.rows[keep], claim.offset(np.flatnonzero(keep))
    if claim.kept:
        return np.repeat(certain[:, None], d, axis=1) & claim.whole
    out = np.zeros((n, d), bool)
    if inner.any():
        design, mine = Design.within(rows, inner), inner[rows].all(axis=1)
        settled = fine & claim.whole
        out[inner] = _by_general_position(
            claim, design, inner, offset[mine], settled, holding[inner]
        )
        # A few records, from which others follow; all of them where that does not suffice.
        for most in (few, n):
            left = np.flatnonzero(claim.whole & ~out[inner].all(axis=0))[: int(searched / n)]
            if len(left):
                found = _by_search(claim, rows, offset[:, left], left, most)
                larger = found.sum(axis=0) > out[:, left].sum(axis=0)
                out[:, left] = np.where(larger, found, out[:, left])
                out = _one_by_one(claim, rows, offset, certain, out)
        left = np.flatnonzero(claim.whole & ~out[inner].all(axis=0))
        if len(left) and (len(left) == d or claim.k > 2 or offset.any()):
            chance = _by_many_rows(claim, design, inner, offset[mine], left)
            out[np.ix_(inner, left[chance])] = True
    return _one_by_one(claim, rows, offset, certain, out)


def _by_general_position(
    claim: Claim,
    design: Design,
    inner: Flags,
    offset: Floats,
    settled: Flags,
    holding: Flags,
    *,
    block: int = 1 << 21,
) -> Flags:
    """(inner, d): values determined by rows that free values (neither 0 nor tied) hold together.

    block: values that are sorted together"""
    used = np.bincount(claim.rows.ravel(), minlength=claim.n) > 0
    mu = least_eigenvalue(design, np.ones(len(design.rows)))
    degree = np.asarray(design.W.sum(axis=0), np.float64)
    out, step = np.zeros((design.n, claim.d), bool), max(1, block // claim.n)
    if claim.names.shape[1]:  # could all signs be the other way round?
        W = design.W.toarray()
        h = np.linalg.lstsq(W, offset, rcond=None)[0]
        settled = settled & (np.abs(W @ h - offset).max(axis=0) > 16 * claim.tolerance)
    for start in range(0, claim.d, step):
        some = np.flatnonzero(settled[start : start + step]) + start
        size, tolerance = np.abs(claim.X[np.ix_(used, some)]), claim.tolerance[some]
        order = np.argsort(size, axis=0)
        ordered = np.take_along_axis(size, order, 0)
        gap = np.diff(ordered, axis=0, prepend=0.0, append=np.inf) > 4 * tolerance
        free = np.zeros(size.shape, bool)
        np.put_along_axis(free, order, gap[:-1] & gap[1:], axis=0)
        every = free.all(axis=0)
        out[:, some[every]] = True
        free = (free[inner[used]] & holding[:, None])[:, ~every]
        out[:, some[~every]] = _hangs_together(design.rows, free.T.copy(), degree, mu).T
    return out


@njit(cache=True, nogil=True)
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def _hangs_together(rows, free, degree, mu):  # type: ignore[no-untyped-def]
    """(columns, n): rows are joined by the free records they share; what do those of the largest
    part determine? Pairs: records from which an odd cycle can be reached, that is, which are joined
    with their copies in the double cover. Else all, if Σ_(i in r) (missing rows of i)/deg(i) < μ
    for each missing row r: then W_A·(WᵀW)⁻¹·W_Aᵀ < 1, and the others have full rank."""
    (m, k), (d, n) = rows.shape, free.shape
    out = np.ones((d, n), np.bool_)
    label = np.zeros(m, np.int64)
    for p in range(d):
        parent, count, lacking = np.arange(n), np.zeros(n, np.int64), np.zeros(n)
        for r in range(m):
            label[r] = -1
            for i in rows[r]:
                if free[p, i]:
                    if label[r] >= 0:
                        parent[_root(parent, i)] = _root(parent, label[r])
                    label[r] = i
        for r in range(m):
            if label[r] >= 0:
                label[r] = _root(parent, label[r])
                count[label[r]] += 1
        missing, cover = label != np.argmax(count), np.arange(2 * n)
        for r in range(m):
            for a in range(k):
                i, j = rows[r, a], rows[r, k - 1 - a]
                if missing[r]:
                    lacking[i] += 1.0 / degree[i]
                elif k == 2:
                    cover[_root(cover, i)] = _root(cover, j + n)
        for r in range(m):
            if k > 2 and missing[r] and lacking[rows[r]].sum() >= 0.99 * mu:
                out[p] = False
        for i in range(n):
            if k == 2:
                out[p, i] = _root(cover, i) == _root(cover, i + n)
    return out


def _by_search(
    claim: Claim, rows: Index, offset: Floats, columns: Index, most: int, *, block: int = 400_000
) -> Flags:
    """(n, columns): values that all solutions share, by search among the first `most` records.

    block: sums that are searched together
    """
    out, design = np.zeros((claim.n, len(columns)), bool), Design.of(rows, claim.n)
    seed, basis = _seed(design)
    if not len(seed):
        return out
    # Records in the order in which rows get a single unknown member.
    order, lacking = list[int](), np.full(len(rows), claim.k)
    links = np.zeros(claim.n, np.int64)
    for i in seed:
        lacking[design.rows_of(i)] -= 1
    known = np.zeros(claim.n, bool)
    known[seed] = True
    np.add.at(links, rows[lacking == 1].ravel(), 1)
    while (links * ~known).any() and len(order) < most:
        i = int((links * ~known).argmax())
        order, known[i] = [*order, i], True
        lacking[design.rows_of(i)] -= 1
        new = design.rows_of(i)
        np.add.at(links, rows[new[lacking[new] == 1]].ravel(), 1)
    # Every choice of signs of the seed is held at every column of a block (`begin`).
    step = min(max(64, block // len(rows)), max(1, 2**23 // (len(seed) << len(seed))))
    for start in range(0, len(columns), step):
        some = slice(start, start + step)
        column = _Column(claim, design, offset[:, some], columns[some])
        out[:, some] = column.solved(seed, basis, order)
    return out


def _seed(design: Design, *, most: int = 12) -> tuple[Index, Index]:
    """(records, as many rows that determine them): all of few records; of pairs the shortest odd
    cycle found; none elsewhere."""
    used, none = np.flatnonzero(np.diff(design.at.indptr)), np.array([], np.int64)
    if len(used) <= most:
        basis = independent_rows(design.W.toarray()[:, used])
        return (used, basis) if len(basis) == len(used) else (none, none)
    if design.rows.shape[1] != 2:
        return none, none
    (a, b), n = design.rows.T, design.n
    # An odd cycle through s leads from s to its copy in the double cover.
    ends = np.concatenate([a, b]), np.concatenate([b + n, a + n])
    cover = sparse.csr_array((np.ones(2 * len(a)), ends), shape=(2 * n, 2 * n))
    cycle = none
    for s in used[:300]:
        back = breadth_first_order(cover, s, directed=False)[1]
        path = [s + n]
        while path[-1] != s and path[-1] >= 0:
            path.append(back[path[-1]])
        found = np.array(path[:-1]) % n
        if path[-1] == s and len(np.unique(found)) == len(found) < (len(cycle) or most):
            cycle = found
        if len(cycle) == 3:
            break
    row = {frozenset(pair): r for r, pair in enumerate(design.rows.tolist())}
    edges = zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True)
    return cycle, np.array([row[frozenset(pair)] for pair in edges], np.int64)


class _Column:
    """All solutions of |Wx + c| = y at some columns: value (n, h) of h hypotheses, each of one
    column `at`; those that are still the claim itself; known (n, columns), and by how many
    tolerances a known value may be off by rounding of y alone."""

    def __init__(self, claim: Claim, design: Design, offset: Floats, columns: Index) -> None:
        self.x, self.c, self.design = claim.X[:, columns], offset, design
        self.tolerance, self.signed = claim.tolerance[columns], bool(claim.names.shape[1])
        self.sums = self.x[design.rows].sum(axis=1) + offset
        self.y = np.abs(self.sums)
        self.known = np.zeros(self.x.shape, bool)
        self.error = np.full(self.x.shape, np.inf)

    def solved(
        self, seed: Index, basis: Index, order: list[int], *, few: int = 16, many: int = 64
    ) -> Flags:
        """(n, columns): what all solutions have in common. A record that has two values and settles
        nothing waits, and is left out at last if there are too many hypotheses."""
        self.begin(seed, basis)
        for limit in (few, many):
            for i in order:
                if not self.known[i].all():
                    self.extend(i, limit)
        near = 4 * self.tolerance[self.at]
        known, x = self.known[:, self.at], self.x[:, self.at]
        same, turned = np.abs(self.value - x) <= near, np.abs(self.value + x) <= near
        better = self.signed | ((same & known).sum(axis=0) >= (turned & known).sum(axis=0))
        missed = sparse.csr_array(~np.where(better, same, turned))
        place = np.arange(len(self.at)), self.at
        columns = sparse.csr_array((np.ones(len(self.at)), place), (len(self.at), len(self.y.T)))
        return np.asarray(self.known & ((missed @ columns).toarray() == 0))

    def begin(self, seed: Index, basis: Index) -> None:
        """Every choice of signs at the rows of the basis that fits all rows of the seed's records.
        Without a public part the sign of the largest sum is as the claim has it."""
        W, tolerance = self.design.W, self.tolerance[None, :, None]
        inverse = np.linalg.inv(W[basis].toarray()[:, seed])
        reach = float(np.abs(inverse).sum(axis=1).max())
        L, sums, q = len(seed), self.sums[basis].T, len(self.tolerance)
        signs = 1.0 - 2.0 * ((np.arange(2**L)[:, None, None] >> np.arange(L)) & 1)
        value = (signs * np.abs(sums) - self.c[basis].T) @ inverse.T
        other = (np.abs(value - self.x[seed].T) > 2 * reach * tolerance).any(axis=2)
        if not self.signed:
            top = np.abs(sums).argmax(axis=1)
            other &= signs[:, 0, top] == np.where(sums[np.arange(q), top] >= 0, 1, -1)
        inside = np.flatnonzero(np.isin(self.design.rows, seed).all(axis=1))
        allowed = (1 + self.design.rows.shape[1] * reach) * self.tolerance
        choice, at = np.nonzero(other)
        for start in range(0, len(inside), 8):  # few choices outlive the first rows
            part = inside[start : start + 8]
            total = value[choice, at] @ W[part].toarray()[:, seed].T + self.c[part][:, at].T
            fits = np.abs(np.abs(total) - self.y[part][:, at].T) <= allowed[at, None]
            choice, at = choice[fits.all(axis=1)], at[fits.all(axis=1)]
        self.at = np.concatenate([np.arange(q), at])
        self.claimed = np.arange(len(self.at)) < q
        self.value = self.x[:, self.at]
        self.value[np.ix_(seed, np.flatnonzero(~self.claimed))] = value[choice, at].T
        self.known[seed], self.error[seed] = True, reach

    def extend(self, i: int, limit: int) -> None:
        """The values that record i may have, at columns at which other members of a row are known
        and no more hypotheses follow than before, or than the limit."""
        own, at, q = self.design.rows_of(i), self.at, len(self.tolerance)
        members = self.design.rows[own]
        others = members[members != i].reshape(len(own), -1)
        ready = self.known[others].all(axis=1) & ~self.known[i]
        slack = np.where(ready, self.error[others].sum(axis=1) + 1, np.inf)
        best, error = slack.argmin(axis=0), slack.min(axis=0)
        h = np.flatnonzero(np.isfinite(error)[at])
        p = at[h]
        # 1. Both signs of the row that errs least, held against all rows.
        rest = self.value[others[:, :, None], h].sum(axis=1) + self.c[own[:, None], p]
        size, line = self.y[own[:, None], p], (best[p], np.arange(len(h)))
        new = np.stack([size[line] - rest[line], -size[line] - rest[line]])
        near = 2 * self.tolerance[p]
        x, mine = self.x[i, p], self.claimed[h]
        new = np.where(mine & (np.abs(new - x) <= near), x, new)
        miss = np.abs(np.abs(new[:, None] + rest) - size)
        fits = miss <= (error[p] + slack[:, p]) * self.tolerance[p]
        good = (fits | ~ready[:, p]).all(axis=1)
        good[1] &= np.abs(new[1] - new[0]) > near
        # 2. Where these are not too many they take the place of those before.
        before = np.bincount(at, minlength=q)
        after = np.bincount(p, good.sum(axis=0), minlength=q)
        taken = np.isfinite(error) & (after <= np.maximum(before, limit))
        good &= taken[p]
        same = np.flatnonzero(~taken[at])
        parent = np.concatenate([same, h[good[0]], h[good[1]]])
        value = np.concatenate([self.value[i, same], new[0, good[0]], new[1, good[1]]])
        order = np.argsort(parent, kind="stable")
        parent, value = parent[order], value[order]
        if len(parent) != len(at) or (np.diff(parent) != 1).any():
            self.value, self.at, self.claimed = (
                self.value[:, parent],
                at[parent],
                self.claimed[parent],
            )
        self.value[i] = value
        self.claimed &= ~taken[self.at] | (value == self.x[i, self.at])
        self.known[i] |= taken
        self.error[i] = np.where(taken, error, self.error[i])


def _by_many_rows(
    claim: Claim, design: Design, inner: Flags, offset: Floats, left: Index, *, sure: float = 14.0
) -> Flags:
    """(columns,) whether another solution is less likely than e^−sure at any column.

    x − 2a solves the column as well if W_r·a is 0 or the row's own sum z_r, row by row. Let a ≠ 0
    on S. Rows that meet S in i alone have z_r = a_i, which at most a share β of the rows of i have
    in common. So the others meet S twice, and S holds a share α ≥ (1 − β − λ)/(k − 1) of all, λ the
    second eigenvalue of who meets whom. n rows with two choices each fix a; a further random row
    agrees with probability q ≤ ½(1 + (1−α)^k) + β. Left: 2^n·q^(m−n)."""
    W, n, k, m = design.W, design.n, claim.k, len(design.rows)
    out = np.zeros(len(left), bool)
    if m <= n or n < 2 or n > 3000 or k < 2:
        return out
    degree = np.asarray(W.sum(axis=0))
    scale = 1 / np.sqrt(degree)
    values = eigvalsh(scale[:, None] * (W.T @ W).toarray() * scale)
    # Rows that look random have no small eigenvalue: (1 − √(n/m))² is 0.35 at m = 6n.
    if values[0] < 0.3:
        return out
    for start in range(0, len(left), 256):
        part = left[start : start + 256]
        total = W @ claim.X[np.ix_(inner, part)] + offset[:, part]
        share = np.zeros(len(part))
        for i in range(n):
            own = np.sort(total[design.rows_of(i)], axis=0)
            run = np.ones(len(part))
            for one, two in pairwise(own):
                run = np.where(two - one <= 2 * claim.tolerance[part], run + 1, 1)
                share = np.maximum(share, run / len(own))
        least = np.clip((1 - share - (values[-2] - 1)) / (k - 1), 0.0, 1.0)
        chance = np.clip(0.5 * (1 + (1 - least) ** k) + share, 1e-300, 1.0)
        left_over = (m - n) * -np.log(chance) - n * log(2)
        out[start : start + 256] = (least > 0) & (left_over >= sure + log(claim.d))
    return out


def _one_by_one(claim: Claim, rows: Index, offset: Floats, certain: Flags, out: Flags) -> Flags:
    """Records join column by column: another x_i needs the same sum of partners in all rows."""
    design, X, changed = Design.of(rows, claim.n), claim.X, True
    while changed:
        changed = False
        for i in np.flatnonzero(certain & ~out.all(axis=1)).tolist():
            own, todo = design.rows_of(i), np.flatnonzero(~out[i] & claim.whole)
            if not len(own) or not len(todo):
                continue
            others = rows[own][rows[own] != i].reshape(len(own), -1)[:, :, None]
            sums = X[others, todo].sum(axis=1) + offset[own[:, None], todo]
            known, tolerance = out[others, todo].all(axis=1), claim.tolerance[todo]
            high = np.where(known, sums, -np.inf).max(axis=0)
            low = np.where(known, sums, np.inf).min(axis=0)
            zero = known & (np.abs(sums + X[i, todo]) <= tolerance)
            settled = todo[(high - low > 16 * tolerance) | zero.any(axis=0)]
            out[i, settled] = True
            changed = changed or len(settled) > 0
    return out
