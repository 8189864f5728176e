"""What every stage of an attack costs as encodings, pixels or public vectors grow: seconds of one
processor, and the slope beside the theory.

`python -m benchmarks.stages [full|relations|public]` prints the tables that docs/scale.md quotes. A
slope is the logarithm of the last run's seconds over the first one's, by that of the sizes: 1 is
linear, 2 quadratic. Every run has a process of its own, with one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

RUN = """
import time
time.perf_counter = time.process_time  # seconds of the processor: the clock of a shared machine lies
import json, sys, unveil
attack, n, m, d, pool = sys.argv[1], *map(int, sys.argv[2:])
scheme = unveil.Scheme(2, 2) if pool else unveil.Scheme(2)
for size in ((60, 520, 300, pool and 100), (n, m, d, pool)):  # the first compiles
    sim = unveil.simulate(scheme, size[0], n_public=size[3], m=size[1], d=size[2], rng=75_000)
    recovery = unveil.recover(sim.encodings, sim.public, attack=attack, rng=0)
found = unveil.score(recovery, sim.private)
print(json.dumps([dict(recovery.seconds), found.exact, found.wrong]))
"""
SWEEPS: dict[str, tuple[str, tuple[tuple[str, tuple[tuple[int, int, int, int], ...]], ...]]] = {
    # name: attack, (what grows, (n, m, d, n_public) …)
    "full": (
        "full",
        (
            ("m, and n = m/7", tuple((m // 7, m, 1024, 0) for m in (3500, 7000, 14_000))),
            ("d", tuple((500, 3500, d, 0) for d in (1024, 2048, 4096))),
        ),
    ),
    "relations": (
        "relations",
        (
            ("m, and n = m/7", tuple((m // 7, m, 256, 0) for m in (700, 1400, 2800))),
            ("d", tuple((100, 700, d, 0) for d in (256, 1024, 4096))),
        ),
    ),
    "public": (
        "full",
        (
            ("n_public", tuple((100, 700, 1024, pool) for pool in (1000, 2000, 4000))),
            ("m, and n = m/7", tuple((m // 7, m, 1024, 1000) for m in (700, 1400, 2800))),
        ),
    ),
}
THEORY = {
    "full": {
        "overlaps": "m²·d, less what the screen saves",
        "factor": "overlaps found, m·(2m/n)",
        "growth": "m, on 256 pixels",
        "pixels": "m·d",
        "certificate": "m·d",
    },
    "relations": {
        "relations": "m² on a few pixels, then every one found on d",
        "subsets": "m³, a dense eigenproblem",
        "pixels": "m·d",
        "growth": "m·d",
        "certificate": "m·d",
    },
    "public": {
        "learn public": "m·n_public·d",
        "similarity": "m²·d",
        "factor": "m³, a dense eigenproblem",
        "feedback": "m·n on 300 pixels, some rounds",
        "pixels": "m·n·d, some rounds",
        "public again": "encodings left over",
        "certificate": "m·d",
    },
}
LEAST = 0.02
"""Seconds below which a stage is not timed: the clock is no finer."""


def measured(attack: str, size: tuple[int, int, int, int]) -> tuple[dict[str, float], int, int]:
    """Seconds of each stage, vectors that are exact, vectors that are wrong."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", RUN, attack, *map(str, size)],
        capture_output=True, text=True, check=True, env={**os.environ, **threads},
    )  # fmt: skip
    seconds, exact, wrong = json.loads(done.stdout)
    return seconds, exact, wrong


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> str:
    """Of the logarithms, between the first run and the last; – where the clock is too coarse."""
    if min(seconds) < LEAST:
        return "–"
    return f"{np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]):.1f}"


def show(name: str) -> None:
    """The table of one attack, in markdown."""
    attack, sweeps = SWEEPS[name]
    for grows, sizes in sweeps:
        runs = [measured(attack, size) for size in sizes]
        axis = {"d": 2, "n_public": 3}.get(grows, 1)
        along = [size[axis] for size in sizes]
        fixed = {"d": 1, "n_public": 1}.get(grows, 2)
        letter = "md"[fixed - 1]
        print(f"\n`{attack}`, {grows} grows, {letter} = {sizes[0][fixed]:,}", end="")
        print("" if axis == 3 or not sizes[0][3] else f", n_public = {sizes[0][3]:,}", end="; ")
        print("; ".join(f"{exact} of {size[0]} exact, {wrong} wrong"
                        for size, (_, exact, wrong) in zip(sizes, runs, strict=True)))  # fmt: skip
        print("\n| stage | " + " | ".join(f"{x:,}" for x in along) + " | slope | theory |")
        print("|---" * (len(along) + 3) + "|")
        for stage, theory in THEORY[name].items():
            seconds = [run[0].get(stage, 0.0) for run in runs]
            if max(seconds) >= LEAST:
                cells = " | ".join(f"{s:.2f} s" for s in seconds)
                print(f"| {stage} | {cells} | {slope(along, seconds)} | {theory} |", flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SWEEPS:
        show(chosen)
