"""The nearest line graph: exact ones give their root, each placement is the best there is, and
errors are outvoted."""

import numpy as np
import pytest
from scipy import sparse

from unveil.rivals.line_graph.krausz import wide
from unveil.rivals.line_graph.nearest import _place, _star, nearest_pairs


def random_pairs(n, m, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], axis=1)


def overlaps_of(pairs):
    W = np.zeros((len(pairs), pairs.max() + 1), int)
    np.put_along_axis(W, pairs, 1, axis=1)
    M = W @ W.T
    np.fill_diagonal(M, 0)
    return M


def csr(M):
    return sparse.csr_array(M.astype(np.int8))


@pytest.mark.parametrize(("n", "m"), [(15, 60), (30, 200), (100, 300), (60, 500)])
@pytest.mark.parametrize("seed", range(3))
def test_exact_overlaps_give_pairs_that_have_them(n, m, seed):
    M = overlaps_of(random_pairs(n, m, seed))
    np.testing.assert_array_equal(overlaps_of(nearest_pairs(csr(M))), M)


def test_one_wrong_overlap_is_contradicted_and_no_other():
    M = overlaps_of(random_pairs(40, 240, 0))
    for i, j in ((0, int(np.flatnonzero(M[0] == 0)[5])), (7, int(np.flatnonzero(M[7])[0]))):
        wrong = M.copy()
        wrong[i, j] = wrong[j, i] = 1 - M[i, j]
        assert (overlaps_of(nearest_pairs(csr(wrong))) != wrong).sum() == 2


@pytest.mark.parametrize("seed", range(10))
def test_a_row_is_placed_where_it_contradicts_least(seed):
    """Against all pairs of vertices, new ones among them; ties may go either way."""
    pairs = random_pairs(9, 30, seed)
    M = overlaps_of(pairs)
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, 30, (2, 12))
    M[i[i != j], j[i != j]] = M[j[i != j], i[i != j]] = 1
    row = 29
    members = pairs.copy()
    members[row] = -1
    size = np.zeros(62, np.int64)
    np.add.at(size, members[:row].ravel(), 1)
    free, spare = np.arange(62)[::-1].copy(), np.array([62 - 9])
    graph = csr(M)
    _place(
        *wide(graph),
        graph.data == 2,
        members,
        row,
        size,
        np.zeros(62, np.int64),
        np.empty(62, np.int64),
        free,
        spare,
    )

    def contradicted(u, v):
        trial = np.vstack([pairs[:row], [[u, v]]])
        share = np.array([len({u, v} & set(other)) for other in trial[:row].tolist()])
        return int((share != M[row, :row]).sum())

    best = min(contradicted(u, v) for u in range(11) for v in range(u + 1, 11))
    assert contradicted(*members[row]) == best
    assert size.sum() == 60


def test_the_first_star_is_one():
    pairs = random_pairs(30, 200, 3)
    graph = csr(overlaps_of(pairs))
    star = pairs[_star(*wide(graph), 0)]
    common = set(star[0]) & set(star[1])
    assert len(star) > 5
    assert any((star == v).any(axis=1).all() for v in common)


@pytest.mark.parametrize("M", [1 - np.eye(2), 1 - np.eye(3), 2 * (1 - np.eye(4)), 1 - np.eye(30)])
def test_tiny_and_complete_graphs_are_placed(M):
    pairs = nearest_pairs(csr(M))
    assert (pairs >= 0).all()
    assert (pairs[:, 0] != pairs[:, 1]).all()
