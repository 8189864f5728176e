"""Images under white noise: the fit solves its normal equations, and magnitudes give images."""

import numpy as np
import pytest

from unveil.images.prior import smooth_prior
from unveil.images.white_fit import WhiteFit

SHAPE = (8, 8)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    prior = smooth_prior(SHAPE)
    n, m, noise = 6, 400, 0.02
    images = np.clip(prior.draw(n, rng), -1, 1)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, rng.uniform(0.15, 0.5, (m, 2)).astype(np.float32), axis=1)
    z = A @ images + np.sqrt(noise) * rng.standard_normal((m, 64))
    return z.astype(np.float32), images, WhiteFit.of(A, np.full(m, noise, np.float32), prior)


def test_images_solve_the_normal_equations(problem):
    z, _, fit = problem
    A, v = fit.weights.astype(np.float64), float(fit.noise[0])
    C = (fit.prior.basis * fit.prior.variances) @ fit.prior.basis.T
    n, d = A.shape[1], z.shape[1]
    # (AᵀA/v ⊗ 1 + 1 ⊗ C⁻¹) x = Aᵀz/v, written out.
    normal = np.kron(A.T @ A / v, np.eye(d)) + np.kron(np.eye(n), np.linalg.inv(C))
    slow = np.linalg.solve(normal, (A.T @ z / v).ravel()).reshape(n, d)
    np.testing.assert_allclose(fit.images(z), slow, atol=2e-3)


def test_magnitudes_give_images_near_those_that_signs_give(problem):
    z, images, fit = problem
    rough = images + 0.3 * np.random.default_rng(1).standard_normal(images.shape)
    found = fit.settle(np.abs(z), rough.astype(np.float32), 30)
    error = np.mean((found - images) ** 2)
    assert error < 3 * np.mean((fit.images(z) - images) ** 2)
    assert error < 0.2 * np.mean((rough - images) ** 2)


def test_the_own_part_of_an_encoding_is_what_the_fit_loses_without_it(problem):
    z, _, fit = problem
    Y = np.abs(z)
    x = fit.settle(Y, fit.images(z), 5)
    E = fit.signed(Y, fit.weights @ x)
    x = fit.images(E)
    i = 3
    without = np.arange(len(Y)) != i
    shorter = WhiteFit.of(fit.weights[without], fit.noise[without], fit.prior).images(E[without])
    j = int(fit.weights[i].argmax())
    expected = (fit.weights[i, j] / fit.noise[i]) * fit.own_part(Y, x)[i]
    lost = x[j] - shorter[j]
    assert np.corrcoef(expected, lost)[0, 1] > 0.9
    assert 0.5 < np.linalg.norm(expected) / np.linalg.norm(lost) < 2
