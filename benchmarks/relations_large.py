"""Exact relations among many encodings of pictures: time beside one dense product, peak memory.

`python -m benchmarks.relations_large [n1000|n2000]`: CIFAR-10, k=2, m=7n, nothing told, a process
each. Both times are told by the clock and by the processor. n=1,000 takes half a minute, n=2,000
with a memory limit of 2 GiB some minutes. The pictures come from the folder that
`benchmarks.relations` names.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import unveil
from benchmarks.relations import NoData, images
from benchmarks.table import Row

SEED = 60_000
RUN = """
import json, resource, sys, time, numpy as np, unveil
from benchmarks.relations import records
n, m, beside, limit, seed = map(int, sys.argv[1:])
scheme = unveil.Scheme(2)
warm = unveil.simulate(scheme, private=records("cifar-10", 100, 0, np.random.default_rng(0)), m=700, rng=0)
unveil.recover(unveil.Encodings(np.abs(warm.encodings.values), scheme, pixel_rms=None), rng=0)
X = records("cifar-10", n, 0, np.random.default_rng(seed))
sim = unveil.simulate(scheme, private=X, m=m, rng=seed)
Y = np.abs(sim.encodings.values)
dense, dense_cpu = [], []
for _ in range(2 * beside):
    start, cpu = time.perf_counter(), time.process_time()
    Y @ Y.T
    dense.append(time.perf_counter() - start)
    dense_cpu.append(time.process_time() - cpu)
start, cpu = time.perf_counter(), time.process_time()
recovery = unveil.recover(
    unveil.Encodings(Y, scheme, pixel_rms=None), rng=seed, memory_limit=limit or None
)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
found = unveil.score(recovery, X)
used = np.bincount(np.unique(sim.selection.private, axis=0).ravel(), minlength=n)
print(json.dumps({
    "seconds": seconds, "cpu": cpu, "dense": min(dense, default=0.0), "dense_cpu": min(dense_cpu, default=0.0),
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "exact": found.exact, "wrong": found.wrong, "thrice": int((used >= 3).sum()),
    "attack": recovery.attack, "stages": dict(recovery.seconds),
    "explained": recovery.evidence.get("encodings_explained", 0),
    "doubt": 0.0 if recovery.doubtful is None else float(recovery.doubtful.mean()),
}))
"""


def _run(n: int, beside: bool, limit: int) -> dict[str, Any]:
    images("cifar-10")  # says here, in words, where the pictures are missing
    command = [sys.executable, "-c", RUN, *map(str, (n, 7 * n, int(beside), limit, SEED))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _told(run: dict[str, Any]) -> str:
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run["stages"].items())
    return (
        f"{run['exact']} exact, {run['wrong']} wrong, {run['doubt']:.2g} in doubt by {run['attack']} "
        f"in {run['seconds']:.1f} s ({run['cpu']:.1f} s of the processor; {stages})"
    )


def n1000() -> list[Row]:
    run = _run(1000, True, 0)
    what, peak = "CIFAR-10, k=2, n=1,000, m=7,000", run["peak"]
    # On a busy machine the clock says little about two spells of different length.
    ratio, busy = run["seconds"] / run["dense"], run["cpu"] / run["dense_cpu"]
    whole = run["exact"] >= run["thrice"] and not run["wrong"]
    told = f"{ratio:.1f} times {run['dense']:.1f} s by the clock, {busy:.1f} times "
    told += f"{run['dense_cpu']:.1f} s of the processor, {peak / 2**30:.2f} GiB"
    return [
        (what, "all used three times or more, 0 wrong", _told(run), whole),
        (what, "10 dense products Y @ Y.T, 4 GiB", told, min(ratio, busy) <= 10 and peak < 4 << 30),
    ]


def n2000() -> list[Row]:
    run = _run(2000, False, 2 << 30)
    whole = run["exact"] >= run["thrice"] and not run["wrong"]
    what = "CIFAR-10, k=2, n=2,000, m=14,000, memory_limit 2 GiB"
    told = f"{_told(run)}, {run['peak'] / 2**30:.2f} GiB with the data"
    return [(what, "runs; all used three times or more, 0 wrong", told, whole)]


TABLES = {"n1000": n1000, "n2000": n2000}


def rows(*names: str) -> list[Row]:
    unknown = set(names) - set(TABLES)
    if unknown:
        raise unveil.InputError(
            f"no table called {', '.join(sorted(unknown))}: choose from {', '.join(TABLES)}"
        )
    try:
        return [row for name in names or TABLES for row in TABLES[name]()]
    except NoData as reason:
        return [("CIFAR-10", "", f"skipped: {reason}", None)]


if __name__ == "__main__":
    from benchmarks.table import show

    show("Exact relations among many encodings", rows(*sys.argv[1:]))
