"""From trials to words and counts: intervals, columns, records, headline.

The headline is that of the attacker who knows least among those who succeed, and so is the level;
few values for the one do not hide that another has most records exactly.
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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from unveil.auditing.outcome import EXACT, NEAR, RECORDS, correlations
from unveil.auditing.release import Case, Floats, Release, run_encoder
from unveil.auditing.result import Column, CurvePoint, Level, Meaning, RecordRisk, Threat, Verdict
from unveil.auditing.trial import Trial
from unveil.checks import InputError, listed

LEVELS: tuple[Level, ...] = ("nothing", "partly", "leaks")


def share_interval(
    shares: Sequence[float] | np.ndarray, records: float, believed: float = 8.0
) -> tuple[float, float]:
    """95% interval of the mean of `shares`, one for each draw of `records` records on the mean; the
    first of them, which is the one that is shown, is inside.

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
    ends = share, float(shares[0]), float(found.low), float(found.high)
    return min(ends), max(ends)


@dataclass(frozen=True, eq=False)
class Result:
    """All trials of one attacker: on all records; on a sample of them, None where they are few; and
    further draws of the one that counts."""

    whole: Trial
    sample: Trial | None
    again: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial:
        """The one that got more: a sample asks the same question, so that what it gives up is not
        taken back by an attack on the whole that ran out of time. Less than one record in twenty is
        no difference between two draws; then the whole counts."""
        if self.sample is None:
            return self.whole
        more = np.subtract(self.sample.worth, self.whole.worth)
        if more[0] < 0.05 and more[1] < 0.15:
            return self.whole
        return max(self.whole, self.sample, key=lambda trial: trial.worth)

    @property
    def both(self) -> tuple[Trial, ...]:
        return (self.whole,) if self.sample is None else (self.whole, self.sample)

    @property
    def sampled(self) -> bool:
        return self.best is self.sample

    @property
    def draws(self) -> tuple[Trial, ...]:
        return (self.best, *self.again)

    def interval(self, backs: Sequence[float] | NDArray[np.int64]) -> tuple[float, float]:
        """Of a share, from how many of the records of each draw are back."""
        records = np.array([max(1, trial.records) for trial in self.draws])
        return share_interval(np.asarray(backs) / records, float(records.mean()))


def weakest(results: Sequence[Result]) -> Result:
    """The attacker of the headline: who knows least of those with the gravest level; of those who
    are partly successful, who gets most records exactly counts more."""

    def grave(result: Result) -> tuple[int, bool]:
        trial = result.best
        return LEVELS.index(trial.level()), 2 * trial.back(3) > trial.records

    # The first of the largest.
    return max(results, key=grave)


def threats_of(results: Sequence[Result]) -> tuple[Threat, ...]:
    """Every attacker, as it is reported. Who knows more is no less of a threat."""
    out: list[Threat] = []
    for result in results:
        trial, who = result.best, result.best.attacker
        ends = result.interval([one.back(2) for one in result.draws])
        every = sorted((a for one in result.both for a in one.tried), key=lambda a: -a.values)
        guesses = trial.yard.guesses[0][trial.yard.varies]
        guess = float(guesses.mean()) if len(guesses) else 1.0
        level = max(trial.level(), out[-1].level if out else "nothing", key=LEVELS.index)
        counts, values = (*trial.counts, trial.records), (trial.share(), guess)
        columns, stopped = int(trial.leaking.sum()), any(one.stopped for one in result.both)
        threat = Threat(who.key, who.knows, level, *counts, *ends, columns, *values)
        threat = replace(threat, sampled=result.sampled, stopped=stopped, tried=tuple(every))
        out.append(threat if every else replace(threat, why_not=trial.why_not))
    return tuple(out)


