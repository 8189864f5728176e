"""Subsets from pixels: every search against trying all subsets."""

from itertools import combinations

import numpy as np
import pytest

from unveil.solve.subsets.descent import _all_pairs, best_partners, descend, reassign, restart


def data(k, n=8, m=20, p=60, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)).astype(np.float32)
    members = np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k], axis=1)
    y = np.abs(x[members].sum(axis=1) + noise * rng.standard_normal((m, p))).astype(np.float32)
    weights = (0.5 + rng.random(p)).astype(np.float32)
    return rng, x, members, y, weights


def plain_best(y, x, k, usable, weights):
    """For each row the subset of usable columns with the smallest weighted mean square residual, by
    trying them all."""
    subsets = list(combinations(np.flatnonzero(usable), k))
    members, cost = [], []
    for row in y.astype(np.float64):
        values = [
            float(np.mean(weights * (np.abs(x[list(s)].sum(axis=0)) - row) ** 2)) for s in subsets
        ]
        members.append(subsets[int(np.argmin(values))])
        cost.append(min(values))
    return np.array(members), np.array(cost)


@pytest.mark.parametrize("block", [16384, 5])
def test_all_pairs_are_what_a_double_loop_finds(block):
    _, x, _, y, weights = data(2, noise=0.5)
    usable = np.ones(8, bool)
    usable[3] = False
    members, cost = _all_pairs(y, x, usable, weights, block=block)
    expected, least = plain_best(y, x, 2, usable, weights)
    np.testing.assert_array_equal(np.sort(members, axis=1), expected)
    np.testing.assert_allclose(cost, least, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_descent_with_restarts_finds_the_best_of_all_subsets(k, noise):
    rng, x, truth, y, weights = data(k, noise=noise)
    usable = np.ones(8, bool)
    members, cost = reassign(y, x, np.tile(np.arange(k), (20, 1)), usable, weights)
    members, cost = restart(y, x, members, cost, np.arange(20), usable, weights, rng)
    expected, least = plain_best(y, x, k, usable, weights)
    np.testing.assert_array_equal(np.sort(members, axis=1), expected)
    np.testing.assert_allclose(cost, least, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(expected, truth)


def test_descent_reports_the_cost_of_the_subset_it_returns():
    _, x, _, y, weights = data(3, noise=0.5)
    members = np.tile(np.arange(3), (20, 1))
    cost = descend(y, x, members, np.arange(20), np.ones(8, bool), weights, sweeps=1)
    actual = (weights * (np.abs(x[members].sum(axis=1)) - y) ** 2).mean(axis=1)
    np.testing.assert_allclose(cost, actual, rtol=1e-4)
    assert all(len(set(row)) == 3 for row in members)


def test_descent_touches_only_the_rows_it_is_given_and_avoids_unusable_columns():
    _, x, _, y, weights = data(3)
    members = np.tile(np.arange(3), (20, 1))
    usable = np.arange(8) < 5
    cost = descend(y, x, members, np.array([4, 9]), usable, weights, sweeps=4)
    untouched = np.delete(np.arange(20), [4, 9])
    assert (members[untouched] == [0, 1, 2]).all()
    assert cost.shape == (2,)
    assert (members < 5).all()


def test_restarts_never_make_a_row_worse():
    rng, x, truth, y, weights = data(3)
    cost = np.zeros(20)
    members, after = restart(y, x, truth, cost, np.arange(20), np.ones(8, bool), weights, rng)
    np.testing.assert_array_equal(members, truth)
    np.testing.assert_array_equal(after, cost)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_partners_of_an_unknown_vector_are_found(k):
    rng, x, _, _, _ = data(k, n=12, p=400)
    sound = np.ones(12, bool)
    truth = np.sort(rng.choice(11, k - 1, replace=False))
    y = np.abs(x[truth].sum(axis=0) + rng.standard_normal(400)).astype(np.float32)
    found = best_partners(y, x, np.full(k, 11), np.flatnonzero(sound), sound)
    np.testing.assert_array_equal(np.sort(found), truth)


@pytest.mark.parametrize("k", [2, 3])
def test_a_public_part_is_taken_into_account(k):
    rng, x, truth, _, weights = data(k, n=12, m=30, p=80)
    offsets = rng.standard_normal((30, 80)).astype(np.float32)
    y = np.abs(x[truth].sum(axis=1) + offsets)
    usable = np.ones(12, bool)
    members, cost = reassign(y, x, np.tile(np.arange(k), (30, 1)), usable, weights, offsets)
    members, cost = restart(y, x, members, cost, np.arange(30), usable, weights, rng, offsets)
    np.testing.assert_array_equal(np.sort(members, axis=1), truth)
    assert cost.max() < 1e-9


def test_a_vector_is_taken_twice_only_where_that_is_allowed():
    _, x, _, _, weights = data(3)
    y = np.abs(2 * x[4:5] + x[1:2])
    for repeats in (True, False):
        members = np.array([[0, 4, 2]])
        cost = descend(
            y, x, members, np.arange(1), np.ones(8, bool), weights, sweeps=6, repeats=repeats
        )
        assert (sorted(members[0]) == [1, 4, 4]) == repeats
        assert (cost[0] < 1e-9) == repeats
