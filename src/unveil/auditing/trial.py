"""One trial: so many encodings of one draw, one attacker, held against the truth.

Encodings of a draw are nested: fewer are the first m of many. A trial may be of a sample of the
records, encoded with as many encodings per record: small enough to finish, and the same question.
The attacker's attacks run in turn until nothing is left to get, or time is over; what each returns
is held against the truth, and the best one counts. What was stopped by the clock says so; it is no
evidence of safety.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.auditing import outcome as outcomes
from unveil.auditing.attacker import INSIDER, Attack, Attacker, Clock, OutOfTime, attacks_of
from unveil.auditing.outcome import EXACT, NEAR, Outcome, Yardstick
from unveil.auditing.release import Floats, Members, Release
from unveil.auditing.result import Attempt, Level
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import Recovery
from unveil.scheme import Scheme


@dataclass(frozen=True, eq=False)
class Trial:
    """What one attacker got from so many encodings of one draw.

    Attributes
    ----------
    release, attacker, draw : Release, Attacker, int
        Of what, who, and which draw.
    values, members : arrays of shape (m, d), (m, k) or None
        The encodings, and the distinct records that each of them mixes.
    yard, outcome : Yardstick, Outcome
        The distinct records, and what became of them.
    recovery : Recovery or None
        What the best attack returned.
    tried : tuple of Attempt
        Every attack that ran.
    why_not : str
        Why none ran; "" where one did.
    stopped : bool
        The clock ended it.
    """

    release: Release
    attacker: Attacker
    draw: int
    values: Floats
    members: Members
    yard: Yardstick
    outcome: Outcome
    recovery: Recovery | None = None
    tried: tuple[Attempt, ...] = ()
    why_not: str = ""
    stopped: bool = False

    @property
    def m(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where the distinct records stand among those of the release."""
        return self.release.distinct[0]

    @property
    def vectors(self) -> Floats:
        """The distinct records, of which an insider knows some."""
        return self.release.private[self.rows]

    @property
    def known(self) -> NDArray[np.bool_]:
        """The records that an insider knows, which do not count."""
        known = np.zeros(len(self.rows), bool)
        known[::2] = self.attacker is INSIDER
        return known

    @property
    def incidence(self) -> sparse.csr_array | None:
        """(m, n): which encodings mix which records."""
        if self.members is None:
            return None
        at = np.repeat(np.arange(self.m), self.members.shape[1]), self.members.ravel()
        return sparse.csr_array((np.ones(at[0].size, bool), at), (self.m, len(self.rows)))

    @property
    def shown(self) -> Floats:
        """What is released, without signs that are known to be coins."""
        coins = self.release.stated and self.release.scheme.signs == "random"
        return np.abs(self.values) if coins else self.values

    def encodings(self, scheme: Scheme | None = None, values: Floats | None = None) -> Encodings:
        """The encodings, taken for those of a scheme."""
        scheme = scheme or self.release.scheme
        if self.release.stated and scheme.signs == "random":
            scheme = replace(scheme, signs="absolute")
        values = self.shown if values is None else values
        return Encodings(values, scheme, None, self.release.shape)

    @property
    def records(self) -> int:
        """How many records count."""
        return int((~self.known).sum())

    def back(self, least: int = 2) -> int:
        """Records that are back: exactly (3), also approximately (2), also in part (1)."""
        return int((self.outcome.record[~self.known] >= least).sum())

    @property
    def counts(self) -> tuple[int, int, int]:
        """Records that are back exactly, besides approximately, and besides in part."""
        exact, almost, part = (self.back(least) for least in (3, 2, 1))
        return exact, almost - exact, part - almost

    def columns(self, least: int = EXACT) -> NDArray[np.int64]:
        """Values that are back (d,), of each column."""
        return np.asarray((self.outcome.value[~self.known] >= least).sum(axis=0))

    def share(self, least: int = EXACT) -> float:
        """Of all values that vary."""
        right = self.columns(least)[self.yard.varies]
        return float(right.sum()) / max(1, right.size * self.records)

    @property
    def worth(self) -> tuple[float, float, float]:
        """What counts between two trials, also of samples of different sizes."""
        records = float(self.outcome.record[~self.known].sum()) / max(1, self.records)
        return self.share(EXACT), records, self.share(NEAR)

    @property
    def complete(self) -> bool:
        """Whether nothing is left for another attack."""
        return bool((self.outcome.value[~self.known][:, self.yard.varies] == EXACT).all())

    @property
    def found(self) -> int:
        """How many of the records that count are known to have been recovered, right or not in
        every value."""
        return int(np.isfinite(self.outcome.values[~self.known]).any(axis=1).sum())

    def beyond(self, least: int = EXACT) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Share of each column beyond guessing, and the columns where it is more than chance. What
        is not found can still be guessed, so it is found records that must beat a guess."""
        right, guess = self.columns(least), self.yard.guesses[0 if least == EXACT else 1]
        excess = (right - guess * self.found) / max(1, self.records)
        return excess, outcomes.beyond_guessing(right, self.found, guess, self.yard.varies)

    @property
    def leaking(self) -> NDArray[np.bool_]:
        """Columns of which more comes back, exactly or approximately, than chance explains."""
        return self.beyond(EXACT)[1] | self.beyond(NEAR)[1]

    def level(self, few: float = 0.1) -> Level:
        """What this trial would be called by itself; few: the share beyond guessing up to which
        values that come back are "partly"."""
        excess, speaks = self.beyond(EXACT)
        whole, almost = self.back(3) > few * self.records, self.back(2) > few * self.records
        values = bool((excess[speaks] > few).any())
        if self.attacker is INSIDER:
            return "partly" if almost or values else "nothing"
        if self.attacker.released and (whole or (values and not self.yard.images)):
            return "leaks"
        return "partly" if self.back(2) or self.leaking.any() else "nothing"


def run_trial(
    release: Release,
    attacker: Attacker,
    number: int = 0,
    m: int | None = None,
    *,
    tolerance: float = 1e-2,
    clock: Clock | None = None,
    best: Trial | None = None,
) -> Trial:
    """One attacker on the first m encodings of a draw; best: what somebody who knows less got from
    the same encodings, which this attacker has as well."""
    values, members = release.draw(number)
    members = None if members is None else members[:m]
    if best is None:
        records = release.private[release.distinct[0]]
        yard = Yardstick.of(records, tolerance, release.shape is not None)
        nothing = Outcome.nothing(yard)
        trial = Trial(release, attacker, number, values[:m], members, yard, nothing)
    else:
        trial = replace(best, attacker=attacker, tried=(), why_not="", stopped=False)
    if trial.complete:
        return replace(trial, why_not="nothing was left to recover")
    clock = clock or Clock()
    attacks = attacks_of(trial, clock)
    if isinstance(attacks, str):
        return replace(trial, why_not=attacks)
    trial = replace(trial, outcome=trial.outcome.without(trial.known))
    for attack in attacks:
        trial = _after(trial, attack, clock)
        if trial.complete or trial.stopped:
            break
    return trial


def _after(trial: Trial, attack: Attack, clock: Clock) -> Trial:
    """The trial after one more attack."""
    start, allowed = time.perf_counter(), clock.for_an_attack
    if clock.over:
        return replace(trial, stopped=True)
    stopped = False
    try:
        recovery = attack.run()
        # One that minds the time returns what it has by then.
        stopped = allowed is not None and time.perf_counter() - start >= allowed
    except OutOfTime:
        stopped = True
        recovery = Recovery.empty(trial.encodings(), attack.name, "stopped: time was over", {})
    except InputError as error:
        # What one attack refuses, a limit of memory or a make of data, is its own result.
        recovery = Recovery.empty(trial.encodings(), attack.name, f"refused: {error}", {})
    outcome = outcomes.assess(recovery, trial.yard, trial.incidence, free_scale=attack.free)
    if attack.free:
        other = outcomes.disguised(recovery.vectors[: 2 * len(trial.rows)], trial.yard)
        outcome = max(outcome, other, key=lambda o: (o.value[:, trial.yard.varies].sum(), o.worth))
        # A wrong vector is a fault of the attack only where it was told the true scheme.
        outcome = replace(outcome, wrong=0)
    after = replace(trial, outcome=outcome.without(trial.known), recovery=recovery)
    done = Attempt(
        recovery.attack if attack.name == "recover" else attack.name,
        *after.counts[:2],
        after.share(),
        time.perf_counter() - start,
        recovery.explanation,
        stopped,
    )
    better = after if after.outcome.worth > trial.outcome.worth else trial
    return replace(better, tried=(*trial.tried, done), stopped=stopped and not better.complete)
