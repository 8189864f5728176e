"""Levels: the lattice, moments against Monte Carlo and closed forms, tails that count."""

import numpy as np
import pytest

from unveil import Scheme
from unveil.gram import psi
from unveil.gram.levels import assisted_levels, folded_levels, lattice, normal_scale, squares_levels
from unveil.gram.psi import psi_noise
from unveil.records import FIXED_WEIGHTINGS


def pixels(rng, p, q, k_public, k_private, n):
    """Public and private parts, each of variance 1, of two encodings that share p and q vectors."""

    def part(shared, k):
        common, first, second = (
            rng.standard_normal((count, n)).sum(axis=0)
            for count in (shared, k - shared, k - shared)
        )
        return (common + first) / np.sqrt(k), (common + second) / np.sqrt(k)

    return part(p, k_public), part(q, k_private)


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
def test_the_lattice_starts_at_nothing_shared_and_ends_at_everything(weighting):
    z = lattice(Scheme(3, 2, weighting))
    assert z.shape == (3, 4)
    assert (z[0, 0], z[-1, -1]) == (0, pytest.approx(1))
    assert (np.diff(z, axis=0) > 0).all()
    assert (np.diff(z, axis=1) > 0).all()


def test_folded_levels_have_the_papers_mean_and_its_noise_before_normalisation():
    scheme = Scheme(4)
    levels, z = folded_levels(scheme), lattice(scheme)
    np.testing.assert_allclose(levels.mean, psi(z), atol=2e-6)
    np.testing.assert_allclose(levels.raw_sd, psi_noise(z), atol=1e-5)
    assert (levels.sd <= levels.raw_sd + 1e-9).all()


def test_squares_have_the_moments_of_hermite_polynomials():
    scheme = Scheme(4)
    levels, z = squares_levels(scheme), lattice(scheme)
    np.testing.assert_allclose(levels.mean, 2 * z**2, atol=1e-6)
    np.testing.assert_allclose(levels.raw_sd, np.sqrt(4 + 32 * z**2 + 20 * z**4), rtol=1e-5)


# 4,000 averages over 500 pixels: means within 5 standard errors (6e-7), standard deviations within
# 5/√8000 = 5.6 %.
@pytest.mark.parametrize(
    ("levels_of", "feature"), [(folded_levels, np.abs), (squares_levels, np.square)]
)
@pytest.mark.parametrize("q", [0, 1, 2])
def test_normalised_averages_have_the_mean_and_noise_stated(levels_of, feature, q):
    rng, d, trials = np.random.default_rng(q), 500, 4000
    _, (a, b) = pixels(rng, 1, q, 1, 3, d * trials)
    rows = [
        x.reshape(trials, d) / np.sqrt((x.reshape(trials, d) ** 2).mean(axis=1, keepdims=True))
        for x in (a, b)
    ]
    f, g = (feature(x) - feature(x).mean(axis=1, keepdims=True) for x in rows)
    average = (f * g).mean(axis=1)
    levels = levels_of(Scheme(3))
    sd = levels.sd[0, q] / np.sqrt(d)
    # The average is biased by order 1/d.
    assert average.mean() == pytest.approx(
        levels.mean[0, q], abs=5 * sd / np.sqrt(trials) + 6 * levels.sd[0, q] / d
    )
    assert average.std() == pytest.approx(sd, rel=0.056)


# 300,000 pixels: means within 5 standard errors, spread within 3 %, since fourth moments are heavy.
@pytest.mark.parametrize(("p", "q"), [(0, 0), (1, 0), (0, 1), (2, 1), (0, 2), (2, 2)])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_assisted_levels_are_the_moments_of_the_posterior_mean(p, q, ratio):
    n = 300_000
    (m0, m1), (g0, g1) = pixels(np.random.default_rng(7 * p + q), p, q, 2, 2, n)
    r = [
        y * np.tanh(y * mu) - mu
        for mu, g in ((np.sqrt(ratio) * m0, g0), (np.sqrt(ratio) * m1, g1))
        for y in [np.abs(mu + g)]
    ]
    levels = assisted_levels(2, 2, ratio)
    product = r[0] * r[1]
    assert product.mean() == pytest.approx(levels.mean[p, q], abs=5 * levels.sd[p, q] / np.sqrt(n))
    assert product.std() == pytest.approx(levels.sd[p, q], rel=0.03)


def test_the_assisted_statistic_is_blind_to_public_vectors_shared():
    levels = assisted_levels(2, 3, 1.0)
    np.testing.assert_allclose(levels.mean[:, 0], 0, atol=1e-10)


def test_tails_of_skew_sums_are_those_of_the_gamma_law():
    """Averages of d exponential variables: mean 1, variance 1, skewness 2. The normal law misses
    the tails by a factor of 2."""
    from scipy.stats import gamma, norm

    d = 400
    for x in (-4.0, -3.0, 3.0, 4.0):
        true = gamma.cdf(d + x * np.sqrt(d), d)
        ours = norm.cdf(normal_scale(1 + x / np.sqrt(d), 1.0, 1.0, 2.0, d))
        true, ours = (true, ours) if x < 0 else (1 - true, 1 - ours)
        assert ours == pytest.approx(true, rel=0.2)


def test_normal_scale_rises_however_skew_and_far():
    for skew, d in ((15.0, 3), (2.0, 100), (-5.0, 10)):
        assert (np.diff(normal_scale(np.linspace(-50, 50, 2001), 0.0, 1.0, skew, d)) > 0).all()


def test_quantiles_are_never_above_what_the_tail_allows():
    levels = folded_levels(Scheme(2))
    for probability in (1e-2, 1e-4, 1e-6):
        assert (
            levels.below(levels.quantile(probability, 0, 1, 1000), 0, 1, 1000) <= 1.1 * probability
        )


def test_part_of_the_pixels_has_the_noise_in_between():
    levels = folded_levels(Scheme(2))
    np.testing.assert_allclose(levels.of_part(1.0).sd, levels.sd)
    np.testing.assert_allclose(levels.of_part(0.0).sd, levels.raw_sd)
