"""The overlap engine against the products everyone would write, and every promise of scale: time,
memory, clusters, kills.

`python -m benchmarks.overlaps ratio scaling …` runs some of them; `python -m benchmarks.run
overlaps` all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.table import Row
from scipy import sparse

import unveil
from unveil.paper.gram_extract import overlap_engine
from unveil.paper.overlap_engine import Levels, assisted_levels, feature_rows, folded_levels


def _truth(sim: unveil.Simulation) -> sparse.csr_array:
    (m, k), n = sim.selection.private.shape, len(sim.private)
    W = sparse.csr_array(
        (np.ones(m * k, np.int32), sim.selection.private.ravel(), np.arange(0, m * k + 1, k)),
        shape=(m, n),
    )
    return (W @ W.T).tocsr()


def _wrong(overlaps: unveil.Overlaps, truth: sparse.csr_array) -> tuple[int, int]:
    """(pairs with an overlap that were not found, pairs with a wrong or invented overlap)."""
    found, entries = overlaps.matrix.astype(np.int32), truth.tocoo()
    reported = np.asarray(found[entries.row, entries.col]).ravel()
    missed = int((reported == 0).sum()) // 2
    difference = found - truth
    difference.eliminate_zeros()
    return missed, difference.nnz // 2 - missed


def _compile() -> None:
    unveil.gram_extract(unveil.simulate(n_private=20, m=120, d=512, rng=0).encodings)


def ratio() -> list[Row]:
    """k=2, n=1000, m=10,000, d=3072: NumPy's dense product, FAISS and the engine take turns; best
    of two each."""
    sim = unveil.simulate(unveil.Scheme(2), 1000, m=10_000, d=3072, rng=2)
    truth = _truth(sim)
    _compile()
    threshold = float(folded_levels(sim.encodings.scheme).balanced()[0, 0])
    try:
        import faiss
    except ImportError:
        faiss = None
    seconds: dict[str, list[float]] = {"engine": [], "numpy": [], "faiss": []}
    for _ in range(2):
        start = time.perf_counter()
        overlaps = unveil.gram_extract(sim.encodings)
        seconds["engine"].append(time.perf_counter() - start)
        # The peers get their standardised rows for nothing, and keep both halves.
        Z = feature_rows(sim.encodings.values, "folded", np.arange(3072))
        start = time.perf_counter()
        np.nonzero(threshold <= Z @ Z.T)
        seconds["numpy"].append(time.perf_counter() - start)
        if faiss is not None:
            index = faiss.IndexFlatIP(3072)
            index.add(Z)
            start = time.perf_counter()
            index.range_search(Z, threshold)
            seconds["faiss"].append(time.perf_counter() - start)
    best = {name: min(times, default=float("nan")) for name, times in seconds.items()}
    missed, false = _wrong(overlaps, truth)
    pairs = (truth.nnz - sim.encodings.m) // 2
    what = "k=2, n=1000, m=10,000, d=3072"
    to_numpy, to_faiss = best["engine"] / best["numpy"], best["engine"] / best["faiss"]
    return [
        (
            what,
            "at most 0.40 of NumPy's dense product",
            f"{to_numpy:.2f} ({best['engine']:.2f} s, {best['numpy']:.2f} s)",
            to_numpy <= 0.4,
        ),
        (
            what,
            "at most 0.60 of FAISS range_search",
            "FAISS is not installed (pip install faiss-cpu)"
            if faiss is None
            else f"{to_faiss:.2f} ({best['faiss']:.2f} s)",
            None if faiss is None else to_faiss <= 0.6,
        ),
        (
            what,
            "99.9% of the overlapping pairs found, none false",
            f"{missed} of {pairs:,} missed, {false} false; {overlaps.expected_errors:.2g} wrong expected",
            missed <= 0.001 * pairs and false == 0,
        ),
    ]


SCALING = """
import sys, time, resource, numpy as np, unveil
unveil.gram_extract(unveil.simulate(n_private=20, m=120, d=512, rng=0).encodings)
encodings = unveil.Encodings(np.load(sys.argv[1]), unveil.Scheme(2))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
M = unveil.gram_extract(encodings, memory_limit=int(sys.argv[2]))
seconds = time.perf_counter() - start
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, M.matrix.nnz * 9)
"""


def _scaled(m: int, d: int, limit: int) -> tuple[float, float, float]:
    """Seconds, peak memory beyond the input, bytes of the result, in a process that does nothing
    else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "y.npy"
        np.save(path, unveil.simulate(unveil.Scheme(2), 1000, m=m, d=d, rng=3).encodings.values)
        command = [sys.executable, "-c", SCALING, str(path), str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory, result = map(float, done.stdout.split())
    return seconds, memory, result


def scaling() -> list[Row]:
    """Each size in a process of its own, so that the peak belongs to it."""
    sizes = (5_000, 10_000, 20_000)
    runs = [_scaled(m, 3072, 1 << 29) for m in sizes]
    growth = runs[-1][0] / runs[0][0]
    told = "; ".join(
        f"m={m:,}: {s:.2f} s, {memory / 2**20:.0f} MiB for a result of {result / 2**20:.0f} MiB"
        for m, (s, memory, result) in zip(sizes, runs, strict=True)
    )
    bounded = all(memory <= (1 << 29) + 6 * result for _, memory, result in runs)
    return [
        (
            "m = 5,000 to 20,000, d=3072",
            "time grows no faster than m² (16)",
            f"{growth:.1f} times",
            growth <= 16,
        ),
        ("m = 5,000 to 20,000, d=3072", "memory: constant and the result, not m²", told, bounded),
    ]


def large() -> list[Row]:
    limit = 3 << 29
    seconds, memory, result = _scaled(60_000, 1024, limit)
    return [
        (
            "m=60,000, d=1024",
            "under 1.5 GiB beyond the input",
            f"{memory / 2**30:.2f} GiB in {seconds:.0f} s (result {result / 2**30:.2f} GiB)",
            memory <= limit,
        )
    ]


def assisted() -> list[Row]:
    """True supports: what LearnPublic must deliver. Beside it the folded statistic, its threshold
    tuned with the truth in hand."""
    out: list[Row] = []
    for k_public in (2, 4):
        sim = unveil.simulate(
            unveil.Scheme(2, k_public, "paper"), 200, n_public=1000, m=5000, d=3072, rng=11
        )
        supports = unveil.learn_public(sim.encodings, sim.public)
        overlaps = unveil.gram_extract(sim.encodings, sim.public, supports=supports)
        missed, false = _wrong(overlaps, _truth(sim))
        out.append(
            (
                f"k_private=2, k_public={k_public}, paper, m=5000, d=3072",
                "0 wrong overlaps, assisted (learned supports)",
                f"{missed + false} wrong ({overlaps.expected_errors:.2g} expected); folded, tuned: {_best_folded(sim):,} wrong",
                missed + false == 0,
            )
        )
    return out


def _best_folded(sim: unveil.Simulation) -> int:
    """Fewest errors any thresholds on the folded covariance could make, chosen for each number of
    shared public vectors, knowing the truth; overlap 2 is rare and counted as found."""
    Z = feature_rows(sim.encodings.values, "folded", np.arange(sim.encodings.d))
    W, V = np.zeros((2, sim.encodings.m, 1000), np.float32)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    np.put_along_axis(V, sim.selection.public, 1, axis=1)
    above = np.triu_indices(sim.encodings.m, 1)
    score, overlapping, shared = (Z @ Z.T)[above], (W @ W.T)[above] > 0, (V @ V.T)[above]
    wrong = 0
    for p in np.unique(shared):
        here = shared == p
        order = np.argsort(-score[here])
        hits = np.cumsum(overlapping[here][order])
        wrong += int(min(hits[-1], (np.arange(1, len(hits) + 1) - hits + hits[-1] - hits).min()))
    return wrong


def cluster() -> list[Row]:
    what, must = (
        "Dask, 2 worker processes, one killed half-way (m=6000, d=2048)",
        "same bytes as one process",
    )
    try:
        import distributed
    except ImportError:
        return [(what, must, "Dask is not installed (pip install 'unveil[dask]')", None)]
    sim = unveil.simulate(unveil.Scheme(2), 500, m=6000, d=2048, rng=4)
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "host": "127.0.0.1",
        "silence_logs": 50,
    }
    expected = unveil.gram_extract(sim.encodings, workers=1, memory_limit=100 << 20)
    killed: list[str] = []
    with distributed.LocalCluster(**options) as local:

        def kill(_: str, done: int, total: int) -> None:
            if not killed and done >= total // 2:
                killed.append(f"after {done} of {total} blocks")
                os.kill(next(iter(local.workers.values())).pid, signal.SIGKILL)

        address = local.scheduler_address
        found = unveil.gram_extract(
            sim.encodings, scheduler=address, memory_limit=100 << 20, progress=kill
        )
    same = _bytes(found) == _bytes(expected)
    return [
        (
            what,
            must,
            f"{'same' if same else 'DIFFERENT'} (killed {', '.join(killed) or 'nobody'})",
            same and bool(killed),
        )
    ]


