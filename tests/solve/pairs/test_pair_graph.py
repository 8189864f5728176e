"""Cores and ears: what they reach is solved exactly, and even cycles are not taken for ears."""

from itertools import pairwise

import numpy as np
import pytest

from unveil.solve.pairs import pair_graph as module
from unveil.solve.pairs.pair_graph import (
    Ear,
    find_core,
    find_ears,
    pair_graph,
    solve_core,
    solve_ear,
    triangles,
)


def sums_of(members, n, d=50, seed=0, offsets=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    total = x[members].sum(axis=1)
    c = rng.standard_normal(total.shape) if offsets else np.zeros_like(total)
    return x, np.abs(total + c) - c, -np.abs(total + c) - c


def ring(n):
    return np.array([(i, (i + 1) % n) for i in range(n)])


def test_the_graph_holds_each_pair_once_and_no_loops():
    members = np.array([[2, 0], [0, 2], [1, 1], [1, 2], [0, 1]])
    graph = pair_graph(members, 3)
    assert graph.degree.tolist() == [2, 2, 2]
    assert (graph.edge(0, 2), graph.edge(2, 0), graph.edge(2, 1), graph.edge(1, 0)) == (0, 0, 3, 4)
    part = pair_graph(members, 3, np.array([False, True, True, True, False]))
    assert part.degree.tolist() == [1, 1, 2]
    assert part.edge(0, 2) == 1


def test_triangles_are_those_of_the_adjacency_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    members = rng.permuted(np.tile(np.arange(25), (110, 1)), axis=1)[:, :2]
    graph = pair_graph(members, 25)
    A = np.zeros((25, 25), int)
    A[members[:, 0], members[:, 1]] = A[members[:, 1], members[:, 0]] = 1
    found = triangles(graph)
    assert len(found) == np.trace(A @ A @ A) // 6
    assert len({tuple(t) for t in found.tolist()}) == len(found)
    monkeypatch.setattr(module, "MOST_TRIANGLES", 3)
    assert len(triangles(graph)) == 3


@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("offsets", [False, True])
def test_two_triangles_and_a_path_are_solved(length, offsets):
    path = np.arange(2, 2 + length + 1)
    end = path[-1]
    edges = [
        (0, 1),
        (1, 2),
        (2, 0),
        *pairwise(path),
        (end, end + 1),
        (end + 1, end + 2),
        (end + 2, end),
    ]
    members = np.array(edges)
    n = int(members.max()) + 1
    x, hi, lo = sums_of(members, n, offsets=offsets)
    graph = pair_graph(members, n)
    core = find_core(graph, triangles(graph), 0)
    vertices, values, misfit = solve_core(graph, core, hi, lo)
    assert sorted(vertices.tolist()) == list(range(n))
    assert misfit.max() < 1e-12
    signs = np.ones(50) if offsets else np.sign((values * x[vertices]).sum(axis=0))
    np.testing.assert_allclose(signs * values, x[vertices], atol=1e-9)


def test_triangles_that_share_an_edge_or_are_far_apart_are_no_core():
    shared = pair_graph(np.array([(0, 1), (1, 2), (2, 0), (1, 3), (3, 2)]), 4)
    assert find_core(shared, triangles(shared), 0) is None
    apart = pair_graph(np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]), 6)
    assert find_core(apart, triangles(apart), 0) is None


@pytest.mark.parametrize("unknown", [1, 2, 3, 4])
def test_an_ear_between_two_known_vertices_is_solved(unknown):
    path = np.arange(unknown + 2)
    members = np.column_stack([path[:-1], path[1:]])
    x, hi, lo = sums_of(members, len(path))
    start = np.zeros_like(x)
    start[[0, -1]] = x[[0, -1]]
    values, misfit, second = solve_ear(Ear(path, np.arange(unknown + 1)), start, hi, lo, 1e-3)
    np.testing.assert_allclose(values, x[1:-1], atol=1e-12)
    assert misfit.max() < 1e-12
    assert np.median(second) > 0.01


@pytest.mark.parametrize(("size", "found"), [(3, True), (4, False), (5, True), (6, False)])
def test_a_cycle_on_one_known_vertex_is_an_ear_when_it_is_odd(size, found):
    members = ring(size)
    known = np.arange(size) == 0
    ears = find_ears(pair_graph(members, size), known, np.zeros(size, bool), 5)
    assert bool(ears) == found
    if not found:
        return
    x, hi, lo = sums_of(members, size)
    start = np.where(known[:, None], x, 0)
    values, misfit, _ = solve_ear(ears[0], start, hi, lo, 1e-3)
    np.testing.assert_allclose(values, x[ears[0].vertices[1:-1]], atol=1e-9)
    assert misfit.max() < 1e-9


def test_around_an_even_cycle_two_ways_fit():
    x, hi, lo = sums_of(ring(4), 4)
    start = np.zeros_like(x)
    start[0] = x[0]
    _, misfit, second = solve_ear(Ear(np.array([0, 1, 2, 3, 0]), np.arange(4)), start, hi, lo, 1e-3)
    assert misfit.max() < 1e-12
    assert second.max() < 1e-12


def test_ears_do_not_share_unknown_vertices_and_leave_banned_rows_alone():
    members = np.array([(0, 2), (2, 3), (3, 1), (0, 4), (4, 5), (5, 1), (3, 4)])
    graph = pair_graph(members, 6)
    known = np.array([True, True, False, False, False, False])
    ears = find_ears(graph, known, np.zeros(7, bool), 9)
    inside = np.concatenate([ear.vertices[1:-1] for ear in ears])
    assert len(set(inside.tolist())) == len(inside)
    for ear in ears:
        for u, v, row in zip(ear.vertices[:-1], ear.vertices[1:], ear.rows, strict=True):
            assert set(members[row]) == {u, v}
    banned = np.zeros(7, bool)
    banned[[1, 4, 6]] = True
    assert find_ears(graph, known, banned, 9) == []
