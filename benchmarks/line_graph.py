"""The root of a line graph: against networkx on the same graph, how many wrong overlaps it
survives, and the attack with it.

`python -m benchmarks.line_graph [root|wrong|attack]`. Kernels are compiled on a small graph
beforehand; building the graph, as networkx wants it and as we do, is not timed.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from benchmarks.table import Row
from numpy.typing import NDArray
from scipy import sparse

import unveil
from unveil.rivals.line_graph import line_graph_root

Pairs = NDArray[np.int64]


def different_pairs(n: int, m: int, seed: int) -> Pairs:
    """m different pairs of n vectors, in random order."""
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(n, 1)
    chosen = rng.choice(len(low), m, replace=False)
    return np.column_stack([low[chosen], high[chosen]]).astype(np.int64)


def overlaps_of(pairs: Pairs, n: int) -> sparse.csr_array:
    m = len(pairs)
    W = sparse.csr_array(
        (np.ones(2 * m, np.int64), (np.repeat(np.arange(m), 2), pairs.ravel())), shape=(m, n)
    )
    return sparse.csr_array(W @ W.T)


def stars(pairs: Pairs) -> set[frozenset[int]]:
    """Pairs up to names: the rows of every vertex that more than one has."""
    rows: dict[int, set[int]] = {}
    for i, pair in enumerate(pairs.tolist()):
        for v in pair:
            rows.setdefault(v, set()).add(i)
    return {frozenset(r) for r in rows.values() if len(r) > 1}


def against_networkx(n: int, m: int, needed: float | None) -> Row:
    what = f"the root, n={n}, m={m:,} different pairs"
    must = "" if needed is None else f"at least {needed:.0f} times faster than networkx"
    try:
        import networkx as nx
    except ImportError:
        return what, must, "networkx is not installed (pip install networkx)", None
    pairs = different_pairs(n, m, 0)
    M = overlaps_of(pairs, n)
    overlaps = unveil.Overlaps.from_array(M, 2)
    graph = nx.Graph(list(zip(*sparse.triu(M, 1).nonzero(), strict=True)))
    fast = np.inf
    for _ in range(5):
        start = time.perf_counter()
        ours = line_graph_root(overlaps)
        fast = min(fast, time.perf_counter() - start)
    start = time.perf_counter()
    theirs = nx.inverse_line_graph(graph)
    slow = time.perf_counter() - start
    truth = stars(pairs)
    same = (
        stars(ours.members)
        == truth
        == {frozenset(map(int, cell)) for cell in theirs if len(cell) > 1}
    )
    told = f"{slow / fast:,.0f} times ({fast * 1e3:.1f} ms, {slow:.2f} s; {'same root' if same else 'DIFFERENT'})"
    return what, must, told, None if needed is None else bool(same and slow >= needed * fast)


def misread(
    M: sparse.csr_array, wrong: int, missed: int, rng: np.random.Generator
) -> unveil.Overlaps:
    """`wrong` overlaps of 1 between strangers, and `missed` true ones taken away."""
    dense = M.toarray()
    i, j = np.nonzero(np.triu(dense, 1))
    gone = rng.permutation(len(i))[:missed]
    i, j = i[gone], j[gone]
    strangers = np.argwhere(np.triu(dense == 0, 1))
    a, b = strangers[rng.permutation(len(strangers))[:wrong]].T
    dense[i, j] = dense[j, i] = 0
    dense[a, b] = dense[b, a] = 1
    return unveil.Overlaps.from_array(dense, 2)


def survives(n: int, m: int, share: float, seeds: int = 5) -> Row:
    """The same share of the true overlaps missed, and as many wrong ones put in."""
    right = 0
    for seed in range(seeds):
        pairs = different_pairs(n, m, seed)
        M = overlaps_of(pairs, n)
        count = round(share * (M.nnz - m) / 2)
        found = line_graph_root(misread(M, count, count, np.random.default_rng(seed)))
        right += right_rows(found.members, pairs, n)
    what = f"n={n}, m={m:,}: {count:,} overlaps missed and {count:,} wrong ({share:.1%} of the true ones)"
    return what, "", f"{right / seeds / m:.2%} of the pairs right", None


def right_rows(members: Pairs, pairs: Pairs, n: int) -> int:
    """Rows whose pair is the true one; a name is the vector that most of its rows have, a name of
    one row is any."""
    count = np.zeros((int(members.max()) + 1, n), np.int64)
    for p in range(2):
        for q in range(2):
            np.add.at(count, (members[:, p], pairs[:, q]), 1)
    size = np.bincount(members.ravel(), minlength=len(count))
    name = np.where(size > 1, count.argmax(axis=1), -1)
    hit = (name[members][:, :, None] == pairs[:, None, :]).any(axis=2) | (name[members] < 0)
    one, two = name[members].T
    return int((hit.all(axis=1) & ((one != two) | (one < 0))).sum())


def attack(n: int, m: int, d: int, seed: int) -> Row:
    sim = unveil.simulate(unveil.Scheme(2), n, m=m, d=d, rng=seed)
    start = time.perf_counter()
    recovery = unveil.recover(sim.encodings, attack="line-graph", rng=seed)
    seconds = time.perf_counter() - start
    found = unveil.score(recovery, sim.private)
    pairs = np.unique(sim.selection.private, axis=0)
    twice = int((np.bincount(pairs.ravel(), minlength=n) >= 2).sum())
    stages = ", ".join(f"{name} {stage:.1f}" for name, stage in recovery.seconds.items())
    told = f"{found.exact} exact, {found.wrong} wrong, {recovery.evidence.get('contradicted_overlaps', 0):,} overlaps contradicted"
    what = f"the attack, n={n}, m={m:,}, d={d}"
    whole = found.exact >= 0.99 * twice and not found.wrong
    return (
        what,
        "99% of the vectors used twice or more, 0 wrong",
        f"{told}; {seconds:.1f} s ({stages})",
        whole,
    )


def _root() -> list[Row]:
    sizes = [(100, 500, None), (200, 1000, None), (600, 3000, 100.0)]
    return [against_networkx(*size) for size in sizes]


def _wrong() -> list[Row]:
    return [
        survives(n, m, share)
        for n, m in ((100, 500), (600, 3000))
        for share in (0.001, 0.01, 0.05, 0.1, 0.2, 0.3)
    ]


def _attack() -> list[Row]:
    return [
        attack(600, 3000, 3072, 40_000),
        attack(600, 3000, 700, 40_000),
        attack(3000, 20_000, 2048, 40_000),
    ]


TABLES = {"root": _root, "wrong": _wrong, "attack": _attack}


def rows(*names: str) -> list[Row]:
    unknown = set(names) - set(TABLES)
    if unknown:
        raise unveil.InputError(
            f"no table called {', '.join(sorted(unknown))}: choose from {', '.join(TABLES)}"
        )
    warm = unveil.simulate(unveil.Scheme(2), 30, m=200, d=300, rng=0).encodings
    unveil.recover(warm, attack="line-graph", rng=0)
    return [row for name in names or TABLES for row in TABLES[name]()]


if __name__ == "__main__":
    from benchmarks.table import show

    show("The root of a line graph", rows(*sys.argv[1:]))