def _bytes(overlaps: unveil.Overlaps) -> tuple[bytes, ...]:
    assert overlaps.confidence is not None
    M = overlaps.matrix
    return M.indptr.tobytes(), M.indices.tobytes(), M.data.tobytes(), overlaps.confidence.tobytes()


RESUMED = """
import sys, hashlib, numpy as np, unveil
E = unveil.Encodings(np.load(sys.argv[1], mmap_mode="r"), unveil.Scheme(2))
M = unveil.gram_extract(E, memory_limit=12 << 20, workers=1, checkpoint=sys.argv[2])
digest = hashlib.sha256(b"".join([M.matrix.indptr, M.matrix.indices, M.matrix.data, M.confidence]))
open(sys.argv[3], "w").write(digest.hexdigest())
"""


def kills() -> list[Row]:
    """The same command killed at ten random times, then left alone: the digest of matrix and
    confidence must not change."""
    rng = np.random.default_rng(int(time.time()))
    sim = unveil.simulate(unveil.Scheme(2), 500, m=6000, d=2048, rng=4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "y.npy", sim.encodings.values)

        def command(blocks: str) -> list[str]:
            return [
                sys.executable,
                "-c",
                RESUMED,
                str(folder / "y.npy"),
                str(folder / blocks),
                str(folder / f"{blocks}.txt"),
            ]

        subprocess.run(command("undisturbed"), check=True)
        total = len(list((folder / "undisturbed").rglob("block-*.npz")))
        progress = [0]
        for _ in range(10):
            process = subprocess.Popen(command("killed"))
            # Not before it has got somewhere: most of a short run is starting Python.
            target = progress[-1] + int(rng.integers(1, total // 12))
            while (
                process.poll() is None
                and len(list((folder / "killed").rglob("block-*.npz"))) < target
            ):
                time.sleep(0.002)
            time.sleep(float(rng.uniform(0, 0.02)))
            process.send_signal(signal.SIGKILL)
            process.wait()
            progress.append(len(list((folder / "killed").rglob("block-*.npz"))))
        subprocess.run(command("killed"), check=True)
        same = (folder / "killed.txt").read_text() == (folder / "undisturbed.txt").read_text()
    return [
        (
            "kill -9 at a random time, 10 times (m=6000, d=2048)",
            "same bytes after resuming",
            f"{'same' if same else 'DIFFERENT'} (blocks of {total} on disk after each: {progress[1:]})",
            same and progress[-1] < total,
        )
    ]


def units() -> list[Row]:
    """What the plan believes an operation costs, in multiply-adds of the product
    (`paper/overlap_engine.py`), measured here."""

    from unveil.engine.blocks import one_blas_thread
    from unveil.paper.overlap_engine import _survivors

    sim = unveil.simulate(unveil.Scheme(2), 1000, m=4096, d=3072, rng=5)
    engine = overlap_engine(sim.encodings)
    A1, A = engine.features(0)
    B1, B = engine.features(1)
    edges, cuts = np.array(engine.plan.edges), np.array(engine.plan.cuts, np.float32)
    pairs, screen = A.shape[0] * B.shape[0], int(edges[0])
    with one_blas_thread():
        C = A1 @ B1.T
        product = _best(lambda: A1 @ B1.T) / (pairs * screen)
    pick = _best(lambda: _survivors(C, A, B, edges[:1], np.full(1, 9, np.float32), False)) / pairs
    all_of_it = np.array([screen, 3072]), np.array([cuts[0], -9], np.float32)
    scored = int((cuts[0] <= C).sum())
    score = (_best(lambda: _survivors(C, A, B, *all_of_it, False)) - pick * pairs) / (
        scored * (3072 - screen)
    )
    told = (
        f"product {2e-9 / product:.0f} GFlop/s on one thread; pick {pick / product:.0f}, "
        f"score {score / product:.0f}"
    )
    return [
        (
            "cost of operations, in multiply-adds",
            "the plan's: pick 36, score 10",
            told,
            None,
        )
    ]


def power() -> list[Row]:
    """Standard deviations between neighbouring overlaps and their balanced threshold, per root of a
    pixel."""

    def apart(levels: Levels, q: int) -> float:
        return float(
            (levels.mean[0, q + 1] - levels.mean[0, q]) / (levels.sd[0, q] + levels.sd[0, q + 1])
        )

    out: list[Row] = []
    for k, q in ((2, 0), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2)):
        told = f"folded {apart(folded_levels(unveil.Scheme(k)), q):.3f}"
        out.append((f"k={k}, overlap {q} or {q + 1}", "", told, None))
    folded, assisted = (
        apart(folded_levels(unveil.Scheme(2, 2)), 0),
        apart(assisted_levels(2, 2, 1.0), 0),
    )
    out.append(
        (
            "k_private=k_public=2, overlap 0 or 1",
            "",
            f"folded {folded:.3f}, assisted {assisted:.3f}",
            None,
        )
    )
    return out


def _best(work: object, repeats: int = 4) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


TABLES = {
    "power": power,
    "units": units,
    "ratio": ratio,
    "scaling": scaling,
    "large": large,
    "assisted": assisted,
    "cluster": cluster,
    "kills": kills,
}


def rows(*names: str) -> list[Row]:
    return [row for name in names or TABLES for row in TABLES[name]()]


if __name__ == "__main__":
    from benchmarks.table import show

    show("Overlap engine", rows(*sys.argv[1:]))
