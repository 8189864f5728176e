"""The full attack on unequal unknown weights: how many of n private vectors come back, n unknown?

λ = |N(0, 1)| divided by their sum, drawn anew for every encoding; no public part. A vector is
recovered when its correlation with a true one exceeds 0.999, after one sign per pixel common to all
of them. `python -m benchmarks.full_unequal [seeds]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import unveil
from benchmarks.table import Row

INSTANCES = (
    # (k, n, m, d, vectors that must come back in 9 of 10 seeds)
    (2, 100, 1500, 3072, 95),
    (2, 100, 1500, 300, 95),
    (2, 100, 700, 3072, 90),
    (3, 100, 1500, 3072, 95),
)


def aligned(recovery: unveil.Recovery, private: np.ndarray, least: float = 0.999) -> int:
    """Different true vectors with a recovered one at correlation above `least`; relative signs
    count."""
    if not len(recovery):
        return 0
    X = recovery.vectors.astype(np.float64)
    unit, truth = (
        v / (np.linalg.norm(v, axis=1, keepdims=True) + 1e-30)
        for v in (X, private.astype(np.float64))
    )
    names = (np.abs(unit) @ np.abs(truth).T).argmax(axis=1)
    signs = np.where((unit * truth[names]).sum(axis=0) < 0, -1.0, 1.0)
    return len(set(names[np.einsum("ij,ij->i", signs * unit, truth[names]) > least].tolist()))


def run(k: int, n: int, m: int, d: int, least: int, seeds: int) -> Row:
    found, seconds = [], []
    exact = wrong = 0
    for seed in range(seeds):
        sim = unveil.simulate(
            unveil.Scheme(k, weighting="half-normal"), n, m=m, d=d, rng=30_000 + seed
        )
        start = time.perf_counter()
        recovery = unveil.recover(sim.encodings, attack="full", rng=seed)
        seconds.append(time.perf_counter() - start)
        scores = unveil.score(recovery, sim.private)
        found.append(aligned(recovery, sim.private))
        exact, wrong = exact + scores.exact, wrong + scores.wrong
    enough = sum(count >= least for count in found)
    must = f"{least} of {n} vectors in {-(-9 * seeds // 10)} of {seeds} seeds, 0 wrong"
    measured = (
        f"{enough} of {seeds} seeds; {min(found)} to {max(found)} vectors; {exact / seeds:.1f} verified and exact, "
        f"{wrong} wrong; {np.median(seconds):.1f} s each, {max(seconds):.1f} s at most"
    )
    return (
        f"half-normal weights, k={k}, n={n}, m={m}, d={d}",
        must,
        measured,
        enough >= 0.9 * seeds and wrong == 0,
    )


def rows(seeds: int = 10) -> list[Row]:
    return [run(*instance, seeds) for instance in INSTANCES]


if __name__ == "__main__":
    from benchmarks.table import show

    show(
        "The full attack: unequal weights, unknown and new in every encoding",
        rows(*map(int, sys.argv[1:])),
    )
