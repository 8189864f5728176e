"""`lem:kr17`, `cor:kr17`, `lem:lip`: the covariance of folded Gaussians."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from unveil.paper import psi, psi_inverse

TOP = 1 - 2 / np.pi


@pytest.mark.parametrize("z", [0.0, 0.2, 0.5, 0.9])
def test_the_lemma_and_its_corollary_agree_off_the_diagonal(z):
    normal = multivariate_normal(mean=[0, 0], cov=[[1, z], [z, 1]])
    lemma = z * (4 * normal.cdf([0, 0]) - 1) + 4 * (1 - z * z) * normal.pdf([0, 0]) - 2 / np.pi
    assert psi(z) == pytest.approx(lemma, abs=1e-8)


def test_the_diagonal_is_one_minus_two_over_pi_not_one():
    g = np.abs(np.random.default_rng(0).standard_normal(1_000_000))
    assert psi(1.0) == pytest.approx(1 - 2 / np.pi) == pytest.approx(TOP)
    # Standard error of a variance estimate is below √(3/1e6): five of them, probability below 1e-6.
    assert abs(g.var() - TOP) < 5 * np.sqrt(3e-6)


def test_psi_lies_between_the_parabolas_of_the_proof():
    """The proof says x²/π ≤ Ψ(x) ≤ 1.2·x²/π; at x = 1 the upper bound fails slightly (Ψ(1) =
    1.1416/π): it holds on [0, 1]."""
    x = np.linspace(0, 1, 1001)
    assert (psi(x) >= x**2 / np.pi - 1e-12).all()
    assert (psi(x) <= 1.2 * x**2 / np.pi + 1e-12).all()


@pytest.mark.parametrize("eta", [0.01, 0.05, 0.2])
def test_the_inverse_is_lipschitz_with_constant_over_root_eta(eta):
    c = np.linspace(eta, TOP, 400)
    slopes = np.diff(psi_inverse(c)) / np.diff(c)
    assert slopes.max() <= 1.1 / np.sqrt(eta)
