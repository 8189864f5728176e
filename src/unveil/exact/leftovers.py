"""Encodings that are not explained yet: by known records, or by known ones and one that is new.

An encoding f whose members S but one are known proposes, at every column, two values for the last,

    z ∈ {y_f − c_f − A, −y_f − c_f − A},   A = Σ x over k − 1 known records,

and for the right A one of them is the value of the record that is missing. So one list of proposals
answers both questions for any k and any data:

    known   a proposal that is, at one column (the pivot), the value of a known record names the k
            members; all other columns then say yes or no, no signs to be tried
    new     two encodings whose proposals agree at the pivot may miss the same record; at every
            other column one of two values must be one of two. Exchanging the partners A and B of
            such a pair gives the twin −(z + A + B), which fits both as well: the shorter is taken,
            and further encodings, which fit one of them only, decide

Sums of k − 1 records are many: each encoding has its `leads`, the records whose squares go best
with its own squares, as many as the budget allows. For few records these are all of them.

Cost: leftovers · C(leads, k − 1) look-ups by bisection, each with as many checks as records are
within rounding of a proposal at the pivot: next to none where values are continuous.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb, log

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.exact.problem import (
    Claim,
    Indices,
    Mask,
    Problem,
    Progress,
    drop_unused,
    late,
    merge_copies,
)
from unveil.exact.values import solve_values

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


def complete(
    problem: Problem,
    claim: Claim,
    *,
    rng: np.random.Generator,
    rounds: int = 30,
    slack: float = 32.0,
    share: float = 0.98,
    budget: int = 1_000_000,
    crowd: int = 50_000,
    sure: float = 5.0,
    pivots: int = 2,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Claim:
    """`claim` with more rows explained, and with records that two rows or more of the rest share.

    Rows that the claim explains stay as they are; records that are one vector become one.

    rounds : of matching known records and adding new ones; it ends where nothing changes.
    slack : how far a row may miss at a column, in units of `problem.step`.
    share : of the columns, at which a match must hold; open values are left out.
    budget : proposals of all rows together.
    crowd : proposals of the rows among which new records are looked for first.
    sure : nats by which an agreement at all columns must exceed the number of pairs of proposals,
        for new records to be looked for.
    pivots : columns that are tried for look-ups, one after the other.
    """
    near, given = slack * problem.step, claim
    claim = merge_copies(claim, near)
    nats = evidence(problem, near, rng)
    tried = -1
    for _ in range(rounds):
        left = np.flatnonzero((claim.members < 0).any(axis=1))
        if not len(left) or len(claim.vectors) < problem.k or late(deadline):
            break
        columns = _pivots(problem, claim, near, pivots, rng)
        before, size = len(left), len(claim.vectors)
        leads = _leads(problem.rows(left), claim, budget)
        for pivot in columns:
            claim = _by_known(problem, claim, left, leads, pivot, near, share)
            unexplained = (claim.members[left] < 0).any(axis=1)
            left, leads = left[unexplained], leads[unexplained]
        # A few rows first: a record that many miss shows among them, and the rows it explains then
        # need no proposals. All of them, if that brings nothing.
        each = 2.0 * comb(leads.shape[1], problem.k - 1)
        few = max(16, int(crowd / each))
        for pivot, most in [(p, few) for p in columns] + [(p, len(left)) for p in columns]:
            some = rng.permutation(len(left))[:most]
            # Two rows must not seem to miss the same record by chance.
            chance = 2 * log(max(each * len(some), 2.0)) + sure > nats
            if len(some) < 2 or len(claim.vectors) > size or chance or late(deadline):
                continue
            claim = _by_one_new(problem, claim, left[some], leads[some], pivot, near, share)
        claim = merge_copies(claim, near)
        if progress:
            progress("leftovers", problem.m - len(left), problem.m)
        if len(left) == before and len(claim.vectors) == size:
            break
        if len(left) == tried and len(claim.vectors) == size:
            break
        tried = len(left)
    if late(deadline) or not len(claim.vectors):
        return claim
    claim = _without_superfluous(problem, claim, near, share, budget, pivots, rng)
    # Rows that were explained last may leave one solution at columns that had two.
    if np.array_equal(claim.members, given.members):
        return claim
    return solve_values(problem, claim.members, rng=rng, deadline=deadline, progress=progress)


def _without_superfluous(
    problem: Problem,
    claim: Claim,
    near: Floats,
    share: float,
    budget: int,
    pivots: int,
    rng: np.random.Generator,
) -> Claim:
    """The same claim without records of few rows, if others explain all of these rows."""
    uses = np.bincount(claim.members[claim.members >= 0], minlength=len(claim.vectors))
    weak = np.asarray(2 * uses < float(np.median(uses)))
    rows = np.flatnonzero((weak[claim.members] & (claim.members >= 0)).any(axis=1))
    if not len(rows) or (~weak).sum() < problem.k:
        return claim
    members = claim.members.copy()
    members[rows] = -1
    # An open value is never used for a match.
    trial = replace(claim, members=members, open=claim.open | weak[:, None])
    left = rows
    for pivot in _pivots(
        problem, replace(claim, open=claim.open & ~weak[:, None]), near, pivots, rng
    ):
        leads = _leads(problem.rows(left), trial, budget)
        trial = _by_known(problem, trial, left, leads, pivot, near, share)
        left = left[(trial.members[left] < 0).any(axis=1)]
    needed = np.zeros(len(uses), bool)
    needed[claim.members[left][claim.members[left] >= 0]] = True
    old = claim.members[rows]
    superfluous = np.any((old >= 0) & weak[old] & ~needed[old], axis=1, keepdims=True)
    members = claim.members.copy()
    members[rows] = np.where(superfluous, trial.members[rows], old)
    return drop_unused(replace(claim, members=members))


def evidence(
    problem: Problem, near: Floats, rng: np.random.Generator, *, sample: int = 2000
) -> float:
    """Nats that say against chance, where proposals of two rows agree at all columns: at each of
    them one of two values is one of two, within rounding."""
    a, b = rng.integers(problem.m, size=(2, sample))
    total = 0.0
    for p in range(problem.d):
        y = np.sort(problem.y[:, p].astype(np.float64))
        close = np.abs(problem.y[a, p] - problem.y[b, p])[a != b] <= near[p]
        width = 2 * near[p] / max(float(y[-1] - y[0]), 1e-300)
        total -= log(min(1.0, 4 * max(float(close.mean()), width)))
    return total


def _pivots(
    problem: Problem, claim: Claim, near: Floats, count: int, rng: np.random.Generator
) -> Indices:
    """Columns at which few records are open and values seldom agree by chance."""
    x = np.sort(claim.vectors, axis=0)
    useless = (np.diff(x, axis=0) <= 2 * near).sum(axis=0) + claim.open.sum(axis=0)
    return np.argsort(useless + rng.random(problem.d), kind="stable")[:count]


def _leads(rest: Problem, claim: Claim, budget: int) -> Indices:
    """(rows, leads): the records whose squares, or beside a public part whose values, go best with
    each row; as many as keep all sums of k − 1 within the budget."""
    r, k = len(claim.vectors), rest.k
    most = max(k - 1, 1)
    while most < r and rest.m * comb(most + 1, k - 1) <= budget:
        most += 1
    if most >= r or k == 1:
        return np.tile(np.arange(r), (rest.m, 1))
    x = np.where(claim.open, np.float32(0), claim.vectors)
    scale = np.sqrt(np.mean(rest.y**2, axis=0) / k) + np.float32(1e-30)
    x = x / scale
    square = np.minimum(x**2, np.float32(9))
    square = (square - square.mean(axis=0)) / (
        np.linalg.norm(square, axis=1, keepdims=True) + np.float32(1e-30)
    )
    out = np.empty((rest.m, most), np.int64)
    for s in range(0, rest.m, 4096):
        y = rest.y[s : s + 4096] / scale
        if rest.c is not None:
            c = rest.c[s : s + 4096] / scale
            score = (y * np.tanh(y * c / np.float32(k)) - c) @ x.T
        else:
            score = np.minimum(y**2, np.float32(9 * k)) @ square.T
        out[s : s + 4096] = np.argpartition(-score, most - 1, axis=1)[:, :most]
    return out


def _public(problem: Problem, rows: Indices) -> Values:
    return np.zeros((1, problem.d), np.float32) if problem.c is None else problem.c[rows]


def _by_known(
    problem: Problem,
    claim: Claim,
    left: Indices,
    leads: Indices,
    pivot: int,
    near: Floats,
    share: float,
) -> Claim:
    """Rows of `left` that k known records reproduce take them as members."""
    if not len(left):
        return claim
    usable = np.flatnonzero(~claim.open[:, pivot])
    order = usable[np.argsort(claim.vectors[usable, pivot], kind="stable")]
    found = _match(
        problem.y[left],
        _public(problem, left),
        claim.vectors,
        claim.open,
        leads,
        order,
        claim.vectors[order, pivot].astype(np.float64),
        pivot,
        near,
        share,
        problem.k,
    )
    members = claim.members.copy()
    hit = found[:, 0] >= 0
    members[left[hit]] = np.sort(found[hit], axis=1)
    return replace(claim, members=members)


def _by_one_new(
    problem: Problem,
    claim: Claim,
    left: Indices,
    leads: Indices,
    pivot: int,
    near: Floats,
    share: float,
    *,
    most: int = 200_000,
) -> Claim:
    """Pairs of rows that miss one and the same record, which is added with both of its rows."""
    k = problem.k
    y, c = problem.y[left], _public(problem, left)
    value, row, partners = _propose(y, c, claim.vectors, claim.open, leads, pivot, k)
    order = np.argsort(value, kind="stable")
    pairs = _agreeing(
        y, c, claim.vectors, claim.open, value, row, partners, order, near, share, pivot, most
    )
    # A record p that is missing gets a vote from each of its rows. p + b − c gets one from each row
    # of p and b, taken for one of c: hence most votes first, and then the shortest. The others have
    # another chance when these are known.
    votes = np.bincount(pairs.ravel(), minlength=len(value))[pairs].min(axis=1, initial=0)
    pairs, votes = (
        pairs[2 * votes >= votes.max(initial=0)],
        votes[2 * votes >= votes.max(initial=0)],
    )
    guesses = [_shared(problem, claim, left, row, partners, pair, near) for pair in pairs]
    size = np.array([float(np.abs(z).sum()) for z, _ in guesses])
    members, vectors, open_ = claim.members.copy(), [claim.vectors], [claim.open]
    free = np.ones(len(left), bool)
    for p in np.lexsort([size, -votes]):
        a, b = pairs[p]
        if not (free[row[a]] and free[row[b]]):
            continue
        # Its other rows are matched in the next round, when it is known.
        free[row[pairs[(pairs == a).any(axis=1)]]] = False
        free[row[pairs[(pairs == b).any(axis=1)]]] = False
        name = sum(map(len, vectors))
        for proposal in (a, b):
            members[left[row[proposal]]] = np.append(partners[proposal], name)
        z, unclear = guesses[p]
        vectors.append(z[None].astype(np.float32))
        open_.append(unclear[None])
    return replace(claim, vectors=np.vstack(vectors), members=members, open=np.vstack(open_))


def _shared(
    problem: Problem,
    claim: Claim,
    left: Indices,
    row: Indices,
    partners: Indices,
    pair: Indices,
    near: Floats,
) -> tuple[Floats, Mask]:
    """The record that two rows miss: its values, and where they leave more than one."""
    sums, sizes = [], []
    unclear = np.zeros(problem.d, bool)
    for proposal in pair:
        f = left[row[proposal]]
        rest = claim.vectors[partners[proposal]].sum(axis=0, dtype=np.float64)
        sums.append(rest if problem.c is None else rest + problem.c[f])
        sizes.append(problem.y[f].astype(np.float64))
        unclear |= claim.open[partners[proposal]].any(axis=0)
    guess = np.stack([sizes[0] - sums[0], -sizes[0] - sums[0]])
    miss = np.abs(np.abs(guess + sums[1]) - sizes[1])
    best = miss.argmin(axis=0)
    both = (miss <= near).all(axis=0) & (2 * sizes[0] > 4 * near)
    return guess[best, np.arange(problem.d)], unclear | both | (miss.min(axis=0) > near)


@njit(cache=True, nogil=True)
def _next(chosen, count, of):  # type: ignore[no-untyped-def]
    """The next subset of 0 … of − 1 in lexicographic order, in place; whether there is one."""
    for q in range(count - 1, -1, -1):
        if chosen[q] < of - count + q:
            chosen[q] += 1
            for s in range(q + 1, count):
                chosen[s] = chosen[s - 1] + 1
            return True
    return False


@njit(cache=True, nogil=True)
def _reproduces(y, c, x, opened, members, near, share):  # type: ignore[no-untyped-def]
    """Whether these members reproduce y at nearly all columns at which none of them is open."""
    missed = asked = 0
    for t in range(len(y)):
        s = np.float64(c[t])
        clear = True
        for q in range(len(members)):
            clear &= not opened[members[q], t]
            s += x[members[q], t]
        if clear:
            asked += 1
            if abs(abs(s) - y[t]) > near[t]:
                missed += 1
                if missed > 3 + 2 * (1 - share) * asked:
                    return False
    return missed <= (1 - share) * asked and 2 * asked > len(y)


@njit(cache=True, nogil=True)
def _match(y, c, x, opened, leads, order, value, pivot, near, share, k):  # type: ignore[no-untyped-def]
    """(rows, k): the known records that reproduce each row, −1 where there are none."""
    rows, width = leads.shape
    out = np.full((rows, k), -1, np.int64)
    members = np.empty(k, np.int64)
    chosen = np.empty(max(k - 1, 1), np.int64)
    for i in range(rows):
        o = i if len(c) > 1 else 0
        for q in range(k - 1):
            chosen[q] = q
        more = width >= k - 1
        done = False
        while more and not done:
            s = np.float64(c[o, pivot])
            clear = True
            for q in range(k - 1):
                members[q] = leads[i, chosen[q]]
                clear &= not opened[members[q], pivot]
                s += x[members[q], pivot]
            if clear:
                for sign in (-1, 1):
                    z = sign * np.float64(y[i, pivot]) - s
                    at = np.searchsorted(value, z - near[pivot])
                    while at < len(value) and value[at] <= z + near[pivot] and not done:
                        members[k - 1] = order[at]
                        at += 1
                        twice = False
                        for q in range(k - 1):
                            twice |= members[q] == members[k - 1]
                        if not twice and _reproduces(y[i], c[o], x, opened, members, near, share):
                            out[i] = members
                            done = True
            more = _next(chosen, k - 1, width)
    return out


@njit(cache=True, nogil=True)
def _propose(y, c, x, opened, leads, pivot, k):  # type: ignore[no-untyped-def]
    """All proposals at the pivot: value, row, and the k − 1 partners behind it."""
    rows, width = leads.shape
    chosen = np.empty(max(k - 1, 1), np.int64)
    total = 0
    for count in range(2):  # count them, then write them down
        if count == 1:
            value = np.empty(total)
            row = np.empty(total, np.int64)
            partners = np.empty((total, k - 1), np.int64)
            total = 0
        for i in range(rows):
            for q in range(k - 1):
                chosen[q] = q
            more = width >= k - 1
            while more:
                s = np.float64(c[i if len(c) > 1 else 0, pivot])
                clear = True
                for q in range(k - 1):
                    r = leads[i, chosen[q]]
                    clear &= not opened[r, pivot]
                    s += x[r, pivot]
                if clear:
                    for sign in (-1, 1):
                        if count == 1:
                            value[total] = sign * np.float64(y[i, pivot]) - s
                            row[total] = i
                            for q in range(k - 1):
                                partners[total, q] = leads[i, chosen[q]]
                        total += 1
                more = _next(chosen, k - 1, width)
    return value, row, partners


@njit(cache=True, nogil=True)
def _agreeing(y, c, x, opened, value, row, partners, order, near, share, pivot, most):  # type: ignore[no-untyped-def]
    """(pairs, 2): proposals of two rows that agree at nearly all columns."""
    out = np.empty((most, 2), np.int64)
    count = 0
    d = y.shape[1]
    for s in range(len(order)):
        a = order[s]
        e = s + 1
        while e < len(order) and value[order[e]] - value[a] <= near[pivot] and count < len(out):
            b = order[e]
            e += 1
            if row[a] == row[b]:
                continue
            missed = asked = 0
            i, j = row[a], row[b]
            for t in range(d):
                u = np.float64(c[i if len(c) > 1 else 0, t])
                w = np.float64(c[j if len(c) > 1 else 0, t])
                clear = True
                for q in range(partners.shape[1]):
                    clear &= not opened[partners[a, q], t] and not opened[partners[b, q], t]
                    u += x[partners[a, q], t]
                    w += x[partners[b, q], t]
                if clear:
                    asked += 1
                    plus, minus = abs(y[i, t] - u + w), abs(-y[i, t] - u + w)
                    if min(abs(plus - y[j, t]), abs(minus - y[j, t])) > near[t]:
                        missed += 1
                        if missed > 3 + 2 * (1 - share) * asked:
                            break
            if missed <= (1 - share) * asked and 2 * asked > d:
                # The same partners twice: one encoding in two copies proves nothing.
                same = True
                for q in range(partners.shape[1]):
                    same &= partners[a, q] == partners[b, q]
                if not same or (len(c) > 1):
                    out[count, 0], out[count, 1] = a, b
                    count += 1
    return out[:count]
