"""Values under strong noise: near what the truth as a start gives, exact without noise, with an
error that is about right."""

import numpy as np
import pytest

import unveil
from unveil.rivals.cliques.folded_least_squares import FLOOR, folded_least_squares


def fitted(sim, weights, noise, **options):
    y, members = sim.encodings.magnitudes(), sim.selection.private
    return folded_least_squares(
        y, members, weights, len(sim.private), noise, np.random.default_rng(0), **options
    )


def error(values, truth):
    """With the best sign of every pixel."""
    signs = np.sign((values * truth).sum(axis=0))
    return np.sqrt(np.mean((values * signs - truth) ** 2))


def test_a_public_part_as_noise_leaves_values_near():
    """Two of four vectors are public; by the true signs the error would be 0.17, by guessing 1."""
    sim = unveil.simulate(unveil.Scheme(2, 2), 40, n_public=4000, m=1500, d=40, rng=0)
    fit = fitted(sim, np.full((1500, 2), 0.5), 0.5)
    found = error(fit.values, sim.private)
    assert found < 0.4
    assert fit.noise.mean() == pytest.approx(np.sqrt(0.5), rel=0.1)
    assert 0.5 * found < fit.error.mean() < 1.2 * found


def test_the_likelihood_beats_the_sum_of_squares():
    """Alternating signs and least squares, from the truth even, is pulled off by what noise adds to
    |y|."""
    sim = unveil.simulate(unveil.Scheme(2, 4), 30, n_public=4000, m=3000, d=30, rng=1)
    weight = sim.encodings.scheme.private_weight
    W = np.zeros((3000, 30))
    np.put_along_axis(W, sim.selection.private, weight, axis=1)
    y, x = sim.encodings.magnitudes(), sim.private.astype(float)
    for _ in range(30):
        x = np.linalg.lstsq(W, np.copysign(y, W @ x), rcond=None)[0]
    fit = fitted(sim, np.full((3000, 2), weight), 2 / 3)
    assert error(fit.values, sim.private) < 0.7 * error(x, sim.private)


def test_without_noise_values_are_exact_up_to_single_precision():
    sim = unveil.simulate(unveil.Scheme(2, weighting="half-normal"), 20, m=300, d=40, rng=2)
    fit = fitted(sim, sim.selection.weights, 0.0)
    assert error(fit.values, sim.private) < 0.02
    assert fit.noise.max() < 10 * np.sqrt(FLOOR)


def test_the_scale_of_encodings_is_that_of_values():
    sim = unveil.simulate(unveil.Scheme(2, 1), 20, n_public=500, m=400, d=12, rng=3)
    weights = np.full((400, 2), sim.encodings.scheme.private_weight)
    one = fitted(sim, weights, 1 / 3)
    y = sim.encodings.magnitudes() * np.float32(1000)
    other = folded_least_squares(
        y, sim.selection.private, weights, 20, 1 / 3, np.random.default_rng(0)
    )
    np.testing.assert_allclose(other.values, 1000 * one.values, rtol=1e-2, atol=1.0)


def test_pixels_that_are_always_dark_and_vectors_nobody_uses_are_zero():
    sim = unveil.simulate(unveil.Scheme(2, 1), 20, n_public=500, m=400, d=12, rng=3)
    y = sim.encodings.magnitudes()
    y[:, 5] = 0
    fit = folded_least_squares(
        y, sim.selection.private, np.full((400, 2), 0.5), 21, 1 / 3, np.random.default_rng(0)
    )
    assert np.isfinite(fit.values).all()
    assert np.abs(fit.values[:, 5]).max() < 1e-6
    assert np.abs(fit.values[20]).max() < 1e-6
