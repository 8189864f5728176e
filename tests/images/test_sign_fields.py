"""Sign fields: steps against the formula written plainly, fits against dense least squares, and
what annealing gains."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import ImagePrior, image_prior
from unveil.images.sign_fields import BLOCK, SPEAKS, Mixture, anneal, fit_to_signed, folded_fit
from unveil.parallel import using


def problem(n=10, m=300, public=2, size=16, seed=0):
    """Signed encodings z of smooth images with two private ones in each; prior, mixture, images,
    z."""
    rng = np.random.default_rng(seed)
    prior = image_prior((size, size))

    images = prior.draw(n, rng)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = rng.dirichlet(np.full(2 + public, 4.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(L, members, weights[:, :2], axis=1)
    z = L @ images
    for column in weights.T[2:]:
        z += column[:, None] * prior.draw(m, rng)
    noise = np.maximum((weights[:, 2:] ** 2).sum(axis=1), 0.004).astype(np.float32)
    return prior, Mixture(sparse.csr_array(L), noise), images, z


def shifted(prior, mean):
    return ImagePrior(
        np.full_like(prior.mean, mean), prior.basis, prior.variances, prior.pixel, True
    )


def wrong(E, z):
    """The share of energy with the wrong sign."""
    return (z**2 * (np.sign(E) != np.sign(z))).sum() / (z**2).sum()


def dense_fit(mixture, E, rest, mean):
    """min Σ_i ‖E_i − rest_i·mean − Σ λ x‖²/τ_i² + ‖x − mean‖², as one least-squares problem."""
    A, root = mixture.weights.toarray().astype(np.float64), np.sqrt(mixture.noise)[:, None]
    n = A.shape[1]
    left = np.vstack([A / root, np.eye(n)])
    right = np.vstack([(E - rest[:, None] * mean) / root, np.tile(mean, (n, 1))])
    return np.linalg.lstsq(left, right, rcond=None)[0]


def test_the_fit_is_dense_ridge_least_squares():
    _, mixture, _, z = problem(m=80)
    rest = np.linspace(0, 1, 80, dtype=np.float32)
    mean = np.linspace(-1, 1, 256, dtype=np.float32)
    solver = fit_to_signed(mixture, 10)
    np.testing.assert_allclose(
        solver(z, rest, mean, None), dense_fit(mixture, z, rest, mean), atol=1e-4
    )
    offsets = rest[:, None] * mean
    np.testing.assert_allclose(
        solver(z, rest, mean, offsets), dense_fit(mixture, z, rest, mean), atol=1e-4
    )
    shares = solver.shares()
    none = np.zeros(256, np.float32)
    np.testing.assert_allclose(
        shares @ z, solver(z, np.zeros(80, np.float32), none, None), atol=1e-4
    )


@pytest.mark.parametrize("given", [False, True])
def test_one_step_is_the_formula(given):
    prior, mixture, images, z = problem(m=30)
    prior = shifted(prior, 0.2)
    y, epsilon = np.abs(z), 0.1
    start = (y * np.tanh(z)).astype(np.float32) if given else None
    rest = 1 - mixture.weights.toarray().sum(axis=1)
    M = mixture.weights @ images + rest[:, None] * prior.mean
    tau = mixture.noise[:, None]
    E = start.astype(np.float64) if given else y * np.tanh(y * M / (tau * prior.pixel))
    speak = prior.variances > SPEAKS * epsilon
    assert 8 < speak.sum() < 256
    U, w = prior.basis[:, speak], prior.variances[speak]
    H = (U * w / (w + epsilon)) @ U.T
    for _ in range(3):
        E = y * np.tanh(y * (M + (E - M) @ H - np.diag(H) * E) / (epsilon * tau))
    found, signed = anneal(y, mixture, images, prior, np.array([epsilon]), inner=3, signed=start)
    np.testing.assert_allclose(signed, E, atol=2e-3)
    np.testing.assert_allclose(found, dense_fit(mixture, E, rest, prior.mean), atol=5e-3)
    assert not given or signed is start


def test_offsets_stand_for_the_mean_of_the_public_part():
    prior, mixture, images, z = problem(m=60)
    prior = shifted(prior, 0.2)
    rest = 1 - np.asarray(mixture.weights.sum(axis=1)).ravel()
    offsets = (rest[:, None] * prior.mean).astype(np.float32)
    schedule = np.geomspace(2, 0.5, 3)
    one = anneal(np.abs(z), mixture, images, prior, schedule)
    other = anneal(np.abs(z), mixture, images, prior, schedule, offsets=offsets)
    np.testing.assert_allclose(other[0], one[0], atol=1e-3)
    np.testing.assert_allclose(other[1], one[1], atol=1e-2)


def test_independent_pixels_are_the_same_without_the_filter():
    prior, mixture, images, z = problem(m=40)
    prior = shifted(prior, 0.2)
    y, rest = np.abs(z), 1 - mixture.weights.toarray().sum(axis=1)
    for mean in (False, True):
        level = prior.mean if mean else 0 * prior.mean
        x = images.astype(np.float64)
        for _ in range(2):
            M = mixture.weights @ x + rest[:, None] * level
            x = dense_fit(
                mixture, y * np.tanh(y * M / (mixture.noise[:, None] * prior.pixel)), rest, level
            )
        np.testing.assert_allclose(
            folded_fit(y, mixture, images, prior, mean=mean, rounds=2), x, atol=1e-3
        )


def test_with_a_public_mean_of_zero_every_pixel_keeps_its_own_sign():
    prior, mixture, images, z = problem(m=60)
    y = np.abs(z)
    signs = np.random.default_rng(1).choice([-1, 1], 256).astype(np.float32)
    one = folded_fit(y, mixture, images, prior, mean=False, rounds=3)
    np.testing.assert_allclose(
        folded_fit(y, mixture, images * signs, prior, mean=False, rounds=3), one * signs, atol=1e-5
    )


def test_the_common_sign_of_all_images_stays_open_where_the_mean_is_zero():
    prior, mixture, images, z = problem(m=60)
    schedule = np.geomspace(4, 0.2, 4)
    one = anneal(np.abs(z), mixture, images, prior, schedule)
    other = anneal(np.abs(z), mixture, -images, prior, schedule)
    np.testing.assert_array_equal(other[0], -one[0])
    np.testing.assert_array_equal(other[1], -one[1])


def test_the_order_of_encodings_and_images_only_moves_the_result():
    prior, mixture, images, z = problem(m=60)
    rows, columns = (
        np.random.default_rng(1).permutation(60),
        np.random.default_rng(2).permutation(10),
    )
    moved = Mixture(
        sparse.csr_array(mixture.weights.toarray()[np.ix_(rows, columns)]), mixture.noise[rows]
    )
    schedule = np.geomspace(4, 0.5, 4)
    one = anneal(np.abs(z), mixture, images, prior, schedule)
    other = anneal(np.abs(z)[rows], moved, images[columns], prior, schedule)
    np.testing.assert_allclose(other[0], one[0][columns], atol=1e-3)
    np.testing.assert_allclose(other[1], one[1][rows], atol=1e-2)


def test_blocks_and_workers_change_nothing_and_progress_counts_steps():
    prior, mixture, images, z = problem(m=BLOCK + 30)
    seen = []
    with using(workers=1):
        one = anneal(
            np.abs(z),
            mixture,
            images,
            prior,
            np.geomspace(4, 1, 3),
            progress=lambda *at: seen.append(at),
        )
    with using(workers=2):
        other = anneal(np.abs(z), mixture, images, prior, np.geomspace(4, 1, 3))
    assert one[0].tobytes() == other[0].tobytes()
    assert one[1].tobytes() == other[1].tobytes()
    assert seen == [("signs", i + 1, 3) for i in range(3)]


def test_the_size_of_an_encoding_is_never_exceeded():
    prior, mixture, images, z = problem(m=60)
    _, E = anneal(np.abs(z), mixture, images, prior, np.geomspace(4, 0.1, 4))
    assert (np.abs(E) <= np.abs(z)).all()


def test_annealed_signs_beat_independent_pixels_and_a_fixed_small_epsilon():
    """All else known; the images too."""
    prior, mixture, images, z = problem()
    y = np.abs(z)
    M = mixture.weights @ images
    alone = wrong(y * M, z)
    _, fixed = anneal(y, mixture, images, prior, np.full(10, 0.1))
    _, annealed = anneal(y, mixture, images, prior, np.geomspace(6, 0.1, 10))
    assert alone > 0.08
    assert wrong(annealed, z) < 0.5 * alone
    assert wrong(annealed, z) < wrong(fixed, z)


def test_images_come_closer_from_a_bad_start():
    prior, mixture, images, z = problem()
    rng = np.random.default_rng(5)
    start = (0.5 * images + 0.4 * rng.standard_normal(images.shape)).astype(np.float32)
    found, _ = anneal(np.abs(z), mixture, start, prior, np.geomspace(6, 0.1, 10))
    independent = folded_fit(np.abs(z), mixture, start, prior, mean=True, rounds=10)

    def error(x):
        return np.linalg.norm(x - images) / np.linalg.norm(images)

    assert error(found) < 0.7 * error(start)
    assert error(found) < error(independent)


def test_on_a_tiny_image_the_surest_signs_are_those_of_the_exact_posterior():
    """Four pixels, all sixteen sign patterns weighed exactly: where one sign has 19 of 20, the
    field agrees."""
    prior, mixture, images, z = problem(m=200, size=2)
    y = np.abs(z).astype(np.float64)
    M = mixture.weights @ images
    precision = np.linalg.inv((prior.basis * prior.variances) @ prior.basis.T + 0.02 * np.eye(4))
    patterns = np.array(list(product([-1, 1], repeat=4)))
    left = patterns[None] * y[:, None] - M[:, None]
    log = -0.5 * np.einsum("isp,pq,isq->is", left, precision, left) / mixture.noise[:, None]
    odds = np.exp(log - log.max(axis=1, keepdims=True))
    expected = (odds @ patterns) / odds.sum(axis=1, keepdims=True)
    _, E = anneal(np.abs(z), mixture, images, prior, np.geomspace(1, 0.02, 8), inner=8)
    sure = np.abs(expected) > 0.9
    assert sure.mean() > 0.25
    assert (np.sign(E) == np.sign(expected))[sure].mean() > 0.97
