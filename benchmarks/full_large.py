"""The full attack on many encodings: time beside one dense product, vectors recovered, and peak
memory, a process each.

`python -m benchmarks.full_large [small|public|larger_k|large|cluster]`: n=1000 with k=2 (seconds),
the same with a public part and `recover`'s default (a minute), k=3 and 4 (minutes), n=10,000
(a minute), and that on one thread and on two Dask workers.
"""

from __future__ import annotations

import json
import subprocess
import sys

import unveil
from benchmarks.table import Row

RUN = """
import hashlib, json, resource, sys, time, numpy as np, unveil
from unveil.engine.blocks import connected, using
k, n, m, d, seed, beside, pool, workers, scheduler = (*map(int, sys.argv[1:9]), sys.argv[9] or None)
scheme, attack = (unveil.Scheme(k, 2), None) if pool else (unveil.Scheme(k), "full")
warm = unveil.simulate(scheme, 80, n_public=pool and 200, m=800, d=2500, rng=0)
unveil.recover(warm.encodings, warm.public, attack=attack, rng=0)
sim = unveil.simulate(scheme, n, n_public=pool, m=m, d=d, rng=seed)
dense = []
for _ in range(2 * beside):
    Y = sim.encodings.magnitudes()
    start = time.perf_counter()
    Y @ Y.T
    dense.append(time.perf_counter() - start)
def used():
    whom = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(t.ru_utime + t.ru_stime for t in map(resource.getrusage, whom))
start, cpu = time.perf_counter(), used()
with using(workers or None, scheduler), connected(scheduler, workers):
    recovery = unveil.recover(sim.encodings, sim.public, attack=attack, rng=seed)
    seconds = time.perf_counter() - start
cpu = used() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
found = unveil.score(recovery, sim.private)
pairs = np.unique(sim.selection.private, axis=0)
print(json.dumps({
    "seconds": seconds, "cpu": cpu, "bytes": hashlib.sha256(recovery.vectors.tobytes()).hexdigest(), "dense": min(dense, default=0.0), "peak": peak, "exact": found.exact, "wrong": found.wrong,
    "twice": int((np.bincount(pairs.ravel(), minlength=n) >= 2).sum()), "stages": dict(recovery.seconds),
    "explained": recovery.evidence.get("encodings_explained", 0), "signed": recovery.signed,
}))
"""


def _run(
    k: int,
    n: int,
    m: int,
    d: int,
    seed: int,
    beside: bool,
    pool: int = 0,
    workers: int = 0,
    scheduler: str = "",
) -> dict[str, float]:
    numbers = k, n, m, d, seed, int(beside), pool, workers
    command = [sys.executable, "-c", RUN, *map(str, numbers), scheduler]
    return dict(
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )


def _told(run: dict[str, float], m: int) -> str:
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run["stages"].items())  # type: ignore[attr-defined]
    return f"{run['exact']} exact, {run['wrong']} wrong, {run['explained']} of {m} explained in {run['seconds']:.1f} s ({stages})"


def small() -> list[Row]:
    out: list[Row] = []
    for seed in (30_000, 30_001, 30_002):
        run = _run(2, 1000, 7000, 3072, seed, True)
        what = f"k=2, n=1000, m=7000, d=3072, seed {seed}"
        whole = run["exact"] >= run["twice"] and not run["wrong"]
        ratio = run["seconds"] / run["dense"]
        out.append((what, "all used twice or more, 0 wrong", _told(run, 7000), whole))
        told = f"{ratio:.1f} times {run['dense']:.1f} s"
        out.append(
            (what, "60 s, 8 dense products Y @ Y.T", told, ratio <= 8 and run["seconds"] <= 60)
        )
    return out


def public() -> list[Row]:
    """Two private vectors beside two of 10,000 public ones, by the default of `recover`."""
    out: list[Row] = []
    for m in (7000, 20_000):
        run = _run(2, 1000, m, 3072, 70_000, True, 10_000)
        what = f"k_private=2, k_public=2 of 10,000, n=1000, m={m:,}, d=3072"
        whole = run["exact"] >= run["twice"] and not run["wrong"] and bool(run["signed"])
        out.append((what, "all used twice or more, signed, 0 wrong", _told(run, m), whole))
        ratio, peak = run["seconds"] / run["dense"], run["peak"] / 2**30
        told = f"{ratio:.1f} times {run['dense']:.1f} s, {peak:.2f} GiB"
        out.append((what, "20 dense products Y @ Y.T", told, ratio <= 20))
    return out


def larger_k() -> list[Row]:
    out: list[Row] = []
    for k in (3, 4):
        run = _run(k, 1000, 10_000, 3072, 30_000, False)
        whole = run["exact"] >= run["twice"] and not run["wrong"]
        out.append(
            (
                f"k={k}, n=1000, m=10,000, d=3072",
                "all used twice or more, 0 wrong",
                _told(run, 10_000),
                whole,
            )
        )
    return out


BEFORE = 89.9
"""CPU seconds that n=10,000 took while all pairs of encodings were compared, on the machine of
docs/scale.md."""


def large() -> list[Row]:
    run = _run(2, 10_000, 70_000, 1024, 30_000, False, workers=1)
    return _large_rows(run, "one thread")


def _large_rows(run: dict[str, float], where: str) -> list[Row]:
    what, peak = f"k=2, n=10,000, m=70,000, d=1024, {where}", run["peak"] / 2**30
    good = run["exact"] >= 9990 and not run["wrong"]
    told = f"{run['cpu']:.1f} s of the processor, {run['seconds']:.0f} s by the clock, "
    return [
        (what, "99.9% of the vectors, 0 wrong", _told(run, 70_000), good),
        (
            what,
            f"half of {BEFORE} s of the processor, 8 GiB with data",
            f"{told}{peak:.2f} GiB",
            peak < 8 and run["cpu"] <= BEFORE / 2,
        ),
    ]


def cluster() -> list[Row]:
    """The tenth of n=100,000 and m=700,000, on two Dask workers; the same bytes as on one thread."""
    here = _run(2, 10_000, 70_000, 1024, 30_000, False, workers=1)
    there = _run(2, 10_000, 70_000, 1024, 30_000, False, workers=2, scheduler="processes")
    same = here["bytes"] == there["bytes"]
    what = "k=2, n=10,000, m=70,000, d=1024, two Dask workers"
    told = f"{'same' if same else 'DIFFERENT'}; {there['seconds']:.0f} s against "
    told += f"{here['seconds']:.0f} s by the clock, {there['cpu']:.0f} against {here['cpu']:.0f} s "
    told += f"of the processors; {_told(there, 70_000)}"
    return [*_large_rows(here, "one thread"), (what, "same bytes as one thread", told, same)]


TABLES = {
    "small": small,
    "public": public,
    "larger_k": larger_k,
    "large": large,
    "cluster": cluster,
}


def rows(*names: str) -> list[Row]:
    unknown = set(names) - set(TABLES)
    if unknown:
        raise unveil.InputError(
            f"no table called {', '.join(sorted(unknown))}: choose from {', '.join(TABLES)}"
        )
    # `cluster` has the rows of `large` too.
    usual = [name for name in TABLES if name != "cluster"]
    return [row for name in names or usual for row in TABLES[name]()]


if __name__ == "__main__":
    from benchmarks.table import show

    show("The full attack on many encodings", rows(*sys.argv[1:]))
