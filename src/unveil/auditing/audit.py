"""What leaks if these encodings are released? Encode, attack as every attacker would, hold against
the truth, and say so.

    1  load      records, public vectors, where encodings come from                 `inputs`
    2  sample    some of the records with as many encodings each: the first answer, in seconds
    3  whole     all of them at once, by every attacker, who knows least first      `trial`
    4  again     more draws, and fewer encodings: intervals and the curve
    5  beside    what if, and what the encoder gives away           `_changed`, `lint`
    6  words     the verdict, from what was measured and from nothing else          `verdict`

The work is fixed by the data and the seed. The clock can only end it: then what the sample gave up
stands, and the first screen says what was not attacked whole. A sample asks the same question of
fewer records, so the size of a table cannot turn "all" into "some".
"""

from __future__ import annotations

import time as clock_time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.auditing import verdict as words
from unveil.auditing.attacker import ATTACKERS, PUBLIC, Attacker, Clock
from unveil.auditing.lint import lint_encoder, lint_encodings
from unveil.auditing.release import Case, Data, Encoder, Release, axes_of, load, seconds_of
from unveil.auditing.result import Audit, Finding, Pictures, WhatIf
from unveil.auditing.trial import Trial, run_trial
from unveil.auditing.verdict import Result, describe, weakest
from unveil.checks import DataLike, InputError, Rng, is_count, root
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
        A column whose values are to be protected: its place from 0 on; or, as a text, its name or
        its number from 1 on.
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
    if not is_count(seeds, 1) or seeds > 1000:
        raise InputError(f"seeds={seeds!r}: give how many independent draws to make, 1 to 1000")
    if not relative_tolerance > 0:
        raise InputError(f"relative_tolerance={relative_tolerance!r}: give a positive number")
    axes, limit = axes_of(what_if), seconds_of(time)
    # Refuses what is no seed, with the words that every command uses.
    family = np.random.default_rng(root(rng))
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(family.integers(1 << 62))
    rows = sample, encoder, encodings, sensitive, labels
    case = load(private, public, scheme, m, noise, seed, *rows)
    bench = _Bench(case, relative_tolerance, seeds, limit, progress)
    results = bench.attack()
    points = bench.curve(weakest(results))
    changed = bench.what_if(axes, case.labels)
    findings = _findings(case.release, bench)
    # What is shown, each part from what was measured.
    release, main, threats = case.release, weakest(results), words.threats_of(results)
    trial, threat = main.best, threats[results.index(main)]
    nothing = trial.level() == "nothing"
    links = words.links_of(release) if nothing or not release.stated else None
    grave = [finding.what for finding in findings if finding.severity == "high"]
    aside = links[0].words if links and links[1] else grave[0] if grave and release.encoder else ""
    curve = words.curve_of(points)
    places = (case.places[bench.small_rows] if main.sampled else case.places)[trial.rows]
    law = {**vars(release.scheme), "noise": release.noise}
    shown = ("k_private", "k_public", "weighting", "signs", "pairing", "noise")
    maker = "the encoder" if release.encoder else "somebody else"
    return Audit(
        verdict=words.verdict_of(results, curve, case, aside),
        scheme=law,
        data={
            **case.data.facts(),
            "public records": 0 if release.public is None else len(release.public),
            "different records": len(release.distinct[0]),
            "records attacked": trial.records,
        },
        m=release.m,
        attack=threat.tried[0].attack if threat.tried else "none",
        explanation="" if trial.recovery is None else trial.recovery.explanation,
        records=words.records_of(main, case, points, places),
        columns=() if case.images else words.columns_of(main, case),
        threats=threats,
        curve=curve,
        what_if=changed,
        meanings=(*words.meanings_of(trial, threat, case), *(links[:1] if links else ())),
        findings=findings,
        assumed={
            **{name: law[name] for name in shown},
            "m": release.m,
            "encodings made by": "the scheme" if release.stated else maker,
        },
        run=runs.manifest(
            "audit",
            seed=seed,
            draws=seeds,
            relative_tolerance=relative_tolerance,
            time=limit,
            seconds=clock_time.perf_counter() - start,
        ),
        provenance={
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": name_of([], case.data.values),
        },
        pictures=_pictures(trial, [case.data.names[row] for row in places]),
    )


