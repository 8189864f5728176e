"""What it means to those who decide: can a record be singled out, linked, or a value inferred?

Linking asks it of somebody who holds candidate records. Noise can keep every value from coming back
and still leave each encoding nearest to the record it was made of:

    name       for every encoding the candidate that it is most like, by correlation over the
               columns, each candidate's scores in units of their spread over all encodings
    truth      the records that an encoding mixes, where they are known; else rows in the order of
               the records, over several draws; else the records that the user's encoder was given,
               half of all, drawn anew in each run: is the one that is named among them?
    chance     what a guess gets: k of n, one of n, a half

Cost: a product of all encodings with all records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from unveil.auditing.outcome import NEAR, distinct
from unveil.auditing.release import Release, run_encoder
from unveil.auditing.result import Meaning, Threat
from unveil.auditing.verdict import Result, share_interval
from unveil.checks import InputError

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Links:
    """Share of encodings that are linked, with its interval, beside that of a guess; sure: no
    chance; members: what is named is a record of the release, not that of one encoding."""

    rate: float
    low: float
    high: float
    chance: float
    sure: bool
    members: bool = False

    @property
    def words(self) -> str:
        what = "can be linked to their record" if not self.members else "point to a released record"
        return (
            f"{self.rate:.0%} of the encodings {what} by someone who holds candidate records; "
            f"{self.chance:.0%} by guessing"
        )


def meanings_of(
    main: Result, threat: Threat, sensitive: int | None, name: str, linked: Links | None
) -> tuple[Meaning, ...]:
    """Singling out, linkability and inference by the attacker of the headline; sensitive: the place
    of a column, and its name."""
    n = max(1, threat.records)
    back = threat.exact + threat.approximate
    words = f"{back} of {n} records came back whole"
    out = [Meaning("singling out", words, back / n, threat.low, threat.high, 0.0)]
    if linked is not None:
        rates = linked.rate, linked.low, linked.high, linked.chance
        out.append(Meaning("linkability", linked.words, *rates))
    if sensitive is not None:
        trial = main.best
        guess = float(trial.yard.guesses[1][sensitive])
        # Where a value is not known somebody still guesses.
        rate = max(float(trial.columns(NEAR)[sensitive]) / n, guess)
        words = (
            f"{name} is known to a tenth of its spread for {rate:.0%} of the records; one guess "
            f"for all is right for {guess:.0%}"
        )
        out.append(Meaning("inference", words, rate, *share_interval([rate], n), guess))
    return tuple(out)


def links_of(release: Release, draws: int = 8, halves: int = 4) -> Links | None:
    """How many encodings a holder of candidate records links; None: it cannot be told.

    draws : int     Draws of an encoder that rows are compared over: two dozen records of one draw
                    do not tell 20 percent from 4.
    halves : int    Runs of the encoder on half of the records.
    """
    first, group = distinct(release.private)
    truth = release.private[first]
    draw = release.draw(0)
    if min(len(draw.values), len(truth)) < 10:
        return None
    if draw.members is not None:
        own = group[draw.members]
        right = (own == named(draw.values, truth)[:, None]).any(axis=1)
        guess = float(np.mean([len(set(row)) for row in own.tolist()])) / len(truth)
        return _links(float(right.mean()), len(right), guess)
    found = _in_order(release, group, truth, draws)
    if release.encoder is None or (found is not None and found.sure):
        return found
    return _among_half(release, truth, halves) or found


def named(values: Floats, truth: Floats) -> NDArray[np.int64]:
    """For every encoding the record that it is most like."""
    # Where encodings have no negative value, signs were taken off, or never were there.
    records = np.abs(truth) if bool((values >= 0).all()) else truth
    a, b = values - values.mean(axis=0), records - records.mean(axis=0)
    size = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    alike = (a @ b.T) / np.maximum(size, 1e-30)
    alike = alike - alike.mean(axis=0)
    return np.asarray((alike / np.maximum(alike.std(axis=0), 1e-12)).argmax(axis=1))


def _in_order(
    release: Release, group: NDArray[np.int64], truth: Floats, draws: int
) -> Links | None:
    first = release.draw(0).values
    m, n = len(first), len(group)
    if m % n:
        return None
    best = [named(first, truth)]
    for number in range(1, draws if release.encoder is not None and first.size < 1 << 22 else 1):
        values = release.draw(number).values
        # An encoder that draws nothing makes the same again, which says nothing new.
        if np.array_equal(values, first):
            break
        best.append(named(values, truth))
    orders = np.arange(m) % n, np.arange(m) // (m // n)
    rate = max(float((group[order] == best).mean()) for order in orders)
    return _links(rate, m * len(best), 1 / len(truth))


def _among_half(release: Release, truth: Floats, halves: int) -> Links | None:
    rng = np.random.default_rng(0)
    right: list[float] = []
    count = 0
    for _ in range(halves):
        half = np.sort(rng.permutation(len(truth))[: len(truth) // 2])
        try:
            best = named(run_encoder(release.encoder, truth[half], release.public, rng), truth)
        except InputError:
            return None  # an encoder may need all records
        right.append(float(np.isin(best, half).mean()))
        # Encodings of one record are not independent: a record counts once.
        count += min(len(best), len(half))
    return _links(float(np.mean(right)), count, (len(truth) // 2) / len(truth), members=True)


def _links(
    rate: float,
    count: int,
    chance: float,
    *,
    members: bool = False,
    unlikely: float = 1e-4,
    least: float = 0.1,
) -> Links:
    """unlikely: probability that a guess links as many, above which encodings do not count as
    linked; least: the share beyond guessing that is worth a word in the headline."""
    hits = round(rate * count)
    luck = binomtest(hits, count, chance, alternative="greater").pvalue if hits else 1.0
    sure = bool(luck < unlikely and rate - chance > least * (1 - chance))
    return Links(rate, *share_interval([rate], count), chance, sure, members)
