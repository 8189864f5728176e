"""Mean and noise of a product against simulation, at every overlap."""

import numpy as np
import pytest

from unveil import Scheme
from unveil.paper import psi
from unveil.paper.overlap_levels import assisted_levels, folded_levels, lattice, log_density


@pytest.mark.parametrize("scheme", [Scheme(2), Scheme(3, 2, "paper")])
def test_the_folded_product_has_the_mean_psi_and_the_noise_promised(scheme):
    levels, z = folded_levels(scheme), lattice(scheme)
    np.testing.assert_allclose(levels.mean, psi(z), atol=1e-5)
    rng, d = np.random.default_rng(0), 400
    for p, q in ((0, 0), (0, 1), (len(z) - 1, 1)):
        a = rng.standard_normal((20_000, d))
        b = z[p, q] * a + np.sqrt(1 - z[p, q] ** 2) * rng.standard_normal(a.shape)
        a, b = np.abs(a), np.abs(b)
        a /= np.sqrt((a**2).mean(axis=1, keepdims=True))
        b /= np.sqrt((b**2).mean(axis=1, keepdims=True))
        c = (a * b).mean(axis=1) - a.mean(axis=1) * b.mean(axis=1)
        assert c.mean() == pytest.approx(levels.mean[p, q], abs=4 * c.std() / 141 + 2 / d**1.5)
        assert c.std() * np.sqrt(d) == pytest.approx(levels.sd[p, q], rel=0.04)


def test_the_assisted_product_is_linear_in_the_overlap_and_as_noisy_as_promised():
    levels, rng = assisted_levels(2, 2, 1.0), np.random.default_rng(1)
    g, mu = rng.standard_normal((2, 4, 10**6)) / np.sqrt(2)
    first, second = g[0] + g[1], g[0] + g[2]
    m1, m2 = mu[0] + mu[1], mu[2] + mu[3]
    r = [np.abs(m + x) * np.tanh(np.abs(m + x) * m) - m for x, m in ((first, m1), (second, m2))]
    assert (r[0] * r[1]).mean() == pytest.approx(levels.mean[0, 1], abs=0.005)
    assert (r[0] * r[1]).std() == pytest.approx(levels.sd[0, 1], rel=0.02)
    assert levels.mean[0, 0] == pytest.approx(0, abs=1e-6)
    assert levels.mean[0, 1] > 0.4 * levels.mean[0, 2]


def test_the_density_of_a_pair_is_normalised():
    x = np.linspace(0, 8, 401)
    a, b = np.meshgrid(x, x)
    normal = 2 / np.pi * np.exp(-(a * a + b * b) / 2)
    for z in (0.0, 0.4, 0.8):
        total = np.trapezoid(np.trapezoid(normal * np.exp(log_density(a, b, z)), x), x)
        assert total == pytest.approx(1, abs=1e-3)
