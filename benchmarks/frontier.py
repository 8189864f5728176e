"""The frontier of the full attack: the smallest d at which all 100 vectors come back, in 9 of 10
seeds, for k and m.

`python -m benchmarks.frontier [k …]` measures the cells of these k (all without one) that
`docs/figures/frontier.json` lacks, and adds them there; `python -m benchmarks.frontier draw` draws
the figure. Beside it: the d at which rounding each pair separately (`gram_extract`'s statistic,
best thresholds) is expected to have less than half a wrong overlap, and the figures of the notes
the search starts from. A cell takes minutes: d goes in steps of a quarter, down while it succeeds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import unveil
from benchmarks.table import Row
from unveil.paper.overlap_engine import make_plan
from unveil.paper.overlap_levels import folded_levels

STORE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "frontier.json"
N, SEEDS, ALLOWED, STEP = 100, 10, 1, 1.25
PROTOTYPE = {
    (2, 5): 200, (3, 5): 500, (4, 5): 800, (5, 5): 1600, (6, 5): 3000,
    (2, 7): 100, (3, 7): 260, (4, 7): 500, (5, 7): 850, (6, 7): 1250,
    (2, 15): 80, (3, 15): 150, (4, 15): 270, (5, 15): 400, (6, 15): 550,
}  # fmt: skip
NOTED = {(2, 5), (3, 5), (4, 5), (2, 7), (3, 7), (4, 7), (6, 7), (2, 15), (3, 15), (4, 15), (6, 15)}
"""The cells for which the prototypes' figure is a measurement; the others are where the search
starts."""


def succeeds(k: int, m: int, d: int) -> bool:
    """All vectors used twice or more verified and exact, in all but one of ten seeds; stops when
    that cannot be any more."""
    failures = 0
    for seed in range(SEEDS):
        sim = unveil.simulate(unveil.Scheme(k), N, m=m, d=d, rng=50_000 + seed)
        needed = int((np.bincount(sim.selection.private.ravel(), minlength=N) >= 2).sum())
        scores = unveil.score(unveil.recover(sim.encodings, attack="full", rng=seed), sim.private)
        assert scores.wrong == 0, (k, m, d, seed)
        failures += scores.exact < needed
        if failures > ALLOWED:
            return False
    return True


def smallest(k: int, ratio: int) -> int:
    """From the notes' figure down while it succeeds, up while it fails."""
    d, found = PROTOTYPE[k, ratio], None
    while d >= 40:
        if not succeeds(k, ratio * N, d):
            break
        found, d = d, round(d / STEP)
    while found is None:
        d = round(d * STEP)
        found = d if succeeds(k, ratio * N, d) else None
        if d > 8000:
            return -1
    return found


def separate_rounding(k: int, m: int) -> int:
    """Smallest d with less than half a wrong overlap expected among all pairs, each rounded by
    itself."""
    levels = folded_levels(unveil.Scheme(k))
    d = 50
    while (
        make_plan(levels, m, d, statistic="folded", occupancy=k * k / N, screen=d).expected_errors
        >= 0.5
    ):
        d = round(d * 1.03) + 1
    return d


def load() -> dict[str, dict[str, int]]:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def measure(ks: list[int]) -> None:
    for ratio in (7, 5, 15):
        for k in ks:
            if f"{k},{ratio}" in load():
                continue
            cell = {"d": smallest(k, ratio), "separate": separate_rounding(k, ratio * N)}
            cells = load()
            cells[f"{k},{ratio}"] = cell
            STORE.write_text(json.dumps(dict(sorted(cells.items())), indent=1) + "\n")
            print(k, ratio, cell, flush=True)


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = load()
    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    styles = {5: ("#0072B2", "o"), 7: ("#D55E00", "s"), 15: ("#009E73", "^")}
    for ratio, (colour, marker) in styles.items():
        ks = [k for k in range(2, 7) if f"{k},{ratio}" in cells]
        full = [cells[f"{k},{ratio}"]["d"] for k in ks]
        alone = [cells[f"{k},{ratio}"]["separate"] for k in ks]
        axes.plot(ks, full, color=colour, marker=marker, label=f"full attack, m = {ratio}n")
        axes.plot(
            ks,
            alone,
            color=colour,
            marker=marker,
            mfc="none",
            ls=":",
            label=f"each pair rounded alone, m = {ratio}n",
        )
        noted = [k for k in ks if (k, ratio) in NOTED]
        axes.scatter(
            noted, [PROTOTYPE[k, ratio] for k in noted], color=colour, marker="x", s=28, zorder=3
        )
    axes.scatter([], [], color="#444444", marker="x", label="prototypes' figures")
    axes.set(yscale="log", xticks=range(2, 7), xlabel="k_private", ylabel="pixels d (log scale)")
    axes.set_title(
        f"Smallest d at which all {N} private vectors come back in 9 of 10 seeds", fontsize=11
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, ncols=2, loc="upper left")
    axes.set_ylim(top=axes.get_ylim()[1] * 6)
    for kind in ("svg", "png"):
        figure.savefig(
            STORE.with_suffix(f".{kind}"),
            dpi=150,
            metadata={"Date": None} if kind == "svg" else None,
        )


def rows() -> list[Row]:
    """What was measured and stored; measuring anew takes an hour."""
    out: list[Row] = []
    for name, cell in load().items():
        k, ratio = map(int, name.split(","))
        noted = PROTOTYPE[k, ratio] if (k, ratio) in NOTED else None
        must = f"at most {noted}" if noted else ""
        measured = f"d = {cell['d']}; each pair rounded alone: {cell['separate']}"
        out.append(
            (f"k={k}, m={ratio}n, n={N}", must, measured, cell["d"] <= noted if noted else None)
        )
    return out


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    else:
        measure([int(word) for word in sys.argv[1:]] or list(range(2, 7)))
