"""Exact relations: tables, images, Gaussian and non-negative data, blind, by the default of
`recover`; n and scale unknown.

`python -m benchmarks.relations [name …]` measures the instances whose names begin so, stores them
in docs/figures/relations.json and prints the table of docs/exact_relations.md. Further names:
`counts` (relations against the formula), `columns` (records against the number of columns),
`enough` (encodings needed), `figure` (draws docs/figures/relations.svg from what is stored).
Without names: all of it. `--seeds S` for other than 5 seeds.

Records used by fewer than three different encodings are counted apart: nobody can determine them.
Of one encoding |a + x| there are two readings at each pixel; of two, |a + x| and |b + x|, there is
−a − b − x, with the two exchanged. Tables are scikit-learn's, the records drawn standardised,
constant columns 0. Images come from the folder UNVEIL_DATA (../shared/data without it). Fresh seeds
60000, 60001, …: each draws the records, the columns where only some are used, and the subsets.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import unveil
from benchmarks.full_attack import aligned
from benchmarks.table import Row
from unveil.relations.expected import enough_encodings, expected_relations
from unveil.relations.find import find_relations
from unveil.relations.sketch import sketch

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "docs" / "figures" / "relations.json"
SEEDS, FIRST = 5, 60_000
TABLES = ("breast_cancer", "wine", "diabetes", "digits")
WHOLE = " of all"
"""Standardised with all records of the table, so that a column may be the same in all records drawn
without being 0."""
FILES = {
    "cifar-10": "cifar10_test2k_small.npz",
    "caltech-101": "caltech101_32.npz",
    "fashion-mnist": "fashion_mnist_test10k.npz",
}
COLUMNS = (2, 3, 4, 5, 6, 8, 10, 13)
COUNTS = {
    (50, 2): (100, 200, 400, 800),
    (100, 2): (100, 200, 400, 800),
    (200, 2): (200, 400, 800, 1600),
}
COUNTS |= {
    (30, 3): (100, 200, 400, 800),
    (60, 3): (200, 400, 800, 1600),
    (20, 4): (100, 200, 400, 800),
}
"""(n, k): numbers of encodings."""
SHARES = (0.7, 0.85, 1.0, 1.2)
"""Encodings that are tried for `enough`, relative to those with two relations each."""


class NoData(Exception):
    """An instance needs a folder that is not there."""


@dataclass(frozen=True)
class Instance:
    data: str  # what `records` knows
    k: int = 2
    n: int = 100
    m: int = 700
    d: int = 0  # columns, for Gaussian data
    damage: str = ""
    public: int = 0  # known Gaussian vectors, of which each encoding mixes two
    cheap: bool = True
    must: float = 0.03  # share of values that may be in doubt


INSTANCES = {name: Instance(name, must=0.1 if name == "digits" else 0.03) for name in TABLES}
INSTANCES["digits (all 1,797 standardised)"] = Instance("digits" + WHOLE, must=1.0)
INSTANCES |= {name: Instance(name, cheap=False, must=1.0) for name in FILES}
INSTANCES |= {f"{name} k=3": Instance(name, 3, 30, cheap=False, must=1.0) for name in FILES}
INSTANCES |= {f"{name} k=4": Instance(name, 4, 20, 1500, cheap=False, must=1.0) for name in FILES}
INSTANCES |= {
    f"few: {name} k={k}": Instance(name, k, m=1500, cheap=False, must=1.0)
    for name in FILES
    for k in (3, 4)
}
INSTANCES |= {f"gaussian m=700 d={d}": Instance("gaussian", d=d) for d in (32, 16, 8, 4)}
INSTANCES |= {f"gaussian m=500 d={d}": Instance("gaussian", m=500, d=d) for d in (32, 16, 8)}
INSTANCES |= {
    f"not negative: cifar-10 k={k}": Instance("cifar-10 in [0, 1]", k, cheap=False)
    for k in (2, 3, 4, 6)
}
INSTANCES |= {f"not negative: counts k={k}": Instance("counts", k, d=120) for k in (2, 3, 4, 6)}
INSTANCES |= {
    f"not negative: zeros and ones k={k}": Instance("zeros and ones", k, d=200)
    for k in (2, 3, 4, 6)
}
INSTANCES |= {
    f"damaged: cifar-10 {how}": Instance("cifar-10", damage=how, cheap=False)
    for how in ("float16", "8 bits")
}
INSTANCES |= {
    f"public: {name}": Instance(name, public=2000, cheap=False)
    for name in ("breast_cancer", "cifar-10")
}
INSTANCES |= {
    f"damaged: {name} noise {size}": Instance(name, m=1000, damage=f"noise {size}", cheap=False)
    for name in ("cifar-10", "breast_cancer")
    for size in ("0.02", "0.03", "0.05")
}


@cache
def table(name: str) -> np.ndarray:
    try:
        from sklearn import datasets
    except ImportError:
        raise NoData("scikit-learn is not installed: pip install scikit-learn") from None
    return np.asarray(getattr(datasets, f"load_{name}")(return_X_y=True)[0], float)


def standardised(values: np.ndarray) -> np.ndarray:
    """As whoever holds these records would; a column that is the same in all of them becomes 0."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)


