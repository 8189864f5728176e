"""What came back, value by value: one recovery held against the true records.

The one place that says what "back" means; terminal, JSON, report, curve and gate all count what
this file marks. With truth t (n, d), s_j the spread of column j over the records (of images: that
of all pixels about the mean image), and x the vector recovered for record i,

    a value is back exactly          |x_ij − t_ij| ≤ tolerance·s_j
                    approximately    |x_ij − t_ij| ≤ nearness·s_j
    a record is back exactly         all its determined values are
                     approximately   most of its values are back at least approximately;
                                     an image also where it correlates with the original
                     in part         any of its values is back exactly

An open value, which the equations leave undetermined and the attack returns as a guess, does not
keep a record from being back, and it counts in its column where it is right.

Which vector is which record? Each right value says −log(share of records that have this value), and
each encoding that vector and record have in common says that too (`_shared`): nats of evidence that
they are the same. A pair counts where its evidence is beyond what r·n pairs reach by chance, and
beyond everything that the same vectors reach against records whose columns were permuted: on noise
nothing is back. Without a public part one sign per column is free, which the vectors of *other*
records choose. Cost: r·n comparisons per column, of `columns` columns at most.

A guess needs no encodings: one value for all records of a column, the one that is right most often.
Who has a recovery guesses only where nothing was found: of f records found, r values of a column
are right, where a guess has g·f. The lift is the share of wrong guesses that the recovery mends,
(r − g·f)/(n·(1 − g)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import binom

from unveil.auditing.result import RecordState
from unveil.records import Recovery

LOST, NEAR, EXACT = 0, 1, 2
"""What became of a value."""
RECORDS: tuple[RecordState, ...] = ("not recovered", "in part", "approximate", "exact")
"""What became of a record, the worst for its owner last."""
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Distinct records, and how near is near.

    Attributes
    ----------
    truth : array of shape (n, d)
        The records, equal ones once.
    images : bool
        Whether a record is a picture, so that likeness counts besides values.
    spread, bound, near : arrays of shape (d,)
        Spread of a column; largest error of a value that is back exactly, approximately.
    varies : array of bool of shape (d,)
        Columns in which records differ; the others have nothing to give away.
    likeness : float
        Correlation from which on people take a recovered image for the original.
    """

    truth: Doubles
    images: bool
    spread: Doubles
    bound: Doubles
    near: Doubles
    varies: Flags
    likeness: float = 0.9

    @classmethod
    def of(
        cls, records: NDArray[np.float32], tolerance: float, images: bool, nearness: float = 0.1
    ) -> Yardstick:
        truth = records.astype(np.float64)
        spread = truth.std(axis=0)
        # Single precision cannot tell a column that varies less from a constant one.
        varies = spread > 1e-6 * np.abs(truth).max(axis=0)
        if images and varies.any():
            spread = np.full_like(spread, float(np.sqrt(np.mean(spread**2))))
        return cls(truth, images, spread, tolerance * spread, nearness * spread, varies)

    @cached_property
    def surprise(self) -> tuple[Doubles, Doubles]:
        """−log of the share of other records that a value is right for, exactly and nearly; a share
        of none is taken for that of a normal column."""

        def of(bound: Doubles) -> Doubles:
            normal = bound / np.maximum(self.spread, 1e-300) / np.sqrt(np.pi)
            share = (self._within(-bound, bound) - 1) / len(self.truth)
            share = np.clip(share, np.minimum(normal, 0.5), 1.0)
            return np.where(self.varies, -np.log(share), 0.0)

        return of(self.bound), of(self.near)

    @cached_property
    def guesses(self) -> tuple[Doubles, Doubles]:
        """Share of the records (d,) that one guess for all has right, exactly and nearly."""

        def of(bound: Doubles) -> Doubles:
            # The best guess is half way between the ends of the fullest window of width 2·bound.
            most = self._within(np.zeros_like(bound), 2 * bound).max(axis=0)
            return np.where(self.varies, most / len(self.truth), 1.0)

        return of(self.bound), of(self.near)

    def _within(self, low: Doubles, high: Doubles) -> Indices:
        """How many values of a column are from `low` to `high` above each of them."""
        out = np.empty(self.truth.shape, np.int64)
        for j, column in enumerate(self.truth.T):
            ordered = np.sort(column)
            first = np.searchsorted(ordered, column + low[j], side="left")
            out[:, j] = np.searchsorted(ordered, column + high[j], side="right") - first
        return out


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of every value and every record.

    Attributes
    ----------
    value : int array of shape (n, d)
        LOST, NEAR or EXACT.
    open : bool array of shape (n, d)
        The equations leave this value undetermined; what is returned for it is a guess.
    record : int array of shape (n,)
        Index into RECORDS.
    vector : int array of shape (n,)
        Which recovered vector it is, −1: none.
    values : float array of shape (n, d)
        What was recovered, signs and scale as aligned; NaN where nothing was.
    wrong : int
        Vectors called verified that equal no record in some value that is not open.
    disguise : str
        What all vectors share that has to be undone before they are records; "": nothing.
    """

    value: NDArray[np.int8]
    open: Flags
    record: NDArray[np.int8]
    vector: Indices
    values: NDArray[np.float32]
    wrong: int = 0
    disguise: str = ""

    @classmethod
    def nothing(cls, yard: Yardstick) -> Outcome:
        n, d = yard.truth.shape
        return cls(
            np.zeros((n, d), np.int8),
            np.zeros((n, d), bool),
            np.zeros(n, np.int8),
            np.full(n, -1),
            np.full((n, d), np.nan, np.float32),
        )

    def without(self, rows: Flags) -> Outcome:
        """The same with these records not back: what was known beforehand is no finding."""
        return replace(
            self,
            value=np.where(rows[:, None], LOST, self.value).astype(np.int8),
            record=np.where(rows, 0, self.record).astype(np.int8),
            vector=np.where(rows, -1, self.vector),
        )

    @property
    def worth(self) -> tuple[int, int, int]:
        """What counts between two attacks: values exactly, where they are more than the few that
        chance gives, then records, then values at all."""
        exact = int((self.value == EXACT).sum())
        first = exact if exact > 0.02 * self.value.size else 0
        return first, int(self.record.sum()), int(self.value.sum())


def assess(
    recovery: Recovery,
    yard: Yardstick,
    incidence: sparse.csr_array | None = None,
    *,
    free_scale: bool = False,
) -> Outcome:
    """Hold a recovery against the truth.

    Parameters
    ----------
    recovery : Recovery
        Vectors with their open values and members.
    yard : Yardstick
        The records.
    incidence : csr array of shape (m, n), or None
        Which encodings really mix which records, where that is known.
    free_scale : bool
        The weights were not known, so that one factor common to all vectors is free, and signs
        too.
    """
    if not len(recovery):
        return Outcome.nothing(yard)
    vectors = recovery.vectors.astype(np.float64)
    if free_scale:
        vectors = vectors * _factor(vectors, yard.truth)
    doubt = np.zeros(vectors.shape, bool) if recovery.doubtful is None else recovery.doubtful
    shared = 0.0 if incidence is None else _shared(recovery.members, incidence)
    found: list[Outcome] = []
    for hidden in {not recovery.signed, free_scale or not recovery.signed}:
        turned = vectors
        if hidden:
            turned = _turned(vectors, yard, _pairs(vectors, doubt, yard, shared, hidden=True))
        pairs = _pairs(turned, doubt, yard, shared)
        found.append(_outcome(turned, doubt, yard, pairs, recovery.verified))
    return max(found, key=lambda outcome: outcome.worth)


def _pairs(
    vectors: Doubles,
    doubt: Flags,
    yard: Yardstick,
    shared: Doubles | float,
    *,
    hidden: bool = False,
    chance: float = 1e-2,
    columns: int = 256,
) -> Doubles:
    """Evidence (r, n) that a vector is a record, in nats above what chance reaches. Of images
    likeness is evidence too, beyond that with permuted columns.

    hidden : bool     Signs are not known yet.
    chance : float    Probability that any pair of vector and record is taken for one by chance.
    columns : int     Columns that tell which vector is which record, at most.
    """
    some = np.flatnonzero(yard.varies)
    some = some[np.linspace(0, len(some) - 1, min(len(some), columns)).astype(np.int64)]
    rng = np.random.default_rng(0)
    r, n = len(vectors), len(yard.truth)
    evidence, permuted = np.zeros((r, n)), np.zeros((r, n))
    for bound, surprise in zip((yard.bound, yard.near), yard.surprise, strict=True):
        said = [np.zeros((r, n)), np.zeros((r, n))]
        for j in some:
            order = rng.permutation(n)
            x = np.where(doubt[:, j], np.inf, vectors[:, j])[:, None]
            for total, rows in zip(said, (np.arange(n), order), strict=True):
                t = yard.truth[rows, j]
                gap = np.abs(np.abs(x) - np.abs(t)) if hidden else np.abs(x - t)
                total += np.where(gap <= bound[j], surprise[rows, j], 0.0)
        evidence, permuted = np.maximum(evidence, said[0]), np.maximum(permuted, said[1])
    # Columns that are the only one cannot be permuted: there the number of pairs has to do.
    null = float(permuted.max()) if len(some) > 1 else 0.0
    level = evidence + shared - max(null, np.log(r * n / chance))
    if yard.images:
        middle = yard.truth.mean(axis=0)
        sides = vectors - middle, yard.truth - middle, rng.permuted(yard.truth, axis=0) - middle
        x, t, other = (np.abs(side) if hidden else side for side in sides)
        alike = correlations(x, t)
        bar = max(yard.likeness, float(correlations(x, other).max()))
        level = np.where(alike > bar, np.maximum(level, alike), level)
    return np.asarray(level)


def _shared(members: sparse.csr_array, incidence: sparse.csr_array) -> Doubles:
    """Evidence (r, n) of common encodings: of c_i·c_j/m that chance gives, o are there, which a
    Poisson count exceeds with probability of about exp(−(o·log(o/λ) − o + λ))."""
    found, true = members.astype(np.float64), incidence.astype(np.float64)
    common = np.asarray((found.T @ true).todense())
    uses = np.asarray(found.sum(axis=0)).ravel(), np.asarray(true.sum(axis=0)).ravel()
    by_chance = np.maximum(np.outer(*uses) / max(found.shape[0], 1), 1e-9)
    beyond = common * np.log(np.maximum(common, 1e-9) / by_chance) - common + by_chance
    return np.where(common > by_chance, beyond, 0.0)


def _turned(vectors: Doubles, yard: Yardstick, pairs: Doubles) -> Doubles:
    """The vectors with one sign per column, chosen by the vectors of other records, so that no
    vector gains by the choice; a column of which the others say nothing is zero."""
    best = pairs.argmax(axis=1)
    sure = pairs[np.arange(len(best)), best] > 0
    t = yard.truth[best]
    close = np.abs(np.abs(vectors) - np.abs(t)) <= yard.near
    votes = np.where(close & sure[:, None], np.sign(vectors * t), 0.0)
    total = votes.sum(axis=0)
    own = np.zeros_like(yard.truth)
    np.add.at(own, best, votes)
    return np.asarray(vectors * np.sign(total - own[best]))


def _outcome(
    vectors: Doubles,
    doubt: Flags,
    yard: Yardstick,
    pairs: Doubles,
    verified: Flags,
    most: float = 0.8,
) -> Outcome:
    """Every record with the vector that has most evidence of being it; most: share of its values
    from which on a record is known."""
    out = Outcome.nothing(yard)
    varies = yard.varies
    best = pairs.argmax(axis=1)
    level = pairs[np.arange(len(best)), best]
    gap = np.abs(vectors - yard.truth[best])
    value = np.where(gap <= yard.bound, EXACT, np.where(gap <= yard.near, NEAR, LOST))
    determined = varies & ~doubt
    whole = ((value == EXACT) | ~determined).all(axis=1) & determined.any(axis=1)
    # Of several vectors for one record the better one counts; order: the best last.
    order = np.lexsort((level, (value == EXACT)[:, varies].sum(axis=1), whole))
    order = order[level[order] > 0]
    rows = best[order]
    out.value[rows], out.open[rows] = value[order], doubt[order]
    out.vector[rows], out.values[rows] = order, vectors[order]
    some = out.vector >= 0
    known = ((out.value >= NEAR)[:, varies]).mean(axis=1) >= most if varies.any() else some
    if yard.images:
        middle = yard.truth.mean(axis=0)
        alike = correlations(np.nan_to_num(out.values - middle), yard.truth - middle).diagonal()
        known = known | (alike > yard.likeness)
    back = np.zeros(len(some), bool)
    back[rows] = whole[order]
    # A column speaks where more of its values are right than one guess for all would have.
    part = np.zeros(len(some), bool)
    for least, guess in zip((EXACT, NEAR), yard.guesses, strict=True):
        right = out.value >= least
        count = right[some].sum(axis=0)
        speaks = beyond_guessing(count, int(some.sum()), guess, varies)
        part |= right[:, speaks].any(axis=1)
    for state, which in ((1, part), (2, known), (3, back)):
        out.record[some & which] = state
    wrong = int((verified & ~(whole & (level > 0))).sum())
    return replace(out, wrong=wrong)


def correlations(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Cosine of every row of a with every row of b; 0 where there is nothing."""
    sizes = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return np.asarray(a @ b.T / np.maximum(sizes, 1e-300))


