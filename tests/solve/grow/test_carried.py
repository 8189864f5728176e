"""Carried on exactly: from some rows to all of them, with vectors that were missing, and never from
rows that do not hold."""

import numpy as np
import pytest

from unveil.solve.grow.carried import carry


def instance(k, n=24, m=240, p=60, seed=0):
    """y (m, p), members (m, k), and a noisy similarity of all pairs."""
    rng = np.random.default_rng(seed)
    members = np.array([np.sort(rng.choice(n, k, replace=False)) for _ in range(m)])
    x = rng.standard_normal((n, p))
    W = np.zeros((m, n))
    np.put_along_axis(W, members, 1, axis=1)
    noise = 0.5 * rng.standard_normal((m, m))
    S = W @ W.T + (noise + noise.T) / 2
    np.fill_diagonal(S, 0)
    return np.abs(x[members].sum(axis=1)).astype(np.float32), members, x, S


@pytest.mark.parametrize("k", [3, 5])
def test_all_rows_and_missing_vectors_follow_from_the_rows_of_some_vectors(k):
    y, members, _, S = instance(k)
    rows = np.flatnonzero((members < 21).all(axis=1))
    found = carry(y, rows, members[rows], S, np.random.default_rng(1))
    assert found is not None
    known, theirs, values = found
    assert len(known) == len(y)
    assert len(values) == 24
    np.testing.assert_allclose(np.abs(values[theirs].sum(axis=1)), y[known], atol=1e-4)
    together = np.zeros((len(y), 24))
    np.put_along_axis(together, theirs, 1, axis=1)
    truth = np.zeros((len(y), 24))
    np.put_along_axis(truth, members, 1, axis=1)
    np.testing.assert_array_equal(together @ together.T, truth @ truth.T)


def test_a_few_wrong_rows_do_no_harm():
    y, members, _, S = instance(3)
    start = members.copy()
    start[:5] = [0, 1, 2]
    rows = np.arange(120)
    found = carry(y, rows, start[rows], S, np.random.default_rng(1))
    assert found is not None
    assert len(found[0]) == len(y)
    assert len(found[2]) == 24


def test_nothing_is_carried_where_nothing_holds():
    y, members, _, S = instance(3)
    wrong = np.random.default_rng(2).permutation(members)
    assert carry(y, np.arange(len(y)), wrong, S, np.random.default_rng(1)) is None
