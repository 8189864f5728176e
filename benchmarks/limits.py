"""What no attacker can do, and how near the default comes: one figure for each axis.

`python -m benchmarks.limits [m|d|noise|k …]` measures what `docs/figures/limits.json` lacks of
these axes (all without one) and draws the figures; `python -m benchmarks.limits noise-table` and
`few-table [seeds]` print the tables of `docs/full_attack.md`. Bounds beside it:

  m      a vector used once has two values at each pixel: the share used twice or more
  d, k   similarities of m encodings show a vector from c·√(m/d) encodings of it on (`stands_out`);
         below, no eigenvector points to it, and none of our attacks finds it
  noise  signs are hidden: an encoding says `told` of what it says with its sign, so that errors
         are at least 1/√told times those of least squares with all signs known
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from experiments.drawing import COLOURS, panels, save, style
from scipy.optimize import linear_sum_assignment

import unveil
from unveil.paper import psi

STORE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "limits.json"
N, FIRST_SEED = 50, 70_000
"""Vectors, so that a point takes seconds; fresh seeds."""
M_AXIS = dict.fromkeys((2, 3, 4), (1.0, 1.5, 2.0, 2.5, 3.0, 5.0))
"""Encodings per vector, without noise, d = 3,072."""
D_AXIS = {2: (40, 60, 90, 135, 200, 300), 4: (135, 200, 300, 450, 700, 1000)}
"""Pixels, at seven encodings per vector."""
NOISE_AXIS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Noise, k = 2, ten encodings per vector, d = 512."""
K_AXIS = {2: (2, 3, 4, 5, 6), 3: (2, 3, 4, 5, 6, 8)}
"""Vectors in an encoding, at two and three encodings per vector, d = 3,072."""


def stands_out(k: int, n: int, m: int, d: int, noise: float = 0.0) -> bool:
    """Whether a vector's mk/n encodings are enough for an eigenvalue of the similarities."""
    shared = float(psi(1 / k / (1 + noise**2)))
    return m * k / n * shared > (1 - 2 / np.pi) * np.sqrt(m / d)


def told(noise: float, draws: int = 200_000) -> float:
    """What |z + noise| says of z ~ N(0, 1), to what it says with its sign."""
    rng = np.random.default_rng(0)
    z, e = rng.standard_normal((2, draws))
    y = np.abs(z + noise * e)
    lost = (y / noise) ** 2 / np.cosh(np.minimum(y * np.abs(z) / noise**2, 40)) ** 2
    return float(1 - lost.mean())


def exact_run(k: int, m: int, d: int, seed: int, n: int = N) -> dict[str, Any]:
    """Shares of the vectors: used twice or more, verified and right; how many are wrong."""
    sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=d, rng=seed)
    twice = int((np.bincount(sim.selection.private.ravel(), minlength=n) >= 2).sum())
    recovery = unveil.recover(sim.encodings, rng=seed)
    scores = unveil.score(recovery, sim.private)
    seconds = round(sum(recovery.seconds.values()), 1)
    return {"twice": twice, "exact": scores.exact, "wrong": scores.wrong, "seconds": seconds}


def noisy_run(k: int, m: int, d: int, noise: float, seed: int, n: int = N) -> dict[str, Any]:
    """Vectors found, and their error to that of least squares with subsets and signs known."""
    sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=d, noise=noise, rng=seed)
    recovery = unveil.recover(sim.encodings, rng=seed)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    least = noise * np.sqrt(k) * np.sqrt(np.diag(np.linalg.pinv(W.T @ W)))
    out = {"found": 0, "returned": len(recovery), "verified": int(recovery.verified.sum())}
    out["seconds"] = round(sum(recovery.seconds.values()), 1)
    if not len(recovery):
        return out
    mine, theirs = linear_sum_assignment(-(recovery.members.toarray().astype(float).T @ W))
    vectors, truth = recovery.vectors[mine], sim.private[theirs]
    signs = np.sign((vectors * truth).sum(axis=0))
    error = np.sqrt(np.mean((vectors * signs - truth) ** 2, axis=1))
    # Found: as near as three times the best that is possible.
    near = error < 3 * least[theirs]
    out["found"] = int(near.sum())
    if near.any():
        ratio = np.sqrt(np.mean(error[near] ** 2) / np.mean(least[theirs][near] ** 2))
        out["ratio"] = round(float(ratio), 3)
    return out


def cells(axis: str) -> list[tuple[str, Any]]:
    """(name, a function that measures it) of every point of an axis."""
    seed, n = FIRST_SEED, N
    if axis == "m":
        return [
            (f"{k},{r}", lambda k=k, r=r: exact_run(k, round(r * n), 3072, seed))
            for k, ratios in M_AXIS.items()
            for r in ratios
        ]
    if axis == "d":
        return [
            (f"{k},{d}", lambda k=k, d=d: exact_run(k, 7 * n, d, seed))
            for k, sizes in D_AXIS.items()
            for d in sizes
        ]
    if axis == "k":
        return [
            (f"{k},{r}", lambda k=k, r=r: exact_run(k, r * n, 3072, seed))
            for r, ks in K_AXIS.items()
            for k in ks
        ]
    return [(f"{s}", lambda s=s: noisy_run(2, 10 * n, 512, s, seed)) for s in NOISE_AXIS]