def columns_of(result: Result, case: Case) -> tuple[Column, ...]:
    """Every column of a table, those that leak most first."""
    trial, known = result.best, result.best.known
    n, guess = max(1, trial.records), trial.yard.guesses[0]
    exact, near = trial.columns(EXACT), trial.columns(NEAR)
    opened = trial.outcome.open[~known].sum(axis=0)
    draws = np.array([one.columns(EXACT) for one in result.draws])
    # Who gets less than a guess would guess.
    lift = np.round(np.maximum(trial.beyond(EXACT)[0] / np.maximum(1 - guess, 1e-9), 0), 9)
    counts = exact, near - exact, opened, guess, lift, trial.leaking
    out = []
    for name, backs, *found in zip(case.columns, draws.T, *counts, strict=True):
        e, a, o, g, up, leaks = (value.item() for value in found)
        out.append(Column(name, e, a, n, o, *result.interval(backs), g, up, leaks))
    return tuple(sorted(out, key=lambda column: (-column.exact, -column.lift)))


def records_of(
    result: Result, case: Case, points: Sequence[tuple[int, Result]], places: np.ndarray
) -> tuple[RecordRisk, ...]:
    """Every record that was attacked, as the trial of the headline shows it; points: of the curve;
    places: where the trial's records stand in the data."""
    trial, out = result.best, []
    outcome, yard, recovery = trial.outcome, trial.yard, trial.recovery
    uses = np.full(len(trial.rows), -1)
    if trial.incidence is not None:
        uses = trial.incidence.sum(axis=0)
    gaps = np.where(outcome.open, 0.0, np.abs(outcome.values - yard.truth)).max(axis=1)
    middle = yard.truth.mean(axis=0)
    alike = correlations(np.nan_to_num(outcome.values - middle), yard.truth - middle).diagonal()
    exact = (outcome.value == EXACT)[:, yard.varies].sum(axis=1)
    opened = outcome.open[:, yard.varies].sum(axis=1)
    states = {m: one.best.outcome.record for m, one in points}
    unused = {0: "no encoding uses it", 1: "appears in one encoding only"}
    for i in np.flatnonzero(~trial.known):
        row, vector, state = int(places[i]), int(outcome.vector[i]), int(outcome.record[i])
        came = [m for m, found in states.items() if len(found) == len(uses) and found[i] >= 2]
        from_m = min(came, default=None)
        status, reason = "", unused.get(int(uses[i]), "no recovered vector is near it")
        near: tuple[float | None, float | None] = None, None
        if recovery is not None and vector >= 0:
            status, reason = str(recovery.status[vector]), recovery.reasons[vector]
            near = float(gaps[i]), float(alike[i])
        name, known = case.data.names[row], (int(exact[i]), int(opened[i]))
        counts = max(0, int(uses[i])), from_m
        out.append(RecordRisk(row, name, RECORDS[state], *known, *near, *counts, status, reason))
    return tuple(out)


def curve_of(points: Sequence[tuple[int, Result]]) -> tuple[CurvePoint, ...]:
    """What came back from so many encodings; the last of them are all."""
    out = []
    for m, result in points:
        trial = result.best
        exact, almost, _ = (count / max(1, trial.records) for count in trial.counts)
        ends = result.interval([one.back(2) for one in result.draws])
        out.append(CurvePoint(m, exact, almost, *ends, trial.share(), len(result.draws)))
    return tuple(out)


def describe(trial: Trial, sampled: bool, case: Case) -> str:
    """What came back, for a headline: columns of a table, images of images."""
    n, varies = trial.records, trial.yard.varies
    of = f"{n} {case.record}s{' of a sample' if sampled else ''}"
    for least, how in ((EXACT, "exactly"), (NEAR, "approximately")):
        right, speaks = trial.columns(least), trial.beyond(least)[1]
        full = (right == n) & varies
        if case.images or not (full | speaks).any():
            continue
        if (full | ~varies).all():
            return f"all {int(varies.sum())} {case.data.noun}s of all {of} come back {how}"
        which, whom, rest = np.flatnonzero(full), f"all {of}", int((speaks & ~full).sum())
        if not full.any():
            # Those that come back at least half as often as the one that does most.
            which = np.flatnonzero(speaks & (right >= right[speaks].max() / 2))
            which = which[np.argsort(-right[which], kind="stable")]
            fewest, most, rest = int(right[which].min()), int(right[which].max()), 0
            whom = f"{f'{fewest} to ' if fewest < most else ''}{most} of {of}"
        names = ", ".join(case.columns[j] for j in which[:6])
        names += f" and {len(which) - 6} more" if len(which) > 6 else ""
        verb = "come back" if len(which) > 1 else "comes back"
        count, more = f"{len(which)} of {int(varies.sum())}", f"; {rest} more for some"
        return f"{count} {case.data.noun}s {verb} {how} for {whom} ({names}){more if rest else ''}"
    exact, almost, _ = trial.counts
    if exact and almost:
        return f"{exact} of {of} come back exactly and {almost} more approximately"
    return f"{exact or almost} of {of} come back {'exactly' if exact else 'approximately'}"


