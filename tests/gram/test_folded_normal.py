"""Signs that correlated columns betray: found up to one per row and one per column, with odds."""

import numpy as np
import pytest

from unveil.gram.folded_normal import _beam, _order, likely_signs


def sums(m, d, factors, seed):
    """Normal sums with few factors and some noise of their own; columns of either sign."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((m, factors)) @ rng.standard_normal((factors, d))
    return z + 0.1 * rng.standard_normal((m, d))


def agreement(found, z):
    """The share of signs that are right, up to one per row and one per column."""
    s = np.sign(found * z)
    s = s * np.sign(np.linalg.eigh(s.T @ s)[1][:, -1])
    return np.abs(s.mean(axis=1)).mean() / 2 + 0.5


def test_signs_of_correlated_columns_come_back():
    z = sums(600, 16, 3, 0)
    patterns = likely_signs(np.abs(z))
    assert agreement(patterns.z, z) > 0.9
    np.testing.assert_allclose(np.abs(patterns.z), np.abs(z))
    assert patterns.flip.mean() < 0.15


def test_independent_columns_say_nothing_of_each_other():
    z = np.random.default_rng(1).standard_normal((600, 12))
    assert likely_signs(np.abs(z)).flip.mean() > 0.2


def test_a_wide_beam_holds_all_patterns_with_their_weights():
    z = sums(5, 4, 2, 2)
    C = np.cov(z.T) + np.eye(4)
    found, weight = _beam(np.abs(z), C, 64)
    assert found.shape == (5, 8, 4)
    signs = np.array(np.meshgrid(*[[1, -1]] * 4)).reshape(4, -1).T
    for y, mine, theirs in zip(np.abs(z), found, weight, strict=True):
        every = signs * y
        p = np.exp(-0.5 * np.einsum("si,ij,sj->s", every, np.linalg.inv(C), every))
        for row, w in zip(mine, theirs, strict=True):
            at = np.flatnonzero((np.abs(every - row) < 1e-12).all(axis=1))[0]
            assert w == pytest.approx(2 * p[at] / p.sum())


def test_columns_that_others_predict_come_early():
    rng = np.random.default_rng(3)
    a, b, c = rng.standard_normal((3, 500))
    C = np.cov(np.stack([b, a, a + 0.01 * rng.standard_normal(500), a + 0.3 * c]))
    order = _order(C).tolist()
    assert sorted(order) == [0, 1, 2, 3]
    assert order[-1] == 0
