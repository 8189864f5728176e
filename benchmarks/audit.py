"""Is the audit right? Tables and images that nobody here made, its class beside the truth; pure
noise; and how often its intervals hold.

    python -m benchmarks.audit [text …]    tables and images, or those with this text in their name
    python -m benchmarks.audit noise       arrays of noise, five shapes, four laws: no claim
    python -m benchmarks.audit coverage    how often the interval of a small audit holds the truth

Every set is audited with default options, for three seeds and three sample sizes: the class must be
the same, and the truth of all of them is "leaks" (k = 2, seven encodings per record). Images come
from the folder UNVEIL_DATA (../shared/data without it), some tables from statsmodels, where it is
installed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import unveil
from unveil.auditing.attacker import INSIDER
from unveil.auditing.release import Release
from unveil.auditing.trial import run_trial
from unveil.auditing.verdict import share_interval

ROOT = Path(__file__).resolve().parents[1]
Array = np.ndarray[Any, Any]


def main() -> None:
    if sys.argv[1:] == ["coverage"]:
        for m in (20, 24, 30, 40, 60, 90):
            print(covered(m), flush=True)
    elif sys.argv[1:] == ["noise"]:
        noise()
    else:
        truth_table(sys.argv[1:])


def truth_table(wanted: list[str]) -> None:
    for name, x in sets():
        if wanted and not any(text in name for text in wanted):
            continue
        for size in (30, 60, None):
            for seed in range(3):
                start = time.process_time()
                found = unveil.audit(x, sample=size if size and size < len(x) else None, rng=seed)
                seconds = time.process_time() - start
                records = len(found.records)
                print(
                    f"| {name} | {size or len(x)} | {seed} | {found.verdict.level} | {found.verdict.headline} | {records} | {seconds:.0f} s |",
                    flush=True,
                )


def sets() -> Iterator[tuple[str, Any]]:
    from sklearn import datasets

    for name in ("wine", "breast_cancer", "diabetes", "iris", "linnerud"):
        yield name, getattr(datasets, f"load_{name}")(as_frame=True).data
    for name in ("copper", "elnino", "grunfeld", "macrodata", "star98", "statecrime"):
        with suppress(ImportError):
            data = import_module(f"statsmodels.datasets.{name}").load_pandas().data
            yield name, unveil.read_table(data, text="ordinal", missing="drop")
    yield "digits", datasets.load_digits().images[:300].astype(np.float32)
    folder = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))
    for file in ("cifar10_test2k_small.npz", "caltech101_32.npz", "fashion_mnist_test10k.npz"):
        if (folder / file).is_file():
            with np.load(folder / file) as stored:
                yield file, next(stored[key][:60] for key in stored.files if stored[key].ndim > 2)
    yield "fashion-mnist, bundled", "fashion-mnist"


def noise(arrays: int = 200) -> None:
    """Encodings that have nothing to do with the records: what an audit says of them, and what an
    attack that is told nothing."""
    shapes = ((40, 8), (60, 12), (100, 5), (30, 60), (150, 3))
    claimed, slowest = 0, 0.0
    for seed in range(arrays):
        m, d = shapes[seed % 5]
        rng = np.random.default_rng(seed)
        normal = rng.standard_normal((m, d))
        laws = np.abs(normal), normal, rng.random((m, d)), rng.standard_t(3, (m, d))
        values = laws[seed // 5 % 4].astype(np.float32)
        start = time.process_time()
        found = unveil.recover(values, rng=seed)
        facts = found.facts(values=False)
        x = rng.standard_normal((12, d))
        audit = unveil.audit(x, encodings=values, seeds=1, rng=seed, time="10m")
        slowest = max(slowest, time.process_time() - start)
        attacked = any(facts[kind] for kind in ("verified", "approximate", "recognisable"))
        if attacked or audit.verdict.level != "nothing":
            claimed += 1
            print(seed, (m, d), found.explanation, audit.verdict.headline, flush=True)
    print(f"{claimed} of {arrays} claimed; the slowest took {slowest:.0f} s")


def covered(m: int, audits: int = 200, draws: int = 3, n: int = 40, d: int = 8) -> dict[str, Any]:
    """How often the interval of the share recovered holds its mean over all draws, where records
    are lost for want of encodings: the insider's attack, which takes milliseconds."""
    shares = []
    for seed in range(audits):
        x = np.random.default_rng(1000 + seed).standard_normal((n, d)).astype(np.float32)
        release = Release(x, None, unveil.Scheme(2), m, 0.0, seed)
        trials = [run_trial(release, INSIDER, draw) for draw in range(draws)]
        shares.append([trial.back(3) / trial.records for trial in trials])
    truth = float(np.mean(shares))
    inside = [
        low <= truth <= high for low, high in (share_interval(each, n // 2) for each in shares)
    ]
    return {"encodings": m, "share": round(truth, 4), "covered": float(np.mean(inside))}


if __name__ == "__main__":
    main()