def meanings_of(trial: Trial, threat: Threat, case: Case) -> tuple[Meaning, ...]:
    """Singling out, and inference of the sensitive column, by the attacker of the headline."""
    n, column = max(1, threat.records), case.column
    back = threat.exact + threat.approximate
    nearly = " or nearly so" if threat.approximate else ""
    words = f"{back} of {n} {case.record}s came back whole{nearly}"
    out = [Meaning("singling out", words, back / n, threat.low, threat.high, 0.0)]
    if column is not None:
        guess = float(trial.yard.guesses[1][column])
        # Where a value is not known somebody still guesses.
        rate = guess + max(0.0, float(trial.beyond(NEAR)[0][column]))
        words = (
            f"{case.columns[column]} is known to a tenth of its spread for {rate:.0%} of the "
            f"records; one guess for all is right for {guess:.0%}"
        )
        out.append(Meaning("inference", words, rate, *share_interval([rate], n), guess))
    return tuple(out)


def links_of(
    release: Release, draws: int = 8, halves: int = 4, unlikely: float = 1e-4, least: float = 0.1
) -> tuple[Meaning, bool] | None:
    """Can encodings be linked to records by somebody who holds candidates? Noise can keep every
    value from coming back and still leave each encoding nearest to the record it was made of.

        name       for every encoding the candidate that it is most like, by correlation over the
                   columns, each candidate's scores in units of their spread over all encodings
        truth      the records that an encoding mixes, where they are known; else rows in the order
                   of the records, over several draws; else the records that the user's encoder was
                   given, half of all, drawn anew in each run: is the one that is named among them?
        chance     what a guess gets: k of n, one of n, a half

    Returns how many are linked, and whether that is no chance; None: it cannot be told. Costs a
    product of all encodings with all records.

    draws : int         Draws of an encoder that rows are compared over: two dozen records of one
                        draw do not tell 20 percent from 4.
    halves : int        Runs of the encoder on half of the records.
    unlikely : float    Probability that a guess links as many, above which it may be chance.
    least : float       The share beyond guessing that is worth a word in the headline.
    """
    found = None
    for rate, count, chance, what in _linked(release, draws, halves):
        hits, ends = round(rate * count), share_interval([rate], count)
        luck = binomtest(hits, count, chance, alternative="greater").pvalue if hits else 1.0
        words = (
            f"{rate:.0%} of the encodings {what} by someone who holds candidate records; "
            f"{chance:.0%} by guessing"
        )
        sure = bool(luck < unlikely and rate - chance > least * (1 - chance))
        found = Meaning("linkability", words, rate, *ends, chance), sure
        if sure:
            break
    return found


def _linked(release: Release, draws: int, halves: int) -> Iterator[tuple[float, int, float, str]]:
    """Share of the encodings that are linked, of how many, a guess's share, and to what."""
    truth, to_record = release.private[release.distinct[0]], "can be linked to their record"
    values, members = release.draw(0)
    m, n, encoder = len(values), len(release.private), release.encoder
    if min(m, len(truth)) < 10:
        return
    best = [named(values, truth)]
    if members is not None:
        guess = float(np.mean([len(set(row)) for row in members.tolist()])) / len(truth)
        yield float((members == best[0][:, None]).any(axis=1).mean()), m, guess, to_record
        return
    if m % n == 0:
        for number in range(1, draws if encoder is not None and values.size < 1 << 22 else 1):
            again = release.encoded(number)
            # An encoder that draws nothing makes the same again, which says nothing new.
            if np.array_equal(again, values):
                break
            best.append(named(again, truth))
        orders = np.arange(m) % n, np.arange(m) // (m // n)
        rate = max(float((release.distinct[1][order] == best).mean()) for order in orders)
        yield rate, m * len(best), 1 / len(truth), to_record
    if encoder is None:
        return
    rng, right, size = np.random.default_rng(0), [], len(truth) // 2
    for _ in range(halves):
        half = np.sort(rng.permutation(len(truth))[:size])
        try:
            names = named(run_encoder(encoder, truth[half], release.public, rng), truth)
        except InputError:
            return  # an encoder may need all records
        right.append(float(np.isin(names, half).mean()))
    # Encodings of one record are not independent: a record counts once.
    count = halves * min(len(names), size)
    yield (
        float(np.mean(right)),
        count,
        size / len(truth),
        "can be linked to the released half of the records",
    )


