"""Which private records came back, and how well? One recovery held against the truth, record by
record.

  exact          every pixel within `relative_tolerance` times the root mean square of the data,
                 their mean taken off
  approximate    not exact, but correlated with the record by more than `APPROXIMATE` after the mean
                 of all records is taken off both: what is common to all records (the grey
                 background of every image) is no leak of one. Or `MOST` of the pixels that set it
                 apart from that mean are right, to a tenth of that: a few wrong signs in the
                 background spoil a correlation, but not a picture. With fewer than `FEWEST` pixels
                 both happen by chance: then `MOST` of them must be right to `relative_tolerance`,
                 and more than of any other record
  not recovered  neither

A recovered vector counts for one record only, its nearest. Records that are equal count as one: a
record whose equal came back is back. What the attacker believes of a vector ("verified", …) plays
no part here.

Without a public part one sign per pixel, common to all vectors, is free. It is chosen by all
vectors for the errors, as in `unveil.score`; for the correlation each vector has it chosen by those
of *other* records, so that it gains nothing from the choice.

Control: what a guess gets without this record's encodings. Held against the record are the vectors
recovered for *other* records, as if it had not been encoded; the mean of all records; and the
public vector nearest to it. The best of the three counts, where it is as good as what came back: a
record that is back exactly is not guessed by one that is like it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.records import Recovery
from unveil.scoring import score
from unveil.scoring.score import sign_votes

APPROXIMATE = 0.9
"""Correlation from which on people take a recovered image for the record."""
MOST = 0.8
"""Share of the pixels that set a record apart; the rest may be wrong and it is still known."""
FEWEST = 30
"""Pixels below which two records correlate by chance."""
FEW = 4
"""Values that must be right at least, where there are few: one in a hundred each by chance."""
APART = 0.25
"""In units of the spread of the data: pixels nearer to the mean of all say nothing of a record."""
ROUNDING = 1e-6
"""Of the rms of the data: records that differ less are equal in single precision."""
SURE = 0.98
"""Cosine of magnitudes from which on a vector may say on which scale it is."""
NOT, ALMOST, EXACT = 0, 1, 2
"""Outcomes, the better the larger."""
OUTCOMES = ("not recovered", "approximate", "exact")
"""The same in words."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Risks:
    """For each private record: outcome (index into OUTCOMES), error and correlation (NaN where no
    vector is near it), and which recovered vector it is (−1: none). wrong: verified vectors that
    equal no record. vectors (r, d): signs as aligned.

    control: share of distinct records that a guess gets; values, guessed_values: share of the
    single values that set records apart that are right, and that a guess has right
    """

    outcome: NDArray[np.int8]
    error: NDArray[np.float64]
    correlation: NDArray[np.float64]
    which: NDArray[np.int64]
    wrong: int
    vectors: Floats
    control: float = 0.0
    values: float = 0.0
    guessed_values: float = 0.0

    @property
    def recovered(self) -> int:
        return int((self.outcome > NOT).sum())


