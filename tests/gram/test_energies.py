"""Whitened products of squares: against the inverse written out, and what they tell of encodings
that share an image."""

import numpy as np
import pytest

from unveil.gram.energies import SHRINKAGE, whitened_energies
from unveil.images.model import image_prior


def plain(Y):
    m, d = Y.shape
    F = Y.astype(np.float64) ** 2
    mean = F.mean(axis=0)
    F -= mean
    C = F.T @ F / m
    inverse = np.linalg.inv(C + SHRINKAGE * max(1, d / m) * np.trace(C) / d * np.eye(d))
    return F @ inverse @ F.T, F @ inverse @ mean, mean @ inverse @ mean


def magnitudes(m, d, seed=0):
    rng = np.random.default_rng(seed)
    return np.abs(rng.standard_normal((m, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)).astype(
        np.float32
    )


@pytest.mark.parametrize(("m", "d"), [(60, 20), (20, 20), (20, 60), (3, 40)])
def test_products_are_those_of_the_inverse(m, d):
    Y = magnitudes(m, d)
    found = whitened_energies(Y)
    gram, level, norm = plain(Y)
    np.testing.assert_allclose(found.gram, gram, atol=1e-4 * np.abs(gram).max())
    np.testing.assert_allclose(found.level, level, atol=1e-4 * np.abs(gram).max())
    assert found.level_norm == pytest.approx(norm, rel=1e-3)
    np.testing.assert_array_equal(found.gram, found.gram.T)


@pytest.mark.parametrize(("m", "d"), [(60, 20), (20, 60)])
def test_the_order_of_encodings_and_pixels_and_the_unit_say_nothing(m, d):
    Y = magnitudes(m, d)
    order = np.random.default_rng(1).permutation(m)
    one, other = whitened_energies(Y), whitened_energies(3 * Y[order][:, ::-1])
    scale = np.abs(one.gram).max()
    np.testing.assert_allclose(other.gram, one.gram[np.ix_(order, order)], atol=1e-3 * scale)
    np.testing.assert_allclose(other.level, one.level[order], atol=1e-3 * scale)


@pytest.mark.parametrize(("m", "d"), [(60, 20), (20, 60)])
def test_pixels_that_are_always_black_change_nothing_but_the_shrinkage(m, d):
    Y = magnitudes(m, d)
    Y[:, ::4] = 0
    found = whitened_energies(Y)
    np.testing.assert_allclose(found.gram, plain(Y)[0], atol=1e-4 * np.abs(found.gram).max())
    assert not whitened_energies(np.zeros_like(Y)).gram.any()


def test_the_given_encodings_are_left_alone():
    Y = magnitudes(30, 20)
    before = Y.copy()
    whitened_energies(Y)
    np.testing.assert_array_equal(Y, before)


def test_the_most_similar_pairs_share_an_image_and_raw_squares_tell_far_less():
    rng = np.random.default_rng(0)
    prior = image_prior((16, 16))
    n, m = 12, 400

    def draw(count):
        parts = rng.standard_normal((count, len(prior.variances))) * np.sqrt(prior.variances)
        return parts @ prior.basis.T

    images = draw(n)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = rng.dirichlet(np.full(4, 4.0), m)
    L = np.zeros((m, n))
    np.put_along_axis(L, members, weights[:, :2], axis=1)
    Y = np.abs(L @ images + weights[:, 2:3] * draw(m) + weights[:, 3:] * draw(m)).astype(np.float32)
    above = np.triu_indices(m, 1)
    share = (L @ L.T > 0)[above]

    def purity(K):
        scale = 1 / np.sqrt(np.diag(K))
        return share[np.argsort(-(K * scale * scale[:, None])[above])[:1000]].mean()

    F = Y**2 - (Y**2).mean(axis=0)
    assert share.mean() < 0.35
    assert purity(whitened_energies(Y).gram) > 0.75
    assert purity(F @ F.T) < 0.5