@dataclass(eq=False)
class _Bench:
    """The trials of one audit, and what they found so far.

    few : records of a sample, which also stand for all in further draws and the curve; patience :
    seconds of work where no limit is stated, of which the sample has half.
    """

    case: Case
    tolerance: float
    seeds: int
    limit: float | None
    progress: Progress | None
    few: int = 100
    patience: float = 120.0
    stage: str = ""
    found: str = ""

    def __post_init__(self) -> None:
        seconds, release = self.limit or self.patience, self.case.release
        working, n = self.limit is None, len(release.private)
        self.clock = Clock(seconds, self.report, working=working)
        self.first = Clock(seconds / 2, self.report, working=working)
        self.small, self.small_rows = release, np.arange(n)
        # Encodings that are there cannot be made again of fewer records.
        if n > self.few and release.given is None:
            chosen = np.random.default_rng([release.seed, n]).choice(n, self.few, replace=False)
            self.small_rows = np.sort(chosen)
            self.small = release.sample(self.small_rows)

    def report(self, stage: str, done: int, total: int) -> None:
        """Where the work is, and what was found so far."""
        if self.progress is not None:
            found = f"; so far: {self.found}" if self.found else ""
            self.progress(f"{self.stage}{stage}".removesuffix(": ") + found, done, total)

    def run(self, part: Release, attacker: Attacker, best: Trial | None, **which: Any) -> Trial:
        how = {"clock": self.clock, "tolerance": self.tolerance, **which}
        return run_trial(part, attacker, best=best, **how)

    def attack(self) -> list[Result]:
        """Every attacker on the sample and on the whole; further draws for the one of the
        headline."""
        release, results = self.case.release, list[Result]()
        best, most = dict[bool, Trial](), (0.0, 0.0, 0.0)
        parts = {True: self.small, False: release}
        for attacker in ATTACKERS:
            if attacker is PUBLIC and not release.scheme.k_public:
                continue
            trials = dict[bool, Trial]()
            for small, part in parts.items():
                if small and part is release:
                    continue
                self.stage = f"{attacker.key}, {'a sample' if small else 'all records'}: "
                self.report("", 0, 1)
                clock = self.first if small and not best else self.clock
                trials[small] = trial = self.run(part, attacker, best.get(small), clock=clock)
                if trial.tried:
                    best[small] = trial
                if trial.level() != "nothing" and trial.worth > most:
                    self.found, most = describe(trial, small, self.case), trial.worth
            results.append(Result(trials[False], trials.get(True)))
        main = weakest(results)
        return [self.again(result) if result is main else result for result in results]

    def again(self, result: Result) -> Result:
        """Further draws of what counts, on the sample where there is one."""
        trials = []
        for number in range(1, self.seeds if self.small.given is None else 1):
            if self.clock.over:
                break
            self.stage = f"draw {number + 1} of {self.seeds}: "
            self.report("", number, self.seeds)
            trials.append(self.draw(result.best.attacker, number))
        return replace(result, again=tuple(trials))

    def draw(self, attacker: Attacker, number: int, m: int | None = None) -> Trial:
        """One attacker on one draw of the sample, with what those who know less got from it. Who
        knows more has the same attacks and better ones: those alone are run again."""
        best: Trial | None = None
        for one in ATTACKERS[: ATTACKERS.index(attacker) + 1]:
            if one is attacker or one.released:
                best = self.run(self.small, one, best, number=number, m=m)
        assert best is not None
        return best

    def curve(self, main: Result, steps: int = 4, flat: float = 0.02) -> list[tuple[int, Result]]:
        """What came back from so many encodings, from few to all.

        steps : int     Of equal ratio.
        flat : float    Share of values that may be missing: more encodings give no more.
        """
        part, case, whole = self.small, self.case, (main.sample or main.whole).share()
        low, scale = case.low / case.release.m, case.release.m / part.m
        points: list[tuple[int, Result]] = []
        for step in range(steps if low < 1 and main.best.level() != "nothing" else 0):
            if self.clock.over or (points and points[-1][1].whole.share() > whole - flat):
                break
            m = max(part.scheme.k_private + 2, round(part.m * low ** (1 - step / steps)))
            self.stage = f"from {round(m * scale):,} encodings: "
            self.report("", step, steps)
            trial = self.draw(main.best.attacker, 0, m)
            points.append((round(m * scale), Result(trial, None)))
        return [*points, (case.release.m, main)]

    def what_if(
        self,
        axes: Sequence[str],
        labels: NDArray[np.int64] | None,
        records: int = 40,
        columns: int = 768,
    ) -> tuple[WhatIf, ...]:
        """Every attacker again as noise, k or m change, on the same data; a cure must hold against
        all of them.

        Points of every axis: one for each value and each attacker, the strongest first. A sample is
        attacked, with as many encodings per record; worth and ε are those of the whole.

        records, columns : int    Attacked of more: a point then takes seconds. Under noise fewer
                                  columns give a little less away.
        """
        release = self.case.release.changed(encoder=None, given=None)
        n, d = release.private.shape
        rows = np.linspace(0, n - 1, min(n, records)).astype(np.int64)
        some = np.linspace(0, d - 1, min(d, columns)).astype(np.int64)
        attackers = [one for one in ATTACKERS if one is not PUBLIC or release.scheme.k_public]
        out: list[WhatIf] = []
        for axis, value, whole in _values(release, axes, len(rows)):
            self.stage = f"what if {axis} = {value:g}: "
            part = whole.sample(rows)
            part = part.changed(
                private=np.ascontiguousarray(part.private[:, some]),
                public=None if part.public is None else part.public[:, some],
                shape=part.shape if len(some) == d else None,
            )
            worth = utility(whole, labels), epsilon(whole) if axis == "noise" else None
            trial: Trial | None = None
            points = []
            for attacker in attackers:
                # Who has no attack of its own has what those before have.
                trial = self.run(part, attacker, trial)
                share = trial.back(2) / max(1, trial.records)
                shares = share, *words.share_interval([share], trial.records), trial.share()
                points.append(WhatIf(axis, value, attacker.key, *shares, *worth))
            out += points[::-1]
        return tuple(out)


