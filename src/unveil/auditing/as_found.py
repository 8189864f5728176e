"""Encodings of an unknown make: the schemes they may follow, and what shows without any attack.

An encoder need not do what it is said to do. So besides the scheme as stated the audit takes the
encodings for what `unveil.identify` finds, and looks at them once more with the least value taken
off, or their roots drawn (`VIEWS`). It also looks whether an encoding simply *is* a record
(`copies`): times a number, with a number added, clipped, rounded, with a little noise, or with its
signs taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import poisson

from unveil.auditing.risks import ALMOST, NOT, Risks, Yardstick, assess, cosines, distinct
from unveil.encodings import Encodings
from unveil.records import UNRESOLVED, Recovery

CLEARLY = 0.25
"""What a record leaves unexplained of its copy, as a share of what the next best one leaves."""
FEW_COLUMNS, SETS = 8, 20
"""Columns below which encodings are like records by chance, and the sets of records that are made
up to see how often. From as many on a number may be added to every value, besides a factor."""
LIFTED = 0.05
"""Least value, in units of the spread, from which on a number was added to all: magnitudes of
mixtures come nearer to zero."""
UNLIKELY = 0.01
"""Probability that chance makes as many copies, above which they say nothing."""
AT_A_TIME = 1 << 13
"""Columns that are compared at a time."""
COPIES = "copies"
"""The name under which the look at single encodings is listed."""
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]


def _lowered(values: Floats) -> Floats | None:
    least = float(values.min())
    return values - np.float32(least) if least > LIFTED * float(values.std()) else None


def _roots(values: Floats) -> Floats | None:
    return np.sqrt(values) if float(values.min()) >= 0 else None


VIEWS: dict[str, Callable[[Floats], Floats | None]] = {
    "the least value taken off all": _lowered,
    "roots drawn of all values": _roots,
}
"""What can be done to encodings before they are attacked, in words; None: it makes no sense."""


def copies(
    encodings: Encodings, private: Floats, *, relative_tolerance: float
) -> tuple[Recovery, Risks]:
    """Encodings that are a record up to one factor: each record with the encoding most like it.

    Where only the magnitudes are right, the record is known approximately. With few columns some
    encoding is like any record by chance: what comes back must outnumber what comes back of records
    that were made up from the columns of the true ones.
    """
    first, group = distinct(private)
    truth = private[first]
    yard = Yardstick.of(truth, relative_tolerance)
    # 1. With factors of their own, then with one for all, which few columns do not have by chance.
    Y = encodings.values
    found, rows, kept, factor = _matched(Y, truth, yard)
    magnitudes = _magnitudes(Y, truth, yard)
    if truth.shape[1] < FEW_COLUMNS:
        made_up = [replace(yard, truth=fake) for fake in _made_up(truth)]
        kept &= _outnumbers(kept, [_matched(Y, fake.truth, fake)[2] for fake in made_up])
        magnitudes &= _outnumbers(magnitudes, [_magnitudes(Y, f.truth, f) for f in made_up])
        scaled = factor * Y.astype(np.float64)
        same, which, equal = _as_they_are(scaled, truth, yard)
        if _outnumbers(equal, [_as_they_are(scaled, f.truth, f)[2] for f in made_up]):
            found[equal], rows[equal] = same[equal], which[equal]
            kept |= equal
    # 2. What is left, as a recovery.
    found, rows = found[kept], rows[kept]
    recovery = Recovery(
        vectors=found,
        status=np.full(len(found), UNRESOLVED, dtype="<U10"),
        signed=True,
        members=sparse.csr_array(
            (np.ones(len(found), bool), (rows, np.arange(len(found)))),
            shape=(encodings.m, len(found)),
        ),
        residual=np.zeros(len(found)),
        reasons=("an encoding is this record, up to a factor",) * len(found),
        attack=COPIES,
        explanation="",
    )
    risks = assess(recovery, private, relative_tolerance=relative_tolerance)
    outcome = np.where((risks.outcome == NOT) & magnitudes[group], ALMOST, risks.outcome)
    # Said of those that count, not of all that are likest.
    alike = int((outcome[first] > NOT).sum())
    said = f"{alike} of {len(truth)} records look like an encoding as it is"
    return replace(recovery, explanation=said), replace(risks, outcome=outcome.astype(np.int8))


def _matched(
    Y: Floats, truth: Floats, yard: Yardstick
) -> tuple[Floats, NDArray[np.int64], Flags, float]:
    """For each record: the encoding most like it, brought to its size, and which one; whether it is
    this record; and the median of the factors."""
    rows, factor = _nearest(Y, truth)
    found = (Y[rows].astype(np.float64) * factor[:, None]).astype(np.float32)
    kept = np.array([_its_own(yard, found[j], j) for j in range(len(truth))], bool)
    if truth.shape[1] >= FEW_COLUMNS:
        # A number that is added besides: many encoders bring records to mean zero first.
        means = [x.mean(axis=1, keepdims=True, dtype=np.float64) for x in (Y, truth)]
        other, scale = _nearest(Y, truth, lambda x, which: x - means[which])
        level = ((Y[other] - means[0][other]) * scale[:, None] + means[1]).astype(np.float32)
        exact = np.abs(level - truth).max(axis=1) <= yard.bound
        found[exact], rows[exact] = level[exact], other[exact]
        kept |= exact
    return found, rows, kept, float(np.median(factor))


def _magnitudes(Y: Floats, truth: Floats, yard: Yardstick) -> Flags:
    """Whether |y| of an encoding is |x| of a record at every pixel, though signs are gone."""
    T = np.abs(truth).astype(np.float64)
    rows, factor = _nearest(Y, truth, lambda x, _: np.abs(x))
    miss = np.abs(np.abs(Y[rows]) * factor[:, None] - T).max(axis=1)
    return np.asarray((miss <= yard.bound) & (T.max(axis=1) > yard.bound))


def _as_they_are(
    Y: Doubles, truth: Floats, yard: Yardstick
) -> tuple[Floats, NDArray[np.int64], Flags]:
    """For each record the encoding nearest to it, which one, and whether both are the same."""
    miss = cdist(truth, Y, "chebyshev")
    rows = miss.argmin(axis=1)
    return Y[rows].astype(np.float32), rows, np.asarray(miss.min(axis=1) <= yard.bound)


def _made_up(truth: Floats) -> list[Floats]:
    """Sets of as many records: the same columns in other company, a single one as mixtures."""
    rng = np.random.default_rng(0)
    if truth.shape[1] > 1:
        return [rng.permuted(truth, axis=0) for _ in range(SETS)]
    # On the scale of the column, and on none of its values.
    drawn = [[rng.permutation(truth) for _ in range(3)] for _ in range(SETS)]
    return [a + np.float32(0.5) * (b - c) for a, b, c in drawn]


def _outnumbers(found: Flags, made_up: list[Flags]) -> bool:
    """Whether more records were found than chance explains, by sets of those that were made up."""
    chance = float(np.mean([each.sum() for each in made_up]))
    return bool(poisson.sf(int(found.sum()) - 1, chance + 1 / SETS) < UNLIKELY)


def _its_own(yard: Yardstick, found: Floats, j: int) -> bool:
    """Whether a vector is like record j and clearly less like any other: where records are alike, a
    mixture is like some of them by chance."""
    if float(np.abs(found - yard.truth[j]).max()) <= yard.bound:
        return True
    alike = cosines((found - yard.common)[None], yard.truth - yard.common)[0]
    other = float(np.delete(alike, j).max(initial=0.0))
    return bool(1 - float(alike[j]) ** 2 <= CLEARLY * (1 - other**2) and alike[j] > 0)


def _nearest(
    Y: Floats, truth: Floats, view: Callable[[Doubles, int], Doubles] = lambda x, _: x
) -> tuple[NDArray[np.int64], Doubles]:
    """For each record: the encoding with the largest cosine, and the factor between them; view(x,
    0 for encodings, 1 for records): what is done to both first."""
    product = np.zeros((len(truth), len(Y)))
    power, size = np.zeros(len(Y)), np.zeros(len(truth))
    # Some columns at a time: in double precision a wide table may not fit.
    for start in range(0, Y.shape[1], AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        y, t = (view(x[:, part].astype(np.float64), which) for which, x in enumerate((Y, truth)))
        product += t @ y.T
        power += np.einsum("ij,ij->i", y, y)
        size += np.einsum("ij,ij->i", t, t)
    both = np.sqrt(size)[:, None] * np.sqrt(np.maximum(power, 1e-30))
    rows = np.abs(product / np.maximum(both, 1e-30)).argmax(axis=1)
    return rows, product[np.arange(len(truth)), rows] / np.maximum(power[rows], 1e-30)
