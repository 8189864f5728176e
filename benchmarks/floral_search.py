"""Finding florals: against the overlap stage it follows, and against a general subgraph search
(igraph's LAD)."""

from __future__ import annotations

import time

import numpy as np
from benchmarks.table import Row

import unveil
from unveil.encode import draw_selection, selection_matrix


def search_against_overlaps() -> Row:
    """k=2, n=1000, m=10,000: one floral, as a share of the overlap stage in the same run."""
    sim = unveil.simulate(unveil.Scheme(2), 1000, m=10_000, d=3072, rng=1)
    _ = unveil.find_floral_submatrix(
        unveil.gram_extract(unveil.simulate(n_private=20, m=120, rng=0).encodings)
    )  # compile
    start = time.perf_counter()
    overlaps = unveil.gram_extract(sim.encodings)
    stage = time.perf_counter() - start
    start = time.perf_counter()
    floral = unveil.find_floral_submatrix(overlaps)
    search = time.perf_counter() - start
    found = "found" if floral is not None else "none there"
    return (
        "one floral, k=2, n=1000, m=10,000",
        "at most 0.1 of the overlap stage",
        f"{search / stage:.3f} ({search * 1e3:.0f} ms of {stage:.2f} s; {found})",
        search <= 0.1 * stage,
    )


def all_florals_against_igraph() -> Row:
    """k=2, n=300, m=2500: all florals are the induced octahedra of the overlap graph."""
    what = "all florals, k=2, n=300, m=2500"
    must = "at least 100 times faster than igraph's LAD"
    try:
        import igraph
    except ImportError:
        return what, must, "igraph is not installed (pip install igraph)", None
    rng = np.random.default_rng(3)
    chosen = np.unique(draw_selection(unveil.Scheme(2), 300, 0, 2500, rng, rng).private, axis=0)
    W = selection_matrix(chosen, 300)
    M = (W @ W.T).toarray().astype(int)
    overlaps = unveil.Overlaps.from_array(M, 2)
    unveil.find_all_florals(overlaps)
    start = time.perf_counter()
    ours = unveil.find_all_florals(overlaps)
    fast = time.perf_counter() - start

    graph = igraph.Graph(n=len(M), edges=np.argwhere(np.triu(M == 1, 1)).tolist())
    pattern = igraph.Graph.Full(6)
    pattern.delete_edges([(0, 1), (2, 3), (4, 5)])
    start = time.perf_counter()
    theirs = graph.get_subisomorphisms_lad(pattern, induced=True)
    slow = time.perf_counter() - start
    same = {frozenset(f.rows.tolist()) for f in ours} == {frozenset(match) for match in theirs}
    measured = f"{slow / fast:,.0f} times ({fast * 1e3:.1f} ms, {slow:.1f} s; {len(ours)} florals, {'same' if same else 'DIFFERENT'})"
    return what, must, measured, same and slow >= 100 * fast


def families() -> Row:
    """k=3, n=30, m=2500, exact overlaps: how many florals are the paper's k-subsets of k+2 vectors,
    and how many sunflowers."""
    rng = np.random.default_rng(0)
    chosen = draw_selection(unveil.Scheme(3), 30, 0, 2500, rng, rng).private
    W = selection_matrix(chosen, 30)
    florals = unveil.find_all_florals(unveil.Overlaps.from_array((W @ W.T).astype(int), 3))
    papers = sum(len(np.unique(chosen[f.rows])) == 5 for f in florals)
    what = "what florals stand for, k=3, n=30, m=2500"
    return (
        what,
        "",
        f"{len(florals):,} florals, {papers} of them all 3-subsets of 5 vectors, the others sunflowers",
        None,
    )


def rows() -> list[Row]:
    return [search_against_overlaps(), all_florals_against_igraph(), families()]
