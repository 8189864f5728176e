"""What leaks if these encodings are released? Encode, attack in every way that applies, hold against
the truth, and say so.

    1  load      records, public vectors, and where encodings come from   `auditing.inputs`, `auditing.release`
    2  attack    all encodings, by every kind of attacker, best attack first          `auditing.threats`
    3  again     more draws, and fewer encodings, where the fraction recovered changes  `auditing.curve`
    4  risk      counts of distinct records, control, risk above it, what it means     `auditing.measured`
    5  lint      what the encoder gives away besides                `auditing.lint`, `auditing.encoder_lint`
    6  words     the verdict, from what was measured and from nothing else           `auditing.judgement`

With `out` every finished trial is kept, and the same call after an interruption goes on with those
that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from unveil import store
from unveil.auditing.costs import attack_seconds
from unveil.auditing.curve import Points, curve, trace
from unveil.auditing.encoder_lint import Encoder, lint_encoder
from unveil.auditing.inputs import Case, Data, Options, load, options_of, trials_folder
from unveil.auditing.judgement import record_risks, verdict, weakest
from unveil.auditing.lint import lint_encodings
from unveil.auditing.measured import Outcome, meanings, outcomes, threat
from unveil.auditing.model_check import ModelCheck, check_model, guarantees
from unveil.auditing.pictures import draw_pictures
from unveil.auditing.result import Audit, Finding, Stage, Threat, WhatIf
from unveil.auditing.threats import Run, attack_all
from unveil.auditing.trials import Arm, Laboratory, Trial
from unveil.auditing.what_if import DELTA, sensitivity
from unveil.auditing.what_if import what_if as points_of
from unveil.kept import name_of
from unveil.records import InputError, Progress, Scheme
from unveil.seeds import Rng

EFFORT = 40.0
"""Forecast seconds, beyond what runs in any case: about a minute for small data."""
TITLES = {"told": "{}, told the overlaps", "insider": "{}, knowing every second record"}
"""How the attack of an attacker who knows more is named."""


def audit(
    private: Data | None = None,
    scheme: Scheme | None = None,
    *,
    public: Data | None = None,
    m: int | tuple[int, int] | None = None,
    noise: float = 0.0,
    seeds: int = 3,
    rng: Rng = None,
    tolerance: float = 1e-2,
    effort: float = EFFORT,
    n_private: int | None = None,
    n_public: int | None = None,
    d: int | None = None,
    sample: int | None = None,
    encoder: Encoder | None = None,
    encodings: Data | None = None,
    sensitive: int | str | None = None,
    labels: ArrayLike | None = None,
    what_if: str | None = None,
    out: str | Path | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the release of encodings of `private`.

    Parameters
    ----------
    private : path (.npy, .npz, .csv, folder of images), array, "gaussian" (the same as None) or
        "fashion-mnist"
    scheme : how encodings are made, or are said to be made
    public : public vectors, in the same forms
    m : how many encodings are released; (low, high): between these; None: as many as all vectors
        need by the forecast, or all that there are
    noise : standard deviation added to every pixel
    seeds : independent draws of subsets: the intervals come from them
    tolerance : largest error of a pixel that counts as exact, relative to the rms of the data
    effort : forecast seconds to spend on further attacks and the leakage curve
    sample : audit so many records only, drawn at random
    encoder : your own encoder(private, public, rng), or an object with such an `encode`: what it
        returns is attacked, as made by `scheme` and by others that it may follow
    encodings : instead, encodings that were made of `private`: they are attacked
    sensitive : place or name of a column whose values are to be protected
    labels : class of each record, for `what_if`
    what_if : "noise", "k", "m" or "all": how many records come back when these change
    out : folder for finished trials, new or of an earlier audit

    Returns
    -------
    Audit
        verdict, attackers, meaning, records, curve, findings; `Audit.facts()` as JSON takes it
    """
    start = time.perf_counter()
    # 1. Load.
    options = options_of(
        scheme,
        what_if,
        rng,
        m=m,
        noise=noise,
        seeds=seeds,
        tolerance=tolerance,
        effort=effort,
        sensitive=sensitive,
        encoder=encoder,
        encodings=encodings,
        labels=labels,
        out=out,
        memory_limit=memory_limit,
        progress=progress,
    )
    case = load(
        private, public, options, n_private=n_private, n_public=n_public, d=d, sample=sample
    )
    check = check_model(case.data.values)
    lab = _laboratory(case, options)
    # 2. to 4. Attack, again, and measure.
    measured = _measure(lab, case, options, check)
    changed: tuple[WhatIf, ...] = ()
    if options.what_if:
        changed = points_of(
            case.release,
            options.what_if,
            case.high,
            tolerance=tolerance,
            labels=case.labels,
            memory_limit=options.memory_limit,
            progress=progress,
        )
    # 5. and 6. Lint, and say it.
    return _said(lab, case, options, check, measured, changed, time.perf_counter() - start)


