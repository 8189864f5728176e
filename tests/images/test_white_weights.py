"""Pairs among white noise: the likelihood written out, members and weights found, and an encoding
does not vouch for itself."""

import numpy as np
import pytest
from scipy.stats import norm

from unveil.images.prior import smooth_prior
from unveil.images.white_fit import WhiteFit
from unveil.images.white_weights import fit_pair, likely_pairs, signed_pairs, weigh_pairs

SHAPE = (12, 12)
NOISE = 0.01


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    prior = smooth_prior(SHAPE)
    n, m = 8, 300
    images = np.clip(prior.draw(n, rng), -1, 1).astype(np.float32)
    members = np.sort(rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], axis=1)
    weights = rng.uniform(0.15, 0.45, (m, 2)).astype(np.float32)
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, weights, axis=1)
    z = A @ images + np.sqrt(NOISE) * rng.standard_normal((m, 144))
    return np.abs(z).astype(np.float32), images, members, weights, A, prior


def test_the_likelihood_is_that_of_folded_normal_magnitudes(problem):
    Y, images, members, _, _, _ = problem
    first, second = images[members[:, 0]], images[members[:, 1]]
    noise = np.full(len(Y), NOISE, np.float32)
    fitted, v, likelihood = fit_pair(Y, first, second, noise, 0.65)
    mixed = fitted[:, :1] * first + fitted[:, 1:] * second
    spread = np.sqrt(v)[:, None]
    slow = np.log(norm.pdf(Y, mixed, spread) + norm.pdf(-Y, mixed, spread)).sum(axis=1)
    constant = Y.shape[1] * (np.log(2) - 0.5 * np.log(2 * np.pi) - np.log(2))
    # log cosh is log(eᵗ + e⁻ᵗ) − log 2; `fit_pair` leaves that and the constant of the normal out.
    np.testing.assert_allclose(likelihood + constant, slow, rtol=1e-3, atol=0.5)


def test_true_pairs_are_among_the_likely_ones_and_their_weights_are_found(problem):
    Y, images, members, weights, A, prior = problem
    pairs = likely_pairs(Y, images)
    assert (pairs == members[:, None]).all(axis=2).any(axis=1).mean() > 0.9
    fit = WhiteFit.of(A, np.full(len(Y), NOISE, np.float32), prior)
    found = weigh_pairs(Y, images, fit, 0.65)
    right = (np.sort(found.weighing.members, axis=1) == members).all(axis=1)
    assert right.mean() > 0.85
    assert np.abs(found.weighing.best[right] - weights[right]).mean() < 0.04
    assert np.median(found.noise) == pytest.approx(NOISE, rel=0.2)
    with_both = found.weighing.weights.multiply(found.weighing.weights)
    assert (found.weighing.squares - with_both).min() > -1e-4


def test_an_encoding_does_not_vouch_for_a_member_it_does_not_have(problem, monkeypatch):
    """Encodings of nothing but noise, each taken for one of an image with few others: told by
    images with their part in them, they weigh more."""
    _, images, _, _, A, prior = problem
    rng = np.random.default_rng(5)
    A = A[:40].copy()
    A[:16] = 0
    taken_for = np.arange(16) % 8
    A[np.arange(16), taken_for] = 0.3
    z = A @ images
    z[:16] = 0
    Y = np.abs(z + 0.2 * rng.standard_normal(z.shape)).astype(np.float32)
    fit = WhiteFit.of(A, np.full(40, 0.04, np.float32), prior)
    fitted = fit.settle(Y, images, 20)

    def kept():
        found = weigh_pairs(Y, fitted, fit, 0.65).weighing.weights.toarray()
        return found[np.arange(16), taken_for].mean()

    told = kept()
    monkeypatch.setattr(WhiteFit, "own_part", lambda self, Y, *_: np.zeros_like(Y))
    assert told < 0.85 * kept()


def test_noise_that_is_known_tells_members_and_weights_better(problem):
    _, images, members, weights, A, prior = problem
    rng = np.random.default_rng(1)
    known = 0.3 * rng.standard_normal((len(A), 144)).astype(np.float32)
    rest = 0.1 * rng.standard_normal(known.shape).astype(np.float32)
    Y = np.abs(A @ images + known + rest)
    right = []
    for noise, offsets in ((0.1, None), (0.01, known)):
        fit = WhiteFit.of(A, np.full(len(Y), noise, np.float32), prior)
        found = weigh_pairs(Y, images, fit, 0.65, offsets=offsets).weighing
        right.append((np.sort(found.members, axis=1) == members).all(axis=1))
    assert right[1].mean() > 0.8
    assert right[1].mean() > right[0].mean() + 0.2
    error = np.abs(found.best[right[1]] - weights[right[1]])
    assert error.mean() < 0.05


def test_signed_pairs_are_those_of_least_squares(problem):
    _, images, members, _, A, _ = problem
    pairs = signed_pairs(A @ images, images, 0.65)
    assert (pairs == members[:, None]).all(axis=2).any(axis=1).all()
