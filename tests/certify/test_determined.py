"""Vectors that encodings do not determine: null vectors of W, by three ways."""

import numpy as np
import pytest

from unveil.certify.determined import _bipartite, _touched_by_null, undetermined_by


def subsets(n, k, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, k, replace=False) for _ in range(m)])


@pytest.mark.parametrize("k", [2, 3])
def test_vectors_that_always_occur_together_are_not_determined(k):
    n = 20
    rows = np.vstack([subsets(n, k, 150), [[n, n + 1, *range(j, j + k - 2)] for j in range(4)]])
    found = undetermined_by(rows, n + 2)
    assert not found[:n].any()
    assert found[n:].all()


def test_at_scale_the_same_vectors_are_undetermined():
    """Peeling components, the double cover and the iteration against the null vectors of a dense
    decomposition."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        pairs = np.sort(
            rng.integers(0, 40, (34, 2)), axis=1
        )  # some bipartite trees, some odd cycles, a vector with itself
        triples = np.vstack([subsets(30, 3, 34, seed), [[30, 31, j] for j in range(4)]])
        for members, n, quick in ((pairs, 40, _bipartite), (triples, 33, _touched_by_null)):
            W = np.zeros((len(members), n))
            np.add.at(W, (np.repeat(np.arange(len(members)), members.shape[1]), members.ravel()), 1)
            values, vectors = np.linalg.eigh(W.T @ W)
            dense = (np.abs(vectors[:, values < 1e-9]) > 1e-6).any(axis=1)
            assert 0 < dense.sum() < n
            np.testing.assert_array_equal(quick(members, n), dense)
