"""Attackers, not tricks: who knows what, every attack each of them has, and the best of these.

    blind     sees the encodings only
    public    also knows the public vectors
    told      also knows which encodings share a record: published attacks on images learn just that
              from the encodings, with a network trained for it
    insider   also knows every second record

Each knows what those before know, so that what one gets the next gets too. Which attacks apply is
asked of `attacks.choose`. They run best first, until nothing is left to get or the effort is spent;
the usual ones run whatever the effort, since an audit that tries nothing understates. Only the
clock ends those (`auditing.clock`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.choose import LAST, TOLD, choose, situation_of, usual
from unveil.auditing.as_found import COPIES, VIEWS
from unveil.auditing.clock import OVER
from unveil.auditing.insider import NAME as SUBSTITUTION
from unveil.auditing.trial import Arm, Key, Trial
from unveil.auditing.trials import Laboratory
from unveil.identify import identify
from unveil.scheme import Scheme

KNOWS: dict[Key, str] = {
    "blind": "sees the encodings only",
    "public": "also knows the public vectors",
    "told": "also knows which encodings share a record",
    "insider": "also knows every second record",
}
"""The kinds of attackers, the one that knows least first."""
CHEAP_WHEN_TOLD = ("cliques", "line-graph", "tensor", "full")
"""Attacks that run in any case once overlaps are told: reading them is what costs."""
SUPPOSED = ("mixing", "unhidden", "relations", "full", "noisy-relations")
"""Attacks on schemes that encodings are only supposed to follow: the quick ones of the usual."""
CHEAP_SUPPOSED = ("mixing", "unhidden")
"""Of these, linear algebra, which runs whatever the effort."""
NOTHING_LEFT = "nothing was left to recover"
"""Why an attack did not run after a complete one."""

Cost = Callable[[str, Scheme], float]
"""cost(attack, scheme): forecast seconds."""


@dataclass(frozen=True, eq=False)
class Run:
    """What one kind of attacker did: trials in the order they ran, and what was not tried, why.
    spare: attacks for which nothing was left."""

    who: Key
    arms: tuple[Arm, ...] = ()
    trials: tuple[Trial, ...] = ()
    not_tried: tuple[tuple[str, str], ...] = ()
    spare: tuple[Arm, ...] = ()

    def best(self) -> tuple[Arm, Trial] | None:
        """The arm that got most, the first of equals."""
        pairs = list(zip(self.arms, self.trials, strict=True))
        return max(pairs, key=lambda pair: pair[1].worth) if pairs else None


@dataclass
class _Purse:
    """Forecast seconds that are left."""

    left: float
    cost: Cost

    def pays(self, arm: Arm) -> bool:
        # Paid before it runs: afterwards it would be too late to refuse.
        price = self.cost(arm.attack, arm.scheme)
        if price > self.left:
            return False
        self.left -= price
        return True


def attack_all(lab: Laboratory, m: int, effort: float, cost: Cost) -> tuple[Run, ...]:
    """Every kind of attacker on the first m encodings of draw 0."""
    purse = _Purse(effort, cost)
    runs: list[Run] = []
    best: Trial | None = None
    for who in KNOWS:
        # Without a public part there is nothing more to know.
        if who == "public" and not lab.release.scheme.k_public:
            continue
        run = _run(lab, m, who, best, purse)
        runs.append(run)
        for trial in run.trials:
            best = trial if best is None or trial.worth > best.worth else best
    return tuple(runs)


def _run(lab: Laboratory, m: int, who: Key, best: Trial | None, purse: _Purse) -> Run:
    """One attacker. `best`: what those who know less got."""
    arms, trials, not_tried, spare = [], [], [], []
    for arm, always, why_not in _arms(lab, m, who):
        if why_not:
            not_tried.append((arm.title, why_not))
            continue
        # 1. Nothing is left for an attacker who knows more.
        if best is not None and best.complete:
            not_tried.append((arm.title, NOTHING_LEFT))
            spare.append(arm)
            continue
        # 2. Blind, the last resorts run where nothing came back; what is not usual is paid for.
        resort = arm.attack in LAST and who != "told"
        free = always and (not resort or best is None or best.worth[1] == 0)
        if not free and not purse.pays(arm):
            not_tried.append((arm.title, "beyond the effort that was allowed"))
            continue
        # 3. Whatever was forecast, the clock has the last word; the first attack always starts.
        if best is not None and lab.clock is not None and lab.clock.over:
            not_tried.append((arm.title, OVER))
            continue
        trial = lab.trial(m, 0, arm, show=True, bounded=True)
        arms.append(arm)
        trials.append(trial)
        best = trial if best is None or trial.worth > best.worth else best
    return Run(who, tuple(arms), tuple(trials), tuple(not_tried), tuple(spare))


def _arms(lab: Laboratory, m: int, who: Key) -> Iterator[tuple[Arm, bool, str]]:
    """(arm, whether it runs whatever the effort, why it cannot run)."""
    release = lab.release
    scheme = release.scheme
    if who == "told":
        yield from _told(lab, m)
        return
    if who == "insider":
        yield Arm(who, SUBSTITUTION, scheme), True, _no_substitution(lab, m)
        return
    if who == "blind":
        # The simplest attack first: an encoding may be a record as it is.
        yield Arm(who, COPIES, scheme), True, ""
    pool = release.public if who == "public" else None
    yield from _of_scheme(lab, m, who, scheme, pool, "")
    if who == "blind" and scheme.k_public:
        # Who does not know the pool can still take public vectors for private ones: more unknowns,
        # the same equations.
        whole = _all_private(scheme)
        if whole is not None:
            words = "public vectors taken for private ones"
            for arm, _, why_not in _of_scheme(lab, m, who, whole, None, words):
                yield arm, True, why_not
    if who == "blind" and not release.stated:
        # What was stated may be wrong: the encodings are also taken for what they look like.
        values = release.draw(0).values[:m]
        for other in _supposed(values):
            words = f"taken for mixtures of {other.k_private}, signs {other.signs}"
            yield from _of_scheme(lab, m, who, other, None, words)
        for view, seen in VIEWS.items():
            if seen(values) is not None:
                yield from _of_scheme(lab, m, who, scheme, None, view, view)


def _supposed(values: NDArray[np.float32]) -> list[Scheme]:
    """Schemes that the encodings may follow: what `identify` finds; and own weights with signs kept
    or masked, which cost little to try and may give back some records where most encodings fit
    nothing."""
    own = [Scheme(k, weighting="unknown", signs="kept") for k in (2, 3, 4)]
    if (values < 0).any():
        own.append(Scheme(2, weighting="unknown", signs="masked"))
    return list(dict.fromkeys([*(one.scheme for one in identify(values, rng=0)), *own]))


def _of_scheme(
    lab: Laboratory, m: int, who: Key, scheme: Scheme, pool: object, words: str, view: str = ""
) -> Iterator[tuple[Arm, bool, str]]:
    """Every attack on encodings that are taken for this scheme's."""
    encodings = lab.encodings(0, m, scheme, view)
    situation = situation_of(encodings, pool)  # type: ignore[arg-type]
    names = usual(situation)
    for choice in choose(situation):
        if words and not (choice.applies and choice.attack in names and choice.attack in SUPPOSED):
            continue
        always = choice.attack in names if not words else choice.attack in CHEAP_SUPPOSED
        yield Arm(who, choice.attack, scheme, words, view), always, choice.why_not


