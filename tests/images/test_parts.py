"""The parts of the image attack against oracles: adjoints, exact inverses, brute force."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from unveil.images.fields import Fit, Mixture, sign_odds
from unveil.images.memberships import Epochs, find_epochs, match
from unveil.images.model import Copies, image_prior, mirror
from unveil.images.similarity import independent_components, leading_eigenvectors, similarity
from unveil.images.start import pixel_signs
from unveil.images.weigh import WeightLaw, shared_part, weigh
from unveil.scheme import Scheme

SHAPE = (12, 10)


def draw(prior, count, rng):
    parts = rng.standard_normal((count, len(prior.variances))) * np.sqrt(prior.variances)
    return (parts @ prior.basis.T + prior.mean).astype(np.float32)


@pytest.mark.parametrize("shape", [(6, 5), (4, 4, 3)])
def test_the_prior_is_the_covariance_of_images_and_their_mirror_images(shape):
    rng = np.random.default_rng(0)
    like = rng.standard_normal((300, *shape)).cumsum(axis=1).reshape(300, -1).astype(np.float32)
    prior = image_prior(shape, like)
    both = np.concatenate([like, mirror(like, shape)])
    expected = np.cov(both.T, bias=True)
    found = (prior.basis * prior.variances) @ prior.basis.T
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(prior.pixel, both.var(axis=0), rtol=1e-3)


@pytest.mark.parametrize(("flips", "reach"), [(False, 0), (True, 0), (False, 1), (True, 2)])
def test_mixing_copies_and_gathering_them_are_adjoint_and_fits_solve_the_normal_equations(
    flips, reach
):
    rng = np.random.default_rng(1)
    copies, n, m, d = Copies(SHAPE, flips, reach), 3, 40, 120
    A = sparse.random_array((m, copies.count * n), density=min(1, 4 / (copies.count * n)), rng=rng)
    A = sparse.csr_array(A, dtype=np.float32)
    x, rows = (rng.standard_normal(size).astype(np.float32) for size in ((n, d), (m, d)))
    left = np.vdot(copies.mix(A, x, linear=True), rows)
    assert left == pytest.approx(np.vdot(x, copies.gather(A, rows)), rel=1e-3)
    np.testing.assert_allclose(A @ copies.every(x), copies.mix(A, x), atol=1e-4)
    # Signed encodings without noise, and little pull towards zero: the images come back.
    mean = np.zeros(d, np.float32)
    mixture = Mixture(A, np.full(m, 1e-3, np.float32), np.zeros(m, np.float32), mean)
    found = Fit(mixture, copies)(copies.mix(A, x), 0 * x, mean, steps=60)
    known = np.asarray(abs(A).sum(axis=0)).reshape(copies.count, n).sum(axis=0) > 0.5
    assert np.corrcoef(found[known].ravel(), x[known].ravel())[0, 1] > 0.98


def test_sign_odds_are_the_difference_of_log_likelihoods():
    rng = np.random.default_rng(2)
    y, other, own = (
        np.abs(rng.standard_normal(50)),
        rng.standard_normal(50),
        rng.standard_normal(50),
    )
    v = 0.4

    def log_likelihood(mean):
        return np.logaddexp(-((y - mean) ** 2) / 2 / v, -((y + mean) ** 2) / 2 / v)

    expected = log_likelihood(other + own) - log_likelihood(other - own)
    np.testing.assert_allclose(sign_odds(y / v, other, own, v), expected, atol=1e-9)


def test_eigenvectors_and_independent_components():
    rng = np.random.default_rng(3)
    sources = (rng.random((2000, 6)) < 0.1) * rng.gamma(2, size=(2000, 6))
    K = (sources @ sources.T / 100).astype(np.float32)
    K += rng.standard_normal(K.shape) * 0.001
    K = ((K + K.T) / 2).astype(np.float32)
    values, V = leading_eigenvectors(lambda x: K @ x, 2000, 6, rng)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:6], rtol=1e-3)
    S = independent_components(V, rng)
    alike = np.corrcoef(S.T, sources.T)[:6, 6:]
    assert (alike.max(axis=0) > 0.97).all()  # positive: tails point the same way


def test_rows_that_share_an_image_are_more_alike():
    rng = np.random.default_rng(4)
    prior = image_prior((16, 16))
    x = draw(prior, 8, rng)
    members = np.array([rng.choice(8, 2, replace=False) for _ in range(240)])
    Y = np.abs(x[members].sum(axis=1)).astype(np.float32) / 2
    K = similarity(Y, Copies((16, 16))).K.astype(float)
    shared = (members[:, :, None, None] == members.T[None, None]).any(axis=(1, 2))
    upper = np.triu_indices(240, 1)
    others = K[upper][~shared[upper]]
    assert K[upper][shared[upper]].mean() > others.mean() + 2 * others.std()
    np.testing.assert_array_equal(K, K.T)


def test_epochs_are_seen_and_probabilities_matched_to_them():
    rng = np.random.default_rng(5)
    n, epochs = 20, 12
    first = np.concatenate([rng.permutation(n) for _ in range(epochs)])
    second = np.concatenate([rng.permutation(n) for _ in range(epochs)])
    members = np.zeros((n * epochs, n), bool)
    members[np.arange(n * epochs), first] = members[np.arange(n * epochs), second] = True
    found = find_epochs(members, range(8, 40), 2)
    assert found is not None
    assert found.n == n
    assert find_epochs(members[rng.permutation(len(members))], range(8, 40), 2) is None
    p = match(rng.standard_normal((n * epochs, n)), 2, 1, Epochs(n * epochs, n, 2))
    np.testing.assert_allclose(p.sum(axis=1), 2, atol=0.05)
    np.testing.assert_allclose(found.totals(p), 2, atol=0.05)


def test_signs_of_pixels_are_found_up_to_one_for_all():
    rng = np.random.default_rng(6)
    prior = image_prior((14, 14))
    x = draw(prior, 60, rng)
    hidden = np.where(rng.random(196) < 0.5, -1, 1).astype(np.float32)
    agree = pixel_signs(x * hidden, prior) * hidden
    assert abs(agree.sum()) > 0.95 * 196


def test_weights_of_signed_encodings_are_those_of_the_best_subset():
    rng = np.random.default_rng(7)
    prior = image_prior((12, 12))
    x, n, m = draw(prior, 6, rng), 6, 80
    members = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    lam = rng.uniform(0.15, 0.45, (m, 2))
    public = draw(prior, m, rng) * 0.05
    z = np.einsum("mk,mkd->md", lam, x[members]).astype(np.float32) + public.astype(np.float32)
    A = sparse.csr_array(np.full((m, n), 0.1, np.float32))
    mixture = Mixture(A, np.full(m, 0.01, np.float32), np.zeros(m, np.float32), prior.mean)
    law = WeightLaw.of(Scheme(2, 4, "released"), rng)
    found = weigh(np.abs(z), z, x, mixture, prior, Copies((12, 12)), 2, law, None)
    assert np.mean(np.sort(found.members, axis=1) == np.sort(members, axis=1)) > 0.97
    W = prior.whitener
    for row in range(0, m, 16):  # brute force over all pairs
        costs = {
            pair: np.linalg.lstsq((x[list(pair)] @ W).T, z[row] @ W, rcond=None)[1].item()
            for pair in combinations(range(n), 2)
        }
        assert tuple(sorted(found.members[row])) == min(costs, key=costs.get)


def test_rows_of_an_epoch_tell_each_other_their_public_part():
    rng = np.random.default_rng(8)
    prior, n = image_prior((12, 12)), 30
    public = draw(prior, n, rng)
    mix = np.zeros((n, n), np.float32)
    for slot in range(4):
        mix[np.arange(n), rng.permutation(n)] += rng.uniform(0.05, 0.3, n) + 0 * slot
    part = mix @ public
    known, left = shared_part(lambda rows: part[rows], n, prior, Epochs(n, n, 2), Copies((12, 12)))
    assert np.mean((part - known) ** 2) < 0.5 * np.mean(part**2)
    assert (left > 0).all()
