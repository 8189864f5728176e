"""Phase diagrams: where an attack succeeds, over encodings and pixels.

An attack is measured on the first kind of ground it does not refuse: hidden signs with k_private =
2 and 3; else MixUp; else the all-public case, over public vectors and pixels. Colour is the share
of private vectors (of encodings, in the all-public case) recovered exactly, on one scale for all
attacks. Dashed, side by side: where subsets drawn at random use every private vector twice, on
average (n/k)·(ln n + ln ln n) encodings; nobody recovers all vectors from fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.cells import LOST, Cells, Facts
from experiments.compare.families import Family
from experiments.compare.trial import LIMIT, RAN, REFUSED, Trial, code_of, run_trials
from experiments.drawing import COLOURS, panels
from unveil.engine.blocks import where, worker_count
from unveil.scheme import Scheme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 20
"""Private vectors: few, so that hundreds of places can be measured."""
RATIOS, QUICK_RATIOS = (2, 3, 5, 8, 15, 30), (3, 6, 15)
"""Encodings per private vector."""
PIXELS, QUICK_PIXELS = (50, 100, 200, 500, 1200, 3000), (100, 400, 1600)
"""Pixels, from fewer than any overlap can be read from to enough for k_private = 3."""
VECTORS, QUICK_VECTORS = (25, 50, 100, 200), (25, 100)
"""Public vectors, where all are public."""
DRAWS = 2
"""Instances at each place; the borders are seen over many places."""
LIGHT = 0.6
"""Shares from which on the colour is light, so that numbers on it are black."""


@dataclass(frozen=True)
class Ground:
    """kind: an attack gets all grounds of the first kind it takes. across: what the horizontal axis
    counts."""

    kind: str
    family: Family
    across: str = "encodings m"

    def at(self, x: int, d: int) -> Family:
        """The family at a place of the diagram."""
        return (
            replace(self.family, d=d, n_public=x)
            if self.kind == "all public"
            else replace(self.family, d=d, m=x)
        )


# m, d or n_public are set at each place of a diagram.
GROUNDS: Mapping[str, Ground] = {
    "k = 2": Ground("hidden signs", Family("", Scheme(2), N, 0, 0)),
    "k = 3": Ground("hidden signs", Family("", Scheme(3), N, 0, 0)),
    "MixUp, k = 2": Ground("MixUp", Family("", Scheme(2, signs="kept"), N, 0, 0)),
    "MixUp, k = 3": Ground("MixUp", Family("", Scheme(3, signs="kept"), N, 0, 0)),
    "all public, k_public = 4": Ground(
        "all public",
        Family("", Scheme(0, 4), 0, 20, 0, measure="public"),
        "public vectors n_public",
    ),
}


def measure(cells: Cells, attacks: Sequence[str], full: bool, limit: float) -> list[Facts]:
    """A diagram for each attack and each ground it takes; where it takes none, the reason."""
    out: list[Facts] = []
    silent = replace(cells, progress=None)
    for number, attack in enumerate(attacks):
        if cells.progress:
            cells.progress(f"diagrams: {attack}", number, len(attacks))
        # The first kind of ground it takes; what it says of the others, should it take none.
        reasons: dict[str, str] = {}
        for kind in dict.fromkeys(ground.kind for ground in GROUNDS.values()):
            found = [
                _diagram(silent, attack, name, full, limit)
                for name in GROUNDS
                if GROUNDS[name].kind == kind
            ]
            taken = [diagram for diagram in found if "reason" not in diagram]
            reasons |= {
                diagram["ground"]: diagram["reason"] for diagram in found if "reason" in diagram
            }
            if taken:
                out += found
                break
        else:
            out.append({"attack": attack, "ground": "none", "reason": next(iter(reasons.values()))})
    return out


def _diagram(cells: Cells, attack: str, name: str, full: bool, limit: float) -> Facts:
    xs: Sequence[int] = [N * ratio for ratio in (RATIOS if full else QUICK_RATIOS)]
    if GROUNDS[name].kind == "all public":
        xs = VECTORS if full else QUICK_VECTORS
    ds, draws = (PIXELS, DRAWS) if full else (QUICK_PIXELS, 1)
    code = code_of(attack)
    settings = [
        {
            "attack": attack,
            "code": code,
            "ground": name,
            "family": asdict(GROUNDS[name].family),
            "x": x,
            "ds": list(ds),
            "draws": draws,
            "limit": limit,
        }
        for x in xs
    ]
    # Seconds do not matter here, so that processes may share the machine.
    at_once = worker_count(where().workers)
    columns = cells.run(_column, settings, "diagram", at_once=at_once)
    if all("reason" in found for found in columns):
        return {"attack": attack, "ground": name, "reason": columns[0]["reason"]}
    share = [found.get("share", [0.0] * len(ds)) for found in columns]
    return {
        "attack": attack,
        "ground": name,
        "x": list(xs),
        "d": list(ds),
        "draws": draws,
        "share": share,
    }


def _column(
    attack: str,
    ground: str,
    x: int,
    ds: Sequence[int],
    draws: int,
    limit: float,
    seed: int,
    code: str,
    family: Facts,
) -> Facts:
    """Share recovered for each d, a mean over draws, nothing where this size is refused; None: over
    the limit, or crashed."""
    places = GROUNDS[ground]
    trials: list[Trial] = [
        (places.at(x, d), seed * 1000 + draw) for d in ds for draw in range(draws)
    ]
    found = run_trials(attack, trials, limit)
    if all(facts["outcome"] == REFUSED for facts in found):
        return {"reason": found[0]["reason"]}
    share: list[float | None] = []
    for place in range(len(ds)):
        some = found[place * draws : (place + 1) * draws]
        ran = [facts.get("share", 0.0) for facts in some if facts["outcome"] in (RAN, REFUSED)]
        share.append(float(np.mean(ran)) if len(ran) == draws else None)
    lost = {LOST: True} if any(LOST in facts for facts in found) else {}
    return {"share": share, "over": sum(facts["outcome"] == LIMIT for facts in found), **lost}


def draw(diagrams: Sequence[Facts]) -> dict[str, Figure]:
    """ "-phase": all attacks with hidden signs side by side; "-phase-ATTACK": each by itself, with
    numbers."""
    # 1. Every attack by itself, a panel for each ground. Sizes are in inches.
    shown = [diagram for diagram in diagrams if "share" in diagram]
    figures: dict[str, Figure] = {}
    for attack in dict.fromkeys(diagram["attack"] for diagram in shown):
        own = [diagram for diagram in shown if diagram["attack"] == attack]
        size = (0.6 + 3.6 * len(own), 3.4)  # a panel of 3.6, and the colour bar
        figure, axes = panels(1, len(own), size, squeeze=True)
        for axis, diagram in zip(axes, own, strict=True):
            mesh = _panel(axis, diagram, numbers=True)
            axis.set_title(f"{attack}: {diagram['ground']}")
            axis.set_xlabel(
                GROUNDS[diagram["ground"]].across + (f" (n = {N})" if _private(diagram) else "")
            )
        axes[0].set_ylabel("pixels d")
        bar: dict[str, Any] = {"label": "share recovered exactly", "shrink": 0.9}  # a panel high
        figure.colorbar(mesh, ax=list(axes), **bar)
        figures[f"-phase-{attack}"] = figure
    # 2. All attacks with hidden signs side by side, on the same axes.
    grounds = [name for name in GROUNDS if GROUNDS[name].kind == "hidden signs"]
    common = [diagram for diagram in shown if diagram["ground"] in grounds]
    attacks = list(dict.fromkeys(diagram["attack"] for diagram in common))
    if len(attacks) > 1:
        size = (1.3 + 2.0 * len(attacks), 4.4)  # panels of 2, labels and the colour bar
        figure, axes = panels(
            len(grounds), len(attacks), size, sharex=True, sharey=True, squeeze=False
        )
        for axis, (ground, attack) in zip(
            axes.flat, [(g, a) for g in grounds for a in attacks], strict=True
        ):
            found = [
                diagram
                for diagram in common
                if (diagram["ground"], diagram["attack"]) == (ground, attack)
            ]
            if found:
                mesh = _panel(axis, found[0], numbers=False)
            else:
                axis.grid(False)
                axis.text(
                    0.5,
                    0.5,
                    "does not apply",
                    transform=axis.transAxes,
                    ha="center",
                    color=COLOURS["grey"],
                )
        for axis, attack in zip(axes[0], attacks, strict=True):
            axis.set_title(attack)
        for axis, ground in zip(axes[:, 0], grounds, strict=True):
            axis.set_ylabel(f"{ground}\npixels d")
        figure.supxlabel(f"encodings m, of n = {N} private vectors", fontsize=9)
        figure.colorbar(mesh, ax=list(axes.flat), **bar)
        figures = {"-phase": figure, **figures}
    return figures


def _private(diagram: Facts) -> bool:
    return GROUNDS[diagram["ground"]].family.n > 0


def _panel(axis: Any, diagram: Facts, *, numbers: bool) -> Any:
    x, d = np.array(diagram["x"], float), np.array(diagram["d"], float)
    share = np.array(diagram["share"], float).T  # None becomes NaN
    axis.grid(False)
    axis.set_facecolor("#dddddd")
    mesh = axis.pcolormesh(
        _edges(x), _edges(d), np.ma.masked_invalid(share), cmap="viridis", vmin=0, vmax=1
    )
    axis.set(xscale="log", yscale="log")
    every = slice(None) if numbers else slice(None, None, 2)
    axis.set_xticks(x[every], labels=[f"{v:.0f}" for v in x[every]])
    axis.set_yticks(d, labels=[f"{v:.0f}" for v in d])
    axis.minorticks_off()
    if not numbers:
        k = GROUNDS[diagram["ground"]].family.scheme.k_private
        twice = N / k * (log(N) + log(log(N)))
        if _edges(x)[0] < twice < _edges(x)[-1]:
            look = {"color": COLOURS["vermilion"], "linestyle": "--", "linewidth": 1.4}  # over all
            axis.axvline(twice, **look)
    for (row, column), value in np.ndenumerate(share) if numbers else ():
        text = "over\nlimit" if np.isnan(value) else f"{100 * value:.0f}"
        colour = "white" if value < LIGHT else "black"
        axis.text(x[column], d[row], text, ha="center", va="center", fontsize=7, color=colour)
    return mesh


def _edges(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Borders half-way between values, on a scale of ratios."""
    logs = np.log(values)
    inner = (logs[1:] + logs[:-1]) / 2
    return np.asarray(
        np.exp(np.concatenate([[2 * logs[0] - inner[0]], inner, [2 * logs[-1] - inner[-1]]]))
    )
