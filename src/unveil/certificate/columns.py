"""Which values are determined, once it is known who mixes whom? Column by column, |Wx + c| = y.

    general position  a record whose value is neither 0 nor tied to another's holds the signs of its
                      rows together (docs/certificate.md, Theorem 3). If the rows that hang together
                      by such records have full rank, the column has one solution up to its sign
    all solutions     pairs: every choice of signs along an odd cycle, then record by record two
                      values each, of which those stay that fit. Few records, any k: every choice of
                      signs at n independent rows. No general position is assumed
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
from scipy.linalg import eigvalsh

from unveil.certificate.claim import Claim
from unveil.certificate.design import Design, incidence, independent_rows, least_eigenvalue

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def determined(
    claim: Claim, inner: Flags, certain: Flags, fine: Flags, heavy: bool, *, searched: float = 2e8
) -> Flags:
    """(n, d): values that all solutions share, up to one sign of the column where nothing public is
    mixed in.

    inner: the set whose memberships were proved together; heavy: by (H) and (F) of `design`, so
    that ties elsewhere do no harm; certain: all whose memberships are proved
    searched: records times columns times hypotheses that searches for all solutions may try
    """
    n, d = claim.X.shape
    keep = certain[claim.rows].all(axis=1)
    rows, offset = claim.rows[keep], claim.offset(np.flatnonzero(keep))
    if claim.kept:
        return np.repeat(certain[:, None], d, axis=1) & claim.whole
    out = np.zeros((n, d), bool)
    signed, near = bool(claim.names.shape[1]), 4 * claim.tolerance
    mine = inner[rows].all(axis=1)
    if inner.any():
        design = Design.of((np.cumsum(inner) - 1)[rows[mine]], int(inner.sum()), False)
        settled = fine & claim.whole
        out[inner] = _by_general_position(claim, design, inner, offset[mine], settled, heavy)
        left = np.flatnonzero(claim.whole & ~out[inner].all(axis=0))
        if len(left) and claim.k == 2 and not signed:
            budget = int(searched / (64 * max(1, n)))
            left = left[:budget]
            found = _by_odd_cycle(claim.X[:, left], rows, claim, left)
            out[:, left] = _joined(out[:, left], found, np.abs(claim.X[:, left]) > near[left])
        elif len(left) and inner.sum() <= 12:
            out[np.ix_(inner, left)] = _by_all_signs(claim, design, inner, offset[mine], left)
        left = np.flatnonzero(claim.whole & ~out[inner].all(axis=0))
        if len(left) and claim.k > 1 and (len(left) == d or claim.k > 2 or signed):
            chance = _by_many_rows(claim, design, inner, offset[mine], left)
            out[np.ix_(inner, left[chance])] = True
    return _one_by_one(claim, rows, offset, certain, out)


def _joined(one: Flags, two: Flags, clear: Flags) -> Flags:
    """(n, columns): each of two sets is determined up to a sign of its own. They have one sign if
    they share a value that is not 0; else the larger one counts."""
    share = (one & two & clear).any(axis=0)
    larger = np.where(one.sum(axis=0) >= two.sum(axis=0), one, two)
    return np.where(share, one | two, larger)


def _by_general_position(
    claim: Claim, design: Design, inner: Flags, offset: Floats, settled: Flags, heavy: bool
) -> Flags:
    """(inner, d): values determined by rows that free values (neither 0 nor tied) hold together."""
    size, tolerance = np.abs(claim.X[inner]), claim.tolerance
    order = np.argsort(size, axis=0)
    ordered = np.take_along_axis(size, order, 0)
    gap = np.diff(ordered, axis=0, prepend=0.0, append=np.inf) > 4 * tolerance
    free = np.zeros(size.shape, bool)
    np.put_along_axis(free, order, gap[:-1] & gap[1:], axis=0)
    if claim.names.shape[1]:  # could all signs be the other way round?
        W = design.W.toarray()
        h = np.linalg.lstsq(W, offset, rcond=None)[0]
        settled = settled & (np.abs(W @ h - offset).max(axis=0) > 16 * tolerance)
    if not heavy:
        return np.repeat((settled & free.all(axis=0))[None, :], design.n, axis=0)
    weight = np.ones(len(design.rows))
    mu = least_eigenvalue(design, weight)
    degree = np.asarray(design.W.T @ weight)
    found = _hangs_together(design.rows, np.ascontiguousarray(free.T), settled, degree, mu)
    return np.asarray(found.T)


@njit(cache=True, nogil=True)
def _hangs_together(rows, free, settled, degree, mu):  # type: ignore[no-untyped-def]
    """(d, n): rows are joined by the free records they share; what do those of the largest part
    determine? Pairs: records from which an odd cycle can be reached, that is, which are joined with
    their copies in the double cover. Else all, if Σ_(i in r) (missing rows of i)/deg(i) < μ for
    each missing row r: then W_A·(WᵀW)⁻¹·W_Aᵀ < 1, and the others have full rank."""
    (m, k), (d, n) = rows.shape, free.shape
    out = np.zeros((d, n), np.bool_)
    cover = np.zeros(2 * n, np.int64)
    parent, count, lacking = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    label = np.zeros(m, np.int64)
    for p in range(d):
        if not settled[p]:
            continue
        parent[:] = np.arange(n)
        for r in range(m):
            first = -1
            for a in range(k):
                i = rows[r, a]
                if free[p, i]:
                    while parent[i] != i:
                        parent[i] = parent[parent[i]]
                        i = parent[i]
                    if first < 0:
                        first = i
                    else:
                        parent[i] = first
            label[r] = first
        count[:] = 0
        for r in range(m):
            if label[r] >= 0:
                i = label[r]
                while parent[i] != i:
                    i = parent[i]
                label[r] = i
                count[i] += 1
        largest = np.argmax(count)
        if k == 2:
            cover[:] = np.arange(2 * n)
            for r in range(m):
                if label[r] == largest:
                    for side in range(2):
                        i, j = rows[r, side], rows[r, 1 - side] + n
                        while cover[i] != i:
                            cover[i] = cover[cover[i]]
                            i = cover[i]
                        while cover[j] != j:
                            cover[j] = cover[cover[j]]
                            j = cover[j]
                        cover[i] = j
            for one in range(n):
                i, j = one, one + n
                while cover[i] != i:
                    i = cover[i]
                while cover[j] != j:
                    j = cover[j]
                out[p, one] = i == j
            continue
        lacking[:] = 0.0
        for r in range(m):
            if label[r] != largest:
                for a in range(k):
                    lacking[rows[r, a]] += 1.0
        good = True
        for r in range(m):
            if label[r] != largest:
                share = 0.0
                for a in range(k):
                    share += lacking[rows[r, a]] / degree[rows[r, a]]
                good = good and share < 0.99 * mu
        out[p, :] = good
    return out


def _by_odd_cycle(X: Floats, rows: Index, claim: Claim, left: Index) -> Flags:
    """(n, columns): pairs, every solution of these columns."""
    n = claim.n
    design = Design.of(np.unique(rows, axis=0), n, False)
    near: list[dict[int, int]] = [{} for _ in range(n)]
    for r, (a, b) in enumerate(design.rows.tolist()):
        near[a][b] = near[b][a] = r
    cycle = _odd_cycle(near)
    out = np.zeros(X.shape, bool)
    if not 0 < len(cycle) < 12:
        return out
    # Records in the order of how many known ones they meet.
    order, links = list(cycle), np.zeros(n, np.int64)
    for i in cycle:
        links[list(near[i])] += 1
    links[cycle] = -n
    while links.max() > 0:
        i = int(links.argmax())
        order.append(i)
        links[list(near[i])] += 1
        links[i] = -n - len(near[i])
        links[order] = np.minimum(links[order], -1)
    partner = np.array([j for i in range(n) for j in near[i]], np.int64)
    row = np.array([r for i in range(n) for r in near[i].values()], np.int64)
    starts = np.cumsum([0] + [len(near[i]) for i in range(n)])
    for q, p in enumerate(left[: X.shape[1]]):
        y = np.abs(X[design.rows, q].sum(axis=1))
        out[:, q] = _search(
            X[:, q].copy(),
            y,
            starts,
            partner,
            row,
            len(cycle),
            np.array(order, np.int64),
            float(claim.tolerance[p]),
        )
    return out


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    x, y, starts, partner, row, length, order, tolerance, few=16, many=512
):
    """Whose value all solutions of |x_i + x_j| = y share: hypothesis 0 is the claim. error: how far
    a value may be off by rounding of y alone. Who has two values and settles nothing waits, and is
    left out at last if there are too many."""
    n = len(x)
    shared, known, error = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n)
    value, fresh = np.zeros((2 * many + 2, n)), np.zeros((2 * many + 2, n))
    # 1. All signs along the cycle; the sign of its largest sum is as the claim has it.
    sums, top = np.zeros(length), 0
    for j in range(length):
        a, b = order[j], order[(j + 1) % length]
        for e in range(starts[a], starts[a + 1]):
            if partner[e] == b:
                sums[j] = y[row[e]]
        if sums[j] > sums[top]:
            top = j
    claimed = np.zeros(length)
    for j in range(length):
        claimed[j] = 1.0 if x[order[j]] + x[order[(j + 1) % length]] >= 0 else -1.0
    count = 1
    for i in order[:length]:
        value[0, i] = x[i]
        known[i] = True
        error[i] = 0.5 * length * tolerance
    for pattern in range(1 << length):
        same = True
        first = 0.0
        for j in range(length):
            sign = -1.0 if (pattern >> j) & 1 else 1.0
            same = same and sign == claimed[j]
            first += sign * sums[j] * (-1.0 if j % 2 else 1.0) / 2
        sign = -1.0 if (pattern >> top) & 1 else 1.0
        if same or sign != claimed[top]:
            continue
        value[count, order[0]] = first
        for j in range(length - 1):
            sign = -1.0 if (pattern >> j) & 1 else 1.0
            value[count, order[j + 1]] = sign * sums[j] - value[count, order[j]]
        near = True
        for i in order[:length]:
            near = near and abs(value[count, i] - x[i]) <= 2 * tolerance
        if not near:  # a sum that is 0 has both signs
            count += 1
    # 2. Record by record.
    waiting = np.zeros(2 * n, np.int64)
    waiting[: len(order) - length] = order[length:]
    end, turn, once = len(order) - length, 0, len(order) - length
    while turn < end:
        i = waiting[turn]
        best, limit = -1, few if turn < once else many
        turn += 1
        for e in range(starts[i], starts[i + 1]):
            j = partner[e]
            if known[j] and (best < 0 or error[j] < error[partner[best]]):
                best = e
        if best < 0:
            continue
        error[i] = error[partner[best]] + tolerance
        total, fits = 0, True
        for h in range(count):
            before = total
            for sign in (1.0, -1.0):
                new = sign * y[row[best]] - value[h, partner[best]]
                if h == 0:
                    # The claim itself is one solution; the other sign is another.
                    if sign > 0:
                        new = x[i]
                    else:
                        new = -x[i] - 2 * x[partner[best]]
                    if sign < 0 and abs(new - x[i]) <= 2 * tolerance:
                        continue
                elif total > before and abs(new - fresh[total - 1, i]) <= 2 * tolerance:
                    continue
                good = True
                for e in range(starts[i], starts[i + 1]):
                    j = partner[e]
                    if known[j] and h + (sign < 0) > 0:
                        miss = abs(abs(new + value[h, j]) - y[row[e]])
                        if miss > error[i] + error[j] + tolerance:
                            good = False
                            break
                if not good:
                    continue
                if total >= max(count, limit) or total >= len(fresh):
                    fits = False
                    break
                fresh[total] = value[h]
                fresh[total, i] = new
                total += 1
            if not fits:
                break
        if fits:
            value, fresh = fresh, value
            count = total
            known[i] = True
        elif turn <= once:
            waiting[end] = i
            end += 1
    # 3. What all have in common, each with the better sign.
    for i in range(n):
        shared[i] = known[i]
    for h in range(1, count):
        equal, turned = 0, 0
        for i in range(n):
            if known[i]:
                equal += abs(value[h, i] - x[i]) <= 4 * tolerance
                turned += abs(value[h, i] + x[i]) <= 4 * tolerance
        for i in range(n):
            off = value[h, i] - x[i] if equal >= turned else value[h, i] + x[i]
            shared[i] = shared[i] and abs(off) <= 4 * tolerance
    return shared


def _odd_cycle(near: list[dict[int, int]], *, starts: int = 300) -> list[int]:
    """A shortest odd cycle through one of the first `starts` records; [] if there is none."""
    best: list[int] = []
    for s in range(min(starts, len(near))):
        depth, back, queue, found = {s: 0}, dict[int, int](), [s], False
        for u in queue:
            if found or len(best) == 3 or (best and 2 * depth[u] + 1 >= len(best)):
                break
            for v in near[u]:
                if v not in depth:
                    depth[v], back[v] = depth[u] + 1, u
                    queue.append(v)
                elif depth[v] == depth[u]:
                    p, q = [u], [v]
                    while p[-1] != q[-1]:
                        p.append(back[p[-1]])
                        q.append(back[q[-1]])
                    best, found = p + q[-2::-1], True
                    break
    return best


def _by_all_signs(claim: Claim, design: Design, inner: Flags, offset: Floats, left: Index) -> Flags:
    """(inner, columns): few records, every choice of signs at n independent rows."""
    W, n = design.W.toarray(), design.n
    out = np.zeros((n, len(left)), bool)
    basis = independent_rows(W)
    if len(basis) < n:
        return out
    inverse = np.linalg.inv(W[basis])
    signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    # A solution misses by its own tolerance and by what the basis rows pass on.
    widen = 1 + claim.k * float(np.abs(inverse).sum(axis=1).max())
    for q, p in enumerate(left):
        x, c, near = claim.X[inner, p], offset[:, p], float(claim.tolerance[p])
        y = np.abs(W @ x + c)
        values = (signs * y[basis] - c[basis]) @ inverse.T
        fits = (np.abs(np.abs(values @ W.T + c) - y) <= widen * near).all(axis=1)
        solutions = values[fits]
        same = np.abs(solutions - x) <= widen * near
        if not offset.any():
            turned = np.abs(solutions + x) <= widen * near
            same = np.where((same.sum(axis=1) >= turned.sum(axis=1))[:, None], same, turned)
        out[:, q] = same.all(axis=0)
    return out


def _by_many_rows(
    claim: Claim, design: Design, inner: Flags, offset: Floats, left: Index, *, sure: float = 14.0
) -> Flags:
    """(columns,) whether another solution is less likely than e^−sure at any column.

    x − 2a solves the column as well if W_r·a is 0 or the row's own sum z_r, row by row. Let a ≠ 0
    on S. Rows that meet S in i alone have z_r = a_i, which at most a share β of the rows of i have
    in common. So the others meet S twice, and S holds a share α ≥ (1 − β − λ)/(k − 1) of all, λ the
    second eigenvalue of who meets whom. n rows with two choices each fix a; a further random row
    agrees with probability q ≤ ½(1 + (1−α)^k) + β. Left: 2^n·q^(m−n)."""
    W, n, k, m = design.W, design.n, design.k, len(design.rows)
    out = np.zeros(len(left), bool)
    if m <= n or n < 2 or n > 3000:
        return out
    degree = np.asarray(W.sum(axis=0)).ravel()
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
            run, most = np.ones(len(part)), np.ones(len(part))
            for one, two in pairwise(own):
                run = np.where(two - one <= 2 * claim.tolerance[part], run + 1, 1)
                most = np.maximum(most, run)
            share = np.maximum(share, most / degree[i])
        least = np.clip((1 - share - (values[-2] - 1)) / (k - 1), 0.0, 1.0)
        chance = 0.5 * (1 + (1 - least) ** k) + share
        with np.errstate(divide="ignore", invalid="ignore"):
            left_over = (m - n) * -np.log(np.minimum(chance, 1.0)) - n * log(2)
        out[start : start + 256] = (least > 0) & (left_over >= sure + log(claim.d))
    return out


def _one_by_one(claim: Claim, rows: Index, offset: Floats, certain: Flags, out: Flags) -> Flags:
    """Records join column by column: another x_i needs the same sum of partners in all rows."""
    X, tolerance, changed = claim.X, claim.tolerance, True
    where = incidence(rows, claim.n).tocsc()
    while changed:
        changed = False
        for i in np.flatnonzero(certain & ~out.all(axis=1)):
            at = where.indices[where.indptr[i] : where.indptr[i + 1]]
            todo = np.flatnonzero(~out[i] & claim.whole)
            if not len(at) or not len(todo):
                continue
            others = rows[at][rows[at] != i].reshape(len(at), -1)
            part = np.ix_(others.ravel(), todo)
            shape = (*others.shape, len(todo))
            sums = X[part].reshape(shape).sum(axis=1) + offset[np.ix_(at, todo)]
            known = out[part].reshape(shape).all(axis=1)
            high = np.where(known, sums, -np.inf).max(axis=0)
            low = np.where(known, sums, np.inf).min(axis=0)
            zero = known & (np.abs(sums + X[i, todo]) <= tolerance[todo])
            settled = todo[(high - low > 16 * tolerance[todo]) | zero.any(axis=0)]
            out[i, settled] = True
            changed = changed or len(settled) > 0
    return out