@cache
def images(name: str) -> np.ndarray:
    folder = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / FILES[name]).exists():
        raise NoData(f"no {FILES[name]} in {folder}: set UNVEIL_DATA")
    pixels = np.load(folder / FILES[name], allow_pickle=False)["x"]
    return pixels.reshape(len(pixels), -1)


def records(data: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """(n, d) private records."""
    if data == "gaussian":
        return rng.standard_normal((n, d)).astype(np.float32)
    if data == "counts":
        return rng.poisson(3.0, (n, d)).astype(np.float32)
    if data == "zeros and ones":
        return rng.integers(0, 2, (n, d)).astype(np.float32)
    if data.removesuffix(WHOLE) in TABLES:
        values = table(data.removesuffix(WHOLE))
        chosen = rng.choice(len(values), n, replace=False)
        scaled = (
            standardised(values)[chosen] if data.endswith(WHOLE) else standardised(values[chosen])
        )
        return scaled.astype(np.float32)
    name, unit = data.removesuffix(" in [0, 1]"), data.endswith(" in [0, 1]")
    pixels = images(name)
    chosen = pixels[rng.choice(len(pixels), n, replace=False)].astype(np.float32)
    return chosen / np.float32(255) if unit else chosen / np.float32(127.5) - np.float32(1)


def damaged(Y: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    """Encodings as they are stored, or with noise that is added before signs are hidden (a fair
    sign makes it the same)."""
    if how == "float16":
        return Y.astype(np.float16).astype(np.float32)
    if how == "8 bits":
        step = Y.max() * 1.13 / 255
        return (np.round(Y / step) * step).astype(np.float32)
    if how:
        return np.abs(Y + float(how.split()[1]) * rng.standard_normal(Y.shape)).astype(np.float32)
    return Y


def measure(
    instance: Instance, seed: int, X: np.ndarray | None = None, attack: str | None = None
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X = records(instance.data, instance.n, instance.d, rng) if X is None else X
    P = (
        rng.standard_normal((instance.public, X.shape[1])).astype(np.float32)
        if instance.public
        else None
    )
    scheme = unveil.Scheme(instance.k, 0 if P is None else 2)
    sim = unveil.simulate(scheme, private=X, public=P, m=instance.m, rng=seed)
    clean = np.abs(sim.encodings.values)
    Y = damaged(clean, instance.damage, rng)
    start = time.perf_counter()
    recovery = unveil.recover(
        unveil.Encodings(Y, scheme, pixel_rms=None), P, attack=attack, rng=seed
    )
    seconds = time.perf_counter() - start
    scores = unveil.score(recovery, X)
    different = np.unique(np.sort(sim.selection.private, axis=1), axis=0)
    used = np.bincount(different.ravel(), minlength=len(X))
    out = {
        "seed": seed,
        "n": len(X),
        "exact": scores.exact,
        "right": len(set(scores.matches[scores.matches >= 0].tolist())),
        "returned": len(recovery),
        "wrong": scores.wrong,
        "doubt": 0.0 if recovery.doubtful is None else float(recovery.doubtful.mean()),
        "once": int((used < 2).sum()),
        "twice": int((used == 2).sum()),
        "relations": int(recovery.evidence.get("relations", 0)),
        "attack": recovery.attack,
        "seconds": round(seconds, 2),
    }
    return out | (
        against_least_squares(recovery, X, sim, clean, Y, instance.k) if instance.damage else {}
    )


def against_least_squares(
    recovery: Any, X: np.ndarray, sim: Any, clean: np.ndarray, Y: np.ndarray, k: int
) -> dict[str, Any]:
    """found: records with an estimate; ratio: of rms errors over all of them, to least squares with
    subsets and signs known;
    to_damage: the largest rms error of a record, to the rms of what was done to the encodings."""
    W = np.zeros((len(Y), len(X)))
    np.put_along_axis(W, sim.selection.private, 1 / np.sqrt(k), axis=1)
    least = np.linalg.lstsq(W, np.copysign(Y, W @ X.astype(float)), rcond=None)[0]
    if not len(recovery):
        return {"found": 0, "ratio": None, "to_damage": None}
    near, V = aligned(recovery.vectors.astype(float), X)
    told = np.ones(V.shape, bool) if recovery.doubtful is None else ~recovery.doubtful
    error = np.where(told, V - X[near], 0.0)
    best = np.where(told, least[near] - X[near], 0.0)
    each = np.sqrt((error**2).sum(axis=1) / np.maximum(told.sum(axis=1), 1))
    damage = float(np.sqrt(np.mean((Y.astype(float) - clean) ** 2)))
    return {
        "found": len(set(near.tolist())),
        "ratio": round(float(np.sqrt((error**2).sum() / (best**2).sum())), 3),
        "to_damage": round(float(each.max()) / damage, 3),
    }


def holds(instance: Instance, runs: list[dict[str, Any]]) -> bool:
    if instance.damage:
        return all(
            run["found"] == run["n"] and (run["ratio"] or 99) <= 1.3 and not run["wrong"]
            for run in runs
        )
    return all(
        run["exact"] + run["once"] + run["twice"] >= run["n"]
        and not run["wrong"]
        and run["doubt"] <= instance.must
        for run in runs
    )


def words(instance: Instance, runs: list[dict[str, Any]]) -> tuple[str, ...]:
    """exact, wrong, in doubt, used once, used twice, seconds: over the seeds."""
    if instance.damage:
        ratios = [run["ratio"] for run in runs]
        exact = f"{_span(runs, 'found')} found, {max(99 if r is None else r for r in ratios):.2f} × least squares"
        exact += f", at most {max(99 if run['to_damage'] is None else run['to_damage'] for run in runs):.2f} × the damage"
    else:
        exact = f"{_span(runs, 'exact')} of {runs[0]['n']}"
        if any(run["right"] != run["exact"] for run in runs):
            exact += f" (right, verified or not: {_span(runs, 'right')})"
    doubt = [100 * run["doubt"] for run in runs]
    seconds = float(np.median([run["seconds"] for run in runs]))
    wrong = str(sum(run["wrong"] for run in runs))
    return (
        exact,
        wrong,
        f"{max(doubt):.2g}%",
        _span(runs, "once"),
        _span(runs, "twice"),
        f"{seconds:.1f}",
    )


def _span(runs: list[dict[str, Any]], name: str) -> str:
    low, high = min(run[name] for run in runs), max(run[name] for run in runs)
    return str(low) if low == high else f"{low}–{high}"


def rows(seeds: int = 2) -> list[Row]:
    """Tables, Gaussian and non-negative data; one seed of each set of images. `python -m
    benchmarks.relations` has the rest."""
    out: list[Row] = []
    for name, instance in INSTANCES.items():
        if not instance.cheap and name not in FILES:
            continue
        must = "all that three encodings use, 0 wrong" + (
            f", {instance.must:.0%} in doubt" if instance.must < 1 else ""
        )
        try:
            runs = [measure(instance, FIRST + i) for i in range(seeds if instance.cheap else 1)]
        except NoData as reason:
            out.append((name, must, f"skipped: {reason}", None))
            continue
        exact, wrong, doubt, once, twice, seconds = words(instance, runs)
        measured = f"{exact} exact, {wrong} wrong, {doubt} in doubt, {once} used once, {twice} twice, {seconds} s each"
        out.append((name, must, measured, holds(instance, runs)))
    return out


def counts(store: dict[str, Any]) -> None:
    """Relations found, beside those expected of as many different encodings."""
    store["counts"] = []
    for (n, k), ms in COUNTS.items():
        for m in ms:
            sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=32, rng=FIRST)
            once = np.unique(np.sort(sim.selection.private, axis=1), axis=0, return_index=True)[1]
            y = np.abs(sim.encodings.values[once]) * np.float32(np.sqrt(k))
            found = find_relations(
                sketch(y, None, 0.0, np.random.default_rng(FIRST)), limit=1 << 30, enough=10_000
            )
            expected = expected_relations(n, len(once), k)
            store["counts"].append(
                {
                    "n": n,
                    "k": k,
                    "m": len(once),
                    "found": len(found),
                    "expected": round(expected, 2),
                }
            )
            print(store["counts"][-1], flush=True)
            _save(store)


def columns(store: dict[str, Any], seeds: int) -> None:
    """Records by `attack="relations"` from some columns only, drawn at random: n=100, k=2,
    m=700."""
    store["columns"] = []
    for name in TABLES:
        for d in COLUMNS:
            if d > table(name).shape[1]:
                continue
            for seed in range(FIRST, FIRST + seeds):
                rng = np.random.default_rng(seed)
                X = records(name, 100, 0, rng)
                X = X[:, rng.choice(X.shape[1], d, replace=False)]
                store["columns"].append(
                    {"data": name, "d": d, **measure(Instance(name), seed, X, "relations")}
                )
            _save(store)
        print(
            name,
            [
                (run["d"], run["exact"], run["right"])
                for run in store["columns"]
                if run["data"] == name
            ],
            flush=True,
        )


def enough(store: dict[str, Any], seeds: int) -> None:
    """Gaussian, d=16, `attack="relations"`: records that come back, at m relative to
    `enough_encodings`."""
    done = {
        (run["n"], run["k"], run["share"]) for run in store.setdefault("enough", [])
    }  # it takes minutes: what is missing
    for n, k in ((50, 2), (100, 2), (30, 3), (20, 4), (200, 2), (50, 3), (30, 4)):
        for share in SHARES:
            if (n, k, share) in done:
                continue
            m = round(share * enough_encodings(n, k))
            runs = [
                measure(Instance("gaussian", k, n, m, 16), FIRST + i, attack="relations")
                for i in range(seeds)
            ]
            one = {
                "n": n,
                "k": k,
                "m": m,
                "share": share,
                "right": [run["right"] for run in runs],
                "exact": [run["exact"] for run in runs],
            }
            store["enough"].append(
                one
                | {
                    "few": [run["once"] + run["twice"] for run in runs],
                    "wrong": sum(run["wrong"] for run in runs),
                }
            )
            print(store["enough"][-1], flush=True)
            _save(store)


def draw(store: dict[str, Any], path: Path = STORE) -> None:
    from experiments.drawing import COLOURS, MARKERS, SERIES, panels, save, style

    with style():
        figure, (left, right) = panels(1, 2, (8.4, 3.6))
        for (n, k), colour, marker in zip(COUNTS, SERIES, MARKERS, strict=True):
            runs = [run for run in store["counts"] if (run["n"], run["k"]) == (n, k)]
            grid = np.geomspace(runs[0]["m"], runs[-1]["m"], 40).round().astype(int)
            left.plot(
                grid,
                [expected_relations(n, int(m), k) for m in grid],
                color=COLOURS[colour],
                linewidth=1,
            )
            found = [(run["m"], run["found"]) for run in runs if run["found"]]
            left.plot(
                *zip(*found, strict=True), marker, color=COLOURS[colour], label=f"n={n}, k={k}"
            )
        left.set(
            xscale="log",
            yscale="log",
            xlabel="different encodings m",
            ylabel="relations",
            title="Found, and expected (lines)",
        )
        left.legend()
        for name, colour, marker in zip(TABLES, SERIES, MARKERS, strict=False):
            runs = [run for run in store["columns"] if run["data"] == name]
            ds = sorted({run["d"] for run in runs})
            each = [np.mean([run["right"] for run in runs if run["d"] == d]) for d in ds]
            sure = [np.mean([run["exact"] for run in runs if run["d"] == d]) for d in ds]
            label = name.replace("_", " ")
            right.plot(
                ds,
                each,
                "--",
                marker=marker,
                color=COLOURS[colour],
                markerfacecolor="white",
                linewidth=1,
            )
            right.plot(ds, sure, "-", marker=marker, color=COLOURS[colour], label=label)
        right.set(
            xlabel="columns d",
            ylabel="records of 100",
            title="Right (dashed), and verified",
            ylim=(-3, 103),
        )
        right.legend(loc="center right")
        save(figure, path)


def _load() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE.exists() else {"table": {}}


def _save(store: dict[str, Any]) -> None:
    STORE.write_text(json.dumps(store, indent=1) + "\n")


def show(store: dict[str, Any]) -> None:
    print(
        "| instance | seeds | exact | wrong | in doubt, at most | used once | used twice | seconds | holds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, instance in INSTANCES.items():
        if runs := store["table"].get(name):
            cells = words(instance, runs)
            print(
                f"| {name} | {len(runs)} | {' | '.join(cells)} | {'yes' if holds(instance, runs) else 'NO'} |"
            )


def main(arguments: list[str]) -> None:
    seeds = SEEDS
    if "--seeds" in arguments:
        at = arguments.index("--seeds")
        seeds = int(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    store = _load()
    parts: dict[str, Callable[[], None]] = {
        "counts": lambda: counts(store),
        "columns": lambda: columns(store, seeds),
        "enough": lambda: enough(store, min(seeds, 2)),
        "figure": lambda: draw(store),
    }
    for name, instance in INSTANCES.items():
        if arguments and not any(
            name.startswith(start) for start in arguments if start not in parts
        ):
            continue
        try:
            runs = []
            for seed in range(FIRST, FIRST + seeds):
                runs.append(measure(instance, seed))
                print(name, runs[-1], flush=True)
                store["table"][name] = runs
                _save(store)
        except NoData as reason:
            print(f"{name}: skipped, {reason}")
    for name, part in parts.items():
        if not arguments or name in arguments:
            part()
    show(store)


if __name__ == "__main__":
    main(sys.argv[1:])
