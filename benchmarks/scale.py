"""What a million or ten million encodings cost: the plan's own count of operations, checked against
runs on this machine.

    seconds = work/(rate·workers) + bytes read/bandwidth,    work in multiply-adds from `OverlapPlan.work`

`python -m benchmarks.scale` prints the check and the forecast that docs/scale.md quotes.
"""

from __future__ import annotations

import time

import numpy as np

import unveil
from benchmarks.table import Row
from unveil.attacks.large import LOST
from unveil.paper.gram_extract import overlap_engine
from unveil.paper.overlap_engine import OverlapPlan, make_plan
from unveil.paper.overlap_levels import folded_levels
from unveil.parallel import one_blas_thread

D, N = 3072, 50_000
"""Pixels of an encoding, and private vectors (both as in CIFAR-10) in the forecast."""
BANDWIDTH = 1.25e9
"""Bytes per second into one worker: 10 Gbit/s."""
TASK = 1e-3
"""Seconds a Dask scheduler needs for one task."""


def rate(block: int = 1024, pixels: int = 1152) -> float:
    """Multiply-adds per second of one BLAS thread on a block."""
    A = np.random.default_rng(0).standard_normal((block, pixels)).astype(np.float32)
    best = np.inf
    with one_blas_thread():
        for _ in range(8):
            start = time.perf_counter()
            A @ A.T
            best = min(best, time.perf_counter() - start)
    return float(block * block * pixels / best)


def check() -> list[Row]:
    """Predicted against measured CPU seconds: time on a shared machine says little, work done says
    all."""
    unveil.gram_extract(unveil.simulate(n_private=20, m=120, d=512, rng=0).encodings)
    out: list[Row] = []
    speed = rate()
    for m in (5_000, 10_000, 20_000):
        sim = unveil.simulate(unveil.Scheme(2), 1000, m=m, d=D, rng=6)
        plan = overlap_engine(sim.encodings).plan
        start = time.thread_time()
        unveil.gram_extract(sim.encodings, workers=1)
        measured = time.thread_time() - start
        # Diagonal blocks compute both halves.
        predicted = plan.work * (1 + 1 / plan.blocks) / speed
        told = f"{predicted:.2f} s predicted, {measured:.2f} s measured (one thread, {2e-9 * speed:.0f} GFlop/s)"
        out.append(
            (
                f"k=2, n=1000, m={m:,}, d={D}",
                "within a factor of 1.5",
                told,
                1 / 1.5 < measured / predicted < 1.5,
            )
        )
    return out


def forecast() -> list[Row]:
    speed = rate()
    out: list[Row] = []
    for m in (10**6, 10**7):
        plan = _plan(m)
        work = plan.work * (1 + 1 / plan.blocks) / speed
        entries = plan.occupancy * m * (m - 1) / 2
        for workers in (100, 1000):
            read = 4.0 * m * D
            told = (
                f"compute {_span(work / workers)}; {len(plan.tasks):,} tasks, {_span(TASK * len(plan.tasks))} of scheduling; "
                f"read {_size(read)} per worker, {_span(read / BANDWIDTH)}; memory per worker "
                f"{_size(plan.bytes_per_task)} at least, {_size(plan.bytes_per_task + read)} to read once; "
                f"result {_size(18 * entries)}, sent as {_size(14 * entries)}"
            )
            out.append(
                (
                    f"m={m:,}, {workers:,} workers",
                    f"about {plan.expected_errors:.2g} wrong of {entries:.2g}",
                    told,
                    None,
                )
            )
    return out


def attack() -> list[Row]:
    """Overlaps of the full attack on n vectors in 7n encodings of 1,024 pixels, half of them
    compared: a tenth, which `benchmarks.full_large` measures, and the whole."""
    speed = rate()
    out: list[Row] = []
    for n in (10_000, 100_000):
        m = 7 * n // 2
        plan = make_plan(
            folded_levels(unveil.Scheme(2)),
            m,
            1024,
            statistic="folded",
            occupancy=4 / n,
            limit=8 << 30,
            loss=LOST,
        )
        work = plan.work * (1 + 1 / plan.blocks) / speed
        entries = plan.occupancy * m * (m - 1) / 2 + plan.expected_errors
        told = f"{_span(work)} of one core, {_span(work / 2)} of two, {_span(work / 100)} of 100; "
        told += f"{len(plan.tasks):,} tasks, result {_size(18 * entries)}, of it "
        told += f"{plan.expected_errors:.2g} wrong entries, which cliques leave out; screen on "
        told += f"{plan.edges[0]} pixels"
        out.append((f"full attack, n={n:,}, m={7 * n:,}, d=1024: overlaps", "", told, None))
    return out


def _plan(m: int) -> OverlapPlan:
    levels = folded_levels(unveil.Scheme(2))
    return make_plan(levels, m, D, statistic="folded", occupancy=4 / N, limit=8 << 30)


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _size(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def rows() -> list[Row]:
    return [*check(), *forecast(), *attack()]


if __name__ == "__main__":
    from benchmarks.table import show

    show("Cost model: check and forecast", rows())
