"""Fixed weights and hidden signs: the problem in formulas, and what an attack claims about it.

An encoding mixes k private records with one and the same weight w, adds a public part and loses its
signs. Divided by w,

    y = |Σ_{i∈S} x_i + c|,   |S| = k,   c known (0 where there is no public part).

So at every column the sum of the private records is one of two candidates,

    Σ_{i∈S} x_i ∈ {y − c, −y − c}.

Without a public part x and −x give the same encodings at a column, so records are recovered up to
one sign per column. A `Problem` holds y and c, a `Claim` what somebody says about S and x; nobody
believes a claim but `unveil.certificate`, which checks it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.encodings import Encodings

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Encodings in units in which every private record has weight 1.

    Attributes
    ----------
    y : float32 array of shape (m, d)
        Magnitudes of the encodings.
    c : float32 array of shape (m, d) or None
        The public part of every encoding, with its signs.
    k : int
        Private records in each encoding.
    step : array of shape (d,)
        How far a value of y may be from the truth, by rounding: half a unit in the last place of
        what was released, and the error of adding k numbers in single precision.
    """

    y: NDArray[np.float32]
    c: NDArray[np.float32] | None
    k: int
    step: Floats

    @property
    def m(self) -> int:
        return int(self.y.shape[0])

    @property
    def d(self) -> int:
        return int(self.y.shape[1])

    def rows(self, chosen: Indices) -> Problem:
        """The same problem with some of the encodings."""
        return replace(self, y=self.y[chosen], c=None if self.c is None else self.c[chosen])

    def columns(self, chosen: Indices) -> Problem:
        """The same problem at some of the columns."""
        return replace(
            self,
            y=np.ascontiguousarray(self.y[:, chosen]),
            c=None if self.c is None else np.ascontiguousarray(self.c[:, chosen]),
            step=self.step[chosen],
        )

    def candidates(self) -> tuple[Floats, Floats]:
        """y − c and −y − c: the two values that the sum of an encoding's records may have."""
        y = self.y.astype(np.float64)
        return (y, -y) if self.c is None else (y - self.c, -y - self.c)


@dataclass(frozen=True, eq=False)
class Claim:
    """What an attack says: records, and which of them each encoding mixes.

    Attributes
    ----------
    vectors : float32 array of shape (r, d)
        Records in the units of the problem (weight 1).
    members : int array of shape (m, k)
        The records of every encoding, −1 where they are not known.
    open : boolean array of shape (r, d)
        Values for which another one fits as well.
    how : str
        The idea that led to them, in a few words.
    error : array of shape (r,) or None
        Under noise: the standard error of a record's values, on average over the columns.
    noise : float
        Standard deviation of the noise, on average over the columns.
    """

    vectors: NDArray[np.float32]
    members: Indices
    open: Mask
    how: str = ""
    error: NDArray[np.float64] | None = None
    noise: float = 0.0

    @classmethod
    def nothing(cls, problem: Problem, how: str = "") -> Claim:
        """No record, no member."""
        return cls(
            np.empty((0, problem.d), np.float32),
            np.full((problem.m, problem.k), -1),
            np.empty((0, problem.d), bool),
            how,
        )

    @property
    def explained(self) -> float:
        """The share of encodings all of whose members are known."""
        return float((self.members >= 0).all(axis=1).mean()) if len(self.members) else 0.0


def as_problem(
    encodings: Encodings,
    public: NDArray[np.float32] | None = None,
    supports: Indices | None = None,
    *,
    rounding: float = 4.0,
) -> Problem:
    """The problem behind encodings of fixed weights.

    Parameters
    ----------
    public : array of shape (n_public, d) or None
        Public vectors; needed where the scheme has a public part.
    supports : int array of shape (m, k_public) or None
        Which of them each encoding uses.
    rounding : float
        How many units in the last place of single precision an encoding may be off, relative to
        the largest value of its column: whoever made it added k numbers in some order, divided
        and rounded.
    """
    scheme = encodings.scheme
    if scheme.k_private < 1:
        raise InputError("k_private=0: there is no private record to recover")
    weight = scheme.private_weight
    c = None
    if scheme.k_public:
        if public is None or supports is None:
            raise InputError(
                f"k_public={scheme.k_public}: pass public= and supports=, see unveil.learn_public"
            )
        c = np.zeros((encodings.m, encodings.d), np.float32)
        for slot in range(scheme.k_public):
            c += public[supports[:, slot]]
        c *= scheme.public_weight / weight
    raw = encodings.magnitudes()
    largest = np.abs(raw).max(axis=0).astype(np.float64)
    if c is not None:
        largest = np.maximum(largest, weight * np.abs(c).max(axis=0))
    step = np.maximum(rounding * scheme.k_private * largest * 2.0**-24, released_step(raw))
    return Problem(
        (raw / np.float32(weight)).astype(np.float32), c, scheme.k_private, step / weight
    )


