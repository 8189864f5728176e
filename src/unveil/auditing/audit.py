"""What leaks if these encodings are released? Encode, attack as every attacker would, hold against
the truth, and say so.

    1  load      records, public vectors, where encodings come from                 `inputs`
    2  sample    some of the records with as many encodings each: the first answer, in seconds
    3  whole     all of them at once, by every attacker, who knows least first      `trial`
    4  again     more draws, and fewer encodings: intervals and the curve
    5  beside    what if, what the encoder gives away, who can be linked    `what_if`, `lint`
    6  words     the verdict, from what was measured and from nothing else          `verdict`

The work is fixed by the data and the seed. The clock can only end it: then what the sample gave up
stands, and the first screen says what was not attacked whole. A sample asks the same question of
fewer records, so the size of a table cannot turn "all" into "some".
"""

from __future__ import annotations

import time as clock_time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from unveil.auditing.attacker import ATTACKERS, PUBLIC, Attacker, Clock
from unveil.auditing.inputs import Case, Data, axes_of, load, seconds_of
from unveil.auditing.lint import lint_encoder, lint_encodings
from unveil.auditing.meaning import links_of, meanings_of
from unveil.auditing.outcome import distinct
from unveil.auditing.pictures import draw_pictures
from unveil.auditing.release import Encoder, Release
from unveil.auditing.result import Audit, Finding, WhatIf
from unveil.auditing.trial import Trial, run_trial
from unveil.auditing.verdict import (
    Result,
    Words,
    columns_of,
    curve_of,
    describe,
    level_of,
    records_of,
    threats_of,
    verdict_of,
    weakest,
)
from unveil.auditing.what_if import what_if as what_if_points
from unveil.checks import DataLike, InputError, Rng, root
from unveil.encodings import Encodings
from unveil.engine import runs
from unveil.engine.files import name_of
from unveil.records import Progress
from unveil.scheme import Scheme


