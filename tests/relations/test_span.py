"""Subsets from the column space of signed encodings, against those that made it; rank and
completeness."""

import numpy as np
import pytest

from unveil.relations.span import assembled, column_space, complete_part, local_subsets


def signed(n, m, k, seed, d=None):
    """(D·W·x, members, D)."""
    rng = np.random.default_rng(seed)
    members = np.sort(np.argsort(rng.random((m, n)), axis=1)[:, :k], axis=1)
    members = np.unique(members, axis=0)
    sign = rng.choice([-1.0, 1.0], len(members))
    x = rng.standard_normal((n, d or 2 * n)).astype(np.float32)
    return sign[:, None] * x[members].sum(axis=1).astype(np.float64), members, sign


@pytest.mark.parametrize(("n", "m", "k"), [(100, 700, 2), (60, 600, 3)])
def test_most_subsets_and_none_wrong(n, m, k):
    z, members, sign = signed(n, m, k, 0)
    V = column_space(z)
    assert V.shape[1] == n
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-6)
    told = local_subsets(V, k, np.random.default_rng(1))
    assert len(told.rows) > 0.5 * m
    # One name per vector: the rows of a column have one true vector in common.
    W = np.zeros((len(members), n), bool)
    W[np.arange(len(members))[:, None], members] = True
    right = 0
    for column in range(told.columns):
        rows = told.rows[(told.members == column).any(axis=1)]
        right += len(rows) < 2 or bool(W[rows].all(axis=0).sum() == 1)
    assert right >= told.columns - 1
    product = told.sign * sign[told.rows]
    assert abs(product.sum()) >= len(product) - 2


def test_no_rank_where_pixels_are_too_few():
    z, _, _ = signed(100, 700, 2, 0, d=90)
    assert column_space(z) is None


def test_the_complete_part_has_nothing_unknown():
    rng = np.random.default_rng(0)
    sign = rng.choice(np.array([-1, 1], np.int8), (50, 40))
    sign[3] = 0  # a bad row
    sign[7, 5] = 0
    sign[:, 20] = 0  # a bad pixel
    rows, pixels = complete_part(sign, 38)
    assert (sign[np.ix_(rows, pixels)] != 0).all()
    assert len(pixels) == 38
    assert 3 not in rows
    assert len(rows) == 49


def test_signs_of_columns_follow_from_shared_rows():
    columns = [
        (np.array([0, 1]), np.array([1.0, 1])),
        (np.array([1, 2]), np.array([-1.0, 1])),
        (np.array([2, 0]), np.array([-1.0, 1])),
    ]
    told = assembled(columns, 3, 2)
    np.testing.assert_array_equal(told.rows, [0, 1, 2][: len(told.rows)])
    assert told.columns == 3
    assert not len(assembled([], 3, 2).rows)
