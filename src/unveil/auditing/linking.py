"""Can an encoding be linked to its record by someone who holds candidate records?

Noise can keep every record from coming back and still leave each encoding nearest to the record it
was made of. Whoever has a list of candidates then knows whom an encoding is about. So the audit
asks it where no record came back:

    name       for every encoding the candidate that it is most like, by correlation over the
               columns, each record's scores in units of their spread over all encodings: one that
               is like everything says nothing
    truth      the records that an encoding mixes, where they are known; else rows in the order of
               the records; else those that the user's encoder was given, half of all, drawn anew in
               each of `HALVES` runs: is the one that is named among them?
    chance     what a guess gets: k of n, a half, one of n

Cost: a product of all encodings with all records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from unveil.auditing.intervals import wilson
from unveil.auditing.release import by_encoder
from unveil.auditing.risks import cosines
from unveil.auditing.seed_lint import Encoder
from unveil.auditing.trials import Laboratory
from unveil.checks import InputError

FEWEST = 10
"""Encodings, and different records, below which a share says nothing."""
HALVES = 4
"""Runs of the encoder on half of the records: 40 different ones then say whether it is chance."""
DRAWS, SEVERAL = 8, 1 << 22
"""Draws that links are counted over, and values of one up to which there are several: two dozen
records of one draw do not tell 20 percent from 4."""
UNLIKELY, LEAST = 1e-4, 0.1
"""Probability that a guess links as many, above which encodings do not count as linked: one audit
in ten thousand of releases that cannot leak; and the share, beyond what a guess gets, that is worth
a word in the headline."""
TINY = 1e-12
"""Guards divisions: the scores of a constant record are zero."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Links:
    """Share of encodings that are linked, with its interval, beside that of a guess; sure: that is
    no chance. members: what is named is a record of the release, not that of one encoding."""

    rate: float
    low: float
    high: float
    chance: float
    sure: bool
    members: bool

    @property
    def words(self) -> str:
        """What someone can do who holds candidate records."""
        if self.members:
            return (
                f"{self.rate:.0%} of the encodings point to a record that was released, for "
                f"someone who holds candidate records; {self.chance:.0%} would by guessing"
            )
        return (
            f"{self.rate:.0%} of the encodings can be linked to their record by someone who holds "
            f"candidate records; {self.chance:.0%} by guessing"
        )


def links(lab: Laboratory, m: int, encoder: Encoder | None = None) -> Links | None:
    """How many of the first m encodings a holder of candidate records links; None: it cannot be
    told, since nobody knows which records they are of."""
    first, group = lab.groups
    truth = lab.release.private[first]
    values = lab.release.draw(0).values[:m]
    if min(len(values), len(truth)) < FEWEST:
        return None
    chosen = lab.release.chosen(0, m)
    # 1. The records of each encoding are known.
    if chosen is not None:
        own = group[chosen]
        right = (own == named(values, truth)[:, None]).any(axis=1)
        guess = np.mean([len(set(row)) for row in own.tolist()]) / len(truth)
        return _links(float(right.mean()), len(right), float(guess))
    # 2. As many rows as records, or so many for each, may be in their order.
    found = _in_order(lab, m, truth)
    if encoder is None or (found is not None and found.sure):
        return found
    # 3. The encoder can be run on some of the records.
    return _members(lab, truth, encoder) or found


def _in_order(lab: Laboratory, m: int, truth: Floats) -> Links | None:
    """Over several draws, where there can be any number: few records link by luck, or fail to."""
    group = lab.groups[1]
    first = lab.release.draw(0).values[:m]
    m, n = len(first), len(group)
    if m % n:
        return None
    best = [named(first, truth)]
    several = lab.release.draws is None and first.size <= SEVERAL
    for number in range(1, DRAWS if several else 1):
        values = lab.release.draw(number).values[:m]
        # An encoder that draws nothing makes the same again, which says nothing new.
        if np.array_equal(values, first):
            break
        best.append(named(values, truth))
    orders = np.arange(m) % n, np.arange(m) // (m // n)
    rate = max(float((group[order] == best).mean()) for order in orders)
    return _links(rate, m * len(best), 1 / len(truth))


def named(values: Floats, truth: Floats) -> NDArray[np.int64]:
    """For every encoding the record that it is most like."""
    # Where encodings have no negative value, signs were taken off, or never were there.
    records = np.abs(truth) if bool((values >= 0).all()) else truth
    alike = cosines(values - values.mean(axis=0), records - records.mean(axis=0))
    alike = alike - alike.mean(axis=0)
    return np.asarray((alike / np.maximum(alike.std(axis=0), TINY)).argmax(axis=1))


def _members(lab: Laboratory, truth: Floats, encoder: Encoder) -> Links | None:
    release, rng = lab.release, np.random.default_rng(0)
    right: list[float] = []
    count = 0
    for run in range(HALVES):
        half = np.sort(rng.permutation(len(truth))[: len(truth) // 2])
        try:
            make = by_encoder(encoder, truth[half], release.public, release.seed)
            best = named(make(run), truth)
        except InputError:
            return None  # an encoder may need all records
        right.append(float(np.isin(best, half).mean()))
        # Encodings of one record are not independent: a record counts once.
        count += min(len(best), len(half))
    return _links(float(np.mean(right)), count, (len(truth) // 2) / len(truth), members=True)


def _links(rate: float, count: int, chance: float, *, members: bool = False) -> Links:
    # Exact for few encodings too, where intervals are not: all of them hits by luck.
    luck = float(bdtrc(round(rate * count) - 1, count, chance)) if rate > 0 else 1.0
    sure = luck < UNLIKELY and rate - chance > LEAST * (1 - chance)
    return Links(rate, *wilson(rate, count), chance, sure, members)
