"""Phase transitions of classical phase retrieval, and of the sparse search, over pixels per public
vector.

`python -m benchmarks.phase_retrieval [n_public]`. Share of encodings solved exactly, 40 mixtures of
4 public vectors each.
"""

from __future__ import annotations

import sys

import numpy as np
from benchmarks.table import Row

import unveil
from unveil.rivals.phase_retrieval import METHODS, retrieve_weights

RATIOS = (0.5, 1.5, 2, 2.5, 3, 4, 5, 6)
M = 40


def rows(n: int = 100) -> list[Row]:
    out: list[Row] = []
    share: dict[tuple[str, float], float] = {}
    for method in METHODS:
        for ratio in RATIOS[1:]:
            sim = _instance(n, ratio)
            assert sim.public is not None
            rng = np.random.default_rng(1)
            found = retrieve_weights(sim.encodings.magnitudes(), sim.public, rng, method=method)
            share[method, ratio] = float((found[1] < 1e-4).mean())
        must = "all from 3 on" if method == "amplitude" else ""
        holds = min(share[method, r] for r in RATIOS if r >= 3) > 0.97 if must else None
        out.append((method, must, _told(share, method, RATIOS[1:]), holds))
    for ratio in RATIOS:
        sim = _instance(n, ratio)
        found = unveil.learn_public(sim.encodings, sim.public)
        share["sparse", ratio] = float(
            (found.indices[:, :4] == sim.selection.public).all(axis=1).mean()
        )
    holds = min(share["sparse", ratio] for ratio in RATIOS[1:]) > 0.9
    out.append(
        (
            "sparse search (unveil.learn_public)",
            "90 % from 1.5 on",
            _told(share, "sparse", RATIOS),
            holds,
        )
    )
    return out


def _instance(n: int, ratio: float) -> unveil.Simulation:
    return unveil.simulate(unveil.Scheme(0, 4), n_public=n, m=M, d=int(ratio * n), rng=60000)


def _told(share: dict[tuple[str, float], float], name: str, ratios: tuple[float, ...]) -> str:
    return ", ".join(f"{ratio}: {share[name, ratio]:.0%}" for ratio in ratios)


if __name__ == "__main__":
    from benchmarks.table import show

    show("Exact, by pixels per public vector", rows(*map(int, sys.argv[1:2])))