def _factor(vectors: Doubles, truth: Doubles, sure: float = 0.98) -> float:
    """The one factor that brings all vectors nearest to records, by magnitudes; vectors whose
    cosine is above `sure`, or the best there are, say it."""
    x, t = np.abs(vectors), np.abs(truth)
    size = np.maximum(np.linalg.norm(x, axis=1), 1e-150)
    product = x @ t.T
    cosine = correlations(x, t)
    best = cosine.argmax(axis=1)
    top = cosine[np.arange(len(x)), best]
    use = top >= min(sure, float(top.max()))
    factor = float(np.median((product[np.arange(len(x)), best] / size**2)[use]))
    return factor if factor > 0 else 1.0


def disguised(
    vectors: NDArray[np.float32], yard: Yardstick, rounds: int = 4, chance: float = 0.05
) -> Outcome:
    """Records that are all there but for one thing that all of them share: a vector that an encoder
    added to every encoding, units, or an order of the columns. Who knows one record, or what values
    a column takes, has the others; so their values count as approximate.

        shift    x = a·s∘v + b      a factor, and a sign and a shift for every column
        units    x = a∘v + b        a factor and a shift for every column
        order    x = a·v[π]         columns found again by the values that they take

    At least four columns, and a third of the records must agree to the bound of exact values, more
    than do after the columns of the truth were permuted. Records that some vector would equal by
    chance, such as those of a few columns of zeros and ones, do not count.

    chance : float    Probability that any vector, its values drawn by column, equals a record.
    """
    best = Outcome.nothing(yard)
    n, d = yard.truth.shape
    telling = yard.surprise[0].sum(axis=1) > np.log(max(len(vectors), 1) / chance)
    if min(len(vectors), n) < 4 or d < 4 or not vectors.any():
        return best
    x = vectors.astype(np.float64)
    rng = np.random.default_rng(0)
    null = replace(yard, truth=rng.permuted(yard.truth, axis=0))
    for align, disguise in (
        (_shifted, "a shift that all share"),
        (_in_units, "the units of every column, as where columns were standardised"),
        (_reordered, "the order of the columns"),
    ):
        shown, aligned = align(x, yard, rounds)
        shown &= telling
        if shown.sum() > max(best.record.sum() / 2, n / 3, 2 * align(x, null, rounds)[0].sum()):
            best = replace(Outcome.nothing(yard), disguise=disguise)
            best.value[shown], best.record[shown], best.values[shown] = NEAR, 2, aligned[shown]
    return best


