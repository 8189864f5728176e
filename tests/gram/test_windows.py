"""Windows: against the formula window by window, what they cover, and how much more they tell than
squares."""

import numpy as np
import pytest

from unveil.gram.energies import whitened_energies
from unveil.gram.windows import (
    ABOVE,
    FAINT,
    LEAST,
    SHRINKAGE,
    SIDE,
    TOLD,
    window_energies,
    windows,
)
from unveil.images.prior import image_prior


def pairs(public, seed=0, side=32, n=24, m=500):
    """Magnitudes of mixtures of two of n smooth images with others, and which pairs share one."""
    rng = np.random.default_rng(seed)
    prior = image_prior((side, side))
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    L = np.zeros((m, n))
    np.put_along_axis(L, members, 0.25, axis=1)
    rest = prior.draw(m, rng) if public == "smooth" else 0.3 * rng.standard_normal((m, side**2))
    Y = np.abs(L @ prior.draw(n, rng) + 0.5 * rest).astype(np.float32)
    return Y, L @ L.T > 0, (side, side)


def whole(alike):
    everyone = np.arange(len(alike))
    return alike.tile(everyone, everyone)


def features(Y, shape):
    """uuᵀ of every window, written out."""
    parts = []
    for pixels in windows(shape):
        y = Y[:, pixels].astype(np.float64)
        values, vectors = np.linalg.eigh(y.T @ y / len(y))
        values = np.maximum(values, 0)
        signal = np.maximum(values - ABOVE * np.quantile(values, FAINT), LEAST * values)
        counts = np.sqrt(signal) / (values + SHRINKAGE * values.mean())
        told = (counts**2 * values) ** 2
        order = np.argsort(-told)
        left = 1 - np.cumsum(told[order]) / told.sum()
        kept = order[: int((left > 1 - TOLD).sum()) + 1]
        u = y @ (vectors * counts)[:, kept]
        parts.append(np.einsum("ia,ib->iab", u, u).reshape(len(y), -1))
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("shape", [(12, 9), (8, 8, 2)])
def test_against_explicit_features(shape):
    Y = np.abs(np.random.default_rng(0).standard_normal((30, np.prod(shape)))).astype(np.float32)
    found = window_energies(Y, shape)
    F = features(Y, shape)
    F /= np.sqrt(np.mean((F**2).sum(axis=1)))
    mean = F.mean(axis=0)
    centred = F - mean
    np.testing.assert_allclose(whole(found), centred @ centred.T, atol=1e-4)
    np.testing.assert_allclose(found.level, centred @ mean, atol=1e-4)
    assert found.level_norm == pytest.approx(mean @ mean, rel=1e-3)


@pytest.mark.parametrize("shape", [(32, 32, 3), (25, 25), (28, 30), (5, 40)])
def test_windows_cover_the_image_and_lie_in_it(shape):
    pixels = windows(shape)
    assert set(np.concatenate(pixels)) == set(range(int(np.prod(shape))))
    channels = int(np.prod(shape[2:]))
    assert all(len(p) == min(SIDE, shape[0]) * min(SIDE, shape[1]) * channels for p in pixels)


def test_unit_and_sign_say_nothing_and_empty_encodings_are_no_error():
    Y = np.abs(np.random.default_rng(0).standard_normal((20, 100))).astype(np.float32)
    one, other = window_energies(Y, (10, 10)), window_energies(5 * Y, (10, 10))
    np.testing.assert_allclose(whole(one), whole(other), atol=1e-4)
    assert np.isfinite(whole(window_energies(np.zeros_like(Y), (10, 10)))).all()


@pytest.mark.parametrize("public", ["smooth", "noise"])
def test_windows_tell_far_more_than_squares(public):
    """How many of the most similar pairs share an image."""
    Y, share, shape = pairs(public)
    above = np.triu_indices(len(Y), 1)

    def purity(K):
        scale = 1 / np.sqrt(np.diag(K))
        return share[above][np.argsort(-(K * scale * scale[:, None])[above])[:2000]].mean()

    assert purity(whole(window_energies(Y, shape))) > purity(whitened_energies(Y).gram) + 0.15
