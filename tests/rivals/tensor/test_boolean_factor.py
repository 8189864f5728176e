"""W from WWᵀ: exact from few encodings, with wrong overlaps, with more rows than are decomposed;
honest where it cannot be."""

from itertools import combinations

import numpy as np
import pytest
from tests.rivals.tensor.test_intersections import incidence

import unveil
from unveil.rivals.tensor import boolean_factor as room
from unveil.rivals.tensor.boolean_factor import (
    BYTES,
    at_most,
    boolean_factor,
    distinct_columns,
    leading_eigenvectors,
    nats,
    rounded_rows,
    widest,
)

LIMIT = 1 << 28


def misread(M, k, share, rng):
    """One more or one less at a share of the pairs."""
    M = M.copy()
    i, j = np.triu_indices(len(M), 1)
    pick = rng.random(len(i)) < share
    i, j = i[pick], j[pick]
    M[i, j] = np.clip(np.abs(M[i, j] + rng.choice([-1, 1], len(i))), 0, k)
    M[j, i] = M[i, j]
    return M


def factor(M, k, limit=LIMIT, seed=0):
    return boolean_factor(
        unveil.Overlaps.from_array(M, k), np.random.default_rng(seed), memory_limit=limit
    )


def columns(W):
    return sorted(tuple(np.flatnonzero(column)) for column in W.T)


@pytest.mark.parametrize(
    ("k", "n", "m"), [(2, 30, 150), (3, 30, 90), (4, 30, 80), (5, 30, 90), (7, 40, 200)]
)
def test_random_subsets_are_found_up_to_names(k, n, m):
    W = incidence(k, n, m, seed=1)
    found = factor(W @ W.T, k)
    assert columns(found.W) == columns(W)
    assert (found.fit == 1).all()
    rows, members = found.subsets(k)
    np.testing.assert_array_equal(rows, np.arange(m))
    assert (np.diff(members, axis=1) > 0).all()


def factorisations(M, k, n):
    """Brute force: every W with k of n ones per row and WWᵀ = M, up to names, row by row."""
    found = [[]]
    for row in range(len(M)):
        found = [
            [*before, set(subset)]
            for before in found
            for subset in combinations(range(n), k)
            if all(
                len(earlier.intersection(subset)) == M[row, i] for i, earlier in enumerate(before)
            )
        ]
    return {
        tuple(columns(np.array([[name in subset for name in range(n)] for subset in rows])))
        for rows in found
    }


@pytest.mark.parametrize(("k", "n", "m", "seed"), [(2, 6, 14, 0), (2, 6, 12, 1)])
def test_a_small_matrix_has_one_factorisation_and_it_is_found(k, n, m, seed):
    W = incidence(k, n, m, seed)
    assert factorisations(W @ W.T, k, n) == {tuple(columns(factor(W @ W.T, k).W))}


@pytest.mark.parametrize(("k", "share"), [(2, 0.01), (3, 0.03), (4, 0.05)])
def test_wrong_overlaps_do_little_harm(k, share):
    W = incidence(k, 50, 350, seed=2)
    M = misread(W @ W.T, k, share, np.random.default_rng(3))
    assert (M != W @ W.T).any()
    found = factor(M, k)
    assert columns(found.W) == columns(W)
    assert (found.fit < 1).any()


def test_rows_beyond_those_decomposed_are_read_off_them():
    W = incidence(3, 20, 900, seed=4)
    found = factor(W @ W.T, 3)
    assert found.decomposed == room.FEWEST
    assert columns(found.W) == columns(W)
    less = factor(W @ W.T, 3, limit=BYTES * 300**2)
    assert less.decomposed == 300
    assert columns(less.W) == columns(W)


def test_copies_of_encodings_and_a_vector_used_once_are_no_obstacle():
    W = np.repeat(incidence(2, 15, 60, seed=5), 2, axis=0)
    W = np.hstack([W, np.zeros((120, 1), int)])
    W[0, np.flatnonzero(W[0])[0]], W[0, -1] = 0, 1
    assert columns(factor(W @ W.T, 2).W) == columns(W)


def test_a_bipartite_graph_of_pairs_has_dependent_columns_and_is_not_explained():
    """Columns of one side have the same sum as those of the other."""
    rng = np.random.default_rng(6)
    left, right = rng.integers(0, 10, 120), rng.integers(10, 20, 120)
    W = np.zeros((120, 20), int)
    W[np.arange(120), left] = W[np.arange(120), right] = 1
    assert np.linalg.matrix_rank(W) == 19
    found = factor(W @ W.T, 2)
    assert found is None or columns(found.W) != columns(W)


def test_nothing_to_decompose_is_nothing():
    assert factor(3 * np.eye(20, dtype=int), 3) is None  # nothing shared: no end of vectors
    assert factor(np.full((20, 20), 2), 2) is None  # all the same subset
    W = incidence(2, 60, 40, seed=7)
    assert factor(W @ W.T, 2) is None  # fewer encodings than vectors
    W = incidence(2, 20, 80, seed=7)
    assert factor(W @ W.T, 2, limit=BYTES * 10**2) is None  # no memory for 20 rows


def test_the_column_space_has_the_rank_of_the_matrix():
    W = incidence(3, 25, 120, seed=8)
    M = (W @ W.T).astype(np.int8)
    values, vectors = leading_eigenvectors(M, 24.0)
    assert len(values) == 25
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose((vectors * values) @ vectors.T, M, atol=1e-9)
    noisy = np.sort(np.append(values, np.linspace(0.1, 0.5, 9)))[::-1]
    assert widest(noisy, 27.0) == 25


def test_small_steps():
    W = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]], bool)
    np.testing.assert_array_equal(distinct_columns(W), W[:, [0, 2]])
    np.testing.assert_array_equal(at_most(W[:, [2, 0]], 1), W[:, [0]])
    V = incidence(2, 8, 40, seed=9)
    np.testing.assert_array_equal(rounded_rows((V @ V.T).astype(np.float32), V > 0), V > 0)
    M = (V @ V.T).astype(np.int8)
    wrong = V.copy()
    wrong[0] = 1 - wrong[0]
    assert nats(M, V > 0, 2) < nats(M, wrong > 0, 2)
    assert nats(M, V > 0, 2) < nats(M, np.hstack([V, np.zeros((40, 1))]) > 0, 2)


def test_the_same_seed_gives_the_same_columns():
    W = incidence(3, 20, 600, seed=10)
    M = misread(W @ W.T, 3, 0.02, np.random.default_rng(0))
    np.testing.assert_array_equal(factor(M, 3, seed=5).W, factor(M, 3, seed=5).W)
