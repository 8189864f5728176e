"""Cells of line graphs: every small graph is judged rightly, roots come back, and what forbids a
root is as small as can be."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from unveil.rivals.line_graph.krausz import find_cells, forbidden_place, is_line_graph


def graph_of(edges, m):
    i, j = np.array(list(edges), dtype=int).reshape(-1, 2).T
    return sparse.csr_array(
        (np.ones(2 * len(i), np.int8), (np.append(i, j), np.append(j, i))), shape=(m, m)
    )


def has_krausz_partition(adjacency):
    """Plain backtracking: every edge in exactly one clique, every vertex in at most two."""
    m = len(adjacency)

    def extend(covered, cells):
        edge = next(
            (e for e in combinations(range(m), 2) if adjacency[e] and e not in covered), None
        )
        if edge is None:
            return True
        near = [v for v in range(m) if adjacency[edge[0], v] and adjacency[edge[1], v]]
        for size in range(len(near) + 1):
            for others in combinations(near, size):
                clique = sorted((*edge, *others))
                pairs = set(combinations(clique, 2))
                if (
                    all(adjacency[p] for p in pairs)
                    and not pairs & covered
                    and all(cells[v] < 2 for v in clique)
                ):
                    more = cells.copy()
                    more[clique] += 1
                    if extend(covered | pairs, more):
                        return True
        return False

    return extend(frozenset(), np.zeros(m, int))


def beineke_graphs():
    """The nine forbidden ones, found here by their definition: no line graph, but one without any
    one vertex."""
    return [
        g
        for g in small_graphs()
        if not is_line_graph(csr(g)) and all(is_line_graph(csr(without(g, v))) for v in g)
    ]


def small_graphs():
    return [g for g in nx.graph_atlas_g() if 1 <= len(g) <= 6 and nx.is_connected(g)]


def csr(g):
    return graph_of(g.edges, len(g))


def without(g, v):
    return nx.convert_node_labels_to_integers(g.subgraph(set(g) - {v}))


def test_every_connected_graph_of_up_to_six_vertices_is_judged_rightly():
    seen = []
    for g in small_graphs():
        truth = has_krausz_partition(nx.to_numpy_array(g, dtype=bool))
        assert is_line_graph(csr(g)) == truth, g.edges
        seen.append(truth)
    assert len(seen) == 143
    assert 0 < sum(seen) < 143


def test_those_that_are_forbidden_and_smallest_are_beinekes_nine():
    nine = beineke_graphs()
    assert len(nine) == 9
    for known in (nx.star_graph(3), nx.wheel_graph(6), nx.complete_multipartite_graph(2, 1, 1, 1)):
        assert sum(nx.is_isomorphic(g, known) for g in nine) == 1


@pytest.mark.parametrize(
    "root",
    [
        nx.gnm_random_graph(40, 120, seed=1),
        nx.gnm_random_graph(12, 60, seed=2),
        nx.random_labeled_tree(60, seed=3),
        nx.complete_graph(9),
        nx.complete_bipartite_graph(5, 6),
        nx.star_graph(8),
        nx.cycle_graph(11),
        nx.path_graph(9),
        nx.wheel_graph(7),
        nx.petersen_graph(),
        nx.disjoint_union_all(
            [nx.complete_graph(4), nx.path_graph(2), nx.cycle_graph(3), nx.star_graph(3)]
        ),
    ],
)
def test_the_cells_of_a_line_graph_are_the_vertices_of_a_root(root):
    edges = np.array(root.edges)
    order = np.random.default_rng(0).permutation(len(edges))
    meet = [
        (i, j)
        for i, j in combinations(range(len(edges)), 2)
        if set(edges[order[i]]) & set(edges[order[j]])
    ]
    cell, good = find_cells(graph_of(meet, len(edges)))
    assert good.all()
    again = {(i, j) for i, j in combinations(range(len(edges)), 2) if set(cell[i]) & set(cell[j])}
    assert again == set(meet)
    assert (cell[:, 0] != cell[:, 1]).all()
    assert len({tuple(sorted(pair)) for pair in cell.tolist()}) == len(edges)


def test_a_component_that_is_no_line_graph_does_not_spoil_the_others():
    claw, triangle = [(0, 1), (0, 2), (0, 3)], [(5, 6), (6, 7), (5, 7)]
    cell, good = find_cells(graph_of(claw + triangle, 9))
    np.testing.assert_array_equal(good, [False] * 4 + [True] * 5)
    assert (cell[:4] == -1).all()
    assert (cell[4:] >= 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_forbidden_place_is_one_of_the_nine(seed):
    """One wrong overlap in the line graph of a random graph of 60 edges."""
    rng = np.random.default_rng(seed)
    line = nx.convert_node_labels_to_integers(nx.line_graph(nx.gnm_random_graph(25, 60, seed=seed)))
    nine = beineke_graphs() if seed == 0 else None
    i, j = rng.permutation(60)[:2]
    (line.remove_edge if line.has_edge(i, j) else line.add_edge)(i, j)
    assert not is_line_graph(csr(line))
    place = forbidden_place(csr(line))
    found = nx.convert_node_labels_to_integers(line.subgraph(place.tolist()))
    assert {i, j} <= set(place.tolist())
    assert not is_line_graph(csr(found))
    assert all(is_line_graph(csr(without(found, v))) for v in found)
    assert nine is None or any(nx.is_isomorphic(found, g) for g in nine)