def audit(
    private: Data | None = None,
    scheme: Scheme | None = None,
    *,
    public: Data | None = None,
    m: int | tuple[int, int] | None = None,
    noise: float = 0.0,
    seeds: int = 3,
    rng: Rng = None,
    relative_tolerance: float = 1e-2,
    time: float | str | None = None,
    sample: int | None = None,
    encoder: Encoder | None = None,
    encodings: Data | None = None,
    sensitive: int | str | None = None,
    labels: DataLike | None = None,
    what_if: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the release of encodings of `private`.

    Parameters
    ----------
    private : path, array, tensor, frame, "gaussian" or "fashion-mnist"
        The records: a .npy, .npz or .csv file, a folder of images, an array, or a frame of pandas,
        which is taken as a CSV file is. None is the same as "gaussian": drawn records.
    scheme : Scheme
        How encodings are made, or are said to be made.
    public : path or array
        Public vectors, in the same forms.
    m : int or (int, int)
        How many encodings are released, or between how many. None: as many as all vectors need,
        or all that there are.
    noise : float
        Standard deviation added to every value.
    seeds : int
        Independent draws of the mixture: intervals come from them.
    rng : int, Generator or None
        The same number gives the same audit.
    relative_tolerance : float
        Largest error of a value that is back exactly, relative to the spread of its column.
    time : float or str
        Seconds, or a text like "90s", "10m", "2h", after which no attack goes on; what was not
        attacked whole is then said. None: two minutes for the attack on the whole.
    sample : int
        Audit so many records only, drawn at random.
    encoder : function or object with `encode`
        Your own encoder(private, public, rng). What it returns is attacked, as made by `scheme`
        and by others that it may follow.
    encodings : path or array
        Instead, encodings that were made of `private`: they are attacked.
    sensitive : int or str
        Place or name of a column whose values are to be protected.
    labels : array or path
        Class of each record, for what encodings are worth in `what_if`.
    what_if : "noise", "k", "m" or "all"
        What every attacker gets when these change.
    progress : function
        Called with stage, done and total; the stage says what was found so far.

    Returns
    -------
    Audit
        Verdict, columns, attackers, records, curve and findings; `Audit.facts()` as JSON takes it.
    """
    start = clock_time.perf_counter()
    if isinstance(seeds, bool) or not 1 <= seeds <= 1000:
        raise InputError(f"seeds={seeds!r}: give how many independent draws to make, 1 to 1000")
    if not relative_tolerance > 0:
        raise InputError(f"relative_tolerance={relative_tolerance!r}: give a positive number")
    axes, limit = axes_of(what_if), seconds_of(time)
    seed = _seed(rng)
    case = load(
        private,
        public,
        scheme,
        m=m,
        noise=noise,
        seed=seed,
        sample=sample,
        encoder=encoder,
        encodings=encodings,
        sensitive=sensitive,
        labels=labels,
    )
    bench = _Bench(case, relative_tolerance, seeds, limit, progress)
    results = bench.attack()
    curve = bench.curve(results)
    points: tuple[WhatIf, ...] = ()
    if axes:
        bench.enter("")
        points = what_if_points(
            case.release.changed(encoder=None, given=None),
            axes,
            tolerance=relative_tolerance,
            labels=None if case.labels is None else case.labels[case.places],
            clock=bench.clock,
            progress=bench.report,
        )
    facts = {
        "seed": seed,
        "draws": seeds,
        "relative_tolerance": relative_tolerance,
        "time": limit,
        "seconds": clock_time.perf_counter() - start,
    }
    return _said(case, bench, results, curve, points, facts)


class _Bench:
    """The trials of one audit, and what they found so far."""

    def __init__(
        self,
        case: Case,
        tolerance: float,
        seeds: int,
        limit: float | None,
        progress: Progress | None,
        few: int = 100,
        patience: float = 120.0,
    ) -> None:
        """few: records of a sample, which also stand for all in further draws and the curve;
        patience: seconds of work where no limit is stated. The sample has half of them."""
        self.case, self.tolerance, self.seeds = case, tolerance, seeds
        self.clock = Clock(limit or patience, working=limit is None)
        self._first = Clock((limit or patience) / 2, working=limit is None)
        self._progress, self._said, self._stage = progress, "", ""
        self._told = (0.0, 0.0, 0.0)
        release = case.release
        n = len(release.private)
        self.small: Release | None = None
        self.small_rows = np.arange(n)
        # Encodings that are there cannot be made again of fewer records.
        if n > few and release.given is None:
            chosen = np.random.default_rng([release.seed, n]).choice(n, few, replace=False)
            self.small_rows = np.sort(chosen)
            self.small = release.sample(self.small_rows)
        first = len(distinct(release.private)[0])
        names = case.data.columns or tuple(f"{i + 1}" for i in range(release.private.shape[1]))
        self.words = Words(names, case.data.noun, n, first, release.m, release.shape is not None)

    def enter(self, stage: str) -> None:
        """What is worked at from now on."""
        self._stage = stage

    def report(self, stage: str, done: int, total: int) -> None:
        """Where the work is, and what was found so far."""
        if self._progress is not None:
            said = f"; so far: {self._said}" if self._said else ""
            self._progress(f"{self._stage}{stage}{said}", done, total)

    def attack(self) -> list[Result]:
        """Every attacker on the sample and on the whole; further draws for the one of the
        headline."""
        release, results = self.case.release, []
        best: dict[bool, Trial | None] = {True: None, False: None}
        for attacker in ATTACKERS:
            if attacker is PUBLIC and not release.scheme.k_public:
                continue
            pair: dict[bool, Trial | None] = {True: None, False: None}
            for small, part in ((True, self.small), (False, release)):
                if part is None:
                    continue
                self._stage = f"{attacker.key}, {'a sample' if small else 'all records'}: "
                self.report("", 0, 1)
                trial = self._trial(part, attacker, small, best[small])
                pair[small] = trial
                if trial.tried:
                    best[small] = trial
                self._found(trial, small)
            results.append(Result(pair[False], pair[True]))
        main = weakest(results)
        return [self._again(result) if result is main else result for result in results]

    def _trial(
        self,
        part: Release,
        attacker: Attacker,
        small: bool,
        best: Trial | None,
        m: int | None = None,
    ) -> Trial:
        clock = self._first if small and best is None else self.clock
        return run_trial(
            part,
            attacker,
            0,
            m,
            tolerance=self.tolerance,
            clock=clock,
            progress=self.report,
            best=best,
        )

    def _found(self, trial: Trial, small: bool) -> None:
        """What is told so far: the best of those who have all records still to find."""
        if level_of(trial) != "nothing" and (not self._said or trial.worth > self._told):
            self._said, self._told = describe(trial, small, self.words), trial.worth

    def _again(self, result: Result) -> Result:
        """Further draws of what counts, on the sample where there is one."""
        part = self.small or self.case.release
        again = []
        for number in range(1, self.seeds if part.given is None else 1):
            if self.clock.over:
                break
            self._stage = f"draw {number + 1} of {self.seeds}: "
            self.report("", number, self.seeds)
            again.append(self._draw(part, result.best.attacker, number, None))
        return replace(result, again=tuple(again))

    def _draw(self, part: Release, attacker: Attacker, number: int, m: int | None) -> Trial:
        """One attacker on one draw, with what those who know less got from it."""
        best: Trial | None = None
        for one in ATTACKERS[: ATTACKERS.index(attacker) + 1]:
            # Who knows more has the same attacks and better ones: those alone are run again.
            if one is attacker or one.released:
                trial = run_trial(
                    part,
                    one,
                    number,
                    m,
                    tolerance=self.tolerance,
                    clock=self.clock,
                    progress=self.report,
                    best=best,
                )
                best = trial if trial.tried or one is attacker else best
        assert best is not None
        return best

    def curve(
        self, results: Sequence[Result], most: int = 5, flat: float = 0.1
    ) -> list[list[Trial]]:
        """Trials by number of encodings, where the share of values changes: the ends first, then
        the middle of the steepest interval.

        most : int      Numbers of encodings besides all of them.
        flat : float    Rise of the share that is not worth another trial.
        """
        main = weakest(results)
        part = self.small or self.case.release
        high = part.m
        whole = (main.sample or main.whole, *main.again)
        points: dict[int, list[Trial]] = {high: [trial for trial in whole if trial is not None]}
        low = min(
            max(part.scheme.k_private + 2, round(self.case.low * high / self.case.release.m)), high
        )
        if level_of(main.best) == "nothing" or low == high:
            return list(points.values())
        attacker = main.best.attacker
        wanted: int | None = low
        while wanted is not None and len(points) <= most and not self.clock.over:
            self._stage = f"from {round(wanted * self.case.release.m / high):,} encodings: "
            self.report("", len(points), most + 1)
            points[wanted] = [self._draw(part, attacker, 0, wanted)]
            wanted = _middle({m: trials[0].share() for m, trials in points.items()}, flat)
        return list(points.values())


def _middle(shares: dict[int, float], flat: float) -> int | None:
    """The number of encodings to try next; None where the curve is known well enough."""
    ordered = sorted(shares)
    gaps = []
    for a, b in pairwise(ordered):
        middle, rise = round(sqrt(a * b)), abs(shares[b] - shares[a])
        if rise >= flat and b / a >= 1.2 and middle not in (a, b):
            gaps.append((rise * np.log(b / a), middle))
    return max(gaps)[1] if gaps else None


def _said(
    case: Case,
    bench: _Bench,
    results: list[Result],
    points: Any,
    changed: Any,
    facts: dict[str, Any],
) -> Audit:
    """Everything in its place of the record."""
    release, data, words = case.release, case.data, bench.words
    main = weakest(results)
    trial = main.best
    part = bench.small if main.sampled and bench.small is not None else release
    places = case.places[bench.small_rows] if main.sampled else case.places
    nothing = level_of(trial) == "nothing"
    linked = links_of(release) if nothing or not release.stated else None
    curve = curve_of(points, release.m / max(1, (bench.small or release).m))
    threats = threats_of(results)
    group = distinct(part.private)[1]
    members = part.draw(trial.draw).members
    flat = [one for several in points for one in several if one.draw == 0]
    attack = next((attempt.attack for attempt in threats[results.index(main)].tried), "none")
    shown = {**vars(release.scheme), "noise": release.noise}
    assumed = {
        **{key: shown[key] for key in ("k_private", "k_public", "weighting", "signs", "pairing")},
        "m": release.m,
        "noise": release.noise,
    }
    assumed["encodings made by"] = (
        "the scheme" if release.stated else "the encoder" if release.encoder else "somebody else"
    )
    return Audit(
        verdict=verdict_of(
            results,
            curve,
            words,
            _attacked(case, results, main),
            _asides(case, bench),
            "" if linked is None or not linked.sure or not nothing else linked.words,
            own_make=not release.stated,
        ),
        scheme=shown,
        data={
            **data.facts(),
            "public records": 0 if release.public is None else len(release.public),
            "different records": words.distinct,
            "records attacked": trial.records,
        },
        m=release.m,
        attack=attack,
        explanation="" if trial.recovery is None else trial.recovery.explanation,
        records=records_of(main, data, flat, places, None if members is None else group[members]),
        columns=() if words.images else columns_of(main, words.names),
        threats=threats,
        curve=curve,
        what_if=changed,
        meanings=meanings_of(
            main,
            threats[results.index(main)],
            case.column,
            "" if case.column is None else words.names[case.column],
            linked,
        ),
        findings=_findings(case, bench),
        assumed=assumed,
        run=runs.manifest("audit", **facts),
        provenance={
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": name_of([], data.values),
        },
        pictures=draw_pictures(part, trial, tuple(data.names[places[row]] for row in trial.rows)),
    )


def _attacked(case: Case, results: Sequence[Result], main: Result) -> str:
    """What was attacked, and what that means for the rest."""
    n, total = len(case.release.private), len(case.data.names)
    parts = []
    if case.left_out:
        parts.append(
            f"Of {total:,} records {n:,} were drawn at random and encoded with as many encodings "
            "per record; shares hold for the others within the intervals."
        )
    stopped = [result for result in results if result.whole is not None and result.whole.stopped]
    if main.sampled:
        why = "was stopped by the clock" if stopped else "got less"
        parts.append(
            f"Counts are of a sample of {main.best.records} of {n:,} records with as many "
            f"encodings per record, all of which were attacked; the attack on all {n:,} at once "
            f"{why}. What a sample gives up, the whole does to an attacker with more time."
        )
    elif stopped:
        names = ", ".join(f"“{result.best.attacker.knows}”" for result in stopped)
        parts.append(
            f"Time ran out for the attacker who {names}: what more it would get is not known; "
            "give more with time."
        )
    elif not parts:
        parts.append(f"All {n:,} records were attacked, with all {case.release.m:,} encodings.")
    return " ".join(parts)


def _asides(case: Case, bench: _Bench) -> list[str]:
    scheme, n = case.release.scheme, bench.words.distinct
    if case.release.stated and n == 2 * scheme.k_private and not scheme.k_public:
        return [
            f"With {n} records, twice as many as an encoding mixes, two sets of records give the "
            "same encodings: which of them is the true one cannot be told from the encodings."
        ]
    return []


def _findings(case: Case, bench: _Bench) -> tuple[Finding, ...]:
    """What the encodings show of how they were made, and what the encoder does."""
    release = case.release
    draw = release.draw(0)
    encodings = Encodings(draw.values, release.scheme, None, release.shape)
    found = list(
        lint_encodings(
            encodings,
            chosen=draw.members,
            n_private=len(release.private),
            weights=release.encoder is None,
        )
    )
    if release.encoder is not None:
        # Two hundred unit vectors show every slip; more would only take longer.
        n, pool = min(len(release.private), 200), release.public
        try:
            found += lint_encoder(
                release.encoder,
                n,
                0 if pool is None else min(200, len(pool)),
                progress=bench.report,
            )
        except InputError as error:
            found.append(Finding(f"The encoder cannot be looked into: {error}.", "low", ""))
    return tuple(found)


def _seed(rng: Rng) -> int:
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        # Refuses what is no seed, with the words that every command uses.
        root(rng)
        return int(rng)
    return int(np.random.default_rng(root(rng)).integers(1 << 62))
