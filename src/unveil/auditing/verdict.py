"""From trials to words and counts: intervals, columns, records, headline.

The headline is that of the attacker who knows least among those who succeed, and so is the level.
What comes back exactly from what is released and public alone is a leak; what takes knowing who is
in which encoding, or records, is never more than "partly". A table is judged by its columns: which
come back, for how many records, beside what one guess for all has right. Images are judged by
images.

Intervals are Wilson's, over the records of all draws. Records of one draw may come back together or
not at all, so they count as fewer observations than there are: as many as the scatter between draws
allows, by Kish's design effect (L. Kish, Survey Sampling, 1965, section 5.4). The scatter of few
draws is mostly seen too small, so what exceeds chance is taken for the lower third of a χ².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binomtest, chi2

from unveil.auditing.outcome import EXACT, NEAR, RECORDS, beyond_guessing
from unveil.auditing.result import Column, CurvePoint, Level, RecordRisk, Threat, Verdict
from unveil.auditing.trial import Trial
from unveil.data import Dataset


def share_interval(
    shares: Sequence[float], records: int, believed: float = 8.0
) -> tuple[float, float]:
    """95% interval of the mean of `shares`, one of `records` records for each draw.

    believed : float    Less scatter than chance is believed as if so many draws spoke for chance:
                        records compete for encodings, so that a little less is common.
    """
    draws, share = len(shares), float(np.mean(shares))
    count = float(draws * records)
    chance = share * (1 - share) / max(records, 1)
    if draws > 1 and chance > 0:
        effect, free = float(np.var(shares, ddof=1)) / chance, draws - 1
        if effect < 1:
            effect = (believed + free * effect) / (believed + free)
        else:
            effect = 1 + (effect - 1) * free / float(chi2.ppf(1 / 3, free))
        count /= min(effect, float(records))
    observations = max(1, round(count))
    found = binomtest(round(share * observations), observations).proportion_ci(method="wilson")
    # Counts are whole: the share itself stays inside.
    return min(share, float(found.low)), max(share, float(found.high))


@dataclass(frozen=True, eq=False)
class Result:
    """All trials of one attacker.

    whole : on all records; None where they were too many, or none was made.
    sample : on a sample of them; None where all were attacked at once.
    again : further draws of the trial that counts.
    """

    whole: Trial | None
    sample: Trial | None
    again: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial:
        """The one that got more: a sample asks the same question, so that what it gives up is not
        taken back by an attack on the whole that ran out of time."""
        both = [trial for trial in (self.whole, self.sample) if trial is not None]
        # Less than one record in twenty is no difference between two draws; then the whole counts.
        if len(both) == 2:
            values, records = (
                b - a for a, b in zip(both[0].worth[:2], both[1].worth, strict=False)
            )
            if values < 0.05 and records < 0.15:
                return both[0]
        return max(both, key=lambda trial: trial.worth)

    @property
    def sampled(self) -> bool:
        return self.best is self.sample

    @property
    def undecided(self) -> bool:
        """The clock ended every trial before it had all."""
        return all(trial.stopped for trial in (self.whole, self.sample) if trial is not None)

    @property
    def draws(self) -> tuple[Trial, ...]:
        return (self.best, *self.again)


def level_of(trial: Trial, few: float = 0.1) -> Level:
    """What this trial would be called by itself; few: the share beyond guessing up to which values
    that come back are "partly"."""
    n = max(1, trial.records)
    whole = trial.back(3) / n
    excess, speaks = _excess(trial, EXACT)
    nearly = bool(_excess(trial, NEAR)[1].any())
    if trial.attacker.key == "insider":
        large = trial.back(2) > few * n or bool((excess[speaks] > few).any())
        return "partly" if large else "nothing"
    strong = whole > few or (not trial.yard.images and bool((excess[speaks] > few).any()))
    if strong and trial.attacker.released:
        return "leaks"
    some = trial.back(2) > 0 or bool(speaks.any()) or nearly
    return "partly" if some else "nothing"


def _excess(trial: Trial, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Share beyond guessing of each column, and which columns have more than chance."""
    yard, n = trial.yard, max(1, trial.records)
    guess = yard.guesses[0 if least == EXACT else 1]
    right = trial.columns(least)
    return right / n - guess, beyond_guessing(right, n, guess, yard.varies)


