"""Records mixed in pairs (k = 2): grown from exact relations by votes.

Records are the vertices of a graph, encodings its edges: u_f = x_v + x_w for the edge f = {v, w},
known up to a sign at every column. A class of pairs with one difference δ = x_i − x_l (`relations`)
gives the first records up to a *gauge* t = x_i, unknown:

    x_v = p_v + σ_v·t,   p_i = 0, p_l = −δ (σ = +1),   p_j = u_ij (σ = −1) for common neighbours j.

Then records vote. If f is an edge of a known v, its other end has p = u_f − p_v and parity −σ_v:
one of two values per column. The 2^q choices on q pivot columns are hashed; an unknown record gets
a vote from *every* known neighbour, chance keys get one. Groups of two and more are checked at all
columns. The gauge cancels in every even cycle. In a graph with odd cycles records turn up with
both parities, and p_v⁻ − p_v⁺ = 2t for all of them: t is the most frequent difference.

Twins. Where signs are hidden, a record x with two known neighbours v, u has a second reading: with
its two encodings exchanged, −(x + x_v + x_u) explains them as well. A third neighbour decides.
Until there is one, the shorter of both is believed, and its encodings stay free for others. Before
the gauge is known twins are more than accidents: p ↦ −p + σ·(p_v + p_u) maps the whole solution to
another one, which exchanges v and u. Such mirrored solutions grow beside the true one, each with a
t of its own; the most frequent t singles out one of them, and only its records are kept to go on
from.

Take-off. With g encodings per record, two votes reach a²g²/2n new records from a known ones: a
handful does not take off beyond n ≈ g²·4. So each known edge also extends along all other classes
that hold it: a four-cycle through a known edge gives two further records at once, in a few
readings, of which the wrong ones find no further support and are dropped.

Cost: voters × encodings × 2^q keys per round, ten to twenty rounds; memory is linear in m.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.exact.columns import adjacency, core_values, find_cores, polish
from unveil.exact.problem import Floats, Indices, Mask
from unveil.exact.relations import (
    BORDER,
    CELL,
    Rows,
    class_values,
    colliding,
    difference_classes,
    mix,
    note,
    pick_pivots,
)

Progress = Callable[[str, int, int], None]

NEAR = 6.0
"""How far sums of two records may be from a candidate, in rounding steps: three of them are
added."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Records x (r, d), NaN where a value is undecided, and members (m, 2), −1 where no pair of
    records explains an encoding."""

    x: Floats
    members: Indices

    @property
    def explained(self) -> float:
        """The share of encodings whose members are known."""
        return float((self.members[:, 0] >= 0).mean())

    @property
    def least_uses(self) -> int:
        """Encodings of the record that has fewest."""
        used = np.bincount(self.members[self.members >= 0], minlength=len(self.x))
        return int(used.min()) if len(used) else 0


def grow_pairs(
    rows: Rows,
    rng: np.random.Generator,
    *,
    starts: tuple[tuple[float, int, int], ...] = ((0.0, 0, 60), (0.3, 60, 10)),
    enough: float = 0.5,
    more: int = 3,
    rounds: int = 60,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Pairs:
    """The records behind encodings of two records each.

    Parameters
    ----------
    starts : tuples (share, extend, seeds)
        How growth starts, in this order, each time the number of relations has doubled: once this
        share of them is known, with extension up to so many records (0: by votes alone), from so
        many classes: those first that hang together with most others, then the largest. Votes alone
        take off up to a thousand records.
    enough : float
        A start that explains this share of the encodings is no accident: false ones explain a few.
    more : int
        Where a good start does not explain all encodings, or needs records that are used no more
        than three times, so many others are tried: the best explains most with fewest records.
    rounds : int
        Rounds of votes; a growth that takes off needs about ten.
    deadline : float
        time.monotonic() at which the best so far is returned.
    """
    best, good = _nothing(rows), 0
    classes: list[Indices] = []
    tried: set[tuple[int, int, int]] = set()
    checkpoint = 0.0
    for share, block in difference_classes(rows, rng):
        classes += block
        if progress:
            progress("relations", round(1000 * share), 1000)
        late = time.monotonic() > deadline
        if share < checkpoint and not late and share < 1:
            continue
        checkpoint = max(2 * share, share + 0.02)
        index = _ClassIndex(classes, rows.m)
        within = index.connected()
        order = sorted(range(len(classes)), key=lambda i: (-within[i], -len(classes[i])))
        largest = [classes[i] for i in order]
        for since, extend, seeds in starts:
            fresh = [c for c in largest if (extend, int(c[0, 0]), int(c[0, 1])) not in tried]
            for pairs in fresh[: seeds if share >= since else 0]:
                if time.monotonic() > deadline:
                    return best
                tried.add((extend, int(pairs[0, 0]), int(pairs[0, 1])))
                growth = _Growth(rows, index, rng)
                if not growth.start(pairs):
                    continue
                growth.run(rounds, deadline, progress, extend=extend)
                if not growth.absolute or growth.doubled():
                    continue
                grown = growth.finish(deadline)
                if (grown.explained, -len(grown.x)) > (best.explained, -len(best.x)):
                    best = grown
                good += grown.explained > enough
                if good > more or (grown.explained == 1 and grown.least_uses > 3):
                    return best
            if good:
                return best
        if late:
            return best
    return best


def grow_from(
    rows: Rows,
    members: Indices,
    rng: np.random.Generator,
    *,
    rounds: int = 20,
    known: float = 0.5,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Pairs:
    """The same where most of the members (m, 2) are known already: some may be wrong or −1, some
    records there twice, some missing.

    known : the share of its columns at which a record must have a value.
    """
    growth = _Growth(rows, _ClassIndex([], rows.m), rng)
    x = values_along(rows, members, growth.near)
    growth.p, growth.parity, growth.absolute = x, np.zeros(len(x), np.int64), True
    whole = np.flatnonzero((members >= 0).all(axis=1) & (members[:, 0] != members[:, 1]))
    total = x[members[whole, 0]] + x[members[whole, 1]]
    miss = np.minimum(np.abs(total - rows.plus[whole]), np.abs(total - rows.minus[whole]))
    whole = whole[((miss <= growth.near) | np.isnan(miss)).all(axis=1)]
    growth.edges = np.column_stack([np.sort(members[whole], axis=1), whole])
    growth._keep(np.isnan(x).mean(axis=1) <= 1 - known)
    growth._unify()
    growth.run(rounds, deadline, progress, voters=len(growth.p))
    return growth.finish(deadline)


def values_along(
    rows: Rows, members: Indices, near: Floats, *, cores: int = 20, enough: float = 0.5
) -> Floats:
    """x (n, d): records along encodings whose members are known, NaN where one is not reached.

    From a core (`columns`), whose signs are tried at every column, to records with two known
    neighbours, and along ears of three encodings where there are none. All columns must agree on
    every step, so that a wrong row is not followed, and stops nothing: two others that agree lead
    to the same record.

    cores : that are tried. enough : share of the records; who reaches so many is believed.
    """
    n = int(members.max(initial=-1)) + 1
    edges = np.flatnonzero((members >= 0).all(axis=1) & (members[:, 0] != members[:, 1]))
    graph = adjacency(members[edges], n)
    plus, minus = rows.plus[edges], rows.minus[edges]
    best = np.full((n, plus.shape[1]), np.nan)
    for vertices, steps in zip(*find_cores(graph, cores), strict=True):
        vertices, steps = vertices[vertices >= 0], steps[steps[:, 0] >= 0]
        local = np.column_stack([steps[:, :2], np.arange(len(steps))])
        x = np.full_like(best, np.nan)
        fits = 0
        for p in range(len(near)):
            column = plus[steps[:, 2], p], minus[steps[:, 2], p], near[p]
            values = core_values(column, vertices, local, not rows.public)
            fits += len(values) > 0
            if len(values) == 1:
                x[vertices, p] = values[0]
        if fits < 0.9 * len(near) or np.isnan(x[vertices]).mean() > 0.5:
            continue
        _reach(x, vertices, plus, minus, near, rows.columns, graph)
        if np.isnan(x).mean() < np.isnan(best).mean():
            best = x
        if np.isnan(best).mean() < 1 - enough:
            break
    return best


def _nothing(rows: Rows) -> Pairs:
    return Pairs(np.empty((0, rows.plus.shape[1])), np.full((rows.m, 2), -1))


class _ClassIndex:
    """Classes, and which of them hold an encoding."""

    def __init__(self, classes: list[Indices], m: int) -> None:
        self.classes = classes
        sizes = np.array([2 * len(c) for c in classes], np.int64)
        flat = np.concatenate([c.ravel() for c in classes]) if classes else np.empty(0, np.int64)
        owner = np.repeat(np.arange(len(classes)), sizes)
        order = np.argsort(flat, kind="stable")
        self._owner = owner[order]
        self._start = np.append(0, np.cumsum(np.bincount(flat, minlength=m)))

    def connected(self) -> Indices:
        """For every class, how many hang together with it by encodings that they share."""
        n = len(self.classes)
        rows = np.repeat(np.arange(len(self._start) - 1), np.diff(self._start))
        ends = (self._owner, n + rows)
        graph = sparse.csr_array(
            (np.ones(len(rows)), ends), shape=(n + rows.max(initial=0) + 1,) * 2
        )
        name = connected_components(graph, directed=False)[1][:n]
        return np.bincount(name)[name]

    def holding(self, row: int) -> Indices:
        return self._owner[self._start[row] : self._start[row + 1]]


class _Growth:
    """Records found so far: p (r, d) with x = p + parity·t, parity (r,) of ±1, and edges (e, 3):
    two records and the encoding that mixes them. Once the gauge is known (`absolute`) p = x and
    parity = 0."""

    def __init__(self, rows: Rows, index: _ClassIndex, rng: np.random.Generator) -> None:
        d = rows.plus.shape[1]
        self.rows, self.index, self.rng, self.absolute = rows, index, rng, False
        self.p, self.parity = np.empty((0, d)), np.empty(0, np.int64)
        self.edges = np.empty((0, 3), np.int64)
        self.scale = np.sqrt(np.mean(rows.plus**2, axis=0)) + 1e-30
        self.near = NEAR * rows.step
        self.least = 2 if rows.public else 3
        self.extended: set[int] = set()

    # -- 1. the first class ------------------------------------------------------------------
    def start(self, pairs: Indices) -> bool:
        """From a class: two records i, l and their common neighbours. Where signs are hidden the
        two encodings of a neighbour may be swapped (u_a, u_b → −u_b, −u_a), and belong to the
        mirrored solution that exchanges i and l: both readings are taken, and both grow."""
        rows = self.rows
        delta, first = class_values(rows.plus, rows.minus, rows.step, pairs, rows.public)
        known = ~np.isnan(delta)
        # δ = 0: encodings of the same records with different public parts.
        if known.sum() < min(3, len(delta)) or np.nanmax(np.abs(delta) / rows.step) < 2 * NEAR:
            return False
        if not rows.public:
            first, pairs = np.vstack([first, delta - first]), np.vstack([pairs, pairs[:, ::-1]])
        self.p = np.vstack([np.where(known, 0.0, np.nan), -delta, first])
        self.parity = np.array([1, 1] + [-1] * len(pairs))
        j = np.arange(2, 2 + len(pairs))
        self.edges = np.vstack(
            [np.stack([0 * j, j, pairs[:, 0]], 1), np.stack([0 * j + 1, j, pairs[:, 1]], 1)]
        )
        return True

    # -- 2. growth ---------------------------------------------------------------------------
    def run(
        self,
        rounds: int,
        deadline: float,
        progress: Progress | None,
        *,
        extend: int = 0,
        voters: int = 400,
        patience: int = 3,
        agree: int = 12,
    ) -> None:
        """Rounds of votes until nothing is added for a while.

        extend : while fewer records have three edges, known edges extend along other classes.
        voters : records that vote in a round, the newest and some others; more where encodings are
            many. Of 1,000 records with 14 neighbours each, 400 know five of every unknown one.
        agree : records of both parities that must share a gauge, fewer where encodings are few.
        """
        voters = max(voters, self.rows.m // 14)
        still, new, free = 0, np.arange(len(self.p)), self.rows.m
        for _ in range(rounds):
            # Every encoding has two ends, and a record is strong by three.
            if time.monotonic() > deadline or self._strong().sum() > self.rows.m:
                break
            before = len(self.p)
            few = not self.absolute and int(self._strong().sum()) < extend
            guesses = self._extend(voters) if few else np.empty(0, np.int64)
            degree = self._degree()
            old = np.setdiff1d(np.arange(before), new)
            spare = max(voters - len(new), voters // 4)
            some = np.concatenate([guesses, new[-voters:], self.rng.permutation(old)[:spare]])
            self._vote(some, deadline)
            # A guess without an edge beyond those that it was made of was wrong.
            gained = self._degree()
            gained[: len(degree)] -= degree
            keep = np.ones(len(self.p), bool)
            keep[guesses] = gained[guesses] > 0
            self._keep(keep)
            new = np.arange(before, len(self.p))
            if len(new):
                self._refresh()
                self._refit()
            # Once the gauge is known, chance records are added as long as any encoding is free.
            left, free = free, len(self._free_rows())
            still = 0 if len(new) and (free < left or not self.absolute) else still + 1
            if progress:
                progress("records", len(np.unique(self.edges[:, 2])), self.rows.m)
            if not self.absolute and self._fix_gauge(int(np.clip(self.rows.m / 20, 4, agree))):
                new, still, free = np.arange(len(self.p)), 0, self.rows.m
                continue
            if still >= (patience if len(self.p) > 20 else 2):
                break

    def _degree(self) -> Indices:
        """How many neighbours each record has."""
        return _neighbours(self.edges[:, :2], len(self.p))

    def _strong(self) -> Mask:
        """Records with edges enough to exclude a twin."""
        return np.asarray(self._degree() >= self.least)

    def _keep(self, keep: Mask) -> None:
        """Drop the other records, and their edges."""
        if keep.all():
            return
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        self.p, self.parity = self.p[keep], self.parity[keep]
        edges = self.edges[keep[self.edges[:, :2]].all(axis=1)]
        edges[:, :2] = place[edges[:, :2]]
        self.edges = edges

    def _join(self, values: list[Floats], parities: list[int], edges: list[Indices]) -> None:
        """Add records and edges."""
        if values:
            self.p = np.vstack([self.p, *values])
            self.parity = np.append(self.parity, np.array(parities, np.int64))
        both = np.vstack([self.edges, *edges])
        both[:, :2].sort(axis=1)
        self.edges = np.unique(both, axis=0)

    def _extend(self, most: int) -> Indices:
        """Guesses two steps on, along classes that hold a known edge: two readings of that edge,
        and two of every further neighbour in the class. About `most` of them; returns their
        numbers."""
        rows, count = self.rows, len(self.p)
        values: list[Floats] = []
        parities: list[int] = []
        edges: list[Indices] = []
        degree = self._degree()
        known = np.unique(self.edges[:, 2])
        best_first = np.argsort(-degree[self.edges[:, :2]].min(axis=1), kind="stable")
        for v, w, row in self.edges[best_first]:
            if int(row) in self.extended:
                continue
            if len(values) >= most:
                break
            self.extended.add(int(row))
            total = self.p[v] + self.p[w]
            for number in self.index.holding(int(row)):
                pairs = self.index.classes[number]
                if np.isin(pairs, known).all():
                    continue
                delta, first = class_values(rows.plus, rows.minus, rows.step, pairs, rows.public)
                at = int(np.flatnonzero((pairs == row).any(axis=1))[0])
                if pairs[at, 1] == row:  # the ends of the class, exchanged
                    first, delta, pairs = first - delta, -delta, pairs[:, ::-1]
                # The signs of the class are those of the known edge, column by column.
                turn = np.where(np.abs(first[at] - total) <= self.near, 1.0, np.nan)
                if not rows.public:
                    turn = np.where(np.abs(first[at] + total) <= self.near, -1.0, turn)
                if np.isnan(turn).mean() > 0.5:
                    continue
                delta, first = turn * delta, turn * first
                for i, j in ((v, w), (w, v)):
                    far = count + len(values)
                    values.append(first[at] - delta - self.p[j])
                    parities.append(int(self.parity[i]))
                    edges.append(np.array([[far, j, pairs[at, 1]]]))
                    for s in np.delete(np.arange(len(pairs)), at):
                        readings = [(first[s], pairs[s])]
                        if not rows.public:
                            readings.append((delta - first[s], pairs[s, ::-1]))
                        for u, (a, b) in readings:
                            one = count + len(values)
                            values.append(u - self.p[i])
                            parities.append(int(self.parity[j]))
                            edges.append(np.array([[one, i, a], [one, far, b]]))
        if values:
            self._join(values, parities, edges)
            self._unify(count)
        return np.arange(count, len(self.p))

    def _unify(self, first: int = 0) -> None:
        """Records found twice become one, the earlier; only those from `first` on are dropped."""
        for border in (BORDER, BORDER + 0.5):  # twice: cells have borders
            self._unify_cells(first, border)

    def _unify_cells(self, first: int, border: float, *, pivots: int = 4) -> None:
        """pivots : columns that are compared before all are."""
        gaps = np.isnan(self.p).sum(axis=0)
        some = np.lexsort((self.rows.chance, gaps))[:pivots]
        cell = np.floor(self.p[:, some] / (4 * CELL * self.rows.step[some]) + border)
        whole = np.flatnonzero(~np.isnan(cell).any(axis=1))
        if not len(whole):
            return
        cells = np.column_stack([cell[whole], self.parity[whole]])
        _, index, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        into = np.arange(len(self.p))
        into[whole] = whole[index[inverse.ravel()]]
        moved = np.flatnonzero((into != np.arange(len(self.p))) & (np.arange(len(self.p)) >= first))
        with np.errstate(invalid="ignore"):
            apart = (np.abs(self.p[moved] - self.p[into[moved]]) > 2 * self.near).any(axis=1)
        moved = moved[~apart]
        place = np.arange(len(self.p))
        place[moved] = into[moved]
        self.p[place[moved]] = np.where(
            np.isnan(self.p[place[moved]]), self.p[moved], self.p[place[moved]]
        )
        self.edges[:, :2] = np.sort(place[self.edges[:, :2]], axis=1)
        self.edges = np.unique(self.edges[self.edges[:, 0] != self.edges[:, 1]], axis=0)
        keep = np.ones(len(self.p), bool)
        keep[moved] = False
        self._keep(keep)

    def _vote(self, voters: Indices, deadline: float, *, block: float = 5e5) -> None:
        """One round of votes: new edges between known records, and new records.

        block : keys per range of the candidates' values at the first pivot."""
        rows, free = self.rows, self._free_rows()
        votes = 2.0 * len(voters) * len(free)
        if not votes:
            return
        known = 1 - np.isnan(self.p[voters]).mean(axis=0)
        pivots = pick_pivots(rows, votes, 2, self.rng, known=known, budget=4e8)
        voters = voters[~np.isnan(self.p[np.ix_(voters, pivots)]).any(axis=1)]
        if not len(voters):
            return
        part, width = rows.at(pivots), CELL * rows.step[pivots]
        plus, minus, at = part.plus / width, part.minus / width, self.p[:, pivots] / width
        value = np.concatenate([plus[free, 0], minus[free, 0]])
        order = np.argsort(value, kind="stable")
        value, row = value[order], np.tile(free, 2)[order]
        # Rows that a record explains already; two for each parity, and a few of mirrored solutions.
        owner = _owners(self._firm_edges(), rows.m)
        count = int(np.ceil(votes * 2.0 ** (len(pivots) - 1) / block))
        sample = self.rng.choice(value, 4000) - at[self.rng.choice(voters, 4000), 0]
        borders = np.quantile(sample, np.linspace(0, 1, count + 1)[1:-1]) if count > 1 else []
        borders = np.unique(np.floor(np.concatenate([[-np.inf], borders, [np.inf]])))
        found = []
        needed = 2 * np.log(votes) + 2
        for low, high in pairwise(borders):
            if time.monotonic() > deadline:
                break
            arguments = (at, self.parity, voters, value, row, plus, minus, owner, low, high)
            key, ident = colliding(_votes, arguments, block)
            if not len(key):
                continue
            found.append(
                _groups(
                    key, ident, rows.m, self.p, rows.plus, rows.minus, self.near,
                    rows.columns, rows.nats, needed,
                )
            )  # fmt: skip
        if found:
            sizes = np.concatenate([np.diff(start) for start, _, _ in found])
            self._add(
                np.append(0, np.cumsum(sizes)),
                np.concatenate([flat for _, flat, _ in found]),
                np.concatenate([home for _, _, home in found]),
            )

    def _firm_edges(self) -> Indices:
        strong = self._strong()
        return self.edges[strong[self.edges[:, 0]] & strong[self.edges[:, 1]]]

    def _free_rows(self) -> Indices:
        """Encodings not yet explained: by an edge, or, before the gauge is known, by one for each
        parity."""
        count = np.bincount(self._firm_edges()[:, 2], minlength=self.rows.m)
        return np.flatnonzero(count < (1 if self.absolute else 2))

    def _add(self, start: Indices, flat: Indices, home: Indices) -> None:
        """Groups of votes: first new edges between known records, then new records, those with most
        votes first. Once the gauge is known a row that is explained has no vote left: three rows of
        a triangle look like a star, with the negative sum of its corners in the middle."""
        m = self.rows.m
        at, row = flat // m, flat % m
        group = np.repeat(np.arange(len(home)), np.diff(start))
        old = home[group] >= 0
        edges = [np.stack([home[group[old]], at[old], row[old]], axis=1)]
        explained = np.zeros(m, bool)
        if self.absolute:
            explained[row[old]] = True
        fresh = np.diff(start) * (home < 0)
        values: list[Floats] = []
        parities: list[int] = []
        claimed: set[int] = set()
        trusted = False
        shift = self._shortest_gauge()
        for g in np.argsort(-fresh, kind="stable")[: int((fresh >= 2).sum())]:
            if trusted and fresh[g] == 2 and not self.rows.public:
                break  # two votes are not believed while there are records with three
            here = slice(start[g], start[g + 1])
            f, once = np.unique(row[here], return_index=True)
            v = at[here][once]
            keep = ~explained[f] & np.array([vote not in claimed for vote in (v * m + f).tolist()])
            f, v = f[keep], v[keep]
            if len(f) < 2:
                continue
            value, bad = self._ends(v, f)
            if bad:
                continue
            parity = int(-self.parity[v[0]])
            if len(f) == 2 and not self.rows.public:
                twin, bad = self._ends(v[::-1].copy(), f)
                if not bad and self._length(twin + parity * shift) < self._length(
                    value + parity * shift
                ):
                    continue
            trusted |= len(f) > 2
            claimed.update((v * m + f).tolist())
            one = len(self.p) + len(values)
            edges.append(np.stack([np.full(len(f), one), v, f], axis=1))
            values.append(value)
            parities.append(parity)
        self._join(values, parities, edges)

    def _shortest_gauge(self) -> Floats:
        """The gauge that makes the records known so far shortest; 0 once it is known."""
        if self.absolute:
            return np.zeros(self.p.shape[1])
        known = ~np.isnan(self.p)
        total = np.where(known, self.p * self.parity[:, None], 0.0).sum(axis=0)
        return np.asarray(-total / np.maximum(known.sum(axis=0), 1))

    def _length(self, value: Floats) -> float:
        square = (value / self.scale) ** 2
        known = ~np.isnan(square)
        return float(square[known].mean()) if known.any() else 0.0

    def _ends(self, v: Indices, f: Indices) -> tuple[Floats, bool]:
        """The value in which the edges f of the records v end, and whether there is none."""
        value, bad = _meet(self.p, self.rows.plus, self.rows.minus, self.near, v, f)
        return value, bool(bad)

    def _refresh(self) -> None:
        """Values still undecided, from all edges."""
        gaps = np.flatnonzero(np.isnan(self.p).any(axis=1))
        if not len(gaps):
            return
        ends = np.concatenate([self.edges, self.edges[:, [1, 0, 2]]])
        ends = ends[np.argsort(ends[:, 0], kind="stable")]
        start = np.searchsorted(ends[:, 0], np.arange(len(self.p) + 1))
        for w in gaps:
            here = ends[start[w] : start[w + 1]]
            if len(here) > 1:
                value, bad = self._ends(here[:, 1].copy(), here[:, 2].copy())
                if not bad:
                    self.p[w] = np.where(np.isnan(self.p[w]), value, self.p[w])

    def _refit(self) -> None:
        """Least squares of all edges with the signs they have: errors of long chains go."""
        f = self.edges[:, 2]
        graph = adjacency(self.edges[:, :2], len(self.p))
        for c, near in enumerate(self.near):
            value = np.ascontiguousarray(self.p[:, c])
            polish(value, (self.rows.plus[f, c], self.rows.minus[f, c], near), graph)
            self.p[:, c] = value

    # -- 3. the gauge ------------------------------------------------------------------------
    def _fix_gauge(
        self, agree: int, *, share: float = 0.1, tries: int = 20, most: int = 3000
    ) -> bool:
        """t from records met with both parities: the difference that most pairs share.

        agree, share : pairs of records of three edges that must share it, at all columns.
        tries : differences that are looked at, the most frequent first.
        most : records of each parity that are compared."""
        rows, strong = self.rows, self._strong()
        up = self.rng.permutation(np.flatnonzero(strong & (self.parity > 0)))[:most]
        down = self.rng.permutation(np.flatnonzero(strong & (self.parity < 0)))[:most]
        if min(len(up), len(down)) < agree:
            return False
        agree = max(agree, int(share * min(len(up), len(down))))
        known = 1 - np.isnan(self.p).mean(axis=0)
        pivots = pick_pivots(rows, len(up) * len(down), 1, self.rng, known=known)
        width = 2 * CELL * rows.step[pivots]
        key = np.zeros((len(up), len(down)), np.int64)
        gaps = np.zeros((len(up), len(down)), bool)
        for p, w in zip(pivots, width, strict=True):
            cell = np.floor((self.p[down, p][None] - self.p[up, p][:, None]) / w + BORDER)
            gaps |= np.isnan(cell)
            key = key * 1_000_003 + np.nan_to_num(cell).astype(np.int64)
        good = np.flatnonzero(~gaps.ravel())
        if not len(good):
            return False
        _, inverse, count = np.unique(key.ravel()[good], return_inverse=True, return_counts=True)
        for top in np.argsort(-count, kind="stable")[:tries]:
            if count[top] < agree:
                break
            pair = good[inverse == top]
            a, one = np.unique(up[pair // len(down)], return_index=True)
            b, two = np.unique(down[pair % len(down)][one], return_index=True)
            if len(b) >= agree and self._merge(a[two], b, agree):
                return True
        return False

    def _merge(self, a: Indices, b: Indices, agree: int) -> bool:
        """Gauge and records from pairs (a, b) of both parities, if they agree at all columns."""
        each = (self.p[b] - self.p[a]) / 2
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns that nobody knows yet
            t = np.nanmedian(each, axis=0)
            right = (np.abs(each - t) <= 2 * self.near) | np.isnan(each)
        sound = right.all(axis=1)
        if sound.sum() < agree or sound.mean() < 0.5:
            return False
        # These records alone: all others may belong to a mirrored solution, and are found again.
        # Two solutions may be the same but for the gauge; then no edges run between a and b.
        a, b = a[sound], b[sound]
        ends = np.isin(self.edges[:, :2], a).any(axis=1) & np.isin(self.edges[:, :2], b).any(axis=1)
        if ends.sum() < 2 * len(a):
            return False
        # And those that explain three more encodings together with them.
        keep = np.zeros(len(self.p), bool)
        keep[a] = keep[b] = True
        while True:
            inside = keep[self.edges[:, :2]]
            spent = np.zeros(self.rows.m, bool)
            spent[self.edges[inside.all(axis=1), 2]] = True
            outer = self.edges[(inside[:, 0] != inside[:, 1]) & ~spent[self.edges[:, 2]], :2]
            count = np.bincount(outer.ravel(), minlength=len(keep))
            fresh = ~keep & (count >= max(self.least, 3))
            if not fresh.any():
                break
            keep |= fresh
        self.p = self.p + self.parity[:, None] * t
        self.parity, self.absolute = np.zeros(len(self.p), np.int64), True
        self._keep(keep)
        self._unify()
        self._settle()
        return True

    def _settle(self) -> None:
        """One edge per encoding, that of the records with most edges, once the gauge is known.
        Three encodings of a triangle look like a star with −(x_a + x_b + x_c) in its middle, which
        has no edge of its own and is dropped here."""
        while True:
            rank = self._degree()[self.edges[:, :2]].min(axis=1)
            order = np.lexsort((-rank, self.edges[:, 2]))
            edges = self.edges[order]
            self.edges = edges[np.unique(edges[:, 2], return_index=True)[1]]
            weak = self._degree() < 2
            if not weak.any():
                break
            self._keep(~weak)

    def doubled(self, *, share: float = 0.1, most: int = 2000, columns: int = 30) -> bool:
        """Is the gauge wrong? Then records come twice, as x + t' and x − t', and many pairs of them
        have one difference.

        share : of the records; most : records, and columns : columns that are looked at."""
        some = self.rng.permutation(len(self.p))[:most]
        whole = np.flatnonzero(~np.isnan(self.p[some]).any(axis=0))
        whole = whole[np.argsort(self.rows.chance[whole], kind="stable")][:columns]
        if len(whole) < 2:
            return False
        x = self.p[np.ix_(some, whole)]
        a, b = np.triu_indices(len(x), 1)
        # The same record twice, which is no matter of the gauge, has no difference.
        apart = (np.abs(x[a] - x[b]) > 2 * self.near[whole]).any(axis=1)
        a, b = a[apart], b[apart]
        key = np.zeros(len(a), np.int64)
        turn = np.where(x[a, 0] < x[b, 0], -1.0, 1.0)  # one sign per pair
        for c, p in enumerate(whole):
            step = (x[a, c] - x[b, c]) / (2 * CELL * self.rows.step[p])
            key = key * 1_000_003 + np.floor(turn * step + BORDER).astype(np.int64)
        count = np.unique(key, return_counts=True)[1] if len(key) else np.zeros(1)
        return bool(count.max() > max(4, share * len(some)))

    # -- 4. the end --------------------------------------------------------------------------
    def finish(self, deadline: float = np.inf, *, block: int = 256) -> Pairs:
        """Members of all encodings: by edges of records that have three, then by looking up all
        pairs of those records, then of all others, since a false twin explains the same two
        encodings as its record. Who explains fewer than two is dropped."""
        rows = self.rows
        self._unify()
        # A record of which little is known goes with anything.
        self._keep(~np.isnan(self.p) @ rows.nats >= 0.5 * rows.nats.sum())
        self._settle()
        if not len(self.p):
            return _nothing(rows)
        members = np.full((rows.m, 2), -1)
        firm = self._firm_edges()
        members[firm[:, 2]] = firm[:, :2]
        strong = self._strong()
        # Twice: cells have borders.
        for level in (strong, strong, np.ones(len(strong), bool)):
            if not level.any():
                continue
            left = np.flatnonzero(members[:, 0] < 0)
            for s in range(0, len(left), block):
                if time.monotonic() <= deadline:
                    self._match(np.flatnonzero(level), left[s : s + block], members)
        # Records of few encodings, where others explain these as well.
        uses = np.bincount(members[members >= 0], minlength=len(self.p))
        weak = 2 * uses < np.median(uses)
        rest = np.flatnonzero(weak[members].any(axis=1) & (members[:, 0] >= 0))
        again = np.full_like(members, -1)
        for s in range(0, len(rest), block):
            self._match(np.flatnonzero(~weak), rest[s : s + block], again)
        members = np.where(again >= 0, again, members)
        while True:
            used = _neighbours(members[members[:, 0] >= 0], len(self.p)) >= 2
            lost = (members[:, 0] >= 0) & ~used[members].all(axis=1)
            if not lost.any():
                break
            members[lost] = -1
        place = np.cumsum(used) - 1
        return Pairs(self.p[used], np.where(members >= 0, place[members], -1))

    def _match(self, level: Indices, left: Indices, members: Indices) -> None:
        """members of the rows `left`: the first pair of records that explains a row everywhere."""
        rows = self.rows
        known = 1 - np.isnan(self.p[level]).mean(axis=0)
        pivot = int(np.argmin(rows.chance**known))
        order = level[np.argsort(self.p[level, pivot], kind="stable")]
        needed = 2 * np.log(len(level)) + 2
        _find_pairs(
            self.p, order, pivot, rows.plus, rows.minus, self.near, left, rows.columns,
            rows.nats, needed, members,
        )  # fmt: skip


# ---- kernels ----------------------------------------------------------------------------------


def _neighbours(edges: Indices, n: int) -> Indices:
    """(n,) with how many different records each is mixed. Encodings of one pair, which a public
    part tells apart, count once: they all say the same sum, which any record and the rest explain.
    """
    pairs = np.unique(edges.min(axis=1) * n + edges.max(axis=1)) if len(edges) else edges[:, 0]
    return np.bincount(pairs // n, minlength=n) + np.bincount(pairs % n, minlength=n)


def _owners(edges: Indices, m: int, *, most: int = 8) -> Indices:
    """(m, most) records of which a row is an edge already, −1 for none."""
    ends = np.concatenate([edges[:, [2, 0]], edges[:, [2, 1]]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    rank = np.arange(len(ends)) - np.searchsorted(ends[:, 0], ends[:, 0])
    owner = np.full((m, most), -1)
    fits = rank < most
    owner[ends[fits, 0], rank[fits]] = ends[fits, 1]
    return owner


@njit(cache=True, nogil=True)
def _votes(at, parity, voters, value, row, plus, minus, owner, low, high, table, key, ident):  # type: ignore[no-untyped-def]
    """Keys of all votes whose candidate lies in cells low ≤ cell < high at the first pivot, and of
    the known records themselves (ident < 0); values are in cells.

    First call, with an empty `key`: count keys in `table`, and return how many met another one.
    Second call: store those that share their place in the table, and return how many."""
    q = at.shape[1]
    combos = 1 << (q - 1)
    m = len(plus)
    kept = 0
    for w in range(len(at)):
        h = np.uint64(3 + parity[w])
        known = True
        for p in range(q):
            if np.isnan(at[w, p]):
                known = False
                break
            cell = np.floor(at[w, p] + BORDER)
            if p == 0 and (cell < low or cell >= high):
                known = False
                break
            h = mix(h, np.int64(cell))
        if known:  # twice: a single vote for a known record counts
            kept = note(h, -1 - w, table, key, ident, kept)
            if len(key) == 0:
                kept = note(h, -1 - w, table, key, ident, kept)
    for v in voters:
        begin = np.searchsorted(value, low + at[v, 0] - 2.0) if low > -np.inf else 0
        for s in range(begin, len(value)):
            cell = np.floor(value[s] - at[v, 0] + BORDER)
            if cell < low:
                continue
            if cell >= high:
                break
            f = row[s]
            taken = False
            for i in range(owner.shape[1]):
                taken |= owner[f, i] == v
            if taken:
                continue
            begun = mix(np.uint64(3 - parity[v]), np.int64(cell))
            for combo in range(combos):
                h = begun
                for p in range(1, q):
                    u = plus[f, p] if (combo >> (p - 1)) & 1 else minus[f, p]
                    h = mix(h, np.int64(np.floor(u - at[v, p] + BORDER)))
                kept = note(h, v * m + f, table, key, ident, kept)
    return kept


@njit(cache=True, nogil=True)
def _fits(p, plus, minus, near, columns, nats, v, f, w):  # type: ignore[no-untyped-def]
    """The evidence that f is an edge of the records v and w, in nats; −1 where it is none."""
    evidence = 0.0
    for c in columns:
        s = p[v, c] + p[w, c]
        if not np.isnan(s):
            if abs(s - plus[f, c]) > near[c] and abs(s - minus[f, c]) > near[c]:
                return -1.0
            evidence += nats[c]
    return evidence


@njit(cache=True, nogil=True)
def _concur(p, plus, minus, near, columns, v, f, w, g):  # type: ignore[no-untyped-def]
    """Whether the edges f of v and g of w may end in one record."""
    for c in columns:
        a, b = p[v, c], p[w, c]
        if np.isnan(a) or np.isnan(b):
            continue
        x, y = plus[f, c] - a, minus[f, c] - a
        s, t = plus[g, c] - b, minus[g, c] - b
        e = near[c]
        if abs(x - s) > e and abs(x - t) > e and abs(y - s) > e and abs(y - t) > e:
            return False
    return True


@njit(cache=True, nogil=True)
def _reach(x, core, plus, minus, near, columns, graph):  # type: ignore[no-untyped-def]
    """x (n, d), in place: records with two known neighbours whose encodings concur, and ears, pairs
    of records with one known neighbour each."""
    start, neighbour, edge = graph
    n = len(x)
    ready = np.zeros(n, np.int64)  # known neighbours
    done = np.zeros(n, np.bool_)
    waiting = [np.int64(0) for _ in range(0)]
    head = 0  # first come, first served: errors of long chains add up
    fresh = [np.int64(v) for v in core]
    while len(fresh):
        # 1. Neighbours of what is new.
        while len(fresh):
            v = fresh.pop()
            done[v] = True
            for i in range(start[v], start[v + 1]):
                ready[neighbour[i]] += 1
                if ready[neighbour[i]] > 1:
                    waiting.append(neighbour[i])
        # 2. Records on which two encodings agree.
        while head < len(waiting) and not len(fresh):
            v = waiting[head]
            head += 1
            if done[v]:
                continue
            ends = np.array([i for i in range(start[v], start[v + 1]) if done[neighbour[i]]])
            a, f = neighbour[ends], edge[ends]
            group = np.zeros(len(ends), np.bool_)
            for s in range(len(ends)):
                if group.sum() > 1:
                    break
                for t in range(len(ends)):
                    group[t] = s == t or _concur(
                        x, plus, minus, near, columns, a[s], f[s], a[t], f[t]
                    )
            if group.sum() > 1:
                x[v], bad = _meet(x, plus, minus, near, a[group], f[group])
                if not bad:
                    fresh.append(v)
        # 3. Ears.
        for u in range(n):
            if len(fresh):
                break
            if done[u] or not ready[u]:
                continue
            for i in range(start[u], start[u + 1]):
                w = neighbour[i]
                if done[w] or not ready[w] or len(fresh):
                    continue
                for s in range(start[u], start[u + 1]):
                    for t in range(start[w], start[w + 1]):
                        known = done[neighbour[s]] and done[neighbour[t]] and not len(fresh)
                        path = (neighbour[s], edge[s], u, edge[i], w, edge[t], neighbour[t])
                        if known and _ear(x, plus, minus, near, columns, path):
                            fresh.append(np.int64(u))
                            fresh.append(w)
    x[~done] = np.nan


@njit(cache=True, nogil=True)
def _ear(x, plus, minus, near, columns, path):  # type: ignore[no-untyped-def]
    """Whether the encodings f, h, g lead from a by v and w to b at all columns; then x has v and w,
    NaN where there is a choice."""
    a, f, v, h, w, g, b = path
    for c in columns:
        count = 0
        if np.isnan(x[a, c]) or np.isnan(x[b, c]):
            continue
        for u in (plus[f, c] - x[a, c], minus[f, c] - x[a, c]):
            for z in (plus[g, c] - x[b, c], minus[g, c] - x[b, c]):
                if min(abs(u + z - plus[h, c]), abs(u + z - minus[h, c])) <= near[c]:
                    count += 1
                    x[v, c], x[w, c] = u, z
        if count != 1:
            x[v, c], x[w, c] = np.nan, np.nan
        if count == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _meet(p, plus, minus, near, v, f):  # type: ignore[no-untyped-def]
    """The value in which all edges f of the records v end: NaN where undecided; and whether there
    is none."""
    d = p.shape[1]
    value = np.full(d, np.nan)
    for c in range(d):
        first = -1
        one = two = True
        x = y = 0.0
        votes = 0
        total_x = total_y = 0.0
        for s in range(len(v)):
            a = p[v[s], c]
            if np.isnan(a):
                continue
            s1, s2 = plus[f[s], c] - a, minus[f[s], c] - a
            if first < 0:
                first, x, y = s, s1, s2
                total_x, total_y, votes = x, y, 1
                continue
            votes += 1
            if abs(x - s1) <= near[c]:
                total_x += s1
            elif abs(x - s2) <= near[c]:
                total_x += s2
            else:
                one = False
            if abs(y - s1) <= near[c]:
                total_y += s1
            elif abs(y - s2) <= near[c]:
                total_y += s2
            else:
                two = False
        if first < 0:
            continue
        if not one and not two:
            return value, True
        if abs(x - y) <= near[c]:
            value[c] = x
        elif one and not two:
            value[c] = total_x / votes
        elif two and not one:
            value[c] = total_y / votes
    return value, False


@njit(cache=True, nogil=True)
def _groups(key, ident, m, p, plus, minus, near, columns, nats, needed):  # type: ignore[no-untyped-def]
    """Runs of equal keys whose votes concur at all columns: start (groups + 1,), votes (flat), and
    home: the known record that they end in, or −1. A group needs evidence: the nats of its columns
    for every vote beyond the first."""
    n = len(key)
    start = [0]
    flat = [np.int64(0) for _ in range(0)]
    home = [np.int64(0) for _ in range(0)]
    used = np.zeros(n, np.bool_)
    i = 0
    while i < n:
        j = i + 1
        while j < n and key[j] == key[i]:
            j += 1
        if j - i >= 2:
            for s in range(i, j):  # known records first
                if ident[s] < 0:
                    w = -1 - ident[s]
                    size = 0
                    for t in range(i, j):
                        if ident[t] >= 0 and not used[t] and ident[t] // m != w:
                            v, f = ident[t] // m, ident[t] % m
                            if _fits(p, plus, minus, near, columns, nats, v, f, w) >= needed:
                                used[t] = True
                                flat.append(ident[t])
                                size += 1
                    if size:
                        start.append(len(flat))
                        home.append(w)
            for s in range(i, min(j, i + 200)):
                if used[s] or ident[s] < 0:
                    continue
                v, f = ident[s] // m, ident[s] % m
                size = 0
                evidence = 0.0
                for t in range(s + 1, j):
                    if used[t] or ident[t] < 0:
                        continue
                    w, g = ident[t] // m, ident[t] % m
                    if w != v and g != f and _concur(p, plus, minus, near, columns, v, f, w, g):
                        if size == 0:
                            flat.append(ident[s])
                        flat.append(ident[t])
                        used[t] = True
                        size += 1
                        for c in range(len(nats)):
                            if not np.isnan(p[v, c]) and not np.isnan(p[w, c]):
                                evidence += nats[c]
                if size:
                    if evidence < needed:
                        for _ in range(size + 1):
                            flat.pop()
                    else:
                        start.append(len(flat))
                        home.append(np.int64(-1))
        i = j
    return np.array(start), np.array(flat), np.array(home)


@njit(cache=True, nogil=True)
def _find_pairs(p, order, pivot, plus, minus, near, left, columns, nats, needed, members):  # type: ignore[no-untyped-def]
    """members of the rows `left`: the first pair of records that explains a row everywhere. Records
    are given in the order of their values at the pivot, those without one last."""
    value = p[order, pivot]
    value = value[: len(value) - np.isnan(value).sum()]
    for f in left:
        for i in range(len(order)):
            if members[f, 0] >= 0:
                break
            v = order[i]
            for u in (plus[f, pivot], minus[f, pivot]):
                low, high = 0, len(value)
                if i < len(value):
                    low = np.searchsorted(value, u - value[i] - near[pivot])
                    high = np.searchsorted(value, u - value[i] + near[pivot])
                for at in range(low, high + len(order) - len(value)):
                    w = order[at if at < high else at - high + len(value)]
                    if w != v and _fits(p, plus, minus, near, columns, nats, v, f, w) >= needed:
                        members[f, 0], members[f, 1] = min(v, w), max(v, w)
                        break
