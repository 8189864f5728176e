"""Roots of line graphs: every small graph is judged rightly, networkx's own tests pass on our root,
wrong overlaps are outvoted, and the attack gives every vector back."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from networkx.generators.tests import test_line

import unveil
from unveil import InputError, Overlaps, Scheme, recover, score, simulate
from unveil.encode import selection_matrix
from unveil.rivals.line_graph import line_graph_root, root_of_component


@nx.utils.not_implemented_for("directed")
@nx.utils.not_implemented_for("multigraph")
def root_graph(graph):
    """Our root of a networkx graph, in the place of `networkx.inverse_line_graph`."""
    if graph.number_of_nodes() == 0:
        return nx.empty_graph(1)
    if graph.number_of_nodes() == 1:
        v = next(iter(graph))
        if graph.number_of_edges():
            raise nx.NetworkXError("a self-loop is in no line graph")
        return nx.Graph([((v,), (v, 0))])
    if nx.number_of_selfloops(graph):
        raise nx.NetworkXError("a self-loop is in no line graph")
    if not graph.number_of_edges():  # networkx refuses what has a root of its own
        raise nx.NetworkXError("edgeless graph")
    names = {v: i for i, v in enumerate(graph)}
    near = [{names[u] for u in graph[v]} for v in graph]
    out = nx.Graph()
    for number, rows in enumerate(nx.connected_components(graph)):
        cells = root_of_component(near, sorted(names[v] for v in rows))
        if cells is None:
            raise nx.NetworkXError("no line graph")
        out.add_edges_from(((number, a), (number, b)) for a, b in cells.values())
    return out


class TestNetworkxsOwn(test_line.TestGeneratorInverseLine):
    """networkx's tests of `inverse_line_graph`, run on our root."""

    @pytest.fixture(autouse=True)
    def ours(self, monkeypatch):
        monkeypatch.setattr(nx, "inverse_line_graph", root_graph)


def is_line_graph(g):
    g = nx.convert_node_labels_to_integers(g)
    near = [set(g[v]) for v in g]
    return all(root_of_component(near, sorted(c)) for c in nx.connected_components(g))


def small_graphs():
    return [g for g in nx.graph_atlas_g() if 1 <= len(g) <= 6 and nx.is_connected(g)]


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
                fits = all(adjacency[p] for p in pairs) and not pairs & covered
                if fits and all(cells[v] < 2 for v in clique):
                    more = cells.copy()
                    more[clique] += 1
                    if extend(covered | pairs, more):
                        return True
        return False

    return extend(frozenset(), np.zeros(m, int))


def test_every_connected_graph_of_up_to_six_vertices_is_judged_rightly():
    truth = [has_krausz_partition(nx.to_numpy_array(g, dtype=bool)) for g in small_graphs()]
    assert [is_line_graph(g) for g in small_graphs()] == truth
    assert (len(truth), 0 < sum(truth) < 143) == (143, True)


def overlaps_of(pairs):
    pairs = np.asarray(pairs)
    W = np.zeros((len(pairs), pairs.max() + 1), int)
    np.put_along_axis(W, pairs, 1, axis=1)
    return W @ W.T


def stars(pairs):
    """The pairs, up to names: the rows of every vertex that has more than one."""
    pairs = np.asarray(pairs)
    rows = [frozenset(np.flatnonzero((pairs == v).any(axis=1)).tolist()) for v in np.unique(pairs)]
    return {r for r in rows if len(r) > 1}


def random_pairs(n, m, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], axis=1)


@pytest.mark.parametrize(("n", "m"), [(12, 40), (40, 60), (60, 300), (200, 150)])
def test_roots_have_the_overlaps_given_and_unique_pairs_are_the_true_ones(n, m):
    """Duplicates, components and lone encodings as chance has them."""
    pairs = random_pairs(n, m, n)
    M = overlaps_of(pairs)
    found = line_graph_root(Overlaps.from_array(M, 2))
    np.testing.assert_array_equal(overlaps_of(found.members), M)
    assert (found.broken, found.contradicted) == (0, 0)
    assert found.components == nx.number_connected_components(nx.Graph(M > 0))
    assert stars(found.members[found.unique]) == stars(pairs[found.unique])


def test_whitneys_exceptions_and_no_others_have_two_roots():
    """K3 and K1,3, and the three that have a triangle and four vertices."""
    exceptions = []
    for g in nx.graph_atlas_g():
        if 1 <= g.number_of_edges() <= 7 and len(g) <= 6 and nx.is_connected(g):
            pairs = np.sort(list(g.edges), axis=1)
            found = line_graph_root(Overlaps.from_array(overlaps_of(pairs), 2))
            assert found.unique.all() == found.unique.any()
            if not found.unique.all():
                exceptions.append((len(g), g.number_of_edges()))
    assert sorted(exceptions) == [(3, 3), (4, 3), (4, 4), (4, 5), (4, 6)]


@pytest.mark.parametrize("seed", range(3))
def test_wrong_overlaps_are_outvoted(seed):
    pairs = random_pairs(30, 200, seed)
    M, rng = overlaps_of(pairs), np.random.default_rng(seed)
    for _ in range(40):
        i, j = rng.choice(200, 2, replace=False)
        M[i, j] = M[j, i] = 1 - min(M[i, j], 1)
    found = line_graph_root(Overlaps.from_array(M, 2))
    assert found.broken == 1
    np.testing.assert_array_equal(overlaps_of(found.members), overlaps_of(pairs))


@pytest.mark.parametrize("k_public", [0, 2])
def test_every_vector_comes_back(k_public):
    n_public = 40 if k_public else 0
    sim = simulate(Scheme(2, k_public), 15, n_public=n_public, m=120, d=3000, rng=1)
    recovery = recover(sim.encodings, sim.public, attack="line-graph", rng=0)
    scores = score(recovery, sim.private)
    assert (scores.exact, scores.wrong, recovery.signed) == (15, 0, bool(k_public))


def test_four_vectors_alone_have_two_roots_and_are_not_verified():
    sim = simulate(Scheme(2), 4, m=12, d=4000, rng=3)
    W = selection_matrix(sim.selection.private, 4)
    M = Overlaps.from_array((W @ W.T).astype(int), 2)
    recovery = recover(sim.encodings, attack="line-graph", overlaps=M, rng=0)
    assert not recovery.verified.any()


def test_what_it_cannot_take_on_is_refused():
    with pytest.raises(InputError, match="k_private=2 only"):
        recover(simulate(Scheme(3), 10, m=20, d=30, rng=0).encodings, attack="line-graph")
    with pytest.raises(InputError, match="above 2"):
        line_graph_root(unveil.Overlaps.from_array([[2, 3], [3, 2]], 2))
