"""The likelihood on a tree: against the sum over all signs, its residual against finite
differences, terms, the plain model."""

from itertools import product

import numpy as np
import pytest

from unveil.supports.correlated.pixel_law import Law, Noise
from unveil.supports.correlated.tree import CAP, tree_difference, tree_likelihood, tree_residual
from unveil.supports.folded.likelihood import log_likelihood

ROWS = np.zeros(1, np.int64)


def law(d, seed, linked=True):
    """A random tree, parents first, pixels in random order; mean and deviation different at every
    pixel."""
    rng = np.random.default_rng(seed)
    parent = np.array([-1] + [int(rng.integers(j)) for j in range(1, d)])
    correlation = rng.uniform(-0.7, 0.7, d) * (parent >= 0) * linked
    return Law(
        rng.normal(0, 0.3, d), rng.uniform(0.5, 1.5, d), rng.permutation(d), parent, correlation
    )


def covariance(law, square):
    """Of the whole vector, in pixel order, from paths along the tree."""
    d = len(law.order)
    R = np.eye(d)
    for j in range(1, d):
        R[j, :j] = R[:j, j] = law.correlation[j] * R[law.parent[j], :j]
    C = np.empty((d, d))
    C[np.ix_(law.order, law.order)] = R
    return square * C * np.outer(law.deviation, law.deviation)


def over_all_signs(y, mu, C):
    """log Σ_s N(s∘y; mu, C)."""
    signs = np.array(list(product((1, -1), repeat=len(y))))
    e = signs * y - mu
    logs = -0.5 * np.einsum("ij,ij->i", e @ np.linalg.inv(C), e)
    return np.logaddexp.reduce(logs) - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]


def instance(seed, d=9):
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((4, d)).astype(np.float32)
    shape = law(d, seed)
    size, square, a = 0.8, 4.0, 0.6
    mu = a * (P[0] + P[2]) + size * shape.mean
    z = mu + np.linalg.cholesky(covariance(shape, square)) @ rng.standard_normal(d)
    return (
        np.abs(z)[None].astype(np.float32),
        P,
        shape,
        Noise.of(shape, size, square),
        a,
        size,
        square,
    )


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_sum_over_all_signs(seed):
    y, P, shape, noise, a, size, square = instance(seed)
    for S in ([0, 2], [0, -1], [-1, -1]):
        mu = a * sum((P[i] for i in S if i >= 0), np.zeros(9)) + size * shape.mean
        expected = over_all_signs(y[0].astype(float), mu, covariance(shape, square))
        found = tree_likelihood(y, P, ROWS, np.array([S]), a, noise)[0]
        # Noise is wide here, so that the cap counts for nothing.
        assert found == pytest.approx(expected, abs=1e-3)


def test_without_links_it_is_the_plain_likelihood():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((5, 300)).astype(np.float32)
    y = np.abs(0.5 * (P[1] + P[3]) + 0.7 * rng.standard_normal(300))[None].astype(np.float32)
    plain = Law(np.zeros(300), np.ones(300), np.arange(300), np.full(300, -1), np.zeros(300))
    S = np.array([[1, 3], [0, 3], [-1, 2]])
    rows = np.zeros(3, np.int64)
    found = tree_likelihood(y, P, rows, S, 0.5, Noise.of(plain, 0, 0.49))
    np.testing.assert_allclose(
        found[0], log_likelihood(y, P, rows[:1], S[:1], 0.5, 0.49), atol=1e-2
    )
    assert found.argmax() == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_residual_is_the_slope_of_the_likelihood(seed):
    y, P, shape, noise, a, size, square = instance(seed)
    mu, C = a * (P[0] + P[2]) + size * shape.mean, covariance(shape, square)
    h = 1e-5
    slope = [
        (
            over_all_signs(y[0].astype(float), mu + h * e, C)
            - over_all_signs(y[0].astype(float), mu - h * e, C)
        )
        / (2 * h)
        for e in np.eye(9)
    ]
    np.testing.assert_allclose(
        tree_residual(y, P, ROWS, np.array([[0, 2]]), a, noise)[0], slope, atol=1e-3
    )


def test_terms_add_up_and_the_best_signs_are_no_more_than_all():
    y, P, _, noise, a, _, _ = instance(3)
    S, others = np.array([[0, 2]]), np.array([[[0, 1], [1, 3], [0, 2]]])
    D, V = tree_difference(y, P, ROWS, S, others, a, noise)
    L = tree_likelihood(y, P, np.zeros(4, np.int64), np.concatenate([S, others[0]]), a, noise)
    np.testing.assert_allclose(D[0], L[0] - L[1:], atol=1e-4)
    assert D[0, 2] == V[0, 2] == 0
    assert (V[0, :2] >= D[0, :2] ** 2 / 9 - 1e-6).all()
    hard = tree_likelihood(
        y, P, np.zeros(4, np.int64), np.concatenate([S, others[0]]), a, noise, soft=False
    )
    assert (hard <= L).all()


def test_one_pixel_costs_at_most_the_cap():
    rng = np.random.default_rng(1)
    P = rng.standard_normal((3, 50)).astype(np.float32)
    y = np.abs(0.7 * P[0] + 0.7 * rng.standard_normal(50))[None].astype(np.float32)
    plain = Law(np.zeros(50), np.ones(50), np.arange(50), np.full(50, -1), np.zeros(50))
    noise = Noise.of(plain, 0, 0.49)
    before = tree_likelihood(y, P, ROWS, np.array([[0]]), 0.7, noise)[0]
    y[0, 7] = 1000
    after = tree_likelihood(y, P, ROWS, np.array([[0]]), 0.7, noise)[0]
    assert 0 < before - after <= float(CAP) + 1e-3