def named(values: Floats, truth: Floats) -> NDArray[np.int64]:
    """For every encoding the record that it is most like."""
    # Where encodings have no negative value, signs were taken off, or never were there.
    records = np.abs(truth) if bool((values >= 0).all()) else truth
    alike = correlations(values - values.mean(axis=0), records - records.mean(axis=0))
    alike = alike - alike.mean(axis=0)
    return np.asarray((alike / np.maximum(alike.std(axis=0), 1e-12)).argmax(axis=1))


def verdict_of(
    results: Sequence[Result], curve: Sequence[CurvePoint], case: Case, aside: str = ""
) -> Verdict:
    """Level, headline and sentences; aside: what somebody who holds candidate records can do, or
    what an encoder gives away, where nothing came back otherwise. That mixtures can be linked is to
    be expected, and is said; an encoder of somebody's own make may not be relied on then."""
    main = weakest(results)
    trial = main.best
    level, recovery, n = trial.level(), trial.recovery, trial.records
    sentences: list[str] = []
    if level == "nothing":
        tried = dict.fromkeys(a.attack for r in results for t in r.draws for a in t.tried)
        headline = (
            f"Nothing recovered: {', '.join(tried) or 'no attack'} got nothing of {n} "
            f"{case.record}s from {case.release.m:,} encodings. This is no proof of safety."
        )
        if any(all(one.stopped for one in result.both) for result in results):
            level = "partly"
            headline = (
                f"Do not rely on this: time ran out before all attacks on {n} {case.record}s had "
                "ended. Nothing had come back by then; give them more time."
            )
        elif aside and not case.release.stated:
            level = "partly"
            sentences.append(headline)
            aside = f"{aside[0].lower()}{aside[1:].rstrip('.')}"
            headline = f"Do not rely on this: nothing comes back, but {aside}."
        elif aside:
            sentences.append(f"{aside}.")
    else:
        start = "Do not release" if level == "leaks" else "Do not rely on this"
        told = describe(trial, main.sampled, case)
        headline = f"{start}: {told}, from {case.release.m:,} encodings{trial.attacker.once}."
        sentences += _counted(trial, case, curve)
    if shared := trial.outcome.disguise:
        sentences.insert(
            0,
            f"The vectors that came back are the records but for {shared}: give the records as "
            "they were encoded, and the values that count as approximate here are exact.",
        )
    sentences += [*_others(results, main, case), *[case.found] * bool(case.found)]
    total, different = len(case.release.private), len(case.release.distinct[0])
    if total > different:
        sentences.append(
            f"Equal records count once: {total} records, {different} of them different."
        )
    if level != "nothing" and recovery is not None and not recovery.signed:
        sentences.append(f"Exactly is up to one sign per {case.data.noun} that all records share.")
    scheme = case.release.scheme
    if case.release.stated and different == 2 * scheme.k_private and not scheme.k_public:
        sentences.append(
            f"With {different} records, twice as many as an encoding mixes, two sets of records "
            "give the same encodings, and nobody can tell which of them is the true one."
        )
    sentences += _outweighed(trial, case)
    if wrong := sum(one.outcome.wrong for result in results for one in result.draws):
        sentences.append(
            f"{wrong} vectors that the attack called verified equal no record: trust no “verified” "
            "on data like these. The counts here were held against the truth."
        )
    if not trial.complete:
        sentences.append("What was not recovered is not proved safe.")
    return Verdict(level, headline, _attacked(results, main, case), tuple(sentences))


