"""MixUp: how few encodings and pixels give all vectors, and what hiding signs would change; both
attacks in the same run.

`python -m benchmarks.mixup [seeds]`. Fresh seeds 50000, 50001, …; n = 100 private vectors unless
said, their number unknown.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from benchmarks.table import Row

import unveil

FIRST = 50000
ALL = ((2, 250, 120), (2, 700, 120), (3, 300, 120), (4, 300, 150), (6, 400, 150))
"""(k, m, d): all vectors used twice or more."""
PUBLIC = ((2, 2, 150), (2, 4, 320))
"""(k_private, k_public, d) with 2,000 public vectors and 700 encodings."""


def rows(seeds: int = 3) -> list[Row]:
    out = [_all(k, m, d, seeds) for k, m, d in ALL]
    out += [_all(k, 700, d, seeds, k_public) for k, k_public, d in PUBLIC]
    return [*out, _noise(seeds), _against_full(), _large()]


def _all(k: int, m: int, d: int, seeds: int, k_public: int = 0) -> Row:
    exact = wrong = there = 0
    seconds = 0.0
    for seed in range(FIRST, FIRST + seeds):
        scheme = unveil.Scheme(k, k_public, signs="kept")
        sim = unveil.simulate(scheme, 100, n_public=2000 if k_public else 0, m=m, d=d, rng=seed)
        start = time.perf_counter()
        scores = unveil.score(unveil.recover(sim.encodings, sim.public, rng=seed), sim.private)
        seconds += time.perf_counter() - start
        exact, wrong = exact + scores.exact, wrong + scores.wrong
        there += int((np.bincount(sim.selection.private.ravel(), minlength=100) >= 2).sum())
    what = f"k={k}, k_public={k_public}, m={m}, d={d}"
    measured = f"{exact} of {there} exact, {wrong} wrong, {seconds / seeds:.1f} s each"
    return (
        what,
        "95 % of vectors used twice, 0 wrong",
        measured,
        exact >= 0.95 * there and not wrong,
    )


def _noise(seeds: int) -> Row:
    ratios = []
    for seed in range(FIRST, FIRST + seeds):
        sim = unveil.simulate(
            unveil.Scheme(2, signs="kept"), 100, m=700, d=500, noise=0.05, rng=seed
        )
        found = unveil.recover(sim.encodings, rng=seed).vectors
        error = [float(np.square(sim.private - x).mean(axis=1).min()) for x in found]
        W = np.zeros((700, 100))
        np.put_along_axis(W, sim.selection.private, 1 / np.sqrt(2), axis=1)
        ideal = np.square(
            np.linalg.lstsq(W, sim.encodings.values, rcond=None)[0] - sim.private
        ).mean(axis=1)
        ratios.append(np.sqrt(np.mean(error) / ideal.mean()) if len(found) == 100 else np.inf)
    return (
        "noise 0.05, k=2, m=700, d=500",
        "1.1 × least squares with true subsets",
        f"{max(ratios):.2f} ×",
        max(ratios) < 1.1,
    )


def _against_full() -> Row:
    sim = unveil.simulate(unveil.Scheme(3, signs="kept"), 100, m=400, d=120, rng=FIRST)
    hidden = unveil.Encodings(np.abs(sim.encodings.values), unveil.Scheme(3))
    counts, seconds = [], []
    for encodings, attack in ((sim.encodings, "mixing"), (hidden, "exact")):
        start = time.perf_counter()
        counts.append(
            unveil.score(unveil.recover(encodings, attack=attack, rng=0), sim.private).exact
        )
        seconds.append(time.perf_counter() - start)
    measured = f"{counts[0]} with signs ({seconds[0]:.1f} s), {counts[1]} without by exact ({seconds[1]:.1f} s)"
    return (
        "k=3, m=400, d=120, signs kept and hidden",
        "more with signs",
        measured,
        counts[0] > counts[1],
    )


def _large() -> Row:
    sim = unveil.simulate(unveil.Scheme(2, signs="kept"), 3000, m=21000, d=512, rng=FIRST)
    start = time.perf_counter()
    scores = unveil.score(unveil.recover(sim.encodings, rng=0), sim.private)
    measured = f"{scores.exact} exact, {scores.wrong} wrong, {time.perf_counter() - start:.0f} s"
    return (
        "n=3000, k=2, m=21,000, d=512",
        "99 %, 0 wrong",
        measured,
        scores.exact >= 2970 and not scores.wrong,
    )


if __name__ == "__main__":
    from benchmarks.table import show

    show("MixUp: encodings with signs", rows(*map(int, sys.argv[1:2])))