def weakest(results: Sequence[Result]) -> Result:
    """The attacker of the headline: who knows least of those with the gravest level."""
    for level in ("leaks", "partly"):
        for result in results:
            if level_of(result.best) == level:
                return result
    return results[0]


def threats_of(results: Sequence[Result]) -> tuple[Threat, ...]:
    """Every attacker, as it is reported. Who knows more is no less of a threat."""
    out: list[Threat] = []
    order: tuple[Level, ...] = ("nothing", "partly", "leaks")
    for result in results:
        one = _threat(result)
        before = out[-1].level if out else "nothing"
        out.append(replace(one, level=max(one.level, before, key=order.index)))
    return tuple(out)


def _threat(result: Result) -> Threat:
    trial = result.best
    n = max(1, trial.records)
    shares = [one.back(2) / max(1, one.records) for one in result.draws]
    low, high = share_interval(shares, n)
    tried = [attempt for one in (result.whole, result.sample) if one for attempt in one.tried]
    varies = trial.yard.varies
    guess = trial.yard.guesses[0][varies]
    speaks = _excess(trial, EXACT)[1] | _excess(trial, NEAR)[1]
    return Threat(
        key=trial.attacker.key,
        knows=trial.attacker.knows,
        level=level_of(trial),
        exact=trial.back(3),
        approximate=trial.back(2) - trial.back(3),
        in_part=trial.back(1) - trial.back(2),
        records=trial.records,
        low=min(low, shares[0]),
        high=max(high, shares[0]),
        columns=int(speaks.sum()),
        values=trial.share(),
        guess=float(guess.mean()) if len(guess) else 1.0,
        sampled=result.sampled,
        stopped=any(one is not None and one.stopped for one in (result.whole, result.sample)),
        tried=tuple(sorted(tried, key=lambda attempt: -attempt.values)),
        why_not=trial.why_not if not tried else "",
    )


def columns_of(result: Result, names: Sequence[str]) -> tuple[Column, ...]:
    """Every column of a table, those that leak most first."""
    trial = result.best
    n, yard = max(1, trial.records), trial.yard
    exact, near, guess = trial.columns(EXACT), trial.columns(NEAR), yard.guesses[0]
    speaks = _excess(trial, EXACT)[1] | _excess(trial, NEAR)[1]
    opened = trial.outcome.open[trial.counted].sum(axis=0)
    out = []
    for j, name in enumerate(names):
        shares = [float(one.columns(EXACT)[j]) / max(1, one.records) for one in result.draws]
        low, high = share_interval(shares, n)
        share = shares[0]
        out.append(
            Column(
                name=name,
                exact=int(exact[j]),
                approximate=int(near[j] - exact[j]),
                records=n,
                open=int(opened[j]),
                low=min(low, share),
                high=max(high, share),
                guess=float(guess[j]),
                lift=float((share - guess[j]) / (1 - guess[j])) if guess[j] < 1 else 0.0,
                leaks=bool(speaks[j]),
            )
        )
    return tuple(sorted(out, key=lambda column: (-column.exact, -column.lift)))


def records_of(
    result: Result,
    data: Dataset,
    points: Sequence[Trial],
    places: np.ndarray,
    members: np.ndarray | None,
) -> tuple[RecordRisk, ...]:
    """Every record that was attacked, as the trial of the headline shows it; places: where its rows
    stand in the data; members: of its encodings."""
    trial, out = result.best, []
    outcome, yard = trial.outcome, trial.yard
    uses = np.full(len(trial.rows), -1)
    if members is not None:
        uses = np.array([np.count_nonzero((members == i).any(axis=1)) for i in range(len(uses))])
    middle = yard.truth.mean(axis=0)
    for i in np.flatnonzero(trial.counted):
        vector = int(outcome.vector[i])
        seen = vector >= 0 and trial.recovery is not None
        error = correlation = None
        if seen:
            gap = np.abs(outcome.values[i] - yard.truth[i])
            error = float(np.max(gap, where=~outcome.open[i], initial=0.0))
            a, b = outcome.values[i] - middle, yard.truth[i] - middle
            size = float(np.linalg.norm(a) * np.linalg.norm(b))
            correlation = float(a @ b) / size if size else 0.0
        came = sorted(
            p.m for p in points if len(p.rows) == len(trial.rows) and p.outcome.record[i] >= 2
        )
        row = int(places[trial.rows[i]])
        status, reason = "", "no recovered vector is near it"
        if seen and trial.recovery is not None:
            status = str(trial.recovery.status[vector])
            reason = trial.recovery.reasons[vector]
        elif uses[i] in (0, 1):
            reason = "no encoding uses it" if uses[i] == 0 else "appears in one encoding only"
        out.append(
            RecordRisk(
                index=row,
                name=data.names[row],
                outcome=RECORDS[outcome.record[i]],  # type: ignore[arg-type]
                values=int((outcome.value[i, yard.varies] == EXACT).sum()),
                open=int(outcome.open[i, yard.varies].sum()),
                error=error,
                correlation=correlation,
                encodings=max(0, int(uses[i])),
                from_m=came[0] if came else trial.m if outcome.record[i] >= 2 else None,
                status=status,
                reason=reason,
            )
        )
    return tuple(out)


