"""How light fractions can be, against all fractions of small entries."""

from itertools import product

import numpy as np
import pytest

from unveil.certify.fractions import heavy_fractions, lightest_fraction
from unveil.certify.heavy import even_weights, fractions_heavy, least_eigenvalue


def drawn(n, m, k, seed):
    rng = np.random.default_rng([n, m, k, seed])
    members = np.unique(np.sort(np.argsort(rng.random((m, n)), axis=1)[:, :k], axis=1), axis=0)
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1.0, axis=1)
    return members, W


def lightest(W, weight, k):
    """Of all t ∈ a/k + {−1, 0}, and the next entries for k = 3, with Wt ∈ {0, ±1}."""
    n = W.shape[1]
    least = np.inf
    for a in range(1, k):
        entries = (a, a - k) if k > 3 else (a, a - k, a + k)
        t = np.array(list(product(entries, repeat=n))) / k
        size = np.abs(t @ W.T)
        fits = (size < 1 + 1e-9).all(axis=1)
        if fits.any():
            least = min(least, float((size[fits] @ weight).min()))
    return least


@pytest.mark.parametrize(("n", "m", "k"), [(9, 14, 3), (9, 30, 3), (11, 16, 4), (12, 18, 6)])
def test_no_fraction_is_lighter_than_is_said(n, m, k):
    known = 0
    for seed in range(6):
        members, W = drawn(n, m, k, seed)
        if np.linalg.matrix_rank(W) < n:
            continue
        weight = even_weights(members, n)
        said, g = lightest_fraction(W, weight, k, weight, np.inf)
        assert (g > 0).all()
        assert 0 < said <= lightest(W, weight, k) + 1e-9
        known += 1
    assert known >= 3


def test_the_bound_is_close_where_a_light_fraction_is_planted():
    """Every row has one of the first three vectors: −5/6 there and 1/6 elsewhere is 0 in all rows
    but those that were changed. The rows that say so decide, and the bound heeds them."""
    rng = np.random.default_rng(3)
    rows = [np.r_[rng.integers(3), 3 + rng.choice(12, 5, replace=False)] for _ in range(80)]
    changed = [3 + rng.choice(12, 6, replace=False) for _ in range(6)]
    W = np.zeros((86, 15))
    np.put_along_axis(W, np.array(rows + changed), 1.0, axis=1)
    assert np.linalg.matrix_rank(W) == 15
    said = lightest_fraction(W, np.ones(86), 6, np.ones(86), np.inf)[0]
    assert 3 < said <= 6


def test_a_multiple_of_the_weights_is_the_bound_by_one_eigenvalue():
    members, W = drawn(40, 120, 6, 0)
    weight = even_weights(members, 40)
    floor, c = least_eigenvalue(members, 40, weight), 4 / 6
    g = weight * floor / (1 + c * floor)
    assert heavy_fractions(W, weight, 6, g * 0.999) == pytest.approx(5 / 6 * g.sum() * 0.999)
    assert heavy_fractions(W, weight, 6, g * 1.001) == 0.0
    assert lightest_fraction(W, weight, 6, weight, np.inf)[0] > 1.2 * 5 / 6 * g.sum()


def test_without_its_condition_the_bound_would_be_wrong():
    """g of twice the size, or of a sign of its own, says more than is true: it proves nothing."""
    members, W = drawn(9, 14, 3, 1)
    weight = even_weights(members, 9)
    least = lightest(W, weight, 3)
    said, g = lightest_fraction(W, weight, 3, weight, np.inf)
    more = g * 1.01 * least / said
    assert (3 - 1) / 3 * more.sum() > least
    assert heavy_fractions(W, weight, 3, more) == 0.0
    less = g * 0.5
    less[0] = -1e-3
    assert heavy_fractions(W, weight, 3, less) == 0.0


def test_six_in_one_with_two_encodings_per_vector():
    """n = 100, m = 2n: one eigenvalue does not exclude fractions, shares of rows do."""
    members, W = drawn(100, 200, 6, 0)
    weight = even_weights(members, 100)
    two = np.sort(W.T @ weight)[-2:].mean() + 0.02
    assert not fractions_heavy(members, 100, weight, least_eigenvalue(members, 100, weight), False)
    assert lightest_fraction(W, weight, 6, weight, np.inf)[0] > two
