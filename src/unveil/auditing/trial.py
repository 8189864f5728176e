"""One trial: so many encodings of one draw, one attacker, held against the truth.

    1  lay the encodings before the attacker, with what it knows
    2  run its attacks in turn until nothing is left to get, or time is over
    3  hold each recovery against the truth; the best one counts

A trial may be of a sample of the records, encoded with as many encodings per record: small enough
to finish, and the same question. What was stopped by the clock says so; it is no evidence of
safety.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.attacker import (
    INSIDER,
    Attack,
    Attacker,
    Clock,
    OutOfTime,
    Sight,
    attacks_of,
)
from unveil.auditing.outcome import EXACT, NEAR, Outcome, Yardstick, assess, disguised, distinct
from unveil.auditing.release import Draw, Release
from unveil.auditing.result import Attempt
from unveil.checks import InputError
from unveil.records import Progress, Recovery


@dataclass(frozen=True, eq=False)
class Trial:
    """What one attacker got from m encodings of one draw.

    Attributes
    ----------
    attacker, draw, m : Attacker, int, int
        Who, which draw, from how many encodings.
    rows : int array of shape (n,)
        The distinct records that were attacked, as places in the release's records.
    counted : bool array of shape (n,)
        Those that count: an insider's own do not.
    yard, outcome : Yardstick, Outcome
        These records, and what became of them.
    recovery : Recovery or None
        What the best attack returned.
    tried : tuple of Attempt
        Every attack that ran.
    why_not : str
        Why none ran; "" where one did.
    stopped : bool
        The clock ended it.
    """

    attacker: Attacker
    draw: int
    m: int
    rows: NDArray[np.int64]
    counted: NDArray[np.bool_]
    yard: Yardstick
    outcome: Outcome
    recovery: Recovery | None = None
    tried: tuple[Attempt, ...] = ()
    why_not: str = ""
    stopped: bool = False

    @property
    def records(self) -> int:
        """How many records count."""
        return int(self.counted.sum())

    @cached_property
    def complete(self) -> bool:
        return self.outcome.complete(self.yard)

    @property
    def wrong(self) -> int:
        return self.outcome.wrong

    def back(self, least: int = 2) -> int:
        """Records that are back: exactly (3), also approximately (2), also in part (1)."""
        return int((self.outcome.record[self.counted] >= least).sum())

    def columns(self, least: int = EXACT) -> NDArray[np.int64]:
        """Values that are back (d,), of each column."""
        return np.asarray((self.outcome.value[self.counted] >= least).sum(axis=0))

    def share(self, least: int = EXACT) -> float:
        """Of all values that vary."""
        varies = self.yard.varies
        found = self.outcome.value[self.counted][:, varies] >= least
        return float(found.mean()) if found.size else 0.0

    @property
    def worth(self) -> tuple[float, float, float]:
        """What counts between two trials, also of samples of different sizes."""
        n = max(1, self.records)
        return (
            self.share(EXACT),
            float(self.outcome.record[self.counted].sum()) / n,
            self.share(NEAR),
        )


def run_trial(
    release: Release,
    attacker: Attacker,
    number: int = 0,
    m: int | None = None,
    *,
    tolerance: float = 1e-2,
    clock: Clock | None = None,
    progress: Progress | None = None,
    best: Trial | None = None,
) -> Trial:
    """One attacker on the first m encodings of a draw; best: what somebody who knows less got from
    the same encodings, which this attacker has as well."""
    draw = release.draw(number)
    m = len(draw.values) if m is None else min(m, len(draw.values))
    first, group = distinct(release.private)
    shown = draw.first(m)
    # Equal records are one record, also in the memberships.
    members = None if shown.members is None else group[shown.members]
    records = release.private[first]
    yard = (
        Yardstick.of(records, tolerance, release.shape is not None) if best is None else best.yard
    )
    known = np.arange(len(first)) % 2 == 0
    counted = ~known if attacker is INSIDER else np.ones(len(first), bool)
    clock = clock or Clock()
    shown = Draw(shown.values, members)
    sight = Sight(release, shown, records, known, clock, clock.bounding(progress))
    trial = Trial(attacker, number, m, first, counted, yard, Outcome.nothing(yard))
    if best is not None:
        trial = replace(trial, outcome=best.outcome, recovery=best.recovery)
    if best is not None and best.complete:
        return replace(trial, why_not="nothing was left to recover")
    attacks = attacks_of(attacker, sight)
    if isinstance(attacks, str):
        return replace(trial, why_not=attacks)
    for attack in attacks:
        trial = _attempt(trial, attack, sight)
        if trial.complete or trial.stopped:
            break
    return trial


def _attempt(trial: Trial, attack: Attack, sight: Sight) -> Trial:
    """The trial after one more attack."""
    start, allowed = time.perf_counter(), sight.clock.for_an_attack
    if sight.clock.over:
        return replace(trial, stopped=True)
    stopped = False
    try:
        recovery = attack.run()
        # One that minds the time returns what it has by then.
        stopped = allowed is not None and time.perf_counter() - start >= allowed
    except OutOfTime:
        stopped = True
        recovery = Recovery.empty(sight.encodings(), attack.name, "stopped: time was over", {})
    except InputError as error:
        # What one attack refuses, a limit of memory or a make of data, is its own result.
        recovery = Recovery.empty(sight.encodings(), attack.name, f"refused: {error}", {})
    incidence = sight.draw.incidence(len(sight.records))
    outcome = assess(recovery, trial.yard, incidence, free_scale=attack.free)
    if attack.free:
        vectors = recovery.vectors[: 2 * len(sight.records)]
        other = disguised(vectors, trial.yard)
        outcome = max(outcome, other, key=lambda o: (o.value[:, trial.yard.varies].sum(), o.worth))
    if trial.attacker is INSIDER:
        outcome = outcome.without(sight.known)
    if attack.free:
        # A wrong vector is a fault of the attack only where it was told the true scheme.
        outcome = replace(outcome, wrong=0)
    state = outcome.record[trial.counted]
    done = Attempt(
        recovery.attack if attack.name == "recover" else attack.name,
        int((state == 3).sum()),
        int((state == 2).sum()),
        float((outcome.value[trial.counted][:, trial.yard.varies] == EXACT).mean()),
        time.perf_counter() - start,
        recovery.explanation,
        stopped,
    )
    before = trial.outcome.without(sight.known) if trial.attacker is INSIDER else trial.outcome
    trial = replace(trial, tried=(*trial.tried, done), outcome=before)
    if outcome.worth > before.worth:
        trial = replace(trial, outcome=outcome, recovery=recovery)
    return replace(trial, stopped=stopped and not trial.complete)
