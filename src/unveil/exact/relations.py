"""Exact relations: equations between encodings that survive hidden signs.

The private sum of an encoding f is u_f = Σ_{i∈S_f} x_i, one of two candidates at every column
(`problem`). Two pairs of encodings with S_a − S_b = S_c − S_e (as multisets) satisfy

    u_a − u_b = u_c − u_e   at every column, whatever the data look like.

All pairs with one difference δ = u_a − u_b form a *class*. For k = 2, δ = x_i − x_l, and a class
lists the common neighbours of the records i and l in the graph whose edges are the encodings.

Search. At one column a pair has two values of |u_a − u_b| without a public part (the sum and the
difference of magnitudes), four of u_a − u_b with one. Equal keys on q *pivot* columns are found by
hashing, and checked at all columns with early exit. The range of the difference at the first pivot
is cut into blocks; the pairs of a block are enumerated from a sorted list without looking at
others, so that a block holds whole classes, needs little memory and can run anywhere
(`cluster.results`). Cost: about m²·2^(q−1) keys for all classes, less where a few blocks give
enough of them. Nothing of size m × m is stored.

A chance match passes column p with probability chance[p]; `evidence` counts agreement in nats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.engine.blocks import results
from unveil.exact.problem import Floats, Indices, Problem

BORDER = 0.377
"""Where borders of hash cells lie, in cells: away from zero and simple fractions, where values of
whole numbers pile up and rounding would scatter them over two cells."""
CELL = 8.0
"""Width of a hash cell in rounding steps. The difference of two encodings is off by at most two
steps, by a fraction of one as a rule: one relation in twenty is cut by a border."""

Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Encodings as candidates, ready for the kernels.

    Attributes
    ----------
    plus, minus : array of shape (m, d)
        The two candidates of every private sum.
    step : array of shape (d,)
        Rounding error of a candidate.
    chance : array of shape (d,)
        Probability that the differences of two random pairs agree at a column.
    public : bool
        Whether signs are absolute, because a public part is known.
    """

    plus: Floats
    minus: Floats
    step: Floats
    chance: Floats
    public: bool

    @property
    def m(self) -> int:
        return len(self.plus)

    @property
    def nats(self) -> Floats:
        """Evidence of one agreement, per column."""
        return np.asarray(-np.log(self.chance))

    @property
    def columns(self) -> Indices:
        """Columns, the most telling first."""
        return np.argsort(self.chance, kind="stable")

    def at(self, columns: Indices) -> Rows:
        """The same at some columns."""
        return replace(
            self,
            plus=np.ascontiguousarray(self.plus[:, columns]),
            minus=np.ascontiguousarray(self.minus[:, columns]),
            step=self.step[columns],
            chance=self.chance[columns],
        )


def as_rows(problem: Problem, rng: np.random.Generator, *, sample: int = 2000) -> Rows:
    """Candidates of a problem, with the chance of an agreement per column.

    sample : random pairs from which chances are counted; chances below 1/sample² are not told
    apart.
    """
    plus, minus = problem.candidates()
    step = np.maximum(problem.step, 1e-30)
    a, b = rng.integers(problem.m, size=(2, sample))
    chance = np.empty(problem.d)
    for p in range(problem.d):
        gap = np.abs(np.concatenate([plus[a, p] - plus[b, p], plus[a, p] - minus[b, p]]))
        gap = np.sort(gap[np.tile(a != b, 2)])
        near = np.searchsorted(gap, gap + CELL * step[p], side="right") - np.arange(1, len(gap) + 1)
        # Two values per pair against two of the other: four ways to agree.
        chance[p] = 4 * near.sum() / max(1.0, len(gap) * (len(gap) - 1) / 2)
    return Rows(plus, minus, step, np.clip(chance, sample**-2.0, 1.0), problem.c is not None)


