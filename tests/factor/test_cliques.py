"""CliqueSubsets from sparse overlaps: exact overlaps give them exactly, wrong and missing entries
cost few rows."""

import numpy as np
import pytest
from scipy import sparse

from unveil.factor.cliques import CliqueSubsets, _graph, _merged, _take_best, _within, find_cliques
from unveil.records import Overlaps


def subsets(n, k, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k], axis=1)


def overlaps_of(members, n, wrong=0, missed=0.0, seed=0):
    """Exact overlaps; then `wrong` entries of 1 between strangers, and a share `missed` of the true
    ones removed."""
    m, k = members.shape
    W = np.zeros((m, n), int)
    np.put_along_axis(W, members, 1, axis=1)
    M = W @ W.T
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(np.triu(M, 1))
    drop = rng.random(len(i)) < missed
    M[i[drop], j[drop]] = M[j[drop], i[drop]] = 0
    strangers = np.argwhere(np.triu(M == 0, 1))
    i, j = strangers[rng.permutation(len(strangers))[:wrong]].T
    M[i, j] = M[j, i] = 1
    return Overlaps.from_array(M, k)


def right_rows(found: CliqueSubsets, members, n):
    """Rows whose columns are their vectors, a column being the vector most of its rows use."""
    count = np.zeros((found.columns, n), int)
    for row, names in zip(found.members, members, strict=True):
        for c in row[row >= 0]:
            count[c, names] += 1
    name = np.append(count.argmax(axis=1), -1)
    assert len(set(name[:-1])) == found.columns  # no vector has two columns
    return (np.sort(name[found.members], axis=1) == members).all(axis=1)


@pytest.mark.parametrize(("k", "n", "m"), [(2, 60, 420), (3, 120, 1200), (4, 200, 1600)])
def test_exact_overlaps_give_every_subset(k, n, m):
    members = subsets(n, k, m)
    found = find_cliques(overlaps_of(members, n))
    assert found.columns == n
    assert found.complete.all()
    assert right_rows(found, members, n).all()


@pytest.mark.parametrize(("k", "n", "m", "wrong"), [(2, 100, 700, 700), (3, 200, 2000, 4000)])
def test_wrong_and_missing_overlaps_cost_few_rows(k, n, m, wrong):
    members = subsets(n, k, m, seed=1)
    found = find_cliques(overlaps_of(members, n, wrong, missed=0.03))
    assert right_rows(found, members, n).mean() > 0.97


def test_copies_of_encodings_change_nothing():
    members = subsets(60, 2, 420, seed=2)
    members = np.vstack([members, members[:40], members[:5]])
    found = find_cliques(overlaps_of(members, 60))
    assert right_rows(found, members, 60).all()


def test_rare_vectors_have_columns_of_their_own():
    """Two vectors in two encodings each, one in one: pairs are columns, a vector used once has
    none."""
    members = np.vstack(
        [subsets(40, 2, 300, seed=3), [[0, 40], [1, 40], [2, 41], [3, 41], [4, 42]]]
    )
    found = find_cliques(overlaps_of(members, 43))
    assert found.columns == 42
    assert right_rows(found, members, 43)[:-1].all()
    assert found.members[-1, 1] == -1


def test_entries_that_are_probably_wrong_do_not_take_part():
    members = subsets(40, 2, 280, seed=4)
    exact = overlaps_of(members, 40)
    noisy = overlaps_of(members, 40, wrong=9000)
    confidence = np.where((exact.toarray() > 0)[noisy.matrix.nonzero()], 0.9, 0.3).astype(
        np.float32
    )
    found = find_cliques(Overlaps(noisy.matrix, 2, 9000.0, confidence))
    assert right_rows(found, members, 40).all()


@pytest.mark.parametrize("M", [2 * np.eye(5, dtype=int), np.full((6, 6), 2), np.eye(1, dtype=int)])
def test_overlaps_without_structure_give_no_subsets_and_no_errors(M):
    found = find_cliques(Overlaps.from_array(M, 2))
    assert found.columns <= 1
    assert found.members.shape == (len(M), 2)


def test_the_best_columns_are_those_of_the_plain_formula():
    members = subsets(20, 2, 90, seed=5)
    overlaps = overlaps_of(members, 20, wrong=200)
    rng = np.random.default_rng(0)
    trust = rng.uniform(0.5, 1, overlaps.matrix.nnz).astype(np.float32)
    graph, single = _graph(Overlaps(overlaps.matrix, 2, 0.0, trust))
    assert (graph.diagonal() == 0).all()
    dense = overlaps.toarray()
    np.fill_diagonal(dense, 0)
    np.testing.assert_array_equal(single, dense[graph.nonzero()] == 1)
    start = members.copy()
    start[rng.permutation(90)[:20], 1] = -1
    S, W = graph.toarray(), np.zeros((90, 21))
    for i, row in enumerate(start):
        W[i, row] = 1
    W = W[:, :20]
    size = W.sum(axis=0)
    within = ((S @ W) * W).sum(axis=0) / (size * (size - 1))
    got, got_size = _within(graph.indptr, graph.indices, graph.data, start, 20)
    np.testing.assert_allclose(got, within, rtol=1e-6)
    np.testing.assert_array_equal(got_size, size)
    gain = S @ W - 0.5 * within * np.maximum(1, size - W)
    best = np.argsort(-gain, axis=1, kind="stable")[:, :2]
    best[np.take_along_axis(gain, best, axis=1) <= 0] = -1
    np.testing.assert_array_equal(
        _take_best(graph.indptr, graph.indices, graph.data, start, got, got_size), best
    )


def test_columns_with_the_same_rows_become_one_unless_they_are_tiny():
    members = np.array([[0, 1], [0, 1], [1, 0], [0, 1], [0, 2], [3, 4], [3, 4]])
    merged = _merged(members, 5)
    np.testing.assert_array_equal(
        np.sort(merged[:5], axis=1), [[-1, 0], [-1, 0], [-1, 0], [-1, 0], [0, 2]]
    )
    np.testing.assert_array_equal(
        np.sort(merged[5:], axis=1), [[3, 4], [3, 4]]
    )  # two copies of one encoding


def test_the_result_does_not_depend_on_how_the_matrix_is_stored():
    overlaps = overlaps_of(subsets(30, 2, 200, seed=6), 30)
    shuffled = sparse.csr_array(overlaps.matrix.tocoo().T.tocsr().T)
    again = find_cliques(Overlaps.from_array(shuffled, 2))
    np.testing.assert_array_equal(again.members, find_cliques(overlaps).members)