def load() -> dict[str, dict[str, Any]]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def measure(axis: str) -> None:
    for name, run in cells(axis):
        found = load()
        if name in found.get(axis, {}):
            continue
        found.setdefault(axis, {})[name] = run()
        STORE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(axis, name, found[axis][name], flush=True)


def draw() -> None:
    """One figure for each axis that was measured."""
    found = load()
    labels = {
        "m": "encodings per vector, m/n",
        "d": "pixels d",
        "k": "vectors in an encoding, k",
        "noise": "noise, relative to the signal",
    }
    for axis, points in found.items():
        with style():
            figure, axes = panels(1, 1, (5.6, 3.6))
            plot = axes[0]
            (_draw_noise if axis == "noise" else _draw_exact)(plot, axis, points)
            plot.set_xlabel(labels[axis])
            plot.legend(loc="best")
            save(figure, STORE.with_name(f"limits-{axis}"))


def _draw_exact(plot: Any, axis: str, points: dict[str, Any]) -> None:
    series: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for name, run in points.items():
        first, second = name.split(",")
        group, x = (second, first) if axis == "k" else (first, second)
        series.setdefault(group, []).append((float(x), run))
    for (group, runs), colour in zip(
        sorted(series.items()), ("blue", "vermilion", "green"), strict=False
    ):
        runs.sort(key=lambda run: run[0])
        xs = [x for x, _ in runs]
        label = f"m = {group}n" if axis == "k" else f"k = {group}"
        got, most = ([run[key] / N for _, run in runs] for key in ("exact", "twice"))
        plot.plot(xs, got, color=COLOURS[colour], marker="o", label=f"verified, {label}")
        plot.plot(xs, most, color=COLOURS[colour], ls=":", label=f"used twice, {label}")
        if axis == "d":
            least = next(d for d in range(5, 9999) if stands_out(int(group), N, 7 * N, d))
            plot.axvline(
                least, color=COLOURS[colour], ls="--", lw=0.8,
                label=f"similarity ends, {label}",
            )  # fmt: skip
            plot.set_xscale("log")
    plot.set_ylabel(f"share of {N} vectors")
    plot.set_ylim(-0.03, 1.05)
    if axis == "k":
        # There is no encoding of two and a half vectors.
        plot.set_xticks(sorted({x for runs in series.values() for x, _ in runs}))


def _draw_noise(plot: Any, axis: str, points: dict[str, Any]) -> None:
    xs = sorted(map(float, points))
    with_ratio = [x for x in xs if "ratio" in points[f"{x}"]]
    plot.plot(
        with_ratio, [points[f"{x}"]["ratio"] for x in with_ratio], color=COLOURS["blue"],
        marker="o", label="error, to least squares with signs known",
    )  # fmt: skip
    fine = np.linspace(0.05, max(xs), 40)
    bound = [told(float(s)) ** -0.5 for s in fine]
    plot.plot(fine, bound, color=COLOURS["grey"], ls=":", label="hidden signs: nobody is below")
    plot.plot(
        xs, [points[f"{x}"]["found"] / N for x in xs], color=COLOURS["vermilion"], marker="s",
        label=f"share of {N} vectors found",
    )  # fmt: skip
    edge = next(s for s in np.arange(0.1, 9, 0.01) if not stands_out(2, N, 10 * N, 512, float(s)))
    plot.axvline(
        edge,
        color=COLOURS["grey"],
        ls="--",
        lw=0.8,
        label="similarities show nothing right of here",
    )
    plot.set_ylabel("share, or ratio of errors")
    plot.set_ylim(0, 2)


def noise_table(seeds: int) -> None:
    for noise in (0.2, 0.4, 0.6):
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            print(noise, seed, noisy_run(2, 1000, 1024, noise, seed, n=100), flush=True)


def few_table(seeds: int) -> None:
    for k, ratio in ((3, 2), (3, 3), (4, 2), (4, 3), (6, 2), (6, 3)):
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            print(k, ratio, seed, exact_run(k, 100 * ratio, 3072, seed, n=100), flush=True)


if __name__ == "__main__":
    what = sys.argv[1:] or ["m", "d", "noise", "k"]
    if what[0] in ("noise-table", "few-table"):
        table = noise_table if what[0] == "noise-table" else few_table
        table(int(what[1]) if len(what) > 1 else 5)
    else:
        for axis in what:
            if axis != "draw":
                measure(axis)
        draw()