def expected_relations(n: int, m: int, k: int) -> float:
    """Mean number of relations among m different k-subsets of n vectors, drawn at random.

    Two subsets that share k−t vectors differ in 2t. Their sum as a multiset has the shared vectors
    twice and the others once; pairs with the same sum share the same vectors and split the other 2t
    in halves, in C(2t, t)/2 ways. A relation is two such pairs, so that there are

        among all subsets    Q = Σ_{t=2…k} C(n, k−t) · C(n−k+t, 2t) · C(C(2t, t)/2, 2)
        among m of N         Q · m(m−1)(m−2)(m−3) / (N(N−1)(N−2)(N−3)),    N = C(n, k)

    exactly: a relation has four different subsets and one pairing. The first appear when m⁴ reaches
    N², at m ~ n^(k/2); a constant number per encoding takes m ~ n^(2k/3).
    """
    N = comb(n, k)
    if m > N:
        raise ValueError(f"m={m}: there are only {N} different subsets of {k} of {n} vectors")
    if m < 4:
        return 0.0
    every = sum(
        comb(n, k - t) * comb(n - k + t, 2 * t) * comb(comb(2 * t, t) // 2, 2)
        for t in range(2, k + 1)
    )
    # Whole numbers up to the last division: for k = 8 they exceed what a float holds exactly.
    return every * (m * (m - 1) * (m - 2) * (m - 3)) / (N * (N - 1) * (N - 2) * (N - 3))


def pick_pivots(
    rows: Rows,
    keys: float,
    options: int,
    rng: np.random.Generator,
    *,
    known: Floats | None = None,
    most: int = 9,
    budget: float = np.inf,
) -> Indices:
    """Columns on which keys are made: as many as leave a key less than one chance companion.

    Parameters
    ----------
    keys : float
        How many are compared before signs are chosen.
    options : int
        Choices of signs per further pivot.
    known : array of shape (d,) or None
        The share of values that are known at all.
    most : int
        Pivots at most.
    budget : float
        Keys at most.

    Which of the best columns is left to chance, so that a second attempt differs.
    """
    chance = rows.chance if known is None else rows.chance**known
    order = np.argsort(chance * np.exp(0.3 * rng.standard_normal(len(chance))))
    order = order[chance[order] < 0.7] if (chance < 0.7).any() else order[:1]
    left, q = float(np.log(max(keys, 2.0))), 0
    while q < min(most, len(order)) and left > 0 and keys * options ** (q + 1) <= budget:
        # A further pivot multiplies the keys by the choices of signs, which are in chance, too: of
        # its companions each key has a share.
        left += float(np.log(rows.chance[order[q]] / options))
        q += 1
    return order[: max(q, 1)]


def difference_classes(
    rows: Rows,
    rng: np.random.Generator,
    *,
    block: float = 5e5,
    longest: int = 200,
) -> Iterator[tuple[float, list[Indices]]]:
    """Classes of pairs with one common difference, block by block.

    Yields the share of the work that is done, and the classes of a block: arrays (size, 2) of
    encodings, oriented so that u_a − u_b is the same for all of them where a public part fixes
    signs; without one the two encodings of a pair may be swapped.

    block : keys per block; a table of eight times as many bytes should fit the cache.
    longest : runs of equal keys beyond this length are cut; they come from constant values.
    """
    m = rows.m
    options = 4 if rows.public else 2
    pivots = pick_pivots(rows, m * m / 2.0, options, rng)
    first = pivots[0]
    a, b = rng.integers(m, size=(2, 4000))
    gaps = np.abs(
        np.concatenate([rows.plus[a, first] - rows.plus[b, first]] * 2
                       + [rows.plus[a, first] - rows.minus[b, first]] * 2)
    )  # fmt: skip
    keys = m * m * (2.0 if rows.public else 1.0) * options ** (len(pivots) - 1)
    count = int(np.ceil(keys / block))
    borders = np.quantile(gaps, np.linspace(0, 1, count + 1)[1:-1]) if count > 1 else np.empty(0)
    borders = np.unique(np.concatenate([[-1.0], borders, [np.inf]]))
    # Of a column of whole numbers single values are many: their blocks have larger tables.
    sizes = np.diff(np.searchsorted(np.sort(gaps), borders)) / len(gaps) * keys
    spans = [
        (float(lo), float(hi), float(max(size, block)))
        for lo, hi, size in zip(borders, borders[1:], sizes, strict=False)
    ]
    rng.shuffle(spans)
    found = results(_classes_between, (rows, pivots, longest), spans)
    for done, (_, classes) in enumerate(found, 1):
        yield done / len(spans), classes


def noisy_rows(
    problem: Problem,
    rng: np.random.Generator,
    *,
    levels: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
    few: int = 20,
    work: float = 0.3,
    chance: float = 0.75,
    deadline: float = np.inf,
) -> Rows | None:
    """Candidates with the noise as their rounding error, None where no noise is seen.

    Relations that are let miss by δ at every column miss by any amount up to it where they are
    accidents, and by the noise where they are not. So the largest misses that are allowed, `levels`
    in units of a record's deviation, rise until relations come that miss by less than accidents.

    few : relations that are enough. work : the share of all pairs that is looked at. chance : how
    much less than accidents they must miss.
    """
    unit = np.sqrt(np.mean(np.square(problem.y, dtype=np.float64), axis=0) / problem.k)
    for level in levels:
        rows = as_rows(replace(problem, step=np.maximum(problem.step, level * unit)), rng)
        quads: list[Indices] = []
        for share, classes in difference_classes(rows, rng):
            quads += [np.append(pairs[0], other) for pairs in classes for other in pairs[1:]]
            if len(quads) >= few or share > work or time.monotonic() > deadline:
                break
        if len(quads) < few:
            continue
        a, b, c, e = rows.plus[np.array(quads).T]
        miss = np.min(
            [np.abs(np.abs(a + s * b) - np.abs(c + t * e)) for s in (1, -1) for t in (1, -1)],
            axis=0,
        )
        size = float(np.median(np.sqrt(np.mean((miss / rows.step) ** 2, axis=1))))
        if size < chance * 4 / np.sqrt(3):
            return as_rows(replace(problem, step=np.maximum(problem.step, size * rows.step)), rng)
    return None


def _classes_between(
    shared: tuple[Rows, Indices, int], span: tuple[float, float, float]
) -> list[Indices]:
    """The classes whose difference at the first pivot has a magnitude within the span: from, to,
    and how many keys that are, roughly."""
    rows, pivots, longest = shared
    m = rows.m
    part = rows.at(pivots)
    width = CELL * part.step
    value = np.concatenate([part.plus[:, 0], part.minus[:, 0]])
    order = np.argsort(value, kind="stable")
    value, row = value[order], (order % m).astype(np.int64)
    # Borders of a span are borders of cells, so that no cell is cut in two.
    low = -np.inf if span[0] < 0 else np.floor(span[0] / width[0])
    high = np.floor(span[1] / width[0]) if np.isfinite(span[1]) else np.inf
    plus, minus = part.plus / width, part.minus / width
    key, pair = colliding(
        _block_keys, (value / width[0], row, plus, minus, rows.public, low, high), span[2]
    )
    label = _label_runs(
        key, pair, rows.plus, rows.minus, rows.step, rows.columns, rows.public, longest
    )
    hit = np.flatnonzero(label >= 0)
    hit = hit[np.argsort(label[hit], kind="stable")]
    groups = np.split(pair[hit], np.flatnonzero(np.diff(label[hit])) + 1)
    pairs = (np.unique(group) for group in groups)
    return [np.stack([one // m, one % m], axis=1) for one in pairs if len(one) > 1]


def colliding(
    kernel: Callable[..., int], arguments: tuple[Any, ...], expected: float
) -> tuple[Keys, Indices]:
    """Keys that occur twice and more, sorted, with the numbers that came with them.

    kernel(*arguments, table, key, number) says every key to `note`; it is called twice, so that
    keys that occur once, nearly all of them, are counted in a table of bytes and never stored.

    expected : keys, roughly.
    """
    bits = int(np.clip(np.ceil(np.log2(expected)) + 3, 16, 26))
    table = np.zeros(1 << bits, np.uint8)
    hits = kernel(*arguments, table, np.empty(0, np.uint64), np.empty(0, np.int64))
    key, number = np.empty(2 * hits, np.uint64), np.empty(2 * hits, np.int64)
    size = kernel(*arguments, table, key, number) if hits else 0
    order = np.argsort(key[:size], kind="stable")
    return key[order], number[order]


@njit(cache=True, nogil=True)
def note(h, n, table, key, number, size):  # type: ignore[no-untyped-def]
    """Count a key, or, once there is room for keys, store it where others share its place in the
    table; the number of keys that met another one, or of those stored."""
    slot = h & np.uint64(len(table) - 1)
    if len(key) == 0:
        size += table[slot] > 0
        table[slot] = min(2, table[slot] + 1)
    elif table[slot] > 1:
        key[size] = h
        number[size] = n
        size += 1
    return size


@njit(cache=True, nogil=True)
def mix(key: Any, cell: Any) -> Any:
    """A 64-bit hash, one more cell."""
    key = (key ^ np.uint64(cell)) * np.uint64(0x9E3779B97F4A7C15)
    return key ^ (key >> np.uint64(29))


@njit(cache=True, nogil=True)
def _block_keys(value, row, plus, minus, public, low, high, table, key, pair):  # type: ignore[no-untyped-def]
    """Keys of all pairs whose difference at the first pivot lies in cells low ≤ cell < high, for
    `colliding`; values are in cells."""
    n = len(value)
    m, q = plus.shape
    options = 4 if public else 2
    cell = np.empty((q, 4), np.int64)
    stack = np.empty(options ** (q - 1), np.uint64)
    near, far = 0, 0
    kept = 0
    for s in range(n):
        a = row[s]
        while near < n and np.floor(value[s] - value[near] + BORDER) >= low:
            near += 1
        while far < n and np.floor(value[s] - value[far] + BORDER) >= high:
            far += 1
        for t in range(far, min(near, s)):
            b = row[t]
            # Without a public part (b, a) has the same difference with all signs turned.
            if a == b or (not public and a > b):
                continue
            start = mix(np.uint64(1), np.int64(np.floor(value[s] - value[t] + BORDER)))
            for p in range(1, q):
                if public:
                    cell[p, 0] = np.int64(np.floor(plus[a, p] - plus[b, p] + BORDER))
                    cell[p, 1] = np.int64(np.floor(plus[a, p] - minus[b, p] + BORDER))
                    cell[p, 2] = np.int64(np.floor(minus[a, p] - plus[b, p] + BORDER))
                    cell[p, 3] = np.int64(np.floor(minus[a, p] - minus[b, p] + BORDER))
                else:
                    cell[p, 0] = np.int64(np.floor(abs(plus[a, p] - plus[b, p]) + BORDER))
                    cell[p, 1] = np.int64(np.floor(plus[a, p] + plus[b, p] + BORDER))
            # All choices of signs, pivot by pivot; from the end, so that nothing is overwritten.
            stack[0] = start
            size = 1
            for p in range(1, q):
                for i in range(size - 1, -1, -1):
                    h = stack[i]
                    for o in range(options):
                        stack[i * options + o] = mix(h, cell[p, o])
                size *= options
            for i in range(size):
                kept = note(stack[i], a * m + b, table, key, pair, kept)
    return kept


@njit(cache=True, nogil=True)
def _label_runs(key, pair, plus, minus, step, columns, public, longest):  # type: ignore[no-untyped-def]
    """For every entry of a run of equal keys the position of the first one that it agrees with, or
    −1 where it agrees with none."""
    n, m = len(key), len(plus)
    label = np.full(n, -1, np.int64)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and key[stop] == key[start]:
            stop += 1
        last = min(stop, start + longest)
        for i in range(start, last):
            if label[i] >= 0:
                continue
            a, b = pair[i] // m, pair[i] % m
            for j in range(i + 1, last):
                c, e = pair[j] // m, pair[j] % m
                if label[j] >= 0 or a in (c, e) or b in (c, e):
                    continue
                if agree(plus, minus, step, columns, a, b, c, e, public):
                    label[i] = i
                    label[j] = i
        start = stop
    return label


@njit(cache=True, nogil=True)
def agree(plus, minus, step, columns, a, b, c, e, public):  # type: ignore[no-untyped-def]
    """Whether u_a − u_b = u_c − u_e at every column, for some choice of candidates."""
    for p in columns:
        near = 4 * step[p]
        if public:
            good = False
            for x in (plus[a, p], minus[a, p]):
                for z in (plus[b, p], minus[b, p]):
                    for v in (plus[c, p], minus[c, p]):
                        for w in (plus[e, p], minus[e, p]):
                            good |= abs(x - z - v + w) <= near
            if not good:
                return False
        else:
            s, t = plus[a, p] + plus[b, p], abs(plus[a, p] - plus[b, p])
            v, w = plus[c, p] + plus[e, p], abs(plus[c, p] - plus[e, p])
            if abs(s - v) > near and abs(s - w) > near and abs(t - v) > near and abs(t - w) > near:
                return False
    return True


@njit(cache=True, nogil=True)
def class_values(plus, minus, step, pairs, public):  # type: ignore[no-untyped-def]
    """δ (d,) and u_a (pairs, d) with u_a − u_b = δ for all pairs of a class.

    NaN at columns where values of few levels leave a choice."""
    c, d = len(pairs), plus.shape[1]
    delta = np.full(d, np.nan)
    first = np.full((c, d), np.nan)
    for p in range(d):
        near = 4 * step[p]
        found, value = 0, 0.0
        a0, b0 = pairs[0]
        for u in (plus[a0, p], minus[a0, p]):
            for w in (plus[b0, p], minus[b0, p]):
                guess = u - w
                if not public and guess < -near:
                    continue
                good = True
                for s in range(1, c):
                    hit = False
                    for v in (plus[pairs[s, 0], p], minus[pairs[s, 0], p]):
                        for z in (plus[pairs[s, 1], p], minus[pairs[s, 1], p]):
                            hit |= abs(v - z - guess) <= near
                    good &= hit
                if good and (found == 0 or abs(guess - value) > near):
                    found += 1
                    value = guess
        if found != 1:
            continue
        whole = True
        for s in range(c):
            count, held = 0, 0.0
            for v in (plus[pairs[s, 0], p], minus[pairs[s, 0], p]):
                for z in (plus[pairs[s, 1], p], minus[pairs[s, 1], p]):
                    if abs(v - z - value) <= near and (count == 0 or abs(v - held) > near):
                        count += 1
                        held = v
            if count == 1:
                first[s, p] = held
            else:
                whole = False
        if whole:
            delta[p] = value
        else:
            first[:, p] = np.nan
    return delta, first
