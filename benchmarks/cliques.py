"""Cliques and flow beside `full`: Gaussian vectors of several sizes, and one instance of images.

`python -m benchmarks.run cliques`; images come from the folder UNVEIL_DATA (`benchmarks.images`),
and are left out without it. Fresh seed 52000, one for each row; n = 100.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import unveil
from benchmarks.images import CELLS, ROOT, SHAPE, instance
from benchmarks.table import Row
from unveil.scoring.images import image_scores

N, SEED = 100, 52_000
SIZES = (
    (2, 500, 1500),
    (2, 700, 600),
    (3, 700, 3072),
    (3, 1000, 1500),
    (4, 700, 3072),
    (4, 1000, 3072),
)


def rows() -> list[Row]:
    out: list[Row] = []
    for k, m, d in SIZES:
        sim = unveil.simulate(unveil.Scheme(k), N, m=m, d=d, rng=SEED)
        found = [_exact(sim, attack) for attack in ("cliques", "full")]
        wrong = found[0][1]
        measured = f"{found[0][0]} exact, {wrong} wrong, {found[0][2]:.0f} s; full {found[1][0]}, {found[1][2]:.0f} s"
        out.append((f"k_private={k}, m={m}, d={d}", "0 wrong", measured, wrong == 0))
    if (
        Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data")) / "caltech101_32.npz"
    ).exists():
        sim, told = instance(replace(CELLS["photographs"], n=N), SEED)
        like = told["like"]
        start = time.perf_counter()
        recovery = unveil.recover(sim.encodings, attack="cliques", like=like, n_private=N, rng=SEED)
        ssim = image_scores(recovery.vectors, sim.private, SHAPE).ssim
        out.append(
            (
                "images, 50 encodings of each, 4 public",
                "",
                f"SSIM {ssim.mean():.3f}, {time.perf_counter() - start:.0f} s",
                None,
            )
        )
    return out


def _exact(sim: unveil.Simulation, attack: str) -> tuple[int, int, float]:
    start = time.perf_counter()
    scores = unveil.score(unveil.recover(sim.encodings, attack=attack, rng=SEED), sim.private)
    return scores.exact, scores.wrong, time.perf_counter() - start
