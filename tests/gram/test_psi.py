"""Ψ, its inverse and its noise, against integrals computed another way."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from unveil.gram.psi import TOP, psi, psi_inverse, psi_noise

CORRELATIONS = [0.0, 0.05, 0.25, 1 / 3, 0.5, 0.75, 0.95, 1.0]
MEAN = np.sqrt(2 / np.pi)


def folded_moment(z, f):
    """E[f(|a|, E_b)] over a ~ N(0,1), with E_b = (E|b|, E b²) given a, b being N(za, 1 − z²): one
    integral instead of two."""
    s = np.sqrt(max(1 - z * z, 0))

    def integrand(a):
        mean = z * a
        absolute = (
            s * MEAN * np.exp(-(mean**2) / (2 * s * s)) + mean * erf(mean / (s * np.sqrt(2)))
            if s
            else abs(mean)
        )
        return f(abs(a), absolute, mean**2 + s * s) * np.exp(-a * a / 2) / np.sqrt(2 * np.pi)

    return 2 * quad(integrand, 0, 12, epsabs=1e-13, limit=200)[0]


@pytest.mark.parametrize("z", CORRELATIONS)
def test_psi_is_the_covariance_of_absolute_values(z):
    assert psi(z) == pytest.approx(folded_moment(z, lambda a, b, _: a * b) - 2 / np.pi, abs=1e-10)


def test_psi_is_even_and_runs_from_zero_to_its_top():
    z = np.linspace(0, 1, 101)
    np.testing.assert_array_equal(psi(-z), psi(z))
    assert psi(0) == 0
    assert psi(1) == pytest.approx(TOP) == pytest.approx(1 - 2 / np.pi)
    assert (np.diff(psi(z)) > 0).all()
    # Ψ is convex and at least z²/π: what Newton's method in psi_inverse stands on.
    assert (np.diff(psi(z), 2) > 0).all()
    assert (psi(z) >= z * z / np.pi - 1e-15).all()


def test_the_inverse_undoes_psi():
    z = np.concatenate([np.linspace(0, 1, 2001), [1e-3, 1e-4, 1 - 1e-9]])
    np.testing.assert_allclose(psi_inverse(psi(z)), z, atol=1e-9)
    c = np.linspace(0, TOP, 501)
    np.testing.assert_allclose(psi(psi_inverse(c)), c, atol=1e-12)


def test_the_inverse_clips_what_no_correlation_gives():
    np.testing.assert_allclose(psi_inverse([-0.2, 0.0, TOP, 0.9]), [0, 0, 1, 1], atol=1e-9)
    np.testing.assert_allclose(
        psi_inverse([-0.2, 0.001], floor=float(psi(0.1))), [0.1, 0.1], atol=1e-9
    )


@pytest.mark.parametrize("z", CORRELATIONS)
def test_the_noise_formula_equals_the_integral(z):
    second = folded_moment(z, lambda a, b, b2: (a - MEAN) ** 2 * (b2 - 2 * MEAN * b + MEAN**2))
    assert psi_noise(z) == pytest.approx(np.sqrt(second - float(psi(z)) ** 2), abs=1e-8)


@pytest.mark.parametrize("z", [0.0, 0.5, 0.9])
def test_mean_and_noise_agree_with_monte_carlo(z):
    rng = np.random.default_rng(int(10 * z))
    a, g = rng.standard_normal((2, 400_000))
    product = (np.abs(a) - MEAN) * (np.abs(z * a + np.sqrt(1 - z * z) * g) - MEAN)
    # Six standard errors, that of the standard deviation from the fourth moment: 4e-9 per case.
    assert abs(product.mean() - psi(z)) < 6 * product.std() / np.sqrt(400_000)
    square = (product - product.mean()) ** 2
    assert abs(square.mean() - psi_noise(z) ** 2) < 6 * square.std() / np.sqrt(400_000)
