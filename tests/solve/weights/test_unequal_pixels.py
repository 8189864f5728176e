"""The final solve with unknown weights: exact from near-exact input, mistakes in the input found
and mended."""

from dataclasses import replace

import numpy as np

from unveil import Scheme, simulate
from unveil.solve.weights.unequal import WeightedAssignment
from unveil.solve.weights.unequal_pixels import _names, solve_weights_and_pixels


def instance(n=12, m=160, d=400, some=150, k=2, seed=0):
    sim = simulate(Scheme(k, weighting="half-normal"), n, m=m, d=d, rng=seed)
    weights = np.maximum(
        sim.selection.weights + 1e-3 * np.random.default_rng(seed).standard_normal((m, k)), 0
    )
    # One sign per pixel is free: the feedback may have any.
    x = sim.private[:, :some] * np.random.default_rng(1).choice([-1, 1], some).astype(np.float32)
    return sim, WeightedAssignment(sim.selection.private, weights, x, np.ones(m, bool), 1)


def check(sim, solution):
    X = solution.pixels.values
    signs = np.sign((X * sim.private).sum(axis=0))
    np.testing.assert_allclose(signs * X, sim.private, atol=1e-5)
    order = np.argsort(solution.members, axis=1)
    np.testing.assert_array_equal(
        np.take_along_axis(solution.members, order, axis=1), sim.selection.private[solution.rows]
    )
    np.testing.assert_allclose(
        np.take_along_axis(solution.weights, order, axis=1),
        sim.selection.weights[solution.rows],
        atol=1e-6,
    )
    assert solution.pixels.solved.all()
    assert solution.spread.max() < 1e-6


def test_weights_and_pixels_become_exact():
    for k in (2, 3):
        sim, found = instance(k=k)
        solution = solve_weights_and_pixels(
            sim.encodings.magnitudes(), found, np.random.default_rng(0)
        )
        np.testing.assert_array_equal(solution.rows, np.arange(160))
        check(sim, solution)
        assert solution.pixels.misfit.max() < 1e-5
        assert not solution.pixels.differs.any()


def test_rows_with_wrong_members_are_mended_and_rows_given_up_are_explained():
    sim, found = instance()
    members, exact = found.members.copy(), np.arange(160) >= 10
    members[20:23] = (members[20:23] + 3) % 12
    solution = solve_weights_and_pixels(
        sim.encodings.magnitudes(),
        replace(found, members=members, exact=exact),
        np.random.default_rng(0),
    )
    np.testing.assert_array_equal(solution.rows, np.arange(160))
    check(sim, solution)


def test_an_encoding_of_something_else_is_left_out():
    sim, found = instance()
    Y = sim.encodings.magnitudes().copy()
    Y[7] = np.abs(np.random.default_rng(5).standard_normal(400))
    solution = solve_weights_and_pixels(Y, found, np.random.default_rng(0))
    np.testing.assert_array_equal(solution.rows, np.delete(np.arange(160), 7))
    check(sim, solution)


def test_too_few_rows_are_none():
    sim, found = instance()
    few = replace(found, exact=np.arange(160) < 8)
    assert (
        solve_weights_and_pixels(sim.encodings.magnitudes(), few, np.random.default_rng(0)) is None
    )


def test_copies_get_one_name_and_rows_that_say_nothing_go():
    x = np.random.default_rng(0).standard_normal((6, 50))
    x[4] = x[1]
    members = np.array([[0, 1], [0, 2], [4, 2], [1, 4], [3, 0], [5, 2], [5, 1]])
    new, keep, used = _names(x, members)
    np.testing.assert_array_equal(
        keep, [True, True, True, False, False, True, True]
    )  # [1, 4] is one vector twice, 3 is lonely
    np.testing.assert_array_equal(used, [0, 1, 2, 5])
    np.testing.assert_array_equal(new[keep], [[0, 1], [0, 2], [1, 2], [3, 2], [3, 1]])
