"""The full attack on unequal unknown weights: how many of n private vectors come back, n unknown?

λ = |N(0, 1)| divided by their sum, drawn anew for every encoding; no public part. A vector is
recovered when its correlation with a true one exceeds 0.999, after one sign per pixel common to all
of them. Under noise errors are held against least squares with members, weights and signs known.
`python -m benchmarks.full_unequal [seeds]`; each row of k = 4 takes a minute or two.
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
    (3, 100, 3000, 3072, 100),
    (4, 100, 3000, 3072, 95),
)
NOISY = ((2, 1500, 0.05), (2, 1500, 0.1), (2, 1500, 0.2), (3, 3000, 0.05))
"""k, m and noise, n = 100 and d = 3072; vectors have pixels of variance 1."""
TIMES = 1.2
"""Error under noise, in units of least squares with everything known."""


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
    names, signs = matched(unit, truth)
    return len(set(names[np.einsum("ij,ij->i", signs * unit, truth[names]) > least].tolist()))


def matched(found: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whose each found vector is, and one sign per pixel common to all."""
    names = (np.abs(found) @ np.abs(truth).T / np.linalg.norm(truth, axis=1)).argmax(axis=1)
    return names, np.where((found * truth[names]).sum(axis=0) < 0, -1.0, 1.0)


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


def under_noise(k: int, m: int, noise: float, seeds: int) -> Row:
    """The error of all vectors, n = 100 and d = 3072."""
    n, times, counts, claimed, seconds = 100, [], [], [], []
    for seed in range(seeds):
        scheme = unveil.Scheme(k, weighting="half-normal")
        sim = unveil.simulate(scheme, n, m=m, d=3072, noise=noise, rng=31_000 + seed)
        start = time.perf_counter()
        recovery = unveil.recover(sim.encodings, rng=seed)
        seconds.append(time.perf_counter() - start)
        counts.append(aligned(recovery, sim.private, least=0.9))
        if not len(recovery):
            times.append(np.inf)
            continue
        W = np.zeros((m, n))
        np.put_along_axis(W, sim.selection.private, sim.selection.weights[:, :k], axis=1)
        floor = noise * np.sqrt(np.mean(np.diag(np.linalg.inv(W.T @ W))))
        names, signs = matched(recovery.vectors, sim.private)
        error = np.sqrt(np.mean((recovery.vectors * signs - sim.private[names]) ** 2))
        times.append(float(error / floor))
        claimed.append(float(np.median(recovery.evidence["standard_error"]) / error))
    told = ", ".join(f"{t:.3f}" for t in times)
    said = np.median(claimed) if claimed else np.nan
    measured = f"{min(counts)} to {max(counts)} vectors; error {told} × least squares, claimed "
    measured += f"{said:.2f} of it; {np.median(seconds):.1f} s each"
    must = f"all {n}, within {TIMES} × least squares with all known"
    good = min(counts) == n and max(times) <= TIMES
    return f"half-normal weights, noise {noise:g}, k={k}, m={m}", must, measured, good


def rows(seeds: int = 10) -> list[Row]:
    exact = [run(*instance, seeds) for instance in INSTANCES]
    return exact + [under_noise(*instance, seeds) for instance in NOISY]


if __name__ == "__main__":
    from benchmarks.table import show

    show(
        "The full attack: unequal weights, unknown and new in every encoding",
        rows(*map(int, sys.argv[1:])),
    )