def curve_of(points: Sequence[Sequence[Trial]], scale: float) -> tuple[CurvePoint, ...]:
    """One point per list of trials, which are draws of the same number of encodings; scale: how
    many times as many encodings the whole release has as the records of these trials."""
    out = []
    for trials in points:
        n = max(1, trials[0].records)
        exact = [trial.back(3) / max(1, trial.records) for trial in trials]
        back = [trial.back(2) / max(1, trial.records) for trial in trials]
        low, high = share_interval(back, n)
        values = float(np.mean([trial.share() for trial in trials]))
        mean = float(np.mean(exact))
        m = round(trials[0].m * scale)
        out.append(CurvePoint(m, mean, float(np.mean(back)) - mean, low, high, values, len(trials)))
    return tuple(sorted(out, key=lambda point: point.m))


@dataclass(frozen=True)
class Words:
    """What a record is made of, and how many there are: nouns for sentences."""

    names: Sequence[str]
    noun: str
    total: int
    distinct: int
    m: int
    images: bool

    @property
    def record(self) -> str:
        return "image" if self.images else "record"


def describe(trial: Trial, sampled: bool, words: Words) -> str:
    """What came back, for a headline: columns of a table, images of images."""
    n = trial.records
    of = f"{n} {words.record}s of a sample" if sampled else f"{n} {words.record}s"
    exact, almost = trial.back(3), trial.back(2) - trial.back(3)
    if words.images:
        return _of_records(exact, almost, of)
    varies = trial.yard.varies
    d = int(varies.sum())
    for least, how in ((EXACT, ""), (NEAR, " approximately")):
        right, speaks = trial.columns(least), _excess(trial, least)[1]
        full = np.flatnonzero((right == n) & varies)
        if len(full) == d:
            return f"all {d} {words.noun}s of all {of} come back{how or ' exactly'}"
        if len(full):
            rest = int((speaks & (right < n)).sum())
            more = f"; {rest} more for some" if rest else ""
            verb = "come" if len(full) > 1 else "comes"
            return (
                f"{len(full)} of {d} {words.noun}s {verb} back{how} for all {of} "
                f"({_listed(full, words)}){more}"
            )
        if speaks.any():
            most = int(right[speaks].max())
            strong = np.flatnonzero(speaks & (right >= most / 2))
            strong = strong[np.argsort(-right[strong], kind="stable")]
            least_of = int(right[strong].min())
            count = f"{least_of} to {most}" if least_of < most else f"{most}"
            verb = "come" if len(strong) > 1 else "comes"
            return (
                f"{len(strong)} of {d} {words.noun}s {verb} back{how} for {count} of {of} "
                f"({_listed(strong, words)})"
            )
    return _of_records(exact, almost, of)


def _of_records(exact: int, almost: int, of: str) -> str:
    if exact and almost:
        return f"{exact} of {of} come back exactly and {almost} more approximately"
    return f"{exact or almost} of {of} come back {'exactly' if exact else 'approximately'}"