def _outweighed(trial: Trial, case: Case, most: float = 0.9, levels: float = 0.5) -> list[str]:
    """Columns of many values, of which one guess for all still has nearly all right: a few values
    far away are the spread, and so the tolerance. Nothing can be told of the others then.

    most : float      Share of the records that one guess has right.
    levels : float    Share of the records that have a value of their own in the column.
    """
    yard = trial.yard
    if case.images:
        return []
    names = [
        case.columns[j]
        for j in np.flatnonzero(yard.varies & (yard.guesses[0] >= most))
        if len(np.unique(yard.truth[:, j])) > levels * len(yard.truth)
    ]
    if not names:
        return []
    return [
        "A few values are so far from all others that nothing can be told of the others in "
        f"{listed(names, 6)}: repair or clip these values, and audit again."
    ]


def _attacked(results: Sequence[Result], main: Result, case: Case) -> str:
    """What was attacked, and what that means for the rest."""
    n, total, noun = len(case.release.private), len(case.data.names), f"{case.record}s"
    stopped = [result.best.attacker.knows for result in results if result.whole.stopped]
    drawn = ""
    if n < total:
        drawn = (
            f"Of {total:,} {noun} {n:,} were drawn at random and encoded with as many encodings "
            f"per {case.record}; shares hold for the others within the intervals. "
        )
    if main.sampled:
        return (
            f"{drawn}Counts are of a sample of {main.best.records} of {n:,} {noun} with as many "
            f"encodings per {case.record}, all of which were attacked; the attack on all {n:,} at "
            f"once {'was stopped by the clock' if stopped else 'got less'}. What a sample gives "
            "up, the whole does to an attacker with more time."
        )
    if stopped:
        return (
            f"{drawn}Time ran out for the attacker who {', '.join(f'“{one}”' for one in stopped)}: "
            "what more it would get is not known; give more with time."
        )
    return drawn or f"All {n:,} {noun} were attacked, with all {case.release.m:,} encodings."


def _counted(trial: Trial, case: Case, curve: Sequence[CurvePoint]) -> list[str]:
    """Records, open values, and from how many encodings on values come back."""
    exact, almost, part, n = (*trial.counts, trial.records)
    lost = n - exact - almost - part
    words = ("approximately", almost), ("in part", part), ("not at all", lost)
    parts = [f"{exact} back exactly (all their determined values)"]
    parts += [f"{count} {how}" for how, count in words if count]
    out = [] if case.images else [f"Of {n} records: {', '.join(parts)}."]
    seen = np.ix_(~trial.known, trial.yard.varies)
    opened, right = trial.outcome.open[seen], trial.outcome.value[seen] == EXACT
    if opened.any():
        out.append(
            f"Left open by the equations and guessed by the attack: {int(opened.sum()):,} of "
            f"{opened.size:,} values, {int(right[opened].sum()):,} of them right. They count in "
            f"their {case.data.noun}s."
        )
    first = next((p.m for p in curve if p.values > 0.05), None)
    if len(curve) > 1 and first == curve[0].m:
        out.append(f"Already {first:,} encodings, the fewest tried, give values away.")
    elif len(curve) > 1 and first is not None:
        out.append(f"The first values come back from about {first:,} encodings on.")
    return out


def _others(results: Sequence[Result], main: Result, case: Case) -> list[str]:
    """What attackers who know more get beyond the headline, and what those who know less do not."""
    out = []
    for result in results:
        trial, level = result.best, result.best.level()
        if result is main or not trial.tried:
            continue
        less = trial.attacker.released and not main.best.attacker.released
        if less and level == "nothing":
            out.append(f"Who {trial.attacker.knows} gets nothing.")
        elif level != "nothing" and (less or trial.worth[0] > main.best.worth[0] + 0.02):
            told = describe(trial, result.sampled, case)
            out.append(f"To an attacker who {trial.attacker.knows}: {told}.")
    return out
