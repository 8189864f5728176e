"""From trials to words: the risk of every record, and the verdict, which says what was measured and
nothing beyond.

The headline is that of the weakest attacker who succeeds, and so is the level: what comes back from
the release alone is a leak, whatever more an attacker with more knowledge gets; what takes being
told the overlaps, or knowing records, is never more than "partly". Where nothing comes back,
encodings that a holder of candidate records can link to them are "partly" as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.curve import Points
from unveil.auditing.linking import Links
from unveil.auditing.model_check import ModelCheck
from unveil.auditing.result import CurvePoint, Level, RecordRisk, Threat, Verdict
from unveil.auditing.risks import APPROXIMATE, MOST, NOT, OUTCOMES
from unveil.auditing.trial import Trial
from unveil.data import Dataset

FEW = 0.1
"""Up to this share of exact records the verdict is "partly"."""
SOME_VALUES = 0.05
"""Share of single values right above a guess, from which on a release gives something away though
no record came back whole."""
RELEASE_ALONE = ("blind", "public")
"""Attackers who have nothing but what is released or public."""
ONCE = {
    "blind": "",
    "public": "",
    "told": " once it is known which encodings share a record",
    "insider": " once every second record is known",
}
"""What the headline adds of the attacker."""


def weakest(threats: Sequence[Threat]) -> Threat | None:
    """The attacker who knows least of those who succeed.

    Success is an exact record, or more approximate ones than chance explains; where nobody has
    that, any record, and then single values.
    """
    # Strictest first: one exact record of an outsider says more than many near ones of an insider.
    for succeeds in (_surely, _somehow, partial):
        for threat in threats:
            if succeeds(threat):
                return threat
    return None


def _surely(threat: Threat) -> bool:
    return bool(threat.exact or (threat.approximate and threat.residual_low > 0))


def _somehow(threat: Threat) -> bool:
    return bool(threat.exact + threat.approximate)


def partial(threat: Threat) -> bool:
    """Whether single values came back though no record did."""
    return (threat.values or 0.0) - threat.guessed_values >= SOME_VALUES


def record_risks(
    data: Dataset, chosen: NDArray[np.int64] | None, points: Points, high: int
) -> tuple[RecordRisk, ...]:
    """Every record as the first draw of all `high` encodings shows it; `chosen` (m, k): the records
    of each encoding, where they are known."""
    main = points[high][0]
    n = len(data.names)
    uses = np.full(n, -1)
    if chosen is not None:
        uses = np.array([np.count_nonzero((chosen == i).any(axis=1)) for i in range(n)])
    # The first draw alone: records of other draws are mixed into other encodings.
    came = {m: points[m][0].outcome > NOT for m in sorted(points)}
    risks = []
    for i in range(n):
        back = [m for m, outcome in came.items() if outcome[i]]
        seen = np.isfinite(main.error[i])
        risks.append(
            RecordRisk(
                index=i,
                name=data.names[i],
                outcome=OUTCOMES[main.outcome[i]],  # type: ignore[arg-type]
                status=main.status[i] or "unresolved",
                error=float(main.error[i]) if seen else None,
                correlation=float(main.correlation[i]) if seen else None,
                encodings=max(0, int(uses[i])),
                from_m=back[0] if back else None,
                reason=_reason(main, i, int(uses[i])),
            )
        )
    return tuple(risks)


def _reason(main: Trial, i: int, uses: int) -> str:
    # The simplest cause first: what no encoding uses no attack can find.
    if uses == 0:
        return "no encoding uses it"
    if main.reasons[i]:
        return main.reasons[i]
    if uses == 1:
        return "appears in one encoding only"
    return "no recovered vector is near it" if any(main.status) else main.explanation


def verdict(
    threats: Sequence[Threat],
    curve: Sequence[CurvePoint],
    check: ModelCheck,
    m: int,
    *,
    records: int,
    signed: bool,
    wrong: int,
    asides: Sequence[str] = (),
    noun: str = "pixel",
    linked: Links | None = None,
) -> Verdict:
    """`records`: how many there are, equal ones included; `asides`: what else must be said; `noun`:
    what a record is made of; `linked`: whether encodings are linked to records, where none came
    back."""
    found = weakest(threats)
    n = threats[0].records
    level = level_of(threats)
    sentences = []
    # 1. The headline: who gets what.
    if found is None:
        headline = (
            f"Nothing recovered: {_names(threats)} got none of {n} records from {m:,} encodings. "
            "This is no proof of safety."
        )
        if linked is not None and linked.sure:
            level = "partly"
            sentences.append(headline)
            headline = f"Do not rely on this: no record comes back, but {linked.words}."
    else:
        start = "Do not release" if level == "leaks" else "Do not rely on this"
        headline = f"{start}: {_counts(found)} from {m:,} encodings{ONCE[found.key]}."
        sentences.append(_since(curve))
        sentences += _of_draws(found, curve, m)
    # 2. What attackers who know more get, and what those who know less do not.
    sentences += _others(threats, found)
    if records > n:
        sentences.append(f"Equal records count once: {records} records, {n} of them different.")
    # 3. How the counts are meant.
    if found is not None and found.exact and not signed:
        sentences.append(
            f"Exact is up to one sign per {noun} that all records share; relative signs are "
            "recovered."
        )
    if found is not None and found.approximate:
        sentences.append(
            f"Approximate means a correlation above {APPROXIMATE} with the true record, the mean "
            f"of all records taken off, or {MOST:.0%} of the {noun}s that set it apart right."
        )
    sentences += asides
    sentences.append(check.sentence(noun))
    if not check.independent:
        sentences.append(
            "Forecasts of how many encodings an attack needs do not hold for such data; counts are "
            "measured against the true records."
        )
    # 4. Doubts.
    if wrong:
        sentences.append(f"{wrong} vectors that the attack called verified were wrong.")
    if found is not None and found.exact + found.approximate < found.records:
        sentences.append("Records that were not recovered are not proved safe.")
    return Verdict(level, headline, tuple(sentences))


def level_of(threats: Sequence[Threat]) -> Level:
    """By the attackers who have the release alone; what the others get is "partly" at most."""
    level: Level = "nothing"
    for threat in threats:
        if threat.exact + threat.approximate or partial(threat):
            level = "partly"
        # One blind attacker is enough: what others add cannot make it less.
        if threat.key in RELEASE_ALONE and threat.exact > FEW * threat.records:
            return "leaks"
    return level


def _others(threats: Sequence[Threat], found: Threat | None) -> list[str]:
    out = []
    for threat in threats:
        if found is None or threat is found:
            continue
        got = threat.exact + threat.approximate
        if threat.key in RELEASE_ALONE and not got and found.key not in RELEASE_ALONE:
            out.append(
                f"From the encodings alone {_names([threat])} got none of {threat.records}."
                if threat.key == "blind"
                else f"With the public vectors {_names([threat])} got none either."
            )
        # Only where the same records are counted: an insider is asked for half of them.
        elif got > found.exact + found.approximate and threat.records == found.records:
            out.append(f"To an attacker who {threat.knows}, {_counts(threat)}.")
    return out


def _names(threats: Sequence[Threat]) -> str:
    """Every attack that tried, once."""
    names = dict.fromkeys(attempt.attack for threat in threats for attempt in threat.tried)
    return _and(list(names) or ["no attack"])


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _of_draws(found: Threat, curve: Sequence[CurvePoint], m: int) -> list[str]:
    """Which draw the headline counts, where there were several."""
    at = next((point for point in curve if point.m == m and point.runs > 1), None)
    # Of an insider other records are counted than the curve counts.
    if at is None or found.key == "insider":
        return []
    mean, share = at.exact + at.approximate, (found.exact + found.approximate) / found.records
    # Less than half a record of difference is none.
    if abs(mean - share) * found.records < 1 / 2:
        return [f"As many come back in the mean over {at.runs} independent draws of the mixture."]
    return [
        f"The headline counts the first of {at.runs} independent draws of the mixture; in the mean "
        f"over all of them {mean:.0%} of the records come back."
    ]


def _counts(threat: Threat) -> str:
    exact, almost, n = threat.exact, threat.approximate, threat.records
    come = "comes" if n == 1 else "come"
    if not exact and not almost:
        return f"no record comes back whole, but {threat.values or 0.0:.0%} of single values do"
    if not almost:
        return f"{exact} of {n} records {come} back exactly"
    if not exact:
        return f"{almost} of {n} records {come} back approximately"
    return f"{exact} of {n} records {come} back exactly and {almost} more approximately"


def _since(curve: Sequence[CurvePoint]) -> str:
    """From how many encodings on: the first, half of the records, nearly all."""
    first = next((p.m for p in curve if p.exact + p.approximate > 0), None)
    half = next((p.m for p in curve if p.exact + p.approximate >= 0.5), None)
    if first is None:
        return "In the mean over draws no whole record came back."
    text = f"The first records come back from about {first:,} encodings on"
    # The curve does not go lower: where leaking begins was not seen.
    if first == curve[0].m:
        text = f"Already {first:,} encodings, the fewest tried, give records away"
    return text + (
        f", half of them from about {half:,} on." if half is not None and half != first else "."
    )