def _values(release: Release, axes: Sequence[str], n: int) -> Iterator[tuple[str, float, Release]]:
    """Half a decade apart for noise; published schemes mix 2 to 8; halves and doubles for m."""
    rms = float(np.sqrt(np.mean(np.square(release.private, dtype=np.float64))))
    if "noise" in axes:
        for share in (0.0, 0.01, 0.03, 0.1, 0.3, 1.0):
            yield "noise", share, release.changed(noise=share * rms)
    if "k" in axes:
        for k in (k for k in (2, 3, 4, 6, 8) if 2 * k <= n):
            yield "k", float(k), release.changed(scheme=replace(release.scheme, k_private=k))
    if "m" in axes:
        for share in (1 / 8, 1 / 4, 1 / 2, 1, 2):
            m = max(release.scheme.k_private + 2, round(share * release.m))
            yield "m", float(m), release.changed(m=m)


def utility(
    release: Release, labels: NDArray[np.int64] | None = None, ridge: float = 1e-2
) -> float | None:
    """What the encodings of draw 0 are worth. Where labels are given: the share of records that a
    ridge classifier names right which was trained on the encodings and their mixed labels. Else one
    minus the relative error of the magnitudes of a record, when an encoding that mixes it stands in
    for it, on the best common scale.

    ridge : float    Of the classifier, relative to the power of a feature.
    """
    values, members = release.draw(0)
    if members is None:
        return None
    first = release.distinct[0]
    Y, X = (np.abs(part).astype(np.float64) for part in (values, release.private[first]))
    if labels is None:
        # One of the records it mixes: by symmetry any of them says the same.
        record = X[members[:, 0]]
        scale = float((Y * record).sum()) / max(float((Y * Y).sum()), 1e-30)
        miss = float(np.linalg.norm(scale * Y - record)) / max(float(np.linalg.norm(record)), 1e-30)
        return max(0.0, 1 - miss)
    own = labels[first]
    target = np.eye(int(own.max()) + 1)[own[members]].mean(axis=1)
    A, level = Y - Y.mean(axis=0), target.mean(axis=0)
    gram = A.T @ A
    gram[np.diag_indices_from(gram)] += ridge * float(np.trace(gram))
    weights = np.linalg.solve(gram, A.T @ (target - level))
    scores = (X - X.mean(axis=0)) @ weights + level
    return float((scores.argmax(axis=1) == own).mean())