@dataclass(frozen=True, eq=False)
class _Measured:
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
        made = [trial for run in self.runs for trial in run.trials]
        made += [trial for several in self.points.values() for trial in several]
        return list({id(trial): trial for trial in made}.values())


def _laboratory(case: Case, options: Options) -> Laboratory:
    return Laboratory(
        release=case.release,
        tolerance=options.tolerance,
        pixel_rms=1.0 if case.data.kind == "gaussian" else None,
        folder=trials_folder(options.out),
        memory_limit=options.memory_limit,
        progress=options.progress,
    )


def _measure(lab: Laboratory, case: Case, options: Options, check: ModelCheck) -> _Measured:
    """Every attacker on all encodings, then the one of the headline on more draws and fewer
    encodings."""
    n, d = case.data.values.shape
    n_public = 0 if case.release.public is None else len(case.release.public)
    hard = not check.gaussian

    def cost(attack: str, scheme: Scheme, m: int = case.high) -> float:
        return attack_seconds(attack, scheme, n, m, d, n_public, hard=hard)

    # 1. All attackers; half of the effort at most, since draws and the curve need the rest.
    runs = attack_all(lab, case.high, options.effort / 2, cost)
    bests = outcomes(lab, runs)
    first = tuple(threat(lab, run, best, ()) for run, best in zip(runs, bests, strict=True))
    found = weakest(first)
    place = 0 if found is None else next(i for i, t in enumerate(first) if t is found)
    # 2. The headline's attacker again.
    arms = _again(runs, bests[place])
    points = _trace(lab, case, options, arms, cost)
    threats = tuple(
        threat(lab, run, best, points[case.high][1:] if i == place else ())
        for i, (run, best) in enumerate(zip(runs, bests, strict=True))
    )
    return _Measured(threats, runs, bests, place, points)


