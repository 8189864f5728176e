"""The inner loops, held against plain NumPy on a random matrix of overlaps."""

import numpy as np
from scipy import sparse

from unveil.factor.floral.houses import _common_neighbours, _joins, _two_steps, _value

K, N = 3, 40
SETS = np.array([np.random.default_rng(i).permutation(7)[:K] for i in range(N)])
W = np.zeros((N, 7), np.int64)
np.put_along_axis(W, SETS, 1, axis=1)
DENSE = (W @ W.T).astype(np.int8)
M = sparse.csr_array(DENSE)
M.sort_indices()
ROWS = (M.indptr.astype(np.int64), M.indices.astype(np.int64), M.data)
NEAR = [np.flatnonzero(row == K - 1) for row in DENSE]
STARTS = np.concatenate([[0], np.cumsum([len(near) for near in NEAR])])
FLAT = np.concatenate(NEAR)


def test_values_are_those_of_the_matrix():
    for i in range(N):
        assert [_value(ROWS, i, j) for j in range(N)] == DENSE[i].tolist()
    assert _joins(ROWS, 0, 1, 2, K) == (DENSE[0, 1] == DENSE[0, 2] == K - 1)


def test_common_neighbours_beyond_the_first_row():
    room = np.empty(N, np.int64)
    for i, j in ((0, 1), (3, 9), (5, 30)):
        size = _common_neighbours(STARTS, FLAT, i, j, room)
        plain = np.intersect1d(NEAR[i], NEAR[j])
        np.testing.assert_array_equal(room[:size], plain[plain > i])


def test_four_paths_of_two_steps():
    counts, touched = np.zeros(N, np.int32), np.empty(N, np.int64)
    A = (DENSE == K - 1).astype(np.int64)
    for i in range(0, N, 5):
        inside = np.arange(N) > i
        paths = (A[i] * inside) @ A
        size = _two_steps(STARTS, FLAT, i, counts, touched)
        expected = np.flatnonzero((paths >= 4) & inside)
        np.testing.assert_array_equal(np.sort(touched[:size]), expected)
        assert not counts.any()
