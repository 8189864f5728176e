"""How hard is the audit on data? Real tables and images, hostile data, hostile encoders: its
verdict beside the best that any attack gets, all of them run, with the scheme that was really used.

    python -m benchmarks.audit [text …]   the table, or rows with this text: written to
                                          docs/figures/audit_table.json and into docs/audit.md
    python -m benchmarks.audit coverage   how often the interval of a small audit holds the truth

Understated: the audit's level is below that of the best attack, or an attack gets more records than
the audit says for the same attacker. Overstated: its level is above. Images come from the folder
UNVEIL_DATA (../shared/data without it); without them their rows are left out.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import binom

import unveil
from unveil.attacks.choose import choose, situation_of
from unveil.auditing.as_found import COPIES, VIEWS
from unveil.auditing.insider import NAME as SUBSTITUTION
from unveil.auditing.intervals import over_draws
from unveil.auditing.judgement import FEW
from unveil.auditing.release import Release, by_encoder
from unveil.auditing.risks import EXACT, NOT
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.data.bundled import fashion_mnist
from unveil.scheme import Scheme

ROOT = Path(__file__).resolve().parents[1]
FIGURE = ROOT / "docs" / "figures" / "audit_table.json"
PAGE = ROOT / "docs" / "audit.md"
START, END = "<!-- rows -->", "<!-- end of rows -->"
"""Between these lines of the page stands the table."""
LEVELS = ("nothing", "partly", "leaks")
UNLIKELY = 1e-4
"""Probability below which so many nearest records are no chance."""
N = 24
"""Records of every set: enough for counts, few enough for all attacks on all sets."""
EFFORT = 10.0
"""Forecast seconds, a quarter of the default."""

Array = np.ndarray[Any, Any]
Encoder = Callable[[Array, Any, np.random.Generator], Array]


@dataclass(frozen=True)
class Row:
    data: str
    encoder: str
    verdict: str
    blind: int
    told: int
    records: int
    truth: str
    best_blind: int
    best_told: int
    best_attack: str

    @property
    def judged(self) -> str:
        if LEVELS.index(self.verdict) < LEVELS.index(self.truth):
            return "understated"
        if self.blind < self.best_blind or self.told < self.best_told:
            return "understated"
        return "overstated" if self.verdict != self.truth else "right"


def main() -> None:
    if sys.argv[1:] == ["coverage"]:
        print(json.dumps(coverage(), indent=1))
        return
    # 1. Rows that are named, in place of what is stored of them; without names all.
    stored = {} if not FIGURE.is_file() else _by_name(json.loads(FIGURE.read_text()))
    kept = stored if sys.argv[1:] else {}
    order = []
    for name, private, encoder, stated, true in cases():
        order.append((name, encoder))
        if not sys.argv[1:] or any(text in f"{name}; {encoder}" for text in sys.argv[1:]):
            row = judged(name, private, encoder, stated, true)
            kept[name, encoder] = {**asdict(row), "judged": row.judged}
            print(_line(kept[name, encoder]), flush=True)
    # 2. Everything in one order.
    facts = [kept[key] for key in order if key in kept]
    FIGURE.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    page = PAGE.read_text()
    before, after = page.split(START)[0], page.split(END)[1]
    PAGE.write_text("\n".join([before + START, HEAD, *map(_line, facts), END + after]))
    print(f"{sum(row['judged'] == 'right' for row in facts)} of {len(facts)} right")


def _by_name(facts: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["data"], row["encoder"]): row for row in facts}


def judged(name: str, private: Array, encoder: str, stated: Scheme, true: Scheme | None) -> Row:
    """One audit, and every attack by itself. true: the scheme the encoder really follows."""
    function = ENCODERS[encoder]
    options = {} if function is None else {"encoder": function}
    m = None if function is not None else 7 * len(private)
    found = unveil.audit(private, stated, m=m, rng=0, seeds=1, effort=EFFORT, **options)
    threats = {t.key: t.exact + t.approximate for t in found.threats}
    truth, best_blind, best_told, attack = best_of_all(private, function, true or stated, found.m)
    return Row(
        name,
        encoder,
        found.verdict.level,
        threats["blind"],
        threats["told"],
        found.threats[0].records,
        truth,
        best_blind,
        best_told,
        attack,
    )


def best_of_all(
    private: Array, function: Encoder | None, scheme: Scheme, m: int
) -> tuple[str, int, int, str]:
    """The level that counts of all attacks give, the most records blind and told, and by what."""
    x = np.asarray(private, np.float32)
    shape = x.shape[1:] if x.ndim > 2 else None
    x = x.reshape(len(x), -1)
    make = None if function is None else by_encoder(function, x, None, 0)
    release = Release(x, None, scheme, m, 0.0, 0, shape=shape, make=make)
    lab = Laboratory(release)
    counts = {"blind": (0, 0), "told": (0, 0), "insider": (0, 0)}
    by = ""
    for arm in _every_arm(lab, m):
        trial = lab.trial(m, 0, arm)
        rows = lab.groups[0]
        got = trial.outcome[rows]
        count = int((got > NOT).sum()), int((got == EXACT).sum())
        if count > counts[arm.who]:
            counts[arm.who] = count
            by = arm.attack if arm.who == "blind" or not counts["blind"][0] else by
        if counts["blind"][1] == len(rows):
            break
    exact = counts["blind"][1] > FEW * len(lab.groups[0])
    level = "leaks" if exact else "partly" if any(c[0] for c in counts.values()) else "nothing"
    told = max(counts["told"][0], counts["blind"][0])
    if level == "nothing" and _nearest_own(lab, m):
        level, by = "partly", "nearest record"
    return level, counts["blind"][0], told, by or "none"


def _nearest_own(lab: Laboratory, m: int) -> bool:
    """Whether more encodings than chance allows are nearest to the record of their own row."""
    x, values = lab.release.private, lab.release.draw(0).values[:m]
    if len(values) != len(x):
        return False
    hits = int((cdist(values, x).argmin(axis=1) == np.arange(len(x))).sum())
    return bool(binom.sf(hits - 1, len(x), 1 / len(x)) < UNLIKELY)


def _every_arm(lab: Laboratory, m: int) -> Iterator[Arm]:
    """All attacks of all attackers, whatever the audit would choose."""
    scheme = lab.release.scheme
    yield Arm("blind", COPIES, scheme)
    if not lab.release.stated:
        yield Arm("blind", "mixing", Scheme(2, weighting="unknown", signs="kept"))
    encodings = lab.encodings(0, m)
    for choice in choose(situation_of(encodings, None)):
        if choice.applies:
            yield Arm("blind", choice.attack, scheme)
    for view, seen in VIEWS.items() if not lab.release.stated else ():
        if seen(encodings.values) is not None:
            yield Arm("blind", "relations", scheme, view, view)
            yield Arm("blind", "noisy-relations", scheme, view, view)
    if lab.release.chosen(0, m) is None:
        return
    for choice in choose(situation_of(encodings, None, told=True)):
        if choice.applies:
            yield Arm("told", choice.attack, scheme)
    yield Arm("insider", SUBSTITUTION, scheme)


def cases() -> Iterator[tuple[str, Array, str, Scheme, Scheme | None]]:
    """(data, records, encoder, scheme as stated, scheme that is really used)."""
    two, three = Scheme(2), Scheme(3)
    sets = data_sets()
    gauss = sets["Gaussian, 40 columns"]
    yield "Gaussian, 40 columns", gauss, "InstaHide, k = 3", three, None
    for encoder in ENCODERS:
        if ENCODERS[encoder] is not None:
            true = three if encoder.endswith("unsaid") else None
            yield "Gaussian, 40 columns", gauss, encoder, two, true
    wine = sets.get("wine, 13 columns")
    if wine is not None:
        for encoder in ("identity", "MixUp", "magnitudes"):
            yield "wine, 13 columns", wine, encoder, two, None
    for name, private in sets.items():
        yield name, private, "InstaHide", two, None


def data_sets() -> dict[str, Array]:
    rng = np.random.default_rng(7)
    gauss = rng.standard_normal((N, 40)).astype(np.float32)
    sets: dict[str, Array] = {
        "Gaussian, 40 columns": gauss,
        "Gaussian, 5 columns": rng.standard_normal((N, 5)).astype(np.float32),
        "zeros and ones": (rng.random((N, 40)) < 0.3).astype(np.float32),
        "images in [0, 1]": rng.random((N, 8, 8)).astype(np.float32),
        "every row twice": np.vstack([gauss[: N // 2], gauss[: N // 2]]),
        "random walks": np.cumsum(rng.standard_normal((N, 100)), axis=1).astype(np.float32),
    }
    return sets | _tables(rng) | _images(rng) | _answers()


def _answers() -> dict[str, Array]:
    """Tables that take few values, or have few columns."""
    rng = np.random.default_rng(17)
    return {
        "answers from 1 to 5": rng.integers(1, 6, (N, 20)).astype(np.float32),
        "one-hot answers": np.eye(5, dtype=np.float32)[rng.integers(5, size=(N, 8))].reshape(N, -1),
        "Gaussian, 2 columns": rng.standard_normal((N, 2)).astype(np.float32),
    }


def _tables(rng: np.random.Generator) -> dict[str, Array]:
    """Tables of scikit-learn, columns standardised as the audit does with a CSV file."""
    try:
        from sklearn import datasets
    except ImportError:
        return {}
    out = {}
    for name, load in {
        "wine, 13 columns": datasets.load_wine,
        "breast cancer, 30 columns": datasets.load_breast_cancer,
        "diabetes, 10 columns": datasets.load_diabetes,
        "iris, 4 columns": datasets.load_iris,
    }.items():
        values = load().data
        values = (values - values.mean(axis=0)) / values.std(axis=0)
        rows = rng.choice(len(values), N, replace=False)
        out[name] = values[rows].astype(np.float32)
    digits = datasets.load_digits().images
    out["digits, 8×8"] = (digits[rng.choice(len(digits), N, replace=False)] / 8 - 1).astype(
        np.float32
    )
    return out


def _images(rng: np.random.Generator) -> dict[str, Array]:
    bundled = fashion_mnist()[0]
    out = {"Fashion-MNIST, 28×28": bundled[rng.choice(len(bundled), N, replace=False)]}
    folder = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
    for name, file in (
        ("CIFAR-10, 32×32 in colour", "cifar10_test2k_small.npz"),
        ("Caltech-101, 32×32 in colour", "caltech101_32.npz"),
    ):
        if (folder / file).is_file():
            with np.load(folder / file) as stored:
                images = next(stored[key] for key in stored.files if stored[key].ndim == 4)
                out[name] = images[rng.choice(len(images), N, replace=False)]
    return {name: pixels.astype(np.float32) / 127.5 - 1 for name, pixels in out.items()}


def _mixed(private: Array, rng: np.random.Generator, own: bool = False, k: int = 2) -> Array:
    m = 7 * len(private)
    chosen = np.array([rng.choice(len(private), k, replace=False) for _ in range(m)])
    weights = rng.dirichlet(np.ones(k), m) if own else np.full((m, k), 1 / k)
    return np.einsum("mk,mkd->md", weights, private[chosen])


def _order(x: Array) -> Array:
    """One order of the columns, the same in every draw."""
    return np.random.default_rng(8).permutation(x.shape[1])


def _secret(x: Array) -> Array:
    """One vector, the same in every draw."""
    return np.random.default_rng(9).standard_normal(x.shape[1])


def _coins(count: int, rng: np.random.Generator) -> Array:
    return rng.choice([-1, 1], (count, 1))


ENCODERS: dict[str, Encoder | None] = {
    "InstaHide": None,
    "InstaHide, k = 3": None,
    "InstaHide, k = 3 unsaid": lambda x, public, rng: np.abs(_mixed(x, rng, k=3)),
    "InstaHide, rounded": lambda x, public, rng: np.round(np.abs(_mixed(x, rng)), 3),
    "one mask for all": lambda x, public, rng: _mixed(x, rng) * rng.choice([-1, 1], x.shape[1]),
    "identity": lambda x, public, rng: x,
    "scaled": lambda x, public, rng: 0.3 * x,
    "clipped": lambda x, public, rng: np.clip(x, -1, 1),
    "magnitudes": lambda x, public, rng: np.abs(x),
    "little noise": lambda x, public, rng: x + 0.1 * rng.standard_normal(x.shape),
    "noise of their size": lambda x, public, rng: x + rng.standard_normal(x.shape),
    "much noise": lambda x, public, rng: x + 5 * rng.standard_normal(x.shape),
    "MixUp": lambda x, public, rng: _mixed(x, rng),
    "MixUp, own weights": lambda x, public, rng: _mixed(x, rng, own=True),
    "eight bits": lambda x, public, rng: np.round(32 * np.abs(_mixed(x, rng))).clip(0, 255),
    "clipped mixtures": lambda x, public, rng: np.minimum(np.abs(_mixed(x, rng)), 1),
    "columns shuffled": lambda x, public, rng: np.abs(_mixed(x, rng))[:, _order(x)],
    "records, columns shuffled": lambda x, public, rng: x[:, _order(x)],
    "a secret vector added": lambda x, public, rng: np.abs(_mixed(x, rng) + _secret(x)),
    "a number added": lambda x, public, rng: np.abs(_mixed(x, rng)) + 0.5,
    "squares": lambda x, public, rng: _mixed(x, rng) ** 2,
    "whole encodings negated": lambda x, public, rng: _mixed(x, rng) * _coins(7 * len(x), rng),
    "records standardised": lambda x, public, rng: (
        (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    ),
    "fresh noise": lambda x, public, rng: np.abs(rng.standard_normal((7 * len(x), x.shape[1]))),
}


def coverage(audits: int = 200, draws: int = 3, n: int = 40, d: int = 8) -> list[dict[str, Any]]:
    """How often the interval of the share recovered holds its mean over all draws, where records
    are lost for want of encodings: the insider's attack, which takes milliseconds."""
    return [_covered(audits, draws, n, d, m) for m in (20, 24, 30, 40, 60, 90)]


