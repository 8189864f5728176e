"""GramExtract (`alg:private_attack`, `lem:gramextract`): how many pixels until every overlap is
right?

The lemma asks for d = Ω(log(m/δ)/η⁴) pixels with η = 1/(2k): the share of wrong entries should fall
like exp(−c·d/k⁴), so that d grows with k⁴, and with log m only. Measured: wrong entries among all
pairs of m encodings as d grows, for the printed rounding and for the package's default, and the
exponent of k in the d at which one entry in a hundred is wrong.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from experiments.bands import power_law, share_band
from experiments.cells import Cells, Facts
from experiments.drawing import COLOURS, MARKERS, SERIES, Figures, band, panels, ticks
from experiments.section import Section, table

from unveil.encode import selection_matrix, simulate
from unveil.encodings import Encodings
from unveil.paper import gram_extract
from unveil.scheme import Scheme

N, M = 100, 200
"""Vectors and encodings: 19,900 pairs in a draw, of which one in a hundred is a safe count."""
KS = (2, 3, 4, 5, 6)
"""k_private; k⁴ of the next is over two thousand, and d goes with it."""
STEPS = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""d/k⁴"""
ROUNDINGS = {"paper": "as printed", "balanced": "default"}
LEVEL = 0.01
"""Share of wrong entries at which the d of different k are compared."""
NEAR = 0.25
"""The exponent agrees with 4 where its interval comes so near: k runs over a factor of three
only."""


HEADS = ["k", "d for 1 in 100 wrong, as printed", "default"]
HEADS += ["first d measured without a wrong entry, as printed", "default"]


def measure(cells: Cells, full: bool) -> Facts:
    repeats, steps = (10, STEPS) if full else (2, STEPS[1:10:2])
    settings = [{"k": k, "steps": list(steps), "repeats": repeats} for k in KS]
    found = cells.run(_cell, settings)
    curves = [{"k": k, **cell} for k, cell in zip(KS, found, strict=True)]
    fits = {}
    for curve in curves:
        curve["needed"] = {h: _crossing(curve["d"], curve[h], curve["pairs"]) for h in ROUNDINGS}
    for how in ROUNDINGS:
        known = [(curve["k"], curve["needed"][how]) for curve in curves if curve["needed"][how]]
        slope = power_law(*zip(*known, strict=True))._asdict()
        fits[how] = {name: round(value, 3) for name, value in slope.items()}
    about = {"n_private": N, "m": M, "repeats": repeats, "level": LEVEL}
    return {**about, "curves": curves, "exponent": fits}