def merge_copies(claim: Claim, near: Floats, *, share: float = 0.98) -> Claim:
    """The same claim with one name for records that are equal, and without those nobody uses."""
    x, open_, r = claim.vectors, claim.open, len(claim.vectors)
    if not r:
        return claim
    # Copies agree at any column that is open for neither: sorted by one, they are neighbours. The
    # column with most levels among some of those that are hardly open keeps runs short.
    some = np.argsort(open_.mean(axis=0), kind="stable")[:64]
    # A column that is zero in all encodings has no rounding: near is 0 there.
    cell = np.maximum(near, 1e-30)
    pivot = int(some[np.argmax([len(np.unique(np.round(x[:, p] / cell[p]))) for p in some])])
    order = np.argsort(x[:, pivot], kind="stable")
    name = np.arange(r)
    for s in range(r):
        a = order[s]
        for b in order[s + 1 :]:
            if x[b, pivot] - x[a, pivot] > near[pivot]:
                break
            both = ~open_[a] & ~open_[b]
            if both.any() and (np.abs(x[a] - x[b])[both] <= near[both]).mean() >= share:
                name[name == name[b]] = name[a]
    members = np.where(claim.members >= 0, name[claim.members], -1)
    members[(np.diff(np.sort(members, axis=1), axis=1) == 0).any(axis=1)] = -1
    return drop_unused(replace(claim, members=members))


def drop_unused(claim: Claim) -> Claim:
    """The same claim without records that no row uses."""
    used = np.unique(claim.members[claim.members >= 0])
    name = np.full(len(claim.vectors) + 1, -1)
    name[used] = np.arange(len(used))
    return Claim(claim.vectors[used], name[claim.members], claim.open[used], claim.how)


def holds(
    problem: Problem, claim: Claim, *, sample: int = 200, columns: int = 200, near: float = 1e-3
) -> bool:
    """Whether rows that a claim explains are reproduced at half of the values that are not left
    open, to `near` of a column's size: noise of more than that has no equations."""
    rows = np.flatnonzero((claim.members >= 0).all(axis=1))[:sample]
    if not len(rows):
        return True
    some = slice(0, problem.d, max(1, problem.d // columns))
    y = problem.y[rows, some].astype(np.float64)
    total = claim.vectors[:, some].astype(np.float64)[claim.members[rows]].sum(axis=1)
    total += 0 if problem.c is None else problem.c[rows, some]
    size = np.sqrt(np.mean(y**2, axis=0)) + 1e-30
    known = ~claim.open[:, some][claim.members[rows]].any(axis=1)
    good = np.abs(np.abs(total) - y) <= np.maximum(near * size, 4 * problem.step[some])
    return bool(good.mean() >= 0.5 if known.mean() < 0.1 else good[known].mean() >= 0.5)


def column_scale(problem: Problem) -> NDArray[np.float32]:
    """(d,): the deviation of a record at each column, if records have mean 0."""
    power = np.mean(np.square(problem.y, dtype=np.float64), axis=0)
    if problem.c is not None:
        power = power - np.mean(np.square(problem.c, dtype=np.float64), axis=0)
    size = np.sqrt(np.maximum(power, 0) / problem.k)
    # A column without a private part must not drown the others.
    floor = 1e-3 * float(np.sqrt(np.mean(problem.y**2, dtype=np.float64))) + 1e-30
    return np.asarray(np.maximum(size, floor), dtype=np.float32)


def released_step(values: NDArray[np.float32]) -> Floats:
    """(d,) rounding error of values that are all numbers of half precision: half a unit of its last
    place at the largest value of a column. 0 where some value has more digits."""
    largest = np.abs(values).max(axis=0).astype(np.float64)
    with np.errstate(over="ignore"):
        if np.array_equal(values.astype(np.float16).astype(np.float32), values):
            return np.asarray(largest * 2.0**-11)
    return np.zeros(values.shape[1])


def grid_step(values: NDArray[np.float32], *, most: int = 4096, sample: int = 200_000) -> float:
    """The step of the grid on which all values lie, 0 where there is none.

    Eight bits, say; but also whole numbers that nobody rounded, so that the caller should try
    without rounding first.

    most : steps of the grid. sample : values that are looked at."""
    some = values.ravel()[:: max(1, values.size // sample)].astype(np.float64)
    levels = np.unique(some)
    if not 2 < len(levels) <= most:
        return 0.0
    gaps = np.diff(levels)
    step = float(np.median(gaps[gaps < 1.5 * gaps[gaps > 1e-6 * levels[-1]].min()]))
    off = np.abs(levels / step - np.rint(levels / step))
    return step if off.max() < 0.05 else 0.0


def late(deadline: float) -> bool:
    """Whether this time, by `time.monotonic`, has passed."""
    return time.monotonic() >= deadline