def _covered(audits: int, draws: int, n: int, d: int, m: int) -> dict[str, Any]:
    shares = []
    arm = Arm("insider", SUBSTITUTION, Scheme(2))
    for seed in range(audits):
        x = np.random.default_rng(1000 + seed).standard_normal((n, d)).astype(np.float32)
        lab = Laboratory(Release(x, None, Scheme(2), m, 0.0, seed), pixel_rms=1.0)
        trials = [lab.trial(m, draw, arm) for draw in range(draws)]
        shares.append([float((trial.outcome[~lab.known] > NOT).mean()) for trial in trials])
    truth = float(np.mean(shares))
    records = n // 2
    inside = [low <= truth <= high for low, high in (over_draws(each, records) for each in shares)]
    facts = {"audits": audits, "draws": draws, "records": records, "encodings": m}
    return {**facts, "share": round(truth, 4), "covered": float(np.mean(inside))}


HEAD = """| records | encoder | verdict | blind, told | of | best of all | blind, told (by) | judged |
|---|---|---|---|---|---|---|---|"""
"""Of the table in docs/audit.md."""


def _line(row: dict[str, Any]) -> str:
    return (
        f"| {row['data']} | {row['encoder']} | {row['verdict']} | {row['blind']}, {row['told']} "
        f"| {row['records']} | {row['truth']} | {row['best_blind']}, {row['best_told']} "
        f"({row['best_attack']}) | {row['judged']} |"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
