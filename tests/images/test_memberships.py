"""Soft memberships: scores against explicit features, posteriors against a plain loop, the truth on
smooth images."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from unveil.gram.cosines import Alike
from unveil.gram.energies import whitened_energies
from unveil.images.memberships import GRID, _scores, image_memberships, posterior
from unveil.images.prior import image_prior


def squares_alike(Y):
    found = whitened_energies(Y)
    return Alike.of(found.gram, found.level, found.level_norm)


def problem(n=10, m=300, public=0, seed=0):
    """How alike encodings of smooth images are, two private ones in each, and the true weights."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))

    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = rng.dirichlet(np.full(2 + public, 4.0), m)
    L = np.zeros((m, n))
    np.put_along_axis(L, members, weights[:, :2], axis=1)
    z = L @ prior.draw(n, rng)
    for column in weights.T[2:]:
        z += column[:, None] * prior.draw(m, rng)
    alike = squares_alike(np.abs(z).astype(np.float32))
    return alike, L, np.sort(weights[:, :2].ravel())


def correlations(found, L):
    """Of every column with every true one."""
    c = found.probability.shape[1]
    return np.corrcoef(found.probability.T, (L > 0).T)[:c, c:]


def likeness(found, L):
    return correlations(found, L).max(axis=1)


def test_scores_are_least_squares_over_templates_and_level_with_ones_own_share_out():
    rng = np.random.default_rng(0)
    m, r, c = 30, 12, 4
    Z, level = rng.standard_normal((m, r)), rng.standard_normal(r)
    hat = rng.standard_normal((m, c)) / m
    alike = Alike.of(
        (Z @ Z.T).astype(np.float32), (Z @ level).astype(np.float32), float(level @ level)
    )
    T = hat.T @ Z
    templates = alike.times(hat)
    np.testing.assert_allclose(templates, Z @ T.T, rtol=1e-3, atol=2e-3)
    scores, gram = _scores(alike, hat.astype(np.float32), templates)
    np.testing.assert_allclose(gram, T @ T.T, rtol=1e-3, atol=1e-3)
    scale = np.sqrt((T**2).sum() / c) / np.linalg.norm(level)
    basis = np.vstack([T, scale * level])
    ridge = np.full(c + 1, 0.1 * (basis**2).sum() / (c + 1))
    ridge[c] /= 1000
    for i in range(m):
        without = np.vstack([T - hat[i][:, None] * Z[i], scale * level])
        np.testing.assert_allclose(
            scores[i],
            np.linalg.solve(basis @ basis.T + np.diag(ridge), without @ Z[i])[:c],
            atol=1e-3,
        )


def test_posteriors_against_the_plain_loop():
    rng = np.random.default_rng(0)
    m, n, k = 40, 6, 2
    law = rng.dirichlet(np.ones(4), 500)[:, :2].ravel()
    scores = 0.02 * rng.standard_normal((m, n))
    scores[np.arange(m), np.arange(m) % n] += 0.2
    found, unit = posterior(scores, k, n, law)
    top = k * m // n
    np.testing.assert_allclose(unit, np.sort(scores, axis=0)[-top:].mean(axis=0) / np.mean(law**2))
    x = scores / unit
    x = x - np.median(x, axis=0)
    spread = 1.4826 * np.median(np.abs(x), axis=0)
    grid = np.quantile(law, np.linspace(0.02, 0.98, GRID))
    fits = -0.5 * ((x[:, :, None] - grid**2) / spread[:, None]) ** 2
    odds = np.log(k / n) + logsumexp(fits, axis=2) - np.log(GRID) + 0.5 * (x / spread) ** 2
    weight = (np.exp(fits - logsumexp(fits, axis=2, keepdims=True)) * grid).sum(axis=2)
    for i in range(m):
        shift = brentq(lambda s, i=i: expit(odds[i] + s).sum() - k, -60, 60)
        np.testing.assert_allclose(found.probability[i], expit(odds[i] + shift), atol=1e-4)
    np.testing.assert_allclose(found.weight, weight, atol=1e-4)


def test_probabilities_sum_to_k_and_weights_stay_within_the_law():
    alike, _, law = problem()
    found = image_memberships(alike, 2, 10, law, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.probability.sum(axis=1), 2, atol=1e-4)
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
    assert law[0] <= found.weight.min() <= found.weight.max() <= law[-1]


@pytest.mark.parametrize(("public", "m", "least"), [(0, 300, 0.6), (1, 600, 0.5)])
def test_columns_are_like_true_memberships_and_weights_follow_the_true_ones(public, m, least):
    alike, L, law = problem(m=m, public=public)
    found = image_memberships(alike, 2, 10, law, rng=np.random.default_rng(0))
    assert np.median(likeness(found, L)) > least
    truth = L[:, correlations(found, L).argmax(axis=1)]
    sure = (found.probability > 0.9) & (truth > 0)
    assert np.corrcoef(found.weight[sure], truth[sure])[0, 1] > 0.15


def test_labels_make_memberships_better():
    alike, L, law = problem(n=20, m=600, public=1, seed=1)
    of = np.zeros((20, 4), np.float32)
    of[np.arange(20), np.arange(20) % 4] = 1
    labels = (L @ of).astype(np.float32)
    without = image_memberships(alike, 2, 20, law, rng=np.random.default_rng(0))
    found = image_memberships(alike, 2, 20, law, labels=labels, rng=np.random.default_rng(0))
    assert np.median(likeness(found, L)) > np.median(likeness(without, L)) + 0.02


def test_without_their_number_there_are_about_as_many_columns_as_images():
    alike, _, law = problem()
    found = image_memberships(alike, 2, None, law, rng=np.random.default_rng(0))
    assert 5 <= found.probability.shape[1] <= 20


def test_never_more_columns_than_images_and_the_same_generator_the_same_bytes():
    drawn = [problem() for _ in range(2)]
    one, other = (
        image_memberships(alike, 2, 6, law, rng=np.random.default_rng(4)) for alike, _, law in drawn
    )
    assert one.probability.shape[1] <= 6
    assert one.probability.tobytes() == other.probability.tobytes()
    assert one.weight.tobytes() == other.weight.tobytes()


def test_encodings_that_have_nothing_in_common_give_none():
    Y = np.abs(np.random.default_rng(0).standard_normal((200, 400))).astype(np.float32)
    law = np.linspace(0.1, 0.6, 50)
    alike = squares_alike(Y)
    assert image_memberships(alike, 2, 10, law, rng=np.random.default_rng(0)) is None


def test_where_rows_have_no_order_the_clusters_after_the_first_look_are_found_as_well(monkeypatch):
    alike, L, law = problem()
    whole = image_memberships(alike, 2, 10, law, rng=np.random.default_rng(0))
    monkeypatch.setattr("unveil.images.memberships.LOOK", 3)
    found = image_memberships(alike, 2, 10, law, rng=np.random.default_rng(0))
    assert found.epochs is None
    assert found.probability.shape == whole.probability.shape
    assert np.median(likeness(found, L)) > np.median(likeness(whole, L)) - 0.05
