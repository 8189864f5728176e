"""Subsets from pixels: the kernels against plain loops, and the loop itself on instances it must lock on to."""

from itertools import combinations

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.factor.all_vectors import Factorisation
from unveil.solve.feedback import (
    _all_pairs,
    _descend,
    _exact,
    _first_members,
    _merge_copies,
    best_partners,
    feedback,
    reassign,
    restart,
    uses,
)


def data(k, n=8, m=20, p=60, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)).astype(np.float32)
    members = np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k], axis=1)
    y = np.abs(x[members].sum(axis=1) + noise * rng.standard_normal((m, p))).astype(np.float32)
    weights = (0.5 + rng.random(p)).astype(np.float32)
    return rng, x, members, y, weights


def plain_best(y, x, k, usable, weights):
    """For each row the subset of usable columns with the smallest weighted mean square residual, by trying them all."""
    subsets = list(combinations(np.flatnonzero(usable), k))
    members, cost = [], []
    for row in y.astype(np.float64):
        values = [float(np.mean(weights * (np.abs(x[list(s)].sum(axis=0)) - row) ** 2)) for s in subsets]
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
    members, cost = np.tile(np.arange(3), (20, 1)), np.empty(20, np.float32)
    _descend(y, x, members, np.arange(20), cost, np.ones(8, bool), 1, weights)
    actual = (weights * (np.abs(x[members].sum(axis=1)) - y) ** 2).sum(axis=1)
    np.testing.assert_allclose(cost, actual, rtol=1e-4)
    assert all(len(set(row)) == 3 for row in members)


def test_descent_touches_only_the_rows_it_is_given_and_avoids_unusable_columns():
    _, x, _, y, weights = data(3)
    members, cost = np.tile(np.arange(3), (20, 1)), np.full(20, -1, np.float32)
    usable = np.arange(8) < 5
    _descend(y, x, members, np.array([4, 9]), cost, usable, 4, weights)
    untouched = np.delete(np.arange(20), [4, 9])
    assert (members[untouched] == [0, 1, 2]).all()
    assert (cost[untouched] == -1).all()
    assert (members < 5).all()


def test_restarts_never_make_a_row_worse():
    rng, x, truth, y, weights = data(3)
    cost = np.zeros(20)
    members, after = restart(y, x, truth, cost, np.arange(20), np.ones(8, bool), weights, rng)
    np.testing.assert_array_equal(members, truth)
    np.testing.assert_array_equal(after, cost)


def test_uses_counts_different_subsets_in_any_order():
    members = np.array([[0, 1], [1, 0], [0, 1], [1, 2], [3, 2]])
    np.testing.assert_array_equal(uses(members, 6), [1, 2, 2, 1, 0, 0])
    np.testing.assert_array_equal(uses(members[:0], 3), [0, 0, 0])


def test_a_row_is_exact_when_it_fits_and_all_its_columns_are_used_elsewhere():
    _, x, members, y, _ = data(2, m=40)
    assert _exact(y, x, members, 8).all()
    wrong = y.copy()
    wrong[0] += 1
    np.testing.assert_array_equal(_exact(wrong, x, members, 8), np.arange(40) > 0)
    lone = np.vstack([members[:1] * 0 + [8, 0], members[1:]])
    more = np.vstack([x, -x[:1] + y[:1]])  # a column of its own fits whatever the row is
    assert not _exact(y, more, lone, 9)[0]


def test_near_copies_are_merged_into_the_one_with_more_support():
    x = np.random.default_rng(0).standard_normal((5, 50)).astype(np.float32)
    x[3] = x[1] + 0.1
    sound = np.ones(5, bool)
    members = _merge_copies(x, np.array([[0, 1], [3, 2], [4, 1]]), np.array([9, 2, 9, 7, 9]), sound)
    np.testing.assert_array_equal(members, [[0, 3], [3, 2], [4, 3]])
    np.testing.assert_array_equal(sound, [True, False, True, True, True])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_partners_of_an_unknown_vector_are_found(k):
    rng, x, _, _, _ = data(k, n=12, p=400)
    sound = np.ones(12, bool)
    truth = np.sort(rng.choice(11, k - 1, replace=False))
    y = np.abs(x[truth].sum(axis=0) + rng.standard_normal(400)).astype(np.float32)
    found = best_partners(y, x, np.full(k, 11), np.flatnonzero(sound), sound)
    np.testing.assert_array_equal(np.sort(found), truth)


def test_the_first_members_are_those_of_the_factorisation_weighted_by_margin():
    W = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0]])
    scores = np.array([[1.0, 0.9, 0.1, 0], [0.5, 0.55, 0.6, 0.52]])
    members, weights = _first_members(Factorisation(W, scores), 2, 6)
    np.testing.assert_array_equal(np.sort(members, axis=1), [[0, 1], [1, 2]])
    assert weights[0] > weights[1] > 0


@pytest.mark.parametrize("k", [2, 3])
def test_a_start_with_a_third_of_the_rows_wrong_ends_with_the_right_rows_exact(k):
    n, m = 15, 120
    sim = simulate(Scheme(k), n, m=m, d=200, rng=k)
    rng = np.random.default_rng(0)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    broken = rng.permutation(m)[: m // 3]
    W[broken] = W[rng.permutation(broken)]
    scores = W + 0.1 * rng.standard_normal(W.shape)
    out = feedback(sim.encodings.magnitudes(), k, Scheme(k).private_weight, Factorisation(W, scores), n + 3, rng)
    # A row can be caught by a column of its own, which fits it whatever it is; such a row is not called exact.
    assert out.exact.sum() >= m - 1
    alike = np.abs(out.x) @ np.abs(sim.private).T / (np.linalg.norm(out.x, axis=1) + 1e-9)[:, None]
    names = (alike / np.linalg.norm(sim.private, axis=1)).argmax(axis=1)
    found = np.sort(names[out.members], axis=1)
    np.testing.assert_array_equal(found[out.exact], sim.selection.private[out.exact])


def test_columns_the_factorisation_missed_are_added():
    n, m = 15, 150
    sim = simulate(Scheme(2), n, m=m, d=300, rng=3)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    scores = W[:, :-2]  # two vectors are unknown
    start = scores.copy()
    for row in np.flatnonzero(start.sum(axis=1) < 2):
        start[row, np.flatnonzero(start[row] == 0)[: int(2 - start[row].sum())]] = 1
    calls = []
    out = feedback(
        sim.encodings.magnitudes(),
        2,
        Scheme(2).private_weight,
        Factorisation(start, scores),
        n + 3,
        np.random.default_rng(0),
        progress=lambda *call: calls.append(call),
    )
    assert out.exact.all()
    assert calls[-1] == ("feedback", m, m)
    assert len(calls) == out.rounds