def _listed(columns: np.ndarray, words: Words, most: int = 6) -> str:
    """Names of columns, the first of them."""
    names = [words.names[j] for j in columns[:most]]
    rest = len(columns) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def verdict_of(
    results: Sequence[Result],
    curve: Sequence[CurvePoint],
    words: Words,
    attacked: str,
    asides: Sequence[str] = (),
    linked: str = "",
    *,
    own_make: bool = False,
) -> Verdict:
    """Level, headline and sentences; linked: what somebody who holds candidate records can do,
    where nothing came back otherwise. Of a mixture that is to be expected, and is said; an encoder
    of somebody's own make (own_make) may not be relied on then."""
    main = weakest(results)
    trial = main.best
    level = level_of(trial)
    sentences: list[str] = []
    if level == "nothing":
        tried = dict.fromkeys(a.attack for r in results for t in r.draws for a in t.tried)
        names = ", ".join(tried) or "no attack"
        headline = (
            f"Nothing recovered: {names} got nothing of {trial.records} {words.record}s from "
            f"{words.m:,} encodings. This is no proof of safety."
        )
        if any(result.undecided for result in results):
            level = "partly"
            headline = (
                f"Do not rely on this: time ran out before all attacks on {trial.records} "
                f"{words.record}s had ended. Nothing had come back by then; give them more time."
            )
        elif linked and own_make:
            level = "partly"
            sentences.append(headline)
            headline = f"Do not rely on this: nothing comes back, but {linked}."
        elif linked:
            sentences.append(f"{linked[:1].upper()}{linked[1:]}.")
    else:
        start = "Do not release" if level == "leaks" else "Do not rely on this"
        told = describe(trial, main.sampled, words)
        headline = f"{start}: {told}, from {words.m:,} encodings{trial.attacker.once}."
        if not words.images:
            sentences.append(_records_sentence(trial, words))
        sentences += _open_values(trial, words)
        sentences += _since(curve, words)
    sentences += _others(results, main, words)
    if words.total > words.distinct:
        sentences.append(
            f"Equal records count once: {words.total} records, {words.distinct} of them different."
        )
    recovery = trial.recovery
    if level != "nothing" and recovery is not None and not recovery.signed:
        sentences.append(
            f"Exactly is up to one sign per {words.noun} that all records share; relative signs "
            "are recovered."
        )
    sentences += asides
    wrong = sum(one.wrong for result in results for one in result.draws)
    if wrong:
        sentences.append(
            f"{wrong} vectors that the attack called verified equal no record: trust no “verified” "
            "on data like these, and report it as a bug. The counts here were held against the "
            "truth."
        )
    if not trial.complete:
        sentences.append("What was not recovered is not proved safe.")
    return Verdict(level, headline, attacked, tuple(sentences))


def _records_sentence(trial: Trial, words: Words) -> str:
    exact, almost = trial.back(3), trial.back(2) - trial.back(3)
    part, n = trial.back(1) - trial.back(2), trial.records
    parts = [f"{exact} back exactly (all their determined values)"]
    parts += [f"{almost} approximately"] if almost else []
    parts += [f"{part} in part"] if part else []
    lost = n - exact - almost - part
    parts += [f"{lost} not at all"] if lost else []
    return f"Of {n} records: {', '.join(parts)}."


def _open_values(trial: Trial, words: Words) -> list[str]:
    opened = trial.outcome.open[trial.counted][:, trial.yard.varies]
    if not opened.any():
        return []
    right = (trial.outcome.value[trial.counted][:, trial.yard.varies] == EXACT)[opened]
    return [
        f"Left open by the equations and guessed by the attack: {int(opened.sum()):,} of "
        f"{opened.size:,} values, {int(right.sum()):,} of them right. They count in their "
        f"{words.noun}s."
    ]


def _since(curve: Sequence[CurvePoint], words: Words) -> list[str]:
    if len(curve) < 2:
        return []
    first = next((p.m for p in curve if p.values > 0.05), None)
    if first is None:
        return []
    if first == curve[0].m:
        return [f"Already {first:,} encodings, the fewest tried, give values away."]
    return [f"The first values come back from about {first:,} encodings on."]


def _others(results: Sequence[Result], main: Result, words: Words) -> list[str]:
    """What attackers who know more get beyond the headline, and what those who know less do not."""
    out = []
    for result in results:
        trial = result.best
        if result is main or not trial.tried:
            continue
        if trial.attacker.released and not main.best.attacker.released:
            if level_of(trial) == "nothing":
                who = (
                    "From the encodings alone" if trial.attacker.key == "blind" else "With the pool"
                )
                out.append(f"{who} nothing came back.")
        elif trial.worth[0] > main.best.worth[0] + 0.02 and level_of(trial) != "nothing":
            told = describe(trial, result.sampled, words)
            out.append(f"To an attacker who {trial.attacker.knows}: {told}.")
    return out
