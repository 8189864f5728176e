"""From runs to what is reported of every kind of attacker: counts, control, risk above it, and what
that means to those who decide.

Counts are of distinct records. An attacker's result is the best of its own attacks and of those
that know less; intervals are over records and over all draws that were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.intervals import above_control, over_draws, wilson
from unveil.auditing.linking import Links
from unveil.auditing.result import Attempt, Meaning, Threat
from unveil.auditing.risks import EXACT, NOT
from unveil.auditing.threats import KNOWS, Run
from unveil.auditing.trial import Arm, Key, Trial
from unveil.auditing.trials import Laboratory

NEAR = 0.1
"""In standard deviations of the column: nearer than this a sensitive value counts as inferred."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best trial an attacker has, its arm, and the records (of the distinct ones) it is
    about."""

    who: Key
    arm: Arm
    trial: Trial
    rows: NDArray[np.int64]

    @property
    def exact(self) -> int:
        return int((self.trial.outcome[self.rows] == EXACT).sum())

    @property
    def got(self) -> int:
        return int((self.trial.outcome[self.rows] > NOT).sum())


def outcomes(lab: Laboratory, runs: Sequence[Run]) -> tuple[Outcome, ...]:
    """The best of every attacker; those who know more have what the others got."""
    out = []
    best: tuple[Arm, Trial] | None = None
    for run in runs:
        rows = lab.groups[0]
        if run.who == "insider":
            rows = rows[~lab.known[rows]]
        # Compared on the same records: what an insider knows beforehand is no gain.
        mine = run.best()
        if mine is not None and (best is None or _worth(mine[1], rows) > _worth(best[1], rows)):
            best = mine
        assert best is not None
        out.append(Outcome(run.who, best[0], best[1], rows))
    return tuple(out)


def threat(
    lab: Laboratory,
    run: Run,
    best: Outcome,
    again: Sequence[Trial],
    chance: float | None = None,
) -> Threat:
    """What is reported of one attacker; `again`: the same attack on further draws; `chance`: what
    it gets of records that were kept out."""
    rows = best.rows
    n = max(1, len(rows))
    shares = [float((trial.outcome[rows] > NOT).mean()) for trial in (best.trial, *again)]
    share = float(np.mean(shares))
    low, high = over_draws(shares, n)
    # The best guess is the fairest control, whether records were kept out or guessed.
    control = float(np.mean([trial.control for trial in (best.trial, *again)]))
    control = control if chance is None else max(control, chance)
    residual, residual_low, residual_high = above_control(share, (low, high), control, n)
    order = sorted(
        zip(run.arms, run.trials, strict=True), key=lambda pair: pair[1].worth, reverse=True
    )
    return Threat(
        key=run.who,
        knows=KNOWS[run.who],
        exact=best.exact,
        approximate=best.got - best.exact,
        records=len(rows),
        low=low,
        high=high,
        control=control,
        residual=residual,
        residual_low=residual_low,
        residual_high=residual_high,
        values=best.trial.values,
        guessed_values=best.trial.guessed_values,
        tried=tuple(_attempt(arm, trial, rows) for arm, trial in order),
        not_tried=run.not_tried,
    )


def meanings(
    lab: Laboratory,
    best: Outcome,
    threat: Threat,
    sensitive: int | None,
    linked: Links | None = None,
) -> tuple[Meaning, ...]:
    """Singling out, linkability and inference by this attacker; `linked`: by one who holds
    candidate records, where that was asked."""
    n = max(1, threat.records)
    share = (threat.exact + threat.approximate) / n
    words = f"{threat.exact + threat.approximate} of {n} records came back"
    found = [Meaning("singling out", words, share, threat.low, threat.high, threat.control)]
    trial = best.trial
    if linked is not None:
        words = linked.words
        found.append(
            Meaning("linkability", words, linked.rate, linked.low, linked.high, linked.chance)
        )
    elif np.isfinite(trial.linked) and best.who in ("blind", "public"):
        falsely = 0.0 if not np.isfinite(trial.falsely) else trial.falsely
        words = (
            f"{trial.linked:.0%} of the pairs of encodings with a common record were linked, and "
            f"{falsely:.0%} of those without"
        )
        # Pairs are not independent: as many observations as encodings.
        found.append(
            Meaning("linkability", words, trial.linked, *wilson(trial.linked, trial.m), falsely)
        )
    if sensitive is not None:
        found.append(_inference(lab, best, sensitive))
    return tuple(found)


def _inference(lab: Laboratory, best: Outcome, column: int) -> Meaning:
    """How often the value of one column is known; where nothing came back the best single guess
    stands in."""
    rows = best.rows
    truth = lab.release.private[rows, column].astype(np.float64)
    bound = NEAR * (float(truth.std()) or 1.0)
    guess = _single_guess(truth, bound)
    shown = best.trial.shown
    assert shown is not None
    # Where a record did not come back an attacker still guesses, and is right now and then.
    back = best.trial.outcome[rows] > NOT
    value = np.where(back, shown[rows, column], guess)
    rate = float((np.abs(value - truth) <= bound).mean())
    control = float((np.abs(guess - truth) <= bound).mean())
    words = (
        f"the sensitive value is known to within {NEAR} standard deviations for {rate:.0%} of the "
        f"records; one guess for all is right for {control:.0%}"
    )
    return Meaning("inference", words, rate, *wilson(rate, len(rows)), control)


def _single_guess(truth: NDArray[np.float64], bound: float) -> float:
    """The one value that is right most often, the median among equals."""
    # The best single guess is one of the values themselves, up to its bound.
    hits = [(np.abs(truth - value) <= bound).sum() for value in truth]
    median = float(np.median(truth))
    best = max(hits)
    near = [value for value, count in zip(truth, hits, strict=True) if count == best]
    return float(min(near, key=lambda value: abs(value - median)))


def _attempt(arm: Arm, trial: Trial, rows: NDArray[np.int64]) -> Attempt:
    exact = int((trial.outcome[rows] == EXACT).sum())
    got = int((trial.outcome[rows] > NOT).sum())
    return Attempt(arm.title, exact, got - exact, sum(trial.seconds.values()), trial.explanation)


def _worth(trial: Trial, rows: NDArray[np.int64]) -> tuple[int, int, float]:
    outcome = trial.outcome[rows]
    return int((outcome == EXACT).sum()), int((outcome > NOT).sum()), trial.values