def _told(lab: Laboratory, m: int) -> Iterator[tuple[Arm, bool, str]]:
    scheme = lab.release.scheme
    if not scheme.fixed_weights:
        why = "for weights that all encodings share"
    elif lab.release.chosen(0, m) is None:
        why = "which encodings share a record is not known to the audit"
    else:
        encodings = lab.encodings(0, m)
        for choice in choose(situation_of(encodings, lab.release.public, told=True)):
            if choice.attack not in TOLD:
                continue  # what it gets, a blind attacker has
            always = choice.attack in CHEAP_WHEN_TOLD
            yield Arm("told", choice.attack, scheme), always, choice.why_not
        return
    yield Arm("told", "full", scheme), False, why


def _no_substitution(lab: Laboratory, m: int) -> str:
    scheme = lab.release.scheme
    if not scheme.fixed_weights:
        return "for weights that all encodings share"
    if scheme.k_public:
        return "for encodings without a public part"
    if lab.release.chosen(0, m) is None:
        return "which records an encoding mixes is not known to the audit"
    return "" if len(lab.groups[0]) > 2 else "there are too few records to know some of them"


def _all_private(scheme: Scheme) -> Scheme | None:
    """The same encodings with the public vectors among the unknown ones; None where weights
    differ."""
    if not scheme.fixed_weights or scheme.public_weight != scheme.private_weight:
        return None
    k = scheme.k_private + scheme.k_public
    return replace(scheme, k_private=k, k_public=0, weighting="equal", alpha=1.0)