def _in_units(x: Doubles, yard: Yardstick, rounds: int) -> tuple[Flags, Doubles]:
    """Records (n,) that some vector equals after a factor and a shift per column."""
    spread, found = yard.truth.std(axis=0), x.std(axis=0)
    spread, found = (np.where(s > 0, s, 1.0) for s in (spread, found))
    # Every column in units of its own spread, so that those with large numbers do not decide alone.
    plain = replace(yard, truth=yard.truth / spread, bound=yard.bound / spread)
    shown, aligned = _shifted(x / found, plain, rounds, own=True)
    return shown, aligned * spread


def _shifted(
    x: Doubles, yard: Yardstick, rounds: int, *, own: bool = False
) -> tuple[Flags, Doubles]:
    """Records (n,) that some vector equals after one factor, of each column its own where `own`,
    and a sign and shift per column."""
    truth = yard.truth
    # Magnitudes of what differs from the median depend neither on signs nor on a shift.
    alike = correlations(*(np.abs(part - np.median(part, axis=0)) for part in (x, truth)))
    for _ in range(rounds):
        best = alike.argmax(axis=1)
        top = np.argsort(-alike[np.arange(len(best)), best], kind="stable")[: max(3, len(x) // 2)]
        t, v = truth[best[top]], x[top]
        v = v - v.mean(axis=0)
        product = ((t - t.mean(axis=0)) * v).sum(axis=0)
        power = (v * v).sum(axis=0)
        size = (np.abs(product), power) if own else (np.abs(product).sum(), power.sum())
        factor = size[0] / np.maximum(size[1], 1e-300)
        turned = np.where(product < 0, -factor, factor) * x
        shown = turned + np.median(t - turned[top], axis=0)
        # The least distances, from vectors to records and from records to vectors.
        alike = 2 * shown @ truth.T - np.square(truth).sum(axis=1)
        alike = alike - np.square(shown).sum(axis=1)[:, None]
    aligned = shown[alike.argmax(axis=0)]
    return (np.abs(aligned - truth) <= yard.bound)[:, yard.varies].all(axis=1), aligned


def _reordered(x: Doubles, yard: Yardstick, rounds: int) -> tuple[Flags, Doubles]:
    """Records (n,) that some vector equals after one factor and one order of the columns."""
    truth = np.abs(yard.truth)
    if truth.shape[1] > 512:
        return np.zeros(len(truth), bool), truth
    moved = np.abs(x) * (truth.mean() / max(float(np.abs(x).mean()), 1e-300))
    # Sorted values of a record do not depend on the order of the columns.
    near = cdist(np.sort(truth, axis=1), np.sort(moved, axis=1)).argmin(axis=1)
    for _ in range(rounds):
        # Columns by the records that the vectors are nearest to, and records again.
        moved = moved[:, linear_sum_assignment(cdist(truth.T, moved[near].T))[1]]
        near = cdist(truth, moved).argmin(axis=1)
    pick = moved[near]
    aligned = pick * float((pick * truth).sum() / max(float((pick * pick).sum()), 1e-300))
    right = (np.abs(aligned - truth) <= yard.bound)[:, yard.varies]
    return right.mean(axis=1) > 0.9, np.copysign(aligned, yard.truth)


def beyond_guessing(
    right: Indices, count: int, guess: Doubles, varies: Flags, chance: float = 1e-3
) -> Flags:
    """Columns (d,) of which more of `count` values are right than a guess has, with a probability
    below `chance` that any column is taken for one."""
    luck = binom.sf(right - 1, max(count, 1), np.minimum(guess, 1.0))
    return np.asarray(varies & (right > 0) & (luck < chance / max(1, int(varies.sum()))))


def distinct(records: NDArray[np.float32]) -> tuple[Indices, Indices]:
    """(first, group): the first of every set of equal rows, and the set of each row."""
    # Adding zero makes the two zeros of floating point one; void views compare whole rows.
    rows = np.ascontiguousarray(records + np.float32(0))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[group].astype(np.int64)
