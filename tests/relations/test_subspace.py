"""From relations to subsets: columns of W come back exactly, up to names, whatever signs the rows
have."""

from itertools import combinations

import numpy as np
import pytest

from unveil.relations.find import find_relations
from unveil.relations.sketch import sketch
from unveil.relations.subspace import (
    exact_column,
    null_space,
    relation_matrix,
    sparse_basis,
    subsets,
)


def random_subsets(n, m, k, seed=0):
    every = np.array(list(combinations(range(n), k)))
    return every[np.random.default_rng(seed).permutation(len(every))[:m]]


def matrix(members, n):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    return W


def orthonormal(W, seed=0):
    """A basis of what W spans, turned at random."""
    n = W.shape[1]
    return np.linalg.qr(W @ np.random.default_rng(seed).standard_normal((n, n)))[0]


def stars(rows, members):
    """The rows of every vector: subsets up to names."""
    return {frozenset(rows[(members == v).any(axis=1)].tolist()) for v in np.unique(members)}


@pytest.mark.parametrize(
    ("n", "m", "k"),
    [(12, 50, 2), (25, 120, 2), (14, 200, 3), (20, 200, 3), (24, 300, 4), (30, 600, 4)],
)
@pytest.mark.parametrize("seed", range(2))
def test_subsets_come_back_from_the_span_with_any_signs_of_rows(n, m, k, seed):
    members = random_subsets(n, m, k, seed)
    signs = np.random.default_rng(seed + 10).choice([-1.0, 1.0], m)
    told = subsets(
        orthonormal(signs[:, None] * matrix(members, n), seed), k, np.random.default_rng(seed)
    )
    np.testing.assert_array_equal(told.rows, np.arange(m))
    assert told.columns == n
    assert stars(told.rows, told.members) == stars(np.arange(m), members)
    assert len(set(told.sign * signs)) == 1


@pytest.mark.parametrize(
    ("n", "m", "k", "kind"),
    [(15, 80, 2, "gaussian"), (14, 130, 3, "gaussian"), (15, 80, 2, "levels")],
)
@pytest.mark.parametrize("public", [False, True])
def test_subsets_come_back_from_encodings(n, m, k, kind, public):
    """The whole way: sketch, relations, null space, sparse basis."""
    rng = np.random.default_rng(0)
    members = random_subsets(n, m, k)
    draw = {
        "gaussian": lambda s: rng.standard_normal(s),
        "levels": lambda s: rng.integers(-9, 20, s).astype(float),
    }[kind]
    x, c = draw((n, 30)), draw((m, 30)).astype(np.float32) if public else None
    y = np.abs(x[members].sum(axis=1) + (0 if c is None else c)).astype(np.float32)
    view = sketch(y, c, 0.0, rng)
    R = relation_matrix(view, find_relations(view, limit=1 << 28).quads)
    rows, V = null_space(R)
    assert V.shape[1] == n
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-9)
    assert np.abs(R[:, rows] @ V).max() < 1e-6
    told = subsets(V, k, rng)
    # Of three vectors per encoding one column may stay out of the ascent's reach;
    # `solve.grow.exact_growth` finds it later.
    assert len(told.rows) >= (0.7 if k == 3 else 1.0) * len(rows) > 0.6 * m
    part = told.rows
    assert stars(rows[part], told.members) == stars(rows[part], members[rows[part]])


def test_relations_take_the_signs_of_one_pixel():
    """R·D·W = 0 for the signs D that the encodings have at some pixel."""
    rng = np.random.default_rng(1)
    members = random_subsets(10, 30, 2)
    x = rng.standard_normal((10, 8))
    z = x[members].sum(axis=1)
    view = sketch(np.abs(z).astype(np.float32), None, 0.0, rng)
    R = relation_matrix(view, find_relations(view, limit=1 << 28).quads)
    assert R.shape[0] > 20
    left = [np.abs(R @ (np.sign(z[:, p])[:, None] * matrix(members, 10))).max() for p in range(8)]
    assert min(left) == 0


def test_the_basis_is_orthonormal_spans_the_same_and_is_no_less_sparse():
    V = orthonormal(matrix(random_subsets(12, 60, 2), 12))
    C = sparse_basis(V, np.random.default_rng(0))
    np.testing.assert_allclose(C.T @ C, np.eye(12), atol=1e-9)
    np.testing.assert_allclose(V @ (V.T @ C), C, atol=1e-9)
    assert (C**4).sum() >= (V**4).sum()


def test_an_exact_column_is_the_one_vector_of_its_support_or_none():
    W = matrix(random_subsets(10, 40, 2), 10)
    V = orthonormal(W)
    rng = np.random.default_rng(2)
    for column in W.T:
        got = exact_column(V, column + 0.02 * rng.standard_normal(40))
        np.testing.assert_array_equal(np.abs(got), column)
    assert exact_column(V, rng.standard_normal(40)) is None


def test_rows_that_are_no_sums_of_k_are_not_told():
    """A row of three among rows of two: left out, the others as they are."""
    members = random_subsets(12, 50, 2)
    W = np.vstack([matrix(members, 12), np.eye(12)[:3].sum(axis=0)])
    told = subsets(orthonormal(W), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(told.rows, np.arange(50))
    assert stars(told.rows, told.members) == stars(np.arange(50), members)


def test_a_span_without_sparse_vectors_tells_nothing():
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 12)))[0]
    told = subsets(V, 2, np.random.default_rng(0))
    assert len(told.rows) == 0
    assert told.members.shape == (0, 2)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_too_small_a_span_and_as_many_columns_as_rows_tell_nothing(n):
    told = subsets(np.eye(5)[:, :n], 2 if n != 5 else 3, np.random.default_rng(0))
    assert len(told.rows) == 0


def test_no_relations_have_no_null_space():
    view = sketch(
        np.random.default_rng(0).random((10, 5)).astype(np.float32),
        None,
        0.0,
        np.random.default_rng(0),
    )
    rows, V = null_space(relation_matrix(view, np.empty((0, 4), np.int64)))
    assert len(rows) == 0
    assert len(subsets(V, 2, np.random.default_rng(0)).rows) == 0