def _again(runs: Sequence[Run], best: Outcome) -> tuple[Arm, ...]:
    """The arm that won, then those of the same attacker that got something too: with fewer
    encodings another may be the best."""
    run = next(run for run in runs if run.who == best.arm.who)
    others = [
        arm
        for arm, trial in zip(run.arms, run.trials, strict=True)
        if arm != best.arm and trial.worth[1]
    ]
    return (best.arm, *others)


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
        return lab.best(m, draw, arms, show=m == case.high and draw == 0)

    left = options.effort / 2
    # Half of it at most for further draws of all encodings: the curve needs the rest.
    draws = int(max(1, min(options.seeds, 1 + left / 2 // max(price(case.high), 1e-12))))
    draws = draws if case.release.draws is None else min(draws, case.release.draws)
    spent = (draws - 1) * price(case.high)
    return trace(case.low, case.high, trial, price, draws=draws, effort=left - spent)


def _said(
    lab: Laboratory,
    case: Case,
    options: Options,
    check: ModelCheck,
    measured: _Measured,
    changed: tuple[WhatIf, ...],
    seconds: float,
) -> Audit:
    """Everything in its place of the record."""
    data, release, scheme = case.data, case.release, options.scheme
    best, main, found = measured.best, measured.best.trial, weakest(measured.threats)
    wrong = sum(trial.wrong for trial in measured.trials)
    chosen = release.chosen(0, case.high)
    traced = curve(measured.points)
    shown = measured.threats[measured.place]
    return Audit(
        verdict=verdict(
            measured.threats,
            traced,
            check,
            case.high,
            records=len(data.names),
            signed=main.signed,
            wrong=wrong,
            asides=_asides(lab, case, best),
        ),
        scheme={**vars(scheme), "noise": options.noise},
        data={
            **data.facts(),
            "public records": 0 if release.public is None else len(release.public),
            "different records": len(lab.groups[0]),
        },
        m=case.high,
        attack=TITLES.get(best.arm.who, "{}").format(best.arm.title),
        explanation=main.explanation,
        records=record_risks(data, chosen, measured.points, case.high),
        curve=traced,
        stages=tuple(Stage(name, spent) for name, spent in main.seconds.items()),
        findings=_findings(lab, case, options, wrong),
        guarantees=guarantees(check, wrong=wrong, told=found is not None and shown.key == "told"),
        model={**check.facts(), "in words": check.sentence()},
        run=_facts(case, options, measured, seconds),
        threats=measured.threats,
        meanings=meanings(lab, best, shown, case.column),
        what_if=changed,
        assumed=_assumed(case, options, best),
        provenance={
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": name_of([], data.values),
        },
        pictures=draw_pictures(data, lab.encodings(0, case.high), chosen, main, len(data.names)),
    )


def _asides(lab: Laboratory, case: Case, best: Outcome) -> list[str]:
    """What must be said of the make of these encodings."""
    scheme, n = case.release.scheme, len(lab.groups[0])
    out = []
    if best.arm.words:
        out.append(f"The encodings were taken for others than stated: {best.arm.words}.")
    if case.release.stated and n == 2 * scheme.k_private and not scheme.k_public:
        out.append(
            f"With {n} records, twice as many as an encoding mixes, two sets of records give the "
            "same encodings: which of them is the true one cannot be told from the encodings."
        )
    return out


def _findings(lab: Laboratory, case: Case, options: Options, wrong: int) -> tuple[Finding, ...]:
    """What the encodings show of how they were made, and what the encoder does."""
    n = len(case.data.names)
    public = case.release.public
    found: list[Finding] = [
        *lint_encodings(
            lab.encodings(0, case.high),
            chosen=case.release.chosen(0, case.high),
            n_private=n,
        )
    ]
    if options.encoder is not None:
        # Twenty dozen unit vectors show every slip; more would only take longer.
        try:
            found += lint_encoder(
                options.encoder,
                min(n, 200),
                0 if public is None else min(200, len(public)),
                progress=options.progress,
            )
        except InputError as error:
            found.append(Finding(f"The encoder cannot be looked into: {error}.", "low", ""))
    if wrong:
        found.insert(0, _wrong(wrong))
    return tuple(found)


def _wrong(count: int) -> Finding:
    return Finding(
        f"{count} vectors were called verified by the attack and equal no record.",
        "high",
        "The counts of this audit stand, since the truth was at hand; the attack's own certificate "
        "failed on these data.",
        "Trust no “verified” on data like these where the truth is not known, and report it as a "
        "bug.",
    )


def _assumed(case: Case, options: Options, best: Outcome) -> dict[str, Any]:
    """k, weights, signs and m as they were taken to be."""
    scheme = best.arm.scheme
    facts = {
        "k_private": scheme.k_private,
        "k_public": scheme.k_public,
        "weights": scheme.weighting,
        "signs": scheme.signs,
        "pairing": scheme.pairing,
        "m": case.high,
        "noise": options.noise,
        "encodings made by": "the scheme" if case.release.stated else "the encoder",
        "as": best.arm.words or "stated",
    }
    if options.encodings is not None:
        facts["encodings made by"] = "somebody else"
    if "noise" in options.what_if and case.release.chosen(0, case.high) is not None:
        facts["delta"] = DELTA
        facts["sensitivity"] = sensitivity(case.release)
    return facts


def _facts(case: Case, options: Options, measured: _Measured, seconds: float) -> dict[str, Any]:
    trials = measured.trials
    return store.manifest(
        "audit",
        seed=options.seed,
        m_low=case.low,
        m_high=case.high,
        draws=len(measured.points[case.high]),
        trials=len(trials),
        tolerance=options.tolerance,
        effort=options.effort,
        attack_seconds=sum(sum(trial.seconds.values()) for trial in trials),
        seconds=seconds,
    )
