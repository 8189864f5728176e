"""How many encodings recover all private vectors? The fraction recovered against m, beside what can be known at all.

`python -m benchmarks.sample_complexity [k …]` measures and stores in `docs/figures/sample_complexity.json`, `… draw` draws.
Each vector must be in at least two different encodings; coupons say that takes about (n/k)·(ln n + ln ln n) of them, and
n·ln n/k to see each one once. The paper's attack needs n^(k−2/(k+1)) for k+2 vectors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import unveil
from benchmarks.table import Row

STORE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "sample_complexity.json"
N, D, SEEDS = 100, 2048, 4
RATIOS = (1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7)


def cell(k: int, m: int) -> dict[str, float]:
    """Means over seeds: vectors verified and exact, vectors that two different encodings use, the paper's attack."""
    exact, known, paper = [], [], []
    for seed in range(SEEDS):
        sim = unveil.simulate(unveil.Scheme(k), N, m=m, d=D, rng=60_000 + seed)
        distinct = np.unique(sim.selection.private, axis=0)
        known.append((np.bincount(distinct.ravel(), minlength=N) >= 2).mean())
        scores = unveil.score(unveil.recover(sim.encodings, attack="full", rng=seed), sim.private)
        assert scores.wrong == 0, (k, m, seed)
        exact.append(scores.exact / N)
        paper.append(unveil.score(unveil.recover(sim.encodings, attack="paper"), sim.private).exact / N)
    return {"exact": float(np.mean(exact)), "known": float(np.mean(known)), "paper": float(np.mean(paper))}


def load() -> dict[str, dict[str, float]]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def measure(ks: list[int]) -> None:
    for k in ks:
        for ratio in RATIOS:
            cells = load()
            cells[f"{k},{ratio}"] = cell(k, int(ratio * N))
            STORE.write_text(json.dumps(dict(sorted(cells.items())), indent=1) + "\n")
            print(k, ratio, cells[f"{k},{ratio}"], flush=True)


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = load()
    ks = sorted({int(name.split(",")[0]) for name in cells})
    figure, axes = plt.subplots(1, len(ks), figsize=(3.6 * len(ks), 3.4), sharey=True, layout="constrained", squeeze=False)
    for place, (k, panel) in enumerate(zip(ks, axes[0], strict=True)):
        ratios = [ratio for ratio in RATIOS if f"{k},{ratio}" in cells]
        for what, colour, style, label in (
            ("known", "#999999", "--", "used by two encodings"),
            ("exact", "#0072B2", "-", "full attack, exact"),
            ("paper", "#D55E00", "-.", "the paper's attack"),
        ):
            panel.plot(ratios, [cells[f"{k},{ratio}"][what] for ratio in ratios], style, color=colour, marker=".", label=label)
        panel.axvline(np.log(N) / k, color="#009E73", lw=1, ls=":", label="n ln n / k")
        panel.set(xlabel="m / n", title=f"k_private = {k}", ylim=(-0.03, 1.03))
        panel.grid(alpha=0.3)
        if not place:
            panel.set_ylabel(f"share of {N} vectors recovered")
            panel.legend(fontsize=8, loc="center right")
    for kind in ("svg", "png"):
        figure.savefig(STORE.with_suffix(f".{kind}"), dpi=150, metadata={"Date": None} if kind == "svg" else None)


def rows() -> list[Row]:
    """What was measured and stored; measuring anew takes half an hour."""
    out: list[Row] = []
    for name, found in load().items():
        k, ratio = name.split(",")
        measured = f"{found['exact']:.3f}; used twice: {found['known']:.3f}; the paper's attack: {found['paper']:.3f}"
        out.append((f"k={k}, n={N}, m={ratio}n, d={D}", "", measured, None))
    return out


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    else:
        measure([int(word) for word in sys.argv[1:]] or [2, 3, 4])
