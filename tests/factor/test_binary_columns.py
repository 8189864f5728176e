"""Columns of zeros and ones in a span: against all patterns, and as a design."""

from itertools import product

import numpy as np
import pytest

from unveil.factor.binary_columns import LARGEST, binary_columns, choose_columns


def design(n, m, k, seed):
    rng = np.random.default_rng(seed)
    members = np.sort(np.argsort(rng.random((m, n)), axis=1)[:, :k], axis=1)
    W = np.zeros((m, n))
    np.put_along_axis(W, members, 1.0, axis=1)
    # Any basis of the span, as encodings give one.
    return W, W @ rng.standard_normal((n, n))


def test_all_vectors_of_zeros_and_ones_are_found():
    """Oracle: every vector of {0, 1}^m, held against the span by least squares."""
    W, U = design(5, 11, 2, 0)
    Q = np.linalg.qr(U)[0]
    every = np.array(list(product((0.0, 1.0), repeat=11))[1:]).T
    inside = np.abs(every - Q @ (Q.T @ every)).max(axis=0) < 1e-9
    want = {tuple(column) for column in every[:, inside].T}
    got = {tuple(column) for column in binary_columns(U).T.astype(float)}
    assert got == want
    assert {tuple(column) for column in W.T} <= got


@pytest.mark.parametrize(("n", "m", "k"), [(10, 30, 3), (12, 36, 4), (16, 48, 4)])
def test_the_design_is_chosen_up_to_names(n, m, k):
    W, U = design(n, m, k, n)
    members = choose_columns(binary_columns(U), n, k)
    found = np.zeros((m, n))
    np.put_along_axis(found, members, 1.0, axis=1)
    assert {tuple(column) for column in found.T} == {tuple(column) for column in W.T}


def test_what_is_too_large_or_has_no_design_is_left_alone():
    rng = np.random.default_rng(0)
    assert binary_columns(rng.standard_normal((60, LARGEST + 1))) is None
    assert binary_columns(rng.standard_normal((5, 5))) is None
    assert binary_columns(rng.standard_normal((30, 6))).shape == (30, 0)
    assert choose_columns(np.ones((4, 1), bool), 2, 2) is None
    assert choose_columns(np.eye(4, dtype=bool), 4, 2) is None
    # Nearly all patterns are in the span of unit vectors: too many to choose from.
    assert binary_columns(np.vstack([np.eye(13), np.eye(13)])) is None


def test_columns_that_depend_on_each_other_have_no_answer():
    U = np.random.default_rng(0).standard_normal((20, 4))
    assert binary_columns(np.column_stack([U, U[:, 0] + U[:, 1]])) is None
