"""What leaks if these encodings are released? Encode, attack in every way that applies, hold
against the truth, and say so.

    1  load      records, public vectors, where encodings come from      `inputs`, `release`
    2  attack    all encodings, by every kind of attacker, best attack first      `threats`
    3  again     more draws, and fewer encodings, where the share changes     `campaign`, `curve`
    4  risk      counts of distinct records, control, risk above it, meaning      `measured`,
                 and where none came back, which encodings can be linked         `linking`
    5  lint      what the encoder gives away besides                `findings`
    6  words     the verdict, from what was measured and from nothing else        `judgement`

With `out` every finished trial is kept, and the same call after an interruption goes on with those
that are missing.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from unveil import store
from unveil.auditing.audit_options import Data, Options, options_of
from unveil.auditing.campaign import Campaign, campaign
from unveil.auditing.clock import OVER, clock_for
from unveil.auditing.curve import curve
from unveil.auditing.findings import findings
from unveil.auditing.inputs import Case, load, trials_folder
from unveil.auditing.judgement import record_risks, verdict, weakest
from unveil.auditing.linking import links
from unveil.auditing.measured import Outcome, meanings
from unveil.auditing.model_check import ModelCheck, check_model, guarantees
from unveil.auditing.pictures import draw_pictures
from unveil.auditing.result import Audit, Stage, WhatIf
from unveil.auditing.seed_lint import Encoder
from unveil.auditing.trials import Laboratory
from unveil.auditing.what_if import DELTA, MOST_PIXELS, MOST_RECORDS, sensitivity
from unveil.auditing.what_if import what_if as points_of
from unveil.checks import DataLike
from unveil.kept import name_of
from unveil.records import Progress
from unveil.scheme import Scheme
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
    relative_tolerance: float = 1e-2,
    effort: float = EFFORT,
    n_private: int | None = None,
    n_public: int | None = None,
    d: int | None = None,
    sample: int | None = None,
    encoder: Encoder | None = None,
    encodings: Data | None = None,
    sensitive: int | str | None = None,
    labels: DataLike | None = None,
    what_if: str | None = None,
    out: str | Path | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    tolerance: float | None = None,
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
        How many encodings are released, or between how many. None: as many as all vectors need by
        the forecast, or all that there are.
    noise : float
        Standard deviation added to every value.
    seeds : int
        Independent draws of subsets: the intervals come from them.
    rng : int, Generator or None
        The same number gives the same audit.
    relative_tolerance : float
        Largest error of a value that counts as exact, relative to the rms of the data without
        their mean.
    effort : float
        Forecast seconds to spend on further attacks and the leakage curve. Five times as many by
        the clock, three minutes at least, end the attacks; the audit then says which.
    n_private, n_public, d : int
        Sizes of drawn records.
    sample : int
        Audit so many records only, drawn at random.
    encoder : function or object with `encode`
        Your own encoder(private, public, rng). What it returns is attacked, as made by `scheme` and
        by others that it may follow.
    encodings : path or array
        Instead, encodings that were made of `private`: they are attacked.
    sensitive : int or str
        Place or name of a column whose values are to be protected.
    labels : array or path
        Class of each record, for `what_if`.
    what_if : "noise", "k", "m" or "all"
        How many records come back when these change.
    out : path
        Folder for finished trials, new or of an earlier audit.
    memory_limit : int
        Bytes that may be used; None: half of what is free.
    progress : function
        Called with stage, done and total.
    tolerance : float
        Older name of `relative_tolerance`; where it is given, it counts. (In `score`, `tolerance`
        is absolute.)

    Returns
    -------
    Audit
        Verdict, attackers, meaning, records, curve and findings; `Audit.facts()` as JSON takes it.
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
        relative_tolerance=relative_tolerance if tolerance is None else tolerance,
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
    measured = campaign(lab, case, options, hard=not check.gaussian)
    changed: tuple[WhatIf, ...] = ()
    if options.what_if:
        changed = points_of(
            case.release,
            options.what_if,
            case.high,
            relative_tolerance=options.relative_tolerance,
            labels=case.labels,
            memory_limit=options.memory_limit,
            progress=progress,
        )
    # 5. and 6. Lint, and say it.
    return _said(lab, case, options, check, measured, changed, time.perf_counter() - start)


def _laboratory(case: Case, options: Options) -> Laboratory:
    return Laboratory(
        release=case.release,
        relative_tolerance=options.relative_tolerance,
        pixel_rms=1.0 if case.data.kind == "gaussian" else None,
        folder=trials_folder(options.out),
        memory_limit=options.memory_limit,
        progress=options.progress,
        clock=clock_for(options.effort),
    )


def _said(
    lab: Laboratory,
    case: Case,
    options: Options,
    check: ModelCheck,
    measured: Campaign,
    changed: tuple[WhatIf, ...],
    seconds: float,
) -> Audit:
    """Everything in its place of the record."""
    # 1. What was found, by whom.
    data, release, scheme = case.data, case.release, case.release.scheme
    best, main, found = measured.best, measured.best.trial, weakest(measured.threats)
    wrong = sum(trial.wrong for trial in measured.trials)
    chosen = release.chosen(0, case.high)
    traced = curve(measured.points)
    shown = measured.threats[measured.place]
    # Where nothing came back, or no recovery tells, it is asked of who holds candidate records.
    asked = found is None or not isfinite(main.linked)
    linked = links(lab, case.high, options.encoder) if asked else None
    who = shown.key if found is not None else "blind"
    if found is None and linked is not None and linked.sure:
        who = "holder"
    # 2. In words and numbers.
    return Audit(
        verdict=verdict(
            measured.threats,
            traced,
            check,
            case.high,
            records=len(data.names),
            signed=main.signed,
            wrong=wrong,
            asides=_asides(lab, case, best) + _cut_short(measured),
            noun=data.noun,
            linked=linked,
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
        findings=findings(lab, case, options, wrong),
        guarantees=guarantees(check, wrong=wrong, who=who, noun=data.noun),
        model={**check.facts(), "in words": check.sentence(data.noun)},
        # 3. How it was made, so that it can be made again.
        run=_facts(case, options, measured, seconds),
        threats=measured.threats,
        meanings=meanings(lab, best, shown, case.column, linked),
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


def _cut_short(measured: Campaign) -> list[str]:
    """Attacks that the clock ended or kept from starting: what they would have got is not known."""
    if measured.best.trial.complete:
        return []
    names = [trial.attack for run in measured.runs for trial in run.trials if trial.stopped]
    names += [name for run in measured.runs for name, why in run.not_tried if why == OVER]
    if not names:
        return []
    return [
        f"Time ran out for {', '.join(dict.fromkeys(names))}: what they would have got is not "
        "known. Raise the effort."
    ]


FOUND = "found with the records at hand"
"""How k is said to be known where the stated one does not reproduce the encodings."""


def _assumed(case: Case, options: Options, best: Outcome) -> dict[str, Any]:
    """k, weights, signs and m as they were taken to be."""
    scheme = best.arm.scheme
    facts: dict[str, Any] = {
        "k_private": scheme.k_private,
        "k_public": scheme.k_public,
        "weights": scheme.weighting,
        "signs": scheme.signs,
        "pairing": scheme.pairing,
        "m": case.high,
        "noise": options.noise,
        "encodings made by": "the scheme" if case.release.stated else "the encoder",
        "as": best.arm.words or ("stated" if case.release.scheme == options.scheme else FOUND),
    }
    if options.encodings is not None:
        facts["encodings made by"] = "somebody else"
    if "noise" in options.what_if and case.release.chosen(0, case.high) is not None:
        facts["delta"] = DELTA
        facts["what if, records and pixels attacked at most"] = [MOST_RECORDS, MOST_PIXELS]
        facts["sensitivity"] = sensitivity(case.release)
    return facts


def _facts(case: Case, options: Options, measured: Campaign, seconds: float) -> dict[str, Any]:
    trials = measured.trials
    return store.manifest(
        "audit",
        seed=options.seed,
        m_low=case.low,
        m_high=case.high,
        draws=len(measured.points[case.high]),
        trials=len(trials),
        relative_tolerance=options.relative_tolerance,
        effort=options.effort,
        attack_seconds=sum(sum(trial.seconds.values()) for trial in trials),
        seconds=seconds,
    )