def distinct(private: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(first, group): the first of every set of equal rows, and the set of each row."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    group = np.empty(len(private), np.int64)
    for i, row in enumerate(private):
        # Adding zero makes the two zeros of floating point one. By digest: sorting rows of a
        # million values takes longer than an attack.
        key = hashlib.blake2b((row + np.float32(0)).tobytes()).digest()
        if key not in seen:
            seen[key] = len(first)
            first.append(i)
        group[i] = seen[key]
    return np.array(first, np.int64), group


def assess(
    recovery: Recovery,
    private: Floats,
    *,
    relative_tolerance: float = 1e-2,
    public: Floats | None = None,
    free_scale: bool = False,
) -> Risks:
    """Outcome of every private record; `relative_tolerance` is relative to the rms of the data,
    their mean taken off.

    free_scale: the weights were not known, so that one factor common to all vectors is free
    """
    first, group = distinct(private)
    truth = private[first]
    yardstick = Yardstick.of(truth, relative_tolerance)
    if free_scale:
        recovery = rescaled(recovery, truth)
    found = _assess(recovery, yardstick)
    if free_scale and recovery.signed:
        # A mask that all encodings share leaves one sign per pixel open, whatever the attack says.
        other = _assess(replace(recovery, signed=False), yardstick)
        found = other if other.recovered > found.recovered else found
    control, guessed = _control(found, yardstick, public)
    return replace(
        found,
        outcome=found.outcome[group],
        error=found.error[group],
        correlation=found.correlation[group],
        which=found.which[group],
        control=control,
        guessed_values=guessed,
    )


@dataclass(frozen=True, eq=False)
class Yardstick:
    """The distinct records (n, d), and what counts as right: `bound` for exact values, `near` for
    about right ones; apart (n, d): pixels that set a record apart from the mean of all."""

    truth: Floats
    common: Floats
    apart: NDArray[np.bool_]
    bound: float
    near: float

    @classmethod
    def of(cls, truth: Floats, relative_tolerance: float) -> Yardstick:
        n, d = truth.shape
        rms = float(np.sqrt(np.mean(np.square(truth, dtype=np.float64)))) or 1.0
        common = truth.mean(axis=0) if n > 2 else np.zeros(d, np.float32)
        spread = float(np.sqrt(np.mean(np.square(truth - common, dtype=np.float64))))
        apart = np.abs(truth - common) > APART * spread
        # What all records have in common says nothing: a large offset must not widen the bound.
        size = min(rms, spread) if spread > ROUNDING * rms else rms
        return cls(truth, common, apart, relative_tolerance * size, size / 10)

    def outcome(self, found: Floats, j: int) -> int:
        """How well a vector, signs and all, is record j."""
        if float(np.abs(found - self.truth[j]).max()) <= self.bound:
            return EXACT
        return ALMOST if self.close(found, j, self.correlation(found, j)) else NOT

    def correlation(self, found: Floats, j: int) -> float:
        a, b = found - self.common, self.truth[j] - self.common
        size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
        return float(a.astype(np.float64) @ b) / size if size > 0 else 0.0

    def close(self, found: Floats, j: int, alike: float) -> bool:
        """Whether it is record j approximately."""
        if len(self.common) < FEWEST:
            return self._few(found, j)
        its_own = self.apart[j]
        if alike > APPROXIMATE:
            return True
        miss = np.abs(found - self.truth[j])[its_own]
        return bool(its_own.sum() >= FEWEST and (miss < self.near).mean() >= MOST)

    def right(self, found: Floats, j: int) -> int:
        """How many of the values that set record j apart are right."""
        return int((np.abs(found - self.truth[j])[self.apart[j]] <= self.bound).sum())

    def _few(self, found: Floats, j: int) -> bool:
        right = self.right(found, j)
        if right < FEW or right < MOST * self.apart[j].sum():
            return False
        hits = ((np.abs(found - self.truth) <= self.bound) & self.apart).sum(axis=1)
        return bool((np.delete(hits, j) < right).all())


def rescaled(recovery: Recovery, truth: Floats) -> Recovery:
    """All vectors times the one factor that brings them nearest to the records, by magnitudes."""
    X, T = np.abs(recovery.vectors).astype(np.float64), np.abs(truth).astype(np.float64)
    size = np.linalg.norm(X, axis=1)
    if not (size > 0).any():
        return recovery
    product = X @ T.T
    cosine = product / np.maximum(size[:, None] * np.linalg.norm(T, axis=1), 1e-30)
    best = cosine.argmax(axis=1)
    rows = np.arange(len(X))
    sure = (cosine[rows, best] >= min(SURE, float(cosine.max()))) & (size > 0)
    factor = np.median((product[rows, best] / np.maximum(size**2, 1e-30))[sure])
    return replace(recovery, vectors=(recovery.vectors * np.float32(factor)))


def _assess(recovery: Recovery, yard: Yardstick) -> Risks:
    """Every distinct record with the recovered vector that is nearest to it."""
    truth = yard.truth
    n, d = truth.shape
    scores = score(recovery, truth, tolerance=yard.bound)
    X, nearest = recovery.vectors, scores.nearest
    # 1. Signs: one per pixel where they are open, chosen by the vectors that are best known.
    votes = (
        np.zeros((len(X), d), np.float32)
        if recovery.signed
        else sign_votes(X, truth[nearest], yard.bound)
    )
    voters = recovery.verified if recovery.verified.any() else np.ones(len(X), bool)
    total = votes[voters].sum(axis=0)
    # 2. Every vector for its nearest record, with the signs that those of other records say.
    outcome, right = np.zeros(n, np.int8), np.zeros(n, np.int64)
    error, correlation = np.full(n, np.nan), np.full(n, np.nan)
    which = np.full(n, -1, np.int64)
    for i, j in enumerate(nearest):
        others = np.sign(total - votes[voters & (nearest == j)].sum(axis=0))
        alone = X[i] * (np.ones(d, np.float32) if recovery.signed else others)
        alike = yard.correlation(alone, j)
        close = yard.close(alone, j, alike)
        what = ALMOST if close else NOT
        if scores.error[i] <= yard.bound and (close or alike > APPROXIMATE or recovery.signed):
            what = EXACT
        # 3. Of two vectors for one record the better one counts.
        if which[j] >= 0 and (what, -scores.error[i]) <= (int(outcome[j]), -error[j]):
            continue
        which[j], error[j], correlation[j], outcome[j] = i, scores.error[i], alike, what
        right[j] = yard.right(alone, j)
    signs = (
        np.ones(d, np.float32)
        if recovery.signed
        else np.where(total < 0, np.float32(-1), np.float32(1))
    )
    share = float(right.sum()) / max(1, int(yard.apart.sum()))
    return Risks(outcome, error, correlation, which, scores.wrong, X * signs, values=share)


def _control(found: Risks, yard: Yardstick, public: Floats | None) -> tuple[float, float]:
    """Share of records that a guess gets as well as the attack, and of single values: the best of
    three guesses."""
    n = len(yard.truth)
    guesses = [np.repeat(yard.common[None], n, axis=0)]
    mine = found.which[found.which >= 0]
    if len(mine) > 1:
        # The vector of another record that is most like this one.
        X = found.vectors[mine]
        alike = cosines(yard.truth - yard.common, X - yard.common)
        owner = np.flatnonzero(found.which >= 0)
        alike[owner, np.arange(len(mine))] = -np.inf
        guesses.append(X[alike.argmax(axis=1)])
    if public is not None and len(public):
        guesses.append(
            public[cosines(yard.truth - yard.common, public - yard.common).argmax(axis=1)]
        )
    values = max(1, int(yard.apart.sum()))
    least = np.maximum(found.outcome, ALMOST)
    shares = [np.mean([yard.outcome(g[j], j) >= least[j] for j in range(n)]) for g in guesses]
    right = [sum(yard.right(g[j], j) for j in range(n)) / values for g in guesses]
    return float(max(shares)), float(max(right))


def cosines(a: Floats, b: Floats) -> Floats:
    """Of every row of a with every row of b."""
    size = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return np.asarray((a @ b.T) / np.maximum(size, 1e-30), np.float32)