def _cell(k: int, steps: list[int], repeats: int, seed: int) -> Facts:
    """Wrong entries, summed over the repeats, at each d."""
    pixels = [step * k**4 for step in steps]
    wrong = {how: np.zeros(len(pixels), dtype=np.int64) for how in ROUNDINGS}
    for repeat in range(repeats):
        rng = np.random.default_rng(np.random.SeedSequence([seed, k, repeat]))
        sim = simulate(Scheme(k), N, m=M, d=pixels[-1], rng=rng)
        W = selection_matrix(sim.selection.private, N)
        truth = (W @ W.T).toarray().astype(np.int64)
        for (place, d), how in product(enumerate(pixels), ROUNDINGS):
            part = Encodings(sim.encodings.values[:, :d], sim.encodings.scheme)
            found = gram_extract(part, method="printed" if how == "paper" else "fast").toarray()
            wrong[how][place] += int(np.triu(found != truth, 1).sum())
    counts = {how: each.tolist() for how, each in wrong.items()}
    return {"d": pixels, "pairs": repeats * M * (M - 1) // 2, **counts}


def _crossing(pixels: list[int], wrong: list[int], pairs: int) -> float | None:
    """The d at which the share of wrong entries falls to LEVEL; its logarithm is nearly straight in
    d."""
    # No wrong entry counts as half of one, so that its logarithm exists.
    share = np.log(np.maximum(np.array(wrong, dtype=np.float64), 0.5) / pairs)
    level = np.log(LEVEL)
    for d, end, a, b in zip(pixels, pixels[1:], share, share[1:], strict=False):
        if b <= level < a:
            return round(float(d + (end - d) * (a - level) / (a - b)), 1)
    return None


def draw(facts: Facts) -> Figures:
    # 1. Wrong entries against d/k⁴, a panel for each rounding: curves of all k fall together.
    figure, axes = panels(1, 3, (11, 3.7))  # inches
    for axis, how in zip(axes[:2], ROUNDINGS, strict=True):
        for curve, name, marker in zip(facts["curves"], SERIES, MARKERS, strict=False):
            x, wrong = np.array(curve["d"]) / curve["k"] ** 4, np.array(curve[how])
            values = [part[wrong > 0] for part in share_band(wrong, curve["pairs"])]
            band(axis, x[wrong > 0], values, name, marker=marker, label=f"k = {curve['k']}")
        axis.axhline(LEVEL, color=COLOURS["grey"], linestyle=":", linewidth=1.5)
        # From less than one wrong entry of all draws to all of them.
        limits = (3e-7, 1.2)
        axis.set(yscale="log", ylim=limits, xlabel="d / k⁴", title=f"rounding {ROUNDINGS[how]}")
    axes[0].set_ylabel("share of entries that are wrong")
    axes[0].legend(title="95% bands (Wilson)", ncols=2)
    # 2. The d that is needed against k, beside the lemma's k⁴.
    ks, last = np.array(KS), axes[2]
    for how, name, marker in (("paper", "vermilion", "o"), ("balanced", "black", "s")):
        needed = [curve["needed"][how] or np.nan for curve in facts["curves"]]
        fit, colour = facts["exponent"][how], COLOURS[name]
        label = f"{ROUNDINGS[how]}: k^{fit['exponent']:.2f} ({fit['low']:.2f} to {fit['high']:.2f})"
        last.plot(ks, needed, marker, color=colour, label=label)
        last.plot(ks, fit["scale"] * ks ** fit["exponent"], color=colour, linewidth=1)
    rate = (facts["curves"][0]["needed"]["paper"] or 1.0) * (ks / 2.0) ** 4
    last.plot(ks, rate, "--", color=COLOURS["blue"], label="k⁴, the lemma's rate")
    title = f"pixels d at which {LEVEL:.0%} of entries are wrong"
    last.set(xscale="log", yscale="log", xlabel="k_private", title=title)
    ticks(last, KS)
    last.legend(loc="upper left")
    return {"": figure}


def section(facts: Facts) -> Section:
    printed, default = facts["exponent"]["paper"], facts["exponent"]["balanced"]
    lines = [
        [
            str(curve["k"]),
            *(_number(curve["needed"][how]) for how in ROUNDINGS),
            *(_clean(curve, how) for how in ROUNDINGS),
        ]
        for curve in facts["curves"]
    ]
    holds = printed["low"] - NEAR <= 4 <= printed["high"] + NEAR
    return Section(
        title="GramExtract: wrong entries against pixels",
        claim="d = Ω(log(m/δ)/η⁴) pixels, η = 1/2k, suffice for every entry to be right: "
        "d grows with k⁴ (`lem:gramextract`).",
        ours=f"the d at which one entry in a hundred is wrong grows with {_power(printed)} "
        f"with the printed rounding, {_power(default)} with the default.",
        verdict=(
            "Agrees: the exponent is close to 4" if holds else "The measured exponent is not 4"
        )
        + "; the logarithm of the share of wrong entries is straight in d "
        + f"(R² at least {_straight(facts):.3f})"
        + (", and the default needs fewer pixels at every k." if _fewer(facts) else "."),
        body=f"m = {M} encodings of n = {N} vectors, {facts['repeats']} draws: "
        f"{facts['curves'][0]['pairs']:,} pairs each.\n\n" + table(HEADS, lines),
    )


def _power(fit: Facts) -> str:
    return f"k^{fit['exponent']:.2f} (95%: {fit['low']:.2f} to {fit['high']:.2f})"


def _straight(facts: Facts) -> float:
    """The lowest R² of log share against d, over k, for the printed rounding: from a tenth wrong
    down to ten entries."""
    lowest = 1.0
    for curve in facts["curves"]:
        d, wrong = np.array(curve["d"]), np.array(curve["paper"])
        seen = (wrong >= 10) & (wrong <= curve["pairs"] / 10)
        if seen.sum() > 2:
            r = np.corrcoef(d[seen], np.log(wrong[seen]))[0, 1]
            lowest = min(lowest, float(r**2))
    return lowest


def _fewer(facts: Facts) -> bool:
    return all(
        (c["needed"]["balanced"] or 0) < (c["needed"]["paper"] or np.inf) for c in facts["curves"]
    )


def _clean(curve: Facts, how: str) -> str:
    first = max((place for place, wrong in enumerate(curve[how]) if wrong), default=-1) + 1
    d = curve["d"]
    return f"{d[first]:,}" if first < len(d) else f"more than {d[-1]:,}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
