"""Which two of a million public vectors, in a file that does not fit the memory: supports that are
right, peak memory, time per candidate; and the same on Dask with a worker killed.

`python -m benchmarks.million [file|cluster] [candidates]`: m=1,000 encodings of d=3,072 pixels,
k_private=2, k_public=2. `file` has 10⁶ candidates, 12.3 GB in the folder for temporary files
(TMPDIR), and takes some minutes; `cluster` has 10⁵ unless told otherwise, on two worker processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import unveil
from benchmarks.table import Row

SCHEME, PRIVATE, M, D, SEED = unveil.Scheme(2, 2), 100, 1000, 3072, 76_000
"""The instance: pixels as in CIFAR-10, a seed that nothing was tuned on."""
EXACT = 0.999
"""Share of the supports that must be right."""
BLOCK = 8192
"""Public vectors drawn and written at a time: 100 MB."""
LIMIT = 2 << 30
"""memory_limit of the search, in bytes: half of what it must stay under in all."""
MOST = 4 << 30
"""Bytes a process may have at its peak."""
RUN = """
import json, resource, sys, time, numpy as np, unveil
folder, limit = sys.argv[1], int(sys.argv[2])
warm = unveil.simulate(unveil.Scheme(2, 2), 80, n_public=300, m=90, d=600, rng=0)
fixed = warm.public.copy()
fixed.flags.writeable = False  # as a mapped file is
unveil.learn_public(warm.encodings, fixed, workers=1)
encodings = unveil.Encodings(np.load(folder + "/encodings.npy"), unveil.Scheme(2, 2))
start, cpu = time.perf_counter(), time.process_time()
found = unveil.learn_public(encodings, folder + "/public.npy", workers=1, memory_limit=limit)
print(json.dumps({
    "seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "indices": found.indices.tolist(), "certain": int(found.certain.sum()),
}))
"""


@contextmanager
def written(count: int) -> Iterator[tuple[Path, np.ndarray[Any, Any]]]:
    """A folder with `count` public vectors and encodings that use them, and which they use."""
    rng = np.random.default_rng(SEED)
    truth = np.sort([rng.choice(count, 2, replace=False) for _ in range(M)], axis=1)
    total = np.zeros((M, D), np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # 1. Blocks are written as they are drawn, and added up where they are used.
        with open(folder / "public.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (count, D)}
            np.lib.format.write_array_header_1_0(file, header)
            for first in range(0, count, BLOCK):
                block = rng.standard_normal((min(BLOCK, count - first), D), dtype=np.float32)
                block.tofile(file)
                for used in truth.T:
                    here = np.flatnonzero((used >= first) & (used < first + BLOCK))
                    total[here] += block[used[here] - first]
        # 2. The private part, two of a hundred vectors.
        X = rng.standard_normal((PRIVATE, D), dtype=np.float32)
        pairs = np.array([rng.choice(PRIVATE, 2, replace=False) for _ in range(M)])
        values = SCHEME.public_weight * total + SCHEME.private_weight * X[pairs].sum(axis=1)
        np.save(folder / "encodings.npy", np.abs(values).astype(np.float32))
        yield folder, truth


def in_a_file(count: int = 10**6) -> list[Row]:
    what = f"k_public=2 of {count:,}, m={M:,}, d={D:,}, one thread"
    with written(count) as (folder, truth):
        command = [sys.executable, "-c", RUN, str(folder), str(LIMIT)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    run = json.loads(done.stdout)
    right = float((np.array(run["indices"]) == truth).all(axis=1).mean())
    peak, product = run["peak"], 2 * M * D * count
    told = f"{run['seconds']:.0f} s, {run['cpu']:.0f} s of the processor: "
    told += f"{1e3 * run['cpu'] / count:.3f} ms per candidate, "
    told += f"{1e-9 * product / run['cpu']:.0f} GFlop/s if all were one product"
    return [
        (what, "99.9% exact", f"{right:.2%} exact, {run['certain']} certain", right >= EXACT),
        (what, "under 4 GiB", f"{peak / 2**30:.2f} GiB at the peak", peak < MOST),
        (what, "stated", told, None),
    ]


def on_a_cluster(count: int = 10**5) -> list[Row]:
    import distributed

    from unveil.engine.blocks import connected, using

    what = f"k_public=2 of {count:,}, m={M:,}, d={D:,}, two Dask workers, one killed"
    killed: list[str] = []
    with written(count) as (folder, truth):
        encodings = unveil.Encodings(np.load(folder / "encodings.npy"), SCHEME)
        public = folder / "public.npy"
        # 1. What must come out.
        expected = unveil.learn_public(encodings, public, workers=1, memory_limit=LIMIT)
        # 2. The same on workers, of which one ends with its first block done by somebody.
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(host="127.0.0.1", silence_logs=50, **options) as cluster:

            def kill(_: str, done: int, total: int) -> None:
                if not killed and done < total:
                    killed.append(f"after {done} of {total} encodings")
                    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

            address, start = cluster.scheduler_address, time.perf_counter()
            with using(scheduler=address), connected(address) as client:
                found = unveil.learn_public(encodings, public, memory_limit=LIMIT, progress=kill)
                peak = max(client.run(_peak).values())
            seconds = time.perf_counter() - start
    # 3. Byte by byte.
    same = all(
        getattr(found, name).tobytes() == getattr(expected, name).tobytes()
        for name in ("indices", "confidence", "certain")
    )
    right = float((found.indices == truth).all(axis=1).mean())
    told = f"{'same' if same else 'DIFFERENT'} (killed {', '.join(killed) or 'nobody'}), "
    told += f"{right:.2%} exact in {seconds:.0f} s, {peak / 2**30:.2f} GiB at a worker's peak"
    good = same and bool(killed) and peak < MOST
    return [(what, "same bytes as one thread, under 4 GiB", told, good)]


def _peak() -> int:
    """Bytes this process had at its peak."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


TABLES = {"file": in_a_file, "cluster": on_a_cluster}


def rows(*words: str) -> list[Row]:
    counts = [int(word) for word in words if word.isdigit()]
    names = [word for word in words if not word.isdigit()]
    unknown = set(names) - set(TABLES)
    if unknown or len(counts) > 1:
        raise unveil.InputError(
            f"{' '.join(words)}: give some of {', '.join(TABLES)}, and one number of candidates"
        )
    return [row for name in names or TABLES for row in TABLES[name](*counts)]


if __name__ == "__main__":
    from benchmarks.table import show

    show("Two of a million public vectors", rows(*sys.argv[1:]))
