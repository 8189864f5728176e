"""The full attack: in how many seeds do all n private vectors come back exactly, with n unknown?

Beside it what the paper's attack gets from the same encodings. `python -m benchmarks.full_attack [seeds]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import unveil
from benchmarks.table import Row

INSTANCES = (
    # (k, n, m, d)
    (2, 100, 700, 120),
    (3, 100, 700, 300),
    (4, 100, 700, 600),
    (6, 100, 700, 1400),
    (2, 100, 500, 250),
    (3, 100, 500, 600),
    (4, 100, 500, 1000),
    (6, 100, 500, 3072),
)


def run(k: int, n: int, m: int, d: int, seeds: int) -> Row:
    whole = wrong = paper = paper_wrong = 0
    short, seconds = [], []
    for seed in range(seeds):
        sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=d, rng=20_000 + seed)
        used = np.bincount(sim.selection.private.ravel(), minlength=n)
        determined = int((used >= 2).sum())
        start = time.perf_counter()
        recovery = unveil.recover(sim.encodings, attack="full", rng=seed)
        seconds.append(time.perf_counter() - start)
        scores = unveil.score(recovery, sim.private)
        whole += scores.exact >= determined
        wrong += scores.wrong
        if scores.exact < n:
            short.append(f"{scores.exact} of {n} ({determined} used twice or more)")
        beside = unveil.score(unveil.recover(sim.encodings, attack="paper"), sim.private)
        paper += beside.exact
        paper_wrong += beside.wrong
    what = f"k={k}, n={n}, m={m}, d={d}"
    must = f"all vectors used twice or more, in {-(-9 * seeds // 10)} of {seeds} seeds, 0 wrong"
    measured = (
        f"{whole} of {seeds}, {wrong} wrong, {np.median(seconds):.1f} s each; the paper's attack: {paper / seeds:.1f} vectors"
    )
    if short:
        measured += "; short: " + ", ".join(short)
    return what, must, measured, whole >= 0.9 * seeds and wrong == 0 and paper_wrong == 0


def rows(seeds: int = 10) -> list[Row]:
    return [run(*instance, seeds) for instance in INSTANCES]


if __name__ == "__main__":
    from benchmarks.table import show

    show("The full attack: every private vector, their number unknown", rows(*map(int, sys.argv[1:])))
