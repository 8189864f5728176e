"""Subsets and values where signs are kept: least squares like NumPy's, wrong guesses corrected,
rare vectors found."""

import numpy as np
import pytest

from unveil.solve.linear import (
    best_members,
    coefficients,
    different,
    evidence,
    fit_linear,
    grow,
    least_squares,
    spread,
)

RNG = np.random.default_rng(0)


def instance(k=2, n=30, m=200, d=60, seed=0):
    rng = np.random.default_rng(seed)
    members = np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k], axis=1)
    x = rng.standard_normal((n, d))
    return x[members].sum(axis=1), members, x


def incidence(members, n):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    return W


def same_vectors(found, x):
    """Each found vector is one of x."""
    return np.abs(found[:, None] - x).max(axis=2).min(axis=1) < 1e-6


@pytest.mark.parametrize("k", [2, 3, 5])
def test_conjugate_gradients_give_what_lstsq_gives(k):
    y, members, _ = instance(k)
    y = y + RNG.standard_normal(y.shape)
    np.testing.assert_allclose(
        least_squares(y, members, 30), np.linalg.lstsq(incidence(members, 30), y)[0], atol=1e-9
    )


def test_the_shortest_solution_where_there_are_several():
    members = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    y = RNG.standard_normal((4, 5))
    # Columns have equal norms here: what is shortest in scaled unknowns is shortest.
    np.testing.assert_allclose(
        least_squares(y, members, 4), np.linalg.lstsq(incidence(members, 4), y)[0], atol=1e-9
    )


def test_spread_is_the_standard_error_of_least_squares():
    _, members, _ = instance(3)
    W = incidence(members, 30)
    true = np.sqrt(np.diag(np.linalg.inv(W.T @ W)))
    np.testing.assert_allclose(
        spread(members, 30, np.random.default_rng(0), probes=4000), true, rtol=0.1
    )


@pytest.mark.parametrize(("n", "d"), [(30, 60), (30, 25)])
def test_members_are_told_by_known_vectors(n, d):
    y, members, x = instance(2, n, d=d)
    assert (best_members(y, x, 2) == members).all(axis=1).mean() > 0.99
    if n <= d:
        np.testing.assert_allclose(coefficients(y, x), incidence(members, n), atol=1e-6)


def test_one_vector_under_two_names_gets_one():
    x = RNG.standard_normal((5, 40))
    kept, names = different(np.vstack([x, x[3], x[1] + 1e-4]))
    np.testing.assert_array_equal(kept, x)
    np.testing.assert_array_equal(names, [0, 1, 2, 3, 4, 3, 1])


def test_rows_that_say_nothing_are_left_out():
    members = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [1, 1]])
    np.testing.assert_array_equal(evidence(members, np.arange(6)), [0, 1, 2])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_wrong_guesses_are_corrected(k):
    y, members, x = instance(k)
    guess = members.copy()
    wrong = RNG.choice(200, 40, replace=False)
    guess[wrong] = RNG.permuted(np.tile(np.arange(30), (40, 1)), axis=1)[:, :k]
    fit = fit_linear(y, guess, np.ones(200, bool))
    assert fit.exact
    assert len(fit.rows) == 200
    assert len(fit.values) == 30
    assert same_vectors(fit.values, x).all()


@pytest.mark.parametrize("k", [2, 3])
def test_vectors_nobody_guessed_grow_from_what_is_left(k):
    y, members, x = instance(k)
    hidden = np.isin(members, [4, 7])
    guess = np.where(hidden.any(axis=1)[:, None], -1, members)
    fit = fit_linear(y, guess, np.ones(200, bool))
    assert fit.exact
    assert len(fit.values) == 30
    assert len(fit.rows) == 200
    assert same_vectors(fit.values, x).all()


def test_growth_names_partners_only_where_they_can_be_told():
    x = RNG.standard_normal((6, 40))
    z = RNG.standard_normal(40)
    y = np.array([x[0] + x[1] + z, x[0] + x[2] + z, x[3] + x[4] + z])
    start = np.zeros((3, 3), np.int64)
    assert (
        len(grow(y[:2], x, start[:2], np.arange(2), 0.0)[1]) == 0
    )  # x[0] is in both: it cannot be told from another
    members, rows = grow(y, x, start, np.arange(3), 0.0)
    np.testing.assert_array_equal(rows, [0, 1, 2])
    np.testing.assert_array_equal(np.sort(members, axis=1), [[0, 1, 6], [0, 2, 6], [3, 4, 6]])


def test_under_noise_rows_are_fitted_but_not_exact():
    y, members, _ = instance(2, d=200)
    fit = fit_linear(y + 0.1 * RNG.standard_normal(y.shape), members, np.ones(200, bool))
    assert not fit.exact
    assert len(fit.rows) > 190
    assert np.sqrt(np.mean(fit.miss**2)) == pytest.approx(0.1 * np.sqrt(1 - 30 / 200), rel=0.05)


def test_noise_alone_is_not_reproduced():
    rng = np.random.default_rng(1)
    fit = fit_linear(rng.standard_normal((80, 50)), instance(2, m=80)[1], np.ones(80, bool))
    assert fit is None or not fit.exact


def test_no_guess_at_all_is_nothing():
    y, members, _ = instance()
    assert fit_linear(y, np.full_like(members, -1), np.ones(200, bool)) is None
