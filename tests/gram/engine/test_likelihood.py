"""The likelihood of a pair: a density, its kernel against the plain formula, balanced
thresholds."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal

from unveil import Scheme
from unveil.gram.engine.likelihood import log_density, log_ratios, ratio_thresholds
from unveil.gram.levels import lattice
from unveil.gram.statistics import feature_rows


@pytest.mark.parametrize("z", [0.0, 0.3, 0.75])
def test_it_is_the_folded_density_up_to_a_term_without_z(z):
    a, b = np.array([0.3, 1.2, 2.0]), np.array([0.1, 2.2, 0.7])
    normal = multivariate_normal(cov=[[1, z], [z, 1]])
    folded = 2 * normal.pdf(np.stack([a, b], axis=1)) + 2 * normal.pdf(np.stack([a, -b], axis=1))
    flat = 4 * multivariate_normal(cov=np.eye(2)).pdf(np.stack([a, b], axis=1))
    np.testing.assert_allclose(log_density(a, b, z), np.log(folded / flat), atol=1e-12)


def test_the_density_integrates_to_one():
    def f(b, a):
        return float(
            np.exp(log_density(np.array(a), np.array(b), 0.5))
            * 2
            / np.pi
            * np.exp(-(a * a + b * b) / 2)
        )

    assert dblquad(f, 0, 8, 0, 8)[0] == pytest.approx(1, abs=1e-6)


def test_the_kernel_equals_the_plain_sum():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((6, 700)).astype(np.float32)
    F, offset = feature_rows(y, "folded", np.arange(700))
    a = np.abs(y) / np.sqrt((y.astype(np.float64) ** 2).mean(axis=1, keepdims=True))
    rows, columns = np.array([0, 1, 2]), np.array([3, 4, 5])
    low, high = np.array([0.0, 0.25, 0.5]), np.array([0.25, 0.5, 0.75])
    found = log_ratios(F, F, offset, offset, rows, columns, low, high)
    plain = [
        (log_density(a[i], a[j], h) - log_density(a[i], a[j], z)).sum()
        for i, j, z, h in zip(rows, columns, low, high, strict=True)
    ]
    np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("scheme", [Scheme(2), Scheme(4), Scheme(2, 2, "paper")])
def test_thresholds_are_near_zero_and_absent_at_the_top(scheme):
    t, z = ratio_thresholds(scheme), lattice(scheme)
    assert np.isnan(t[-1, -1])
    assert (np.isnan(t) == (z[:, 1:] > 0.999)).all()
    assert np.nanmax(np.abs(t)) < 0.05
