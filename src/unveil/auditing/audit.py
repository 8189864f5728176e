"""What leaks if these encodings are released? Encode as the scheme would, attack, hold against the
truth, and say so.

    1  records   from a file, a folder, an array, or drawn                        `data.dataset`
    2  model     how far the records are from the theory's                        `auditing.model_check`
    3  trials    all encodings, attacked blind; if records stay hidden, also by an attacker who is told the overlaps; what gets
                 more is used from here on                                        `auditing.trials`
    4  curve     fewer encodings, where the fraction recovered changes            `auditing.curve`
    5  lint      what the encoder gives away besides                              `auditing.lint`, `auditing.encoder_lint`
    6  verdict   from what was measured, and from nothing else                    `auditing.judgement`

With `out` every finished trial is kept, and the same call after an interruption goes on with those
that are missing.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil import store
from unveil.auditing.costs import natural_seconds, nominal_seconds
from unveil.auditing.curve import Points, curve, trace
from unveil.auditing.encoder_lint import Encoder, lint_encoder
from unveil.auditing.judgement import record_risks, verdict
from unveil.auditing.lint import lint_encodings
from unveil.auditing.model_check import check_model, guarantees
from unveil.auditing.pictures import draw_pictures
from unveil.auditing.plan import encodings_for_all
from unveil.auditing.result import Audit, Finding, Stage
from unveil.auditing.trials import Attacker, Laboratory, Trial
from unveil.data import Dataset, gaussian_vectors, load_dataset
from unveil.data.features import SUFFIXES, read_features
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import where
from unveil.records import EXACT_WEIGHTINGS, InputError, Progress, Scheme, as_vectors
from unveil.seeds import Rng, child, root

Data = str | Path | ArrayLike | Dataset
EFFORT = 40.0
FEW_IMAGES, MANY_IMAGES = 5, 50
"""Encodings per image of a release of images with weights of their own, where nothing is said: the
challenge has 50."""
ATTACKS = {"blind": "{}", "told": "{}, told the overlaps"}


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
    out: str | Path | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    tolerance: float | None = None,
) -> Audit:
    """Audit the release of encodings of `private`.

    private    a path (.npy, .npz, .csv, folder of images), an array, "gaussian" (the same as None) or "fashion-mnist"
    m          how many encodings are released; (low, high): between these; None: as many as all vectors need by the forecast
    seeds      independent draws of subsets: the band of the curve comes from them
    relative_tolerance  largest error of a pixel that counts as exact, relative to the rms of the
               data; `tolerance` is an older name of the same (in `score`, `tolerance` is absolute)
    effort     forecast seconds to spend on the leakage curve, beyond the first attacks on all encodings
    sample     audit so many records only, drawn at random
    encoder    your own encoder(private, public, rng), for the lint; what is attacked are encodings made by `scheme`
    out        folder for finished trials, new or of an earlier audit
    """
    start = time.perf_counter()
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    if scheme.k_private + scheme.k_public < 2 or not scheme.k_private:
        raise InputError(
            f"k_private={scheme.k_private}, k_public={scheme.k_public}: nothing private is mixed with anything; "
            "use k_private of 2 or more"
        )
    if isinstance(seeds, bool) or not 1 <= seeds <= 1000:
        raise InputError(f"seeds={seeds!r}: give how many independent draws to make, 1 or more")
    tolerance = relative_tolerance if tolerance is None else tolerance
    if not tolerance > 0:
        raise InputError(f"relative_tolerance={tolerance!r}: give a positive number")
    if not effort >= 0:
        raise InputError(f"effort={effort!r}: give seconds, 0 or more")
    memory_limit = where().memory_limit if memory_limit is None else memory_limit
    limit = settle_limit(memory_limit)
    seed = _seed(rng)
    family = root(seed)
    data = load_dataset(
        private, n=n_private, d=d, sample=sample, limit=limit // 4, rng=child(family, "private")
    )
    n, pixels = data.values.shape
    if data.image_shape is None:
        scheme.require_weighting(*EXACT_WEIGHTINGS)
    images = scheme.weighting not in EXACT_WEIGHTINGS
    others = _public(public, data, scheme, n_public, child(family, "public"), limit)
    if scheme.k_private > n:
        raise InputError(
            f"k_private={scheme.k_private} of only {n} private records: lower k_private or add records"
        )
    low, high = _range(m, scheme, n, images)
    if 8 * high * pixels > limit:
        raise InputError(
            f"{high:,} encodings of {pixels:,} pixels are more than the memory limit: lower m, or raise memory_limit"
        )
    check = check_model(data.values)
    lab = Laboratory(
        private=data.values,
        public=others,
        scheme=scheme,
        top=high,
        noise=noise,
        tolerance=tolerance,
        seed=seed,
        pixel_rms=1.0 if data.kind == "gaussian" else None,
        shape=data.image_shape,
        folder=None if out is None else _folder(Path(out)),
        memory_limit=memory_limit,
        progress=progress,
    )
    hard = not check.gaussian

    def cost(count: int) -> float:
        n_others = 0 if others is None else len(others)
        if images:
            return natural_seconds(count, pixels)
        return nominal_seconds(scheme, n, count, pixels, n_others, hard=hard)

    attacker, blind, points = _search(lab, low, high, cost, seeds, effort, progress)
    main = points[high][0]
    wrong = sum(trial.wrong for trials in points.values() for trial in trials)
    simulation = lab.draw(0)
    encodings = lab.encodings(0, high)
    findings = [*lint_encodings(encodings, chosen=simulation.selection.private, n_private=n)]
    if encoder is not None:
        findings = [
            *lint_encoder(
                encoder,
                min(n, 200),
                0 if others is None else min(200, len(others)),
                progress=progress,
            )
        ]
    if wrong:
        findings.insert(0, _wrong(wrong))
    records = record_risks(data, simulation.selection.private, points, high)
    traced = curve(points)
    signed = others is not None or scheme.signs == "kept"
    return Audit(
        verdict=verdict(
            records, traced, main, blind, attacker, check, high, signed=signed, wrong=wrong
        ),
        scheme={**vars(scheme), "noise": noise},
        data={**data.facts(), "public records": 0 if others is None else len(others)},
        m=high,
        attack=ATTACKS[attacker].format(main.attack),
        explanation=main.explanation,
        records=records,
        curve=traced,
        stages=tuple(Stage(name, seconds) for name, seconds in main.seconds.items()),
        findings=tuple(findings),
        guarantees=guarantees(check, wrong=wrong, told=attacker == "told"),
        model={**check.facts(), "in words": check.sentence()},
        run=_facts(seed, low, high, points, tolerance, effort, time.perf_counter() - start),
        pictures=draw_pictures(data, encodings, simulation.selection.private, main, n),
    )


def _search(
    lab: Laboratory,
    low: int,
    high: int,
    cost: Any,
    seeds: int,
    effort: float,
    progress: Progress | None,
) -> tuple[Attacker, Trial, Points]:
    """The stronger attacker, what the blind one got from all encodings, and the stronger one's
    trials."""
    blind = lab.trial(high, 0, "blind", show=True)
    attacker: Attacker = "blind"
    if blind.recovered < 1 and lab.can_be_told(high):
        told = lab.trial(high, 0, "told", show=True)
        if told.recovered > blind.recovered:
            attacker = "told"
    done = 0

    def trial(m: int, draw: int) -> Trial:
        nonlocal done
        done += 1
        if progress:
            progress("trials", done, done + 1)
        return lab.trial(m, draw, attacker, show=m == high and draw == 0)

    # Half of the effort at most for further draws of all encodings: the curve needs the rest.
    draws = int(max(1, min(seeds, 1 + effort / 2 // cost(high))))
    points = trace(low, high, trial, cost, draws=draws, effort=effort - (draws - 1) * cost(high))
    return attacker, blind, points


def _range(
    m: int | tuple[int, int] | None, scheme: Scheme, n: int, images: bool
) -> tuple[int, int]:
    if m is None and images:
        return FEW_IMAGES * n, MANY_IMAGES * n
    if m is None:
        high = encodings_for_all(scheme, n)
        return max(scheme.k_private + 2, n // 2), high
    low, high = (max(scheme.k_private + 2, m // 8), m) if isinstance(m, (int, np.integer)) else m
    if (
        isinstance(m, bool)
        or not all(isinstance(count, (int, np.integer)) for count in (low, high))
        or low < 1
        or high < 2
    ):
        raise InputError(
            f"m={m!r}: give a number of encodings of 2 or more, or a range (low, high)"
        )
    if low > high and not isinstance(m, tuple):
        low = high
    if low > high:
        raise InputError(f"m from {low} to {high}: give the smaller number first")
    return int(low), int(high)


def _public(
    public: Data | None,
    data: Dataset,
    scheme: Scheme,
    n_public: int | None,
    rng: np.random.Generator,
    limit: int,
) -> NDArray[np.float32] | None:
    """Public vectors in the units of the private ones, or None when the scheme mixes none."""
    if scheme.k_public == 0:
        if public is not None or n_public:
            raise InputError(
                "public vectors with k_public=0: say how many an encoding mixes (k_public), or leave them out"
            )
        return None
    d = data.values.shape[1]
    if public is None:
        if data.kind != "gaussian":
            raise InputError(
                f"k_public={scheme.k_public} but no public vectors: give them with public"
            )
        vectors = gaussian_vectors(200 if n_public is None else n_public, d, rng)
    elif (
        isinstance(public, (str, Path))
        and Path(public).suffix.lower() in SUFFIXES
        and data.kind == "features"
    ):
        table = read_features(public, limit=limit // 4)
        if table.values.shape[1] == d:
            scale = np.where(np.asarray(data.scale) > 0, data.scale, 1.0)
            vectors = as_vectors((table.values - data.mean) / scale, "public")
        else:
            vectors = table.values
    else:
        vectors = load_dataset(public, most=1 << 30, limit=limit // 4, rng=rng).values
    if vectors.shape[1] != d:
        raise InputError(
            f"public vectors have {vectors.shape[1]} pixels, private ones {d}: they must come from the same space"
        )
    if scheme.k_public > len(vectors):
        raise InputError(
            f"k_public={scheme.k_public} of only {len(vectors)} public vectors: lower k_public or add vectors"
        )
    return vectors


def _seed(rng: Rng) -> int:
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        root(rng)
        return int(rng)
    return int(np.random.default_rng(root(rng)).integers(1 << 62))


def _folder(out: Path) -> Path:
    """Where trials are kept: in a new folder, or in one that an audit made."""
    trials = out / "trials"
    if not trials.is_dir():
        store.must_be_new(out)
    return trials


def _wrong(count: int) -> Finding:
    return Finding(
        f"{count} vectors were called verified by the attack and equal no record.",
        "high",
        "The counts of this audit stand, since the truth was at hand; the attack's own certificate failed on these data.",
        "Trust no “verified” on data like these where the truth is not known, and report it as a bug.",
    )


def _facts(
    seed: int, low: int, high: int, points: Points, tolerance: float, effort: float, seconds: float
) -> dict[str, Any]:
    trials = [trial for several in points.values() for trial in several]
    return store.manifest(
        "audit",
        seed=seed,
        m_low=low,
        m_high=high,
        draws=len(points[high]),
        trials=len(trials),
        tolerance=tolerance,
        effort=effort,
        attack_seconds=sum(sum(trial.seconds.values()) for trial in trials),
        seconds=seconds,
    )
