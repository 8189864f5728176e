"""All trials of an audit: every attacker on all encodings, then the attacker of the headline on
more draws and on fewer encodings.

Effort is forecast seconds. Half of it at most goes to attackers, the rest to draws and the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unveil.auditing.ahead import make_ahead
from unveil.auditing.audit_options import Options
from unveil.auditing.costs import attack_seconds
from unveil.auditing.curve import Points, trace
from unveil.auditing.holdout import held_out
from unveil.auditing.inputs import Case
from unveil.auditing.judgement import weakest
from unveil.auditing.measured import Outcome, outcomes, threat
from unveil.auditing.result import Threat
from unveil.auditing.risks import ALMOST, EXACT
from unveil.auditing.threats import Run, attack_all
from unveil.auditing.trial import Arm, Trial
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

SPARED = ("full", "tensor")
"""Attacks that do with fewer encodings than exact relations: tried where the curve falls, if they
are cheap."""


@dataclass(frozen=True, eq=False)
class Campaign:
    """Threats with their runs and best outcomes, the place of the attacker of the headline, and
    trials by number of encodings."""

    threats: tuple[Threat, ...]
    runs: tuple[Run, ...]
    bests: tuple[Outcome, ...]
    place: int
    points: Points

    @property
    def best(self) -> Outcome:
        return self.bests[self.place]

    @property
    def trials(self) -> list[Trial]:
        """All that were made, each once."""
        # A trial that a kept one answers stands in both lists, and counts once.
        made = [trial for run in self.runs for trial in run.trials]
        made += [trial for several in self.points.values() for trial in several]
        return list({id(trial): trial for trial in made}.values())


def campaign(lab: Laboratory, case: Case, options: Options, *, hard: bool) -> Campaign:
    """Every attacker on all encodings, then the one of the headline on more draws and fewer
    encodings."""
    n, d = case.data.values.shape
    n_public = 0 if case.release.public is None else len(case.release.public)

    def cost(attack: str, scheme: Scheme, m: int = case.high) -> float:
        return attack_seconds(attack, scheme, n, m, d, n_public, hard=hard)

    # 1. All attackers; half of the effort at most, since draws and the curve need the rest.
    runs = attack_all(lab, case.high, options.effort / 2, cost)
    bests = outcomes(lab, runs)
    first = tuple(threat(lab, run, best, ()) for run, best in zip(runs, bests, strict=True))
    found = weakest(first)
    place = 0 if found is None else next(i for i, t in enumerate(first) if t is found)
    # 2. The headline's attacker again.
    arms = _again(runs, bests[place], options.effort / 8, cost)
    points = _trace(lab, case, options, arms, cost)
    # 3. The same attack against records that were kept out of the release.
    best = bests[place]
    chance = None
    if best.who in ("blind", "public") and best.got:
        price = cost(best.arm.attack, best.arm.scheme)
        if price <= options.effort / 8 and not (lab.clock is not None and lab.clock.over):
            least = EXACT if best.exact == best.got else ALMOST
            chance = held_out(lab, best.arm, case.high, options.encoder, least)
    threats = tuple(
        threat(
            lab,
            run,
            best,
            points[case.high][1:] if i == place else (),
            chance if i == place else None,
        )
        for i, (run, best) in enumerate(zip(runs, bests, strict=True))
    )
    return Campaign(threats, runs, bests, place, points)


def _again(runs: Sequence[Run], best: Outcome, most: float, cost: Any) -> tuple[Arm, ...]:
    """The arm that won, then others of the same attacker: with fewer encodings another may be the
    best. Those are taken that got something too, or that were spared, if they cost less than
    `most`."""
    # Of the same attacker only: one who knows more would lift the curve of one who knows less.
    run = next(run for run in runs if run.who == best.arm.who)
    others = [
        arm
        for arm, trial in zip(run.arms, run.trials, strict=True)
        if arm != best.arm and trial.worth[1]
    ]
    spared = [
        arm
        for arm in run.spare
        if arm.attack in SPARED and not arm.words and cost(arm.attack, arm.scheme) <= most
    ]
    return (best.arm, *others, *spared)


def _trace(
    lab: Laboratory, case: Case, options: Options, arms: tuple[Arm, ...], cost: Any
) -> Points:
    """Trials by number of encodings; as many draws as the effort allows."""
    done = 0

    def price(m: int) -> float:
        return float(sum(cost(arm.attack, arm.scheme, m) for arm in arms))

    def trial(m: int, draw: int) -> Trial:
        nonlocal done
        done += 1
        if options.progress:
            options.progress("trials", done, done + 1)
        show = m == case.high
        if draw == 0:
            make_ahead(lab, m, arms, draws, show=show)
        return lab.best(m, draw, arms, show=show and draw == 0)

    def price_or_never(m: int) -> float:
        # Once the clock is over no further point is begun.
        return float("inf") if lab.clock is not None and lab.clock.over else price(m)

    left = options.effort / 2
    # Half of it at most for further draws of all encodings: the curve needs the rest.
    draws = int(max(1, min(options.seeds, 1 + left / 2 // max(price(case.high), 1e-12))))
    draws = draws if case.release.draws is None else min(draws, case.release.draws)
    if lab.clock is not None and lab.clock.over:
        draws = 1
    spent = (draws - 1) * price(case.high)
    return trace(case.low, case.high, trial, price_or_never, draws=draws, effort=left - spent)