def epsilon(release: Release, delta: float = 1e-5) -> float | None:
    """ε of differential privacy that the noise of this release is sure to give, at δ, for all
    encodings together: with σ the noise and Δ the sensitivity, ρ = Δ²/2σ² and ε = ρ + 2√(ρ·log 1/δ)
    (M. Bun and T. Steinke, TCC 2016, proposition 1.3). One record is replaced by another of the
    data: each of its u encodings moves by at most w·‖x − x′‖, all together by √u times that, and
    taking absolute values moves them no further."""
    members = release.draw(0)[1]
    if members is None or not release.noise:
        return None
    uses = int(np.bincount(members.ravel()).max())
    X = release.private.astype(np.float64)
    power = np.einsum("ij,ij->i", X, X)
    far = max(0.0, float((power[:, None] + power - 2 * X @ X.T).max()))
    # Where weights are drawn, one record may have all of it.
    weight = release.scheme.private_weight if release.scheme.fixed_weights else 1.0
    rho = weight**2 * uses * far / (2 * release.noise**2)
    return rho + 2 * sqrt(rho * log(1 / delta))


def _findings(release: Release, bench: _Bench) -> tuple[Finding, ...]:
    """What the encodings show of how they were made, and what the encoder does."""
    values, members = release.draw(0)
    found = list(
        lint_encodings(
            Encodings(values, release.scheme, None, release.shape),
            chosen=members,
            n_private=len(release.distinct[0]),
            weights=release.encoder is None,
        )
    )
    if release.encoder is not None:
        # Two hundred unit vectors show every slip; more would only take longer.
        n, pool = min(len(release.private), 200), release.public
        p = 0 if pool is None else min(200, len(pool))
        try:
            found += lint_encoder(release.encoder, n, p, progress=bench.report)
        except InputError as error:
            found.append(Finding(f"The encoder cannot be looked into: {error}.", "low", ""))
    return tuple(found)


def _pictures(
    trial: Trial, names: Sequence[str], most: int = 100, pixels: int = 1 << 20
) -> Pictures:
    """Originals, encodings and recoveries of images side by side, those that came back best first.

    most, pixels : int    Images shown, and pixels of them in all.
    """
    shape, truth, outcome = trial.release.shape, trial.yard.truth, trial.outcome
    if shape is None:
        return Pictures()
    count = min(most, len(truth), max(1, pixels // truth.shape[1]))
    right = np.abs(np.nan_to_num(outcome.values, nan=np.inf) - truth).mean(axis=1)
    order = np.lexsort((right, -outcome.record))[:count]
    # One encoding that uses each record; where that is not known, just the first ones.
    using = np.arange(count) % trial.m
    if trial.incidence is not None:
        using = trial.incidence.tocsc()[:, order].argmax(axis=0)
    mixed = np.abs(trial.values[np.ravel(using)])
    low, high = float(truth.min()), float(truth.max())

    def image(part: NDArray[np.float64]) -> NDArray[np.float32]:
        scaled = (part - low) / max(high - low, 1e-30)
        return np.asarray(scaled.clip(0, 1), np.float32).reshape(count, *shape)

    return Pictures(
        originals=image(truth[order]),
        encodings=(mixed / max(float(mixed.max(initial=0)), 1e-30)).reshape(count, *shape),
        # Black stands for what did not come back: a grey square would look like a result.
        recoveries=image(np.nan_to_num(outcome.values[order], nan=low)),
        names=tuple(names[i] for i in order),
    )
