"""Members and weights of signed encodings: against bounded least squares, exact where nothing is
hidden, tied by labels."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from unveil.images.epochs import EVEN, Epochs
from unveil.images.prior import ImagePrior, image_prior
from unveil.images.reweigh import (
    FLOOR,
    LEAST,
    WeightBounds,
    fit_bounded,
    half_signed,
    reweigh,
    whiten,
)


def problem(n=10, m=200, public=1, mean=0.0, seed=0):
    """Signed encodings of smooth images, two private ones in each: prior, images, true weights,
    public part, z."""
    rng = np.random.default_rng(seed)
    generic = image_prior((16, 16))
    prior = ImagePrior(
        generic.mean + np.float32(mean), generic.basis, generic.variances, generic.pixel, bool(mean)
    )

    images = prior.draw(n, rng)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = rng.dirichlet(np.full(2 + public, 4.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(L, members, weights[:, :2], axis=1)
    rest = sum(
        (column[:, None] * prior.draw(m, rng) for column in weights.T[2:]),
        np.zeros((m, 256), np.float32),
    )
    return prior, images, L, rest, (L @ images + rest).astype(np.float32)


def run(prior, images, z, *, noise=None, largest=1.0, public=True, **options):
    """With shares of zero: the images were not fitted to these encodings."""
    noise = np.full(len(z), 0.1, np.float32) if noise is None else noise
    shares = options.pop("shares", np.zeros((len(images), len(z)), np.float32))
    bounds = WeightBounds(2, largest, public)
    return reweigh(np.abs(z), z, images, shares, noise, prior, bounds, **options)


def test_what_all_images_have_in_common_speaks_for_none_of_them():
    """Faces: every encoding has much of the common part, which is why single products mislead."""
    prior, images, L, rest, _ = problem(n=20, m=300)
    common = 3 * prior.draw(1, np.random.default_rng(9))
    alike = (images + common).astype(np.float32)
    found = run(prior, alike, (L @ alike + rest).astype(np.float32))
    true = [set(np.flatnonzero(row)) for row in L]
    right = [len(set(pair) & other) for pair, other in zip(found.members, true, strict=True)]
    assert np.mean(right) / 2 > 0.9


def dense(found, n):
    out = np.zeros((len(found.members), n))
    np.put_along_axis(out, found.members, found.best, axis=1)
    return out


def test_half_signed_is_half_way():
    Y = np.array([[2.0, 2.0, 2.0, 0.0]], np.float32)
    E = np.array([[1.0, -1.0, 0.0, 0.0]], np.float32)
    np.testing.assert_array_equal(half_signed(Y, E), [[1.5, -1.5, 0.0, 0.0]])


def test_whitened_images_are_white():
    prior, *_ = problem()
    covariance = (prior.basis * (prior.variances + FLOOR)) @ prior.basis.T
    np.testing.assert_allclose(whiten(prior).T @ covariance @ whiten(prior), np.eye(256), atol=1e-3)


@pytest.mark.parametrize("largest", [1.0, 0.4])
def test_one_subset_is_bounded_least_squares(largest):
    rng = np.random.default_rng(0)
    m, k = 60, 2
    A = rng.standard_normal((m, 12, k)) + 0.5
    b = rng.standard_normal((m, 12)) * 0.3 + A @ np.array([0.5, 0.05])
    found = fit_bounded(
        np.einsum("irj,irl->ijl", A, A), np.einsum("irj,ir->ij", A, b), largest, True
    )
    expected = [lsq_linear(a, target, (LEAST, largest)).x for a, target in zip(A, b, strict=True)]
    bound = (found == LEAST) | (found == largest)
    assert 0.05 < bound.mean() < 0.95
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_without_public_images_the_weights_of_a_subset_sum_to_one():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 12, 3))
    b = A @ np.array([0.5, 0.3, 0.2]) + 0.1 * rng.standard_normal((20, 12))
    found = fit_bounded(np.einsum("irj,irl->ijl", A, A), np.einsum("irj,ir->ij", A, b), 1.0, False)
    inside = ((found > LEAST) & (found < 1)).all(axis=1)
    assert inside.mean() > 0.8
    np.testing.assert_allclose(found[inside].sum(axis=1), 1, atol=1e-6)
    for i in np.flatnonzero(inside)[:3]:
        plain = minimize(
            lambda w, i=i: ((A[i] @ w - b[i]) ** 2).sum(),
            np.full(3, 1 / 3),
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        )
        np.testing.assert_allclose(found[i], plain.x, atol=1e-3)


@pytest.mark.parametrize("mean", [0.0, 0.3])
def test_true_signs_and_images_give_members_and_weights(mean):
    prior, images, L, _, z = problem(public=0, mean=mean)
    found = run(prior, images, z, public=False, noise=np.full(200, 0.004, np.float32))
    np.testing.assert_allclose(dense(found, 10), L, atol=0.01)
    np.testing.assert_allclose(found.weights.toarray(), L, atol=0.03)
    assert found.misfit.max() < 0.2


def test_the_public_part_is_noise_that_members_stand_out_of():
    prior, images, L, _, z = problem()
    found = run(prior, images, z)
    large = L > 0.15
    assert ((dense(found, 10) > 0) | ~large).mean() > 0.98
    assert np.abs(found.weights.toarray() - L)[large].mean() < 0.06


def test_a_public_part_that_is_known_is_no_noise():
    prior, images, L, rest, z = problem(mean=0.3)
    found = run(prior, images, z, offsets=rest)
    np.testing.assert_allclose(
        dense(found, 10), np.where(L > 0, np.maximum(L, LEAST), 0), atol=0.01
    )


def test_expected_weights_are_averages_over_subsets_by_likelihood():
    """One encoding, all subsets of all images, in plain words."""
    prior, images, _, _, z = problem(n=5, m=3)
    noise = np.full(3, 0.3, np.float32)
    found = run(prior, images, z, noise=noise, largest=0.65)
    W = whiten(prior).astype(np.float64)
    x, e = images @ W, z @ W
    for i in range(3):
        fits = []
        for subset in combinations(range(5), 2):
            fit = lsq_linear(x[list(subset)].T, e[i], (LEAST, 0.65))
            fits.append((np.exp(-0.5 * (2 * fit.cost - e[i] @ e[i]) / 0.3 / 2.0), subset, fit.x))
        total = sum(odds for odds, *_ in fits)
        first, second = np.zeros(5), np.zeros(5)
        for odds, subset, w in fits:
            first[list(subset)] += odds / total * w
            second[list(subset)] += odds / total * w**2
        np.testing.assert_allclose(found.weights.toarray()[i], first, atol=5e-3)
        np.testing.assert_allclose(found.squares.toarray()[i], second, atol=5e-3)
        left = e[i] - found.weights.toarray()[i] @ x
        assert found.misfit[i] == pytest.approx((left @ left) / 256 / 0.3, rel=1e-3)


def test_an_encoding_does_not_vouch_for_itself():
    """An image that is one encoding and nothing else: with the share told, the encoding no longer
    claims it."""
    prior, images, _, _, z = problem(m=40)
    images = np.vstack([images, z[:1]])
    shares = np.zeros((11, 40), np.float32)
    assert 10 in run(prior, images, z, shares=shares).members[0]
    shares[10, 0] = 1
    assert 10 not in run(prior, images, z, shares=shares).members[0]


def test_labels_tie_the_weights():
    prior, images, L, _, z = problem(public=2)
    classes = np.zeros((10, 5), np.float32)
    classes[np.arange(10), np.arange(10) % 5] = 1
    labels = L @ classes
    found = run(prior, images, z, labels=(labels, classes))
    plain = run(prior, images, z)
    mixed = dense(found, 10)
    differ = (labels > 0).sum(axis=1) == 2
    np.testing.assert_allclose((mixed @ classes)[differ], labels[differ], atol=0.03)
    assert not (mixed[differ] > 0)[(labels @ classes.T == 0)[differ]].any()
    assert ((mixed > 0) == (L > 0)).mean() >= ((dense(plain, 10) > 0) == (L > 0)).mean()
    assert np.abs(mixed - L).mean() < np.abs(dense(plain, 10) - L).mean()


def test_order_only_moves_the_result():
    prior, images, _, _, z = problem()
    rows, columns = (
        np.random.default_rng(1).permutation(200),
        np.random.default_rng(2).permutation(10),
    )
    one, other = run(prior, images, z), run(prior, images[columns], z[rows])
    np.testing.assert_allclose(
        other.weights.toarray(), one.weights.toarray()[np.ix_(rows, columns)], atol=5e-3
    )
    np.testing.assert_allclose(other.misfit, one.misfit[rows], rtol=0.02)
    np.testing.assert_array_equal(
        np.sort(columns[other.members], axis=1), np.sort(one.members[rows], axis=1)
    )


def test_a_common_sign_of_images_and_encodings_changes_nothing():
    prior, images, _, _, z = problem()
    one, other = run(prior, images, z), run(prior, -images, -z)
    np.testing.assert_array_equal(other.members, one.members)
    np.testing.assert_array_equal(other.best, one.best)


def test_fewer_images_than_an_encoding_mixes_are_weighed_all_the_same():
    prior, images, L, _, z = problem(n=2)
    found = run(prior, images[:1], z)
    assert found.members.shape == found.best.shape == (200, 1)
    assert np.corrcoef(found.best[:, 0], L[:, 0])[0, 1] > 0.5


def test_an_encoding_may_mix_more_images_than_are_looked_at_of_two():
    prior, images, _, _, z = problem(n=12)
    shares, noise = np.zeros((12, len(z)), np.float32), np.full(len(z), 0.1, np.float32)
    found = reweigh(np.abs(z), z, images, shares, noise, prior, WeightBounds(12, 1.0, True))
    np.testing.assert_array_equal(np.sort(found.members, axis=1), np.tile(np.arange(12), (200, 1)))


def in_epochs(n=10, epochs=20, seed=0):
    """Signed encodings in which every epoch of n rows has each image twice."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))
    images = prior.draw(n, rng)
    pairs = np.concatenate(
        [np.stack([p := rng.permutation(n), np.roll(p, 1)], axis=1) for _ in range(epochs)]
    )
    L = np.zeros((n * epochs, n), np.float32)
    np.put_along_axis(L, pairs, rng.uniform(0.2, 0.4, pairs.shape).astype(np.float32), axis=1)
    public = (1 - L.sum(axis=1, keepdims=True)) * prior.draw(len(L), rng)
    order = Epochs(np.arange(len(L)) // n, n, 2)
    return prior, images, (L @ images + public).astype(np.float32), order


def test_members_of_images_lie_evenly_over_epochs_and_those_of_a_stranger_do_not():
    prior, images, z, order = in_epochs()
    stranger = prior.draw(1, np.random.default_rng(99))
    found = run(prior, np.concatenate([images, stranger]), z, epochs=order)
    assert (found.spread[:-1] < EVEN).all()
    assert not found.spread[-1] < EVEN
    assert run(prior, images, z).spread is None
