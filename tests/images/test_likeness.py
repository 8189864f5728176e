"""What tells how like an image is, without the truth: against plain averages and two plain fits;
good images against bad."""

import numpy as np
from scipy import sparse

from unveil.images.likeness import misfits, signs_of_likeness
from unveil.images.prior import ImagePrior, image_prior
from unveil.images.reweigh import Weighing, reweigh, whiten
from unveil.images.sign_fields import Mixture, fit_to_signed


def problem(n=10, m=300, mean=0.0, seed=0):
    """Prior, mixture, true images, signed encodings z."""
    rng = np.random.default_rng(seed)
    generic = image_prior((16, 16))
    prior = ImagePrior(
        generic.mean + np.float32(mean), generic.basis, generic.variances, generic.pixel, bool(mean)
    )

    images = prior.draw(n, rng)
    weights = rng.dirichlet(np.full(3, 8.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(
        L, rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], weights[:, :2], axis=1
    )
    z = L @ images + weights[:, 2:] * prior.draw(m, rng)
    return prior, Mixture(sparse.csr_array(L), weights[:, 2] ** 2), images, z.astype(np.float32)


def weighing(weights, misfit):
    weights = sparse.csr_array(np.asarray(weights, np.float32))
    none = np.zeros((weights.shape[0], 1), np.int64)
    return Weighing(
        weights,
        weights.multiply(weights).tocsr(),
        none,
        none.astype(np.float32),
        np.asarray(misfit, np.float32),
    )


def test_misfit_is_the_mean_over_encodings_by_weight():
    found = misfits(weighing([[0.5, 0, 0], [0.25, 0.5, 0], [0, 0.5, 0.004]], [1.0, 4.0, 2.0]))
    np.testing.assert_allclose(found, [(0.5 + 1) / 0.75, 3.0, np.inf])


def test_halves_are_two_plain_fits_and_encodings_are_counted_by_weight():
    prior, mixture, _, z = problem(mean=0.3)
    L, noise = mixture.weights.toarray().astype(np.float64), mixture.noise.astype(np.float64)
    weighed = weighing(L, np.ones(300))
    first = np.random.default_rng(4).random(300) < 0.5
    halves = []
    for half in (first, ~first):
        A, w = L[half], 1 / noise[half][:, None]
        target = z[half] - (1 - A.sum(axis=1, keepdims=True)) * prior.mean
        x = (
            np.linalg.solve(A.T @ (w * A) + np.eye(10), A.T @ (w * target) + prior.mean)
            - prior.mean
        )
        halves.append(x @ whiten(prior))
    expected = [
        (a @ b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*halves, strict=True)
    ]
    found = signs_of_likeness(z, mixture, weighed, prior, None, np.random.default_rng(4))
    np.testing.assert_allclose(found.agreement, expected, atol=1e-4)
    np.testing.assert_allclose(found.encodings, L.sum(axis=0) ** 2 / (L**2).sum(axis=0), rtol=1e-4)
    assert (found.encodings <= (L > 0).sum(axis=0)).all()
    offsets = ((1 - L.sum(axis=1, keepdims=True)) * prior.mean).astype(np.float32)
    other = signs_of_likeness(z, mixture, weighed, prior, offsets, np.random.default_rng(4))
    np.testing.assert_allclose(other.agreement, found.agreement, atol=1e-3)


def test_the_order_of_images_only_moves_the_result_and_the_same_generator_gives_the_same():
    prior, mixture, _, z = problem()
    L = mixture.weights.toarray()
    misfit = np.linspace(0.5, 2, 300)
    order = np.random.default_rng(1).permutation(10)
    one, again, moved = (
        signs_of_likeness(
            z,
            Mixture(sparse.csr_array(L[:, o]), mixture.noise),
            weighing(L[:, o], misfit),
            prior,
            None,
            np.random.default_rng(2),
        )
        for o in (np.arange(10), np.arange(10), order)
    )
    np.testing.assert_array_equal(one.agreement, again.agreement)
    for name in ("misfit", "agreement", "encodings"):
        np.testing.assert_allclose(getattr(moved, name), getattr(one, name)[order], rtol=1e-3)


def test_images_with_true_encodings_agree_and_one_with_any_encodings_does_not():
    prior, mixture, images, z = problem()
    rng = np.random.default_rng(3)
    L = mixture.weights.toarray()
    wrong = L.copy()
    wrong[:, 4] = rng.permutation(L[:, 4])
    believed = Mixture(sparse.csr_array(wrong), mixture.noise)
    fit = fit_to_signed(believed, 10)
    rest = (1 - wrong.sum(axis=1)).astype(np.float32)
    fitted = fit(z, rest, prior.mean, None)
    weighed = reweigh(np.abs(z), z, fitted, fit.shares(), mixture.noise, prior, 2, largest=0.9)
    found = signs_of_likeness(z, believed, weighed, prior, None, rng)
    others = np.delete(np.arange(10), 4)
    assert found.agreement[4] < found.agreement[others].min() - 0.2
    truth = [
        np.corrcoef(a, b)[0, 1]
        for a, b in zip(fitted @ whiten(prior), images @ whiten(prior), strict=True)
    ]
    assert int(np.argmin(truth)) == 4
    assert found.agreement[others].min() > 0.6
