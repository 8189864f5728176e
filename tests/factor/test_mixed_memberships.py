"""Memberships with shares: exact on an exact matrix, close on a noisy one, extended where vectors
were not counted."""

import numpy as np
import pytest

from unveil.factor.mixed_memberships import Memberships, _corners, extend, mixed_memberships


def shares(n, m, k, seed=0):
    """P (m, n), k squared direction cosines of half-normal weights per row."""
    rng = np.random.default_rng(seed)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    power = rng.standard_normal((m, k)) ** 2
    P = np.zeros((m, n))
    np.put_along_axis(P, members, power / power.sum(axis=1, keepdims=True), axis=1)
    return P


def dense(found, m):
    P = np.zeros((m, found.n))
    np.put_along_axis(P, found.members, found.shares, axis=1)
    return P


def matched(P, truth):
    """P with its columns in the order of the true ones they are most like; every one must be
    taken."""
    names = (P.T @ truth / np.linalg.norm(truth, axis=0)).argmax(axis=1)
    assert sorted(names) == list(range(truth.shape[1]))
    return P[:, np.argsort(names)]


@pytest.mark.parametrize(
    ("k", "sigma", "tolerance"), [(2, 0.0, 0.1), (2, 0.02, 0.15), (3, 0.0, 0.2)]
)
def test_members_and_shares_come_back_without_their_number(k, sigma, tolerance):
    n, m = 20, 400
    truth = shares(n, m, k)
    noise = sigma * np.random.default_rng(1).standard_normal((m, m))
    found = mixed_memberships(truth @ truth.T + (noise + noise.T) / np.sqrt(2), k)
    assert found.n == n
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    assert (found.shares >= 0).all()
    error = np.abs(matched(dense(found, m), truth) - truth).max(axis=1)
    assert np.quantile(error, 0.95) < tolerance
    assert np.median(error) < tolerance / 3


def test_the_diagonal_is_not_looked_at():
    truth = shares(8, 100, 2)
    Z = truth @ truth.T
    other = Z.copy()
    np.fill_diagonal(other, -7)
    a, b = mixed_memberships(Z, 2), mixed_memberships(other, 2)
    np.testing.assert_array_equal(a.members, b.members)
    np.testing.assert_array_equal(a.shares, b.shares)


def test_corners_are_the_pure_rows():
    rng = np.random.default_rng(0)
    mixtures = rng.dirichlet(np.ones(5), 60)
    R = np.vstack([mixtures, np.eye(5)]) @ rng.standard_normal((5, 5))
    assert sorted(_corners(R, 5)) == [60, 61, 62, 63, 64]


@pytest.mark.parametrize("Z", [np.zeros((30, 30)), -np.ones((30, 30)), np.ones((3, 3))])
def test_nothing_shared_is_none(Z):
    assert mixed_memberships(Z, 2) is None


def test_vectors_that_were_not_counted_are_added():
    n, m = 20, 400
    truth = shares(n, m, 2, seed=3)
    Z = truth @ truth.T + 0.01 * np.random.default_rng(0).standard_normal((m, m))
    known = truth[:, :-2]
    members = np.argsort(-known, axis=1)[:, :2]
    explained = (truth[:, -2:] == 0).all(axis=1)
    found = extend(
        Z, Memberships(members, np.take_along_axis(known, members, axis=1), n - 2), explained
    )
    assert found.n == n
    P = dense(found, m)
    np.testing.assert_allclose(P[explained, :-2], known[explained], atol=1e-12)
    for column in (n - 2, n - 1):
        likeness = (
            P[:, column] @ truth / np.linalg.norm(P[:, column]) / np.linalg.norm(truth, axis=0)
        )
        assert likeness[-2:].max() > 0.9


def test_rows_that_share_nothing_unknown_add_nothing():
    truth = shares(10, 120, 2)
    members = np.argsort(-truth, axis=1)[:, :2]
    known = Memberships(members, np.take_along_axis(truth, members, axis=1), 10)
    explained = np.arange(120) > 4
    assert extend(truth @ truth.T, known, explained) is None
