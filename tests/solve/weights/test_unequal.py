"""Feedback with unknown weights: its steps against plain loops, and the loop on starts as coarse as
it gets."""

from itertools import combinations

import numpy as np
import pytest

from unveil.factor.mixed_memberships import Memberships
from unveil.solve.weights.unequal import feedback_unequal, mixed, reassign, refit, scaled


def data(k=2, n=10, m=80, p=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    weights = np.abs(rng.standard_normal((m, k)))
    weights /= weights.sum(axis=1, keepdims=True)
    return rng, x, members, weights, np.abs(np.einsum("ik,ikp->ip", weights, x[members]))


def by_name(members, weights):
    order = np.argsort(members, axis=1)
    return np.take_along_axis(members, order, axis=1), np.take_along_axis(weights, order, axis=1)


@pytest.mark.parametrize("k", [2, 3])
def test_a_mixture_is_the_weighted_sum(k):
    _, x, members, weights, _ = data(k)
    expected = [
        sum(w * x[j] for w, j in zip(ws, js, strict=True))
        for ws, js in zip(weights, members, strict=True)
    ]
    np.testing.assert_allclose(mixed(x, members, weights), expected)
    assert mixed(x.astype(np.float32), members, weights).dtype == np.float32


@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_those_of_ordinary_least_squares(k):
    rng, x, members, weights, y = data(k)
    near = np.maximum(weights + 0.02 * rng.standard_normal(weights.shape), 0)
    signed = np.copysign(y, mixed(x, members, near))
    expected = [
        np.linalg.lstsq(x[js].T, row, rcond=None)[0]
        for js, row in zip(members, signed, strict=True)
    ]
    np.testing.assert_allclose(refit(y, x, members, near, 1), np.maximum(expected, 0), atol=1e-6)
    np.testing.assert_allclose(refit(y, x, members, near, 8), weights, atol=1e-6)


def test_members_are_what_trying_all_pairs_finds():
    _, x, members, weights, y = data(m=30)
    dominant = np.take_along_axis(members, weights.argmax(axis=1)[:, None], axis=1)
    start = np.hstack([dominant, (dominant + 1) % 10])  # only the larger member is known
    found, its = reassign(y, x, start, np.tile([1.0, 0.0], (30, 1)))
    grid = np.linspace(0, 1, 201)[:, None]
    for i, row in enumerate(y):
        costs = {
            (a, b): ((np.abs(grid * x[a] + (1 - grid) * x[b]) - row) ** 2).sum(axis=1).min()
            for a, b in combinations(range(10), 2)
        }
        assert tuple(sorted(found[i])) == min(costs, key=costs.get)
    for ours, true in zip(by_name(found, its), by_name(members, weights), strict=True):
        np.testing.assert_allclose(ours, true, atol=1e-6)


def test_scaling_makes_weights_sum_to_one_and_changes_no_encoding():
    rng, x, members, weights, y = data()
    factor = rng.uniform(0.5, 2, len(x))
    now, values = scaled(members, weights * factor[members], x / factor[:, None])
    np.testing.assert_allclose(now, weights, rtol=1e-4)
    np.testing.assert_allclose(values, x, rtol=1e-4)
    np.testing.assert_allclose(np.abs(mixed(values, members, now)), y, rtol=1e-6)


def test_a_column_that_no_row_uses_stays_as_it_is():
    _, x, members, weights, _ = data()
    now, values = scaled(members, weights, np.vstack([x, 3 * x[:1]]))
    np.testing.assert_allclose(values[-1], 3 * x[0])
    np.testing.assert_allclose(now, weights, rtol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_a_coarse_start_ends_with_every_row_exact(k):
    rng, _, members, weights, y = data(k, n=15, m=260, p=200, seed=1)
    power = weights**2 / (weights**2).sum(axis=1, keepdims=True)
    shares = np.maximum(power + 0.02 * rng.standard_normal(power.shape), 0)
    start = members.copy()
    lost = np.argwhere(power < 0.03)  # members of small weight are not seen
    start[lost[:, 0], lost[:, 1]] = (members.max(axis=1)[lost[:, 0]] + 1) % 15
    order = np.argsort(-shares, axis=1)
    start, shares = (
        np.take_along_axis(start, order, axis=1),
        np.take_along_axis(shares, order, axis=1),
    )
    calls = []
    out = feedback_unequal(
        y.astype(np.float32),
        Memberships(start, shares / shares.sum(axis=1, keepdims=True), 15),
        rng,
        progress=lambda *call: calls.append(call),
    )
    assert out.exact.mean() > 0.99
    assert calls[-1] == ("feedback", int(out.exact.sum()), 260)
    found, its = by_name(out.members, out.weights)
    true, theirs = by_name(members, weights)
    right = (found == true).all(axis=1)
    assert right.mean() > 0.97
    np.testing.assert_allclose(its[right], theirs[right], atol=0.01)


def test_noise_is_never_exact():
    rng = np.random.default_rng(0)
    y = np.abs(rng.standard_normal((60, 100))).astype(np.float32)
    start = Memberships(
        rng.permuted(np.tile(np.arange(8), (60, 1)), axis=1)[:, :2], np.full((60, 2), 0.5), 8
    )
    assert not feedback_unequal(y, start, rng, rounds=6).exact.any()
