"""Signs along relations: those of the truth up to one per pixel, never a wrong one where values
coincide."""

import numpy as np

from unveil.relations.signs import joined, propagate_signs, relation_rows, sign_graph
from unveil.relations.subspace import _rows
from unveil.solve.signs.signed_pairs import four_cycles


def instance(n, m, d, seed, levels=None):
    rng = np.random.default_rng(seed)
    x = (
        rng.standard_normal((n, d))
        if levels is None
        else rng.integers(0, levels, (n, d)).astype(float) - levels // 2
    )
    u, v = np.triu_indices(n, 1)
    some = rng.permutation(len(u))[:m]
    pairs = np.column_stack([u, v])[some]
    return x[pairs].sum(axis=1), pairs, four_cycles(pairs, n, 10**6)


def agrees(sign, z):
    """Signs that are told are those of z, up to one for each pixel."""
    told = (sign != 0) & (z != 0)
    product = np.where(told, sign * np.sign(z), 0)
    return np.abs(product.sum(axis=0)) == told.sum(axis=0)


def test_all_signs_of_values_in_general_position():
    z, _, quads = instance(20, 100, 12, 0)
    graph = sign_graph(quads, np.tile([1.0, -1, 1, -1], (len(quads), 1)), 100)
    sign = propagate_signs(graph, np.abs(z), np.full(12, 1e-9))
    assert joined(quads, 100).all()
    assert (sign != 0).all()
    assert agrees(sign, z).all()


def test_coinciding_values_leave_signs_open_and_none_wrong():
    open_ = 0
    for seed in range(10):
        z, _, quads = instance(40, 140, 20, seed, levels=6)
        graph = sign_graph(quads, np.tile([1.0, -1, 1, -1], (len(quads), 1)), 140)
        sign = propagate_signs(graph, np.abs(z), np.full(20, 1e-9))
        assert agrees(sign, z).all()
        open_ += (sign == 0).sum()
    assert open_ > 0


def test_the_largest_set_that_hangs_together():
    quads = np.array([[0, 1, 2, 3], [3, 4, 5, 6], [7, 8, 9, 10]])
    np.testing.assert_array_equal(np.flatnonzero(joined(quads, 12)), np.arange(7))
    assert not joined(quads[:0], 5).any()


def test_rows_of_a_matrix():
    quads, signs = (
        np.array([[0, 1, 2, 5], [1, 2, 3, 4]]),
        np.array([[1.0, -1, 1, -1], [1, 1, -1, -1]]),
    )
    got, coefficients = relation_rows(_rows(quads, signs, 6))
    np.testing.assert_array_equal(got, quads)
    np.testing.assert_array_equal(coefficients, signs)
