"""What tells how like an image is, without the truth: against plain averages and two plain fits;
good images against bad."""

import numpy as np
from scipy import sparse

from unveil.images.likeness import Clues, clues_of_likeness, misfits, roughness
from unveil.images.prior import ImagePrior, image_prior
from unveil.images.recognition import WHITE
from unveil.images.reweigh import Weighing, WeightBounds, reweigh, whiten
from unveil.images.sign_fields import Mixture, fit_to_signed
from unveil.images.task import ImageTask, RoundState, WeightLaw
from unveil.scheme import Scheme


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


def clues(prior, mixture, images, z, weighed, rng):
    scheme = Scheme(2, 1, "released")
    task = ImageTask(np.abs(z), scheme, WeightLaw.of(scheme, np.random.default_rng(0)), prior, None)
    return clues_of_likeness(task, RoundState(images, z, mixture, weighed), weighed, rng)


def test_misfit_is_the_mean_over_encodings_by_weight():
    found = misfits(weighing([[0.5, 0, 0], [0.25, 0.5, 0], [0, 0.5, 0.004]], [1.0, 4.0, 2.0]))
    np.testing.assert_allclose(found, [(0.5 + 1) / 0.75, 3.0, np.inf])


def test_halves_are_two_plain_fits_and_encodings_are_counted_by_weight():
    prior, mixture, images, z = problem(mean=0.3)
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
    found = clues(prior, mixture, images, z, weighed, np.random.default_rng(4))
    np.testing.assert_allclose(found.agreement, expected, atol=1e-4)
    np.testing.assert_allclose(found.encodings, L.sum(axis=0) ** 2 / (L**2).sum(axis=0), rtol=1e-4)
    assert (found.encodings <= (L > 0).sum(axis=0)).all()
    law = WeightLaw.of(Scheme(2, 1, "released"), np.random.default_rng(0))
    assert found.expected == law.evenness * 2 * 300 / 10


def test_the_same_generator_gives_the_same():
    prior, mixture, images, z = problem()
    weighed = weighing(mixture.weights.toarray(), np.linspace(0.5, 2, 300))
    one, again = (
        clues(prior, mixture, images, z, weighed, np.random.default_rng(2)) for _ in range(2)
    )
    np.testing.assert_array_equal(one.agreement, again.agreement)
    np.testing.assert_array_equal(one.again, again.again)


def test_an_image_that_is_not_there_does_not_come_back_from_a_new_start():
    """One of the images given is another one than that behind the encodings."""
    prior, mixture, images, z = problem(mean=0.4)
    given = images.copy()
    given[4] = prior.draw(1, np.random.default_rng(8))[0]
    weighed = weighing(mixture.weights.toarray(), np.ones(300))
    found = clues(prior, mixture, given, z, weighed, np.random.default_rng(1))
    others = np.delete(np.arange(10), 4)
    assert found.again[4] < np.median(found.again[others]) - 0.2


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
    weighed = reweigh(
        np.abs(z), z, fitted, fit.shares(), mixture.noise, prior, WeightBounds(2, 0.9)
    )
    found = clues(prior, believed, fitted, z, weighed, rng)
    others = np.delete(np.arange(10), 4)
    assert found.agreement[4] < found.agreement[others].min() - 0.2
    truth = [
        np.corrcoef(a, b)[0, 1]
        for a, b in zip(fitted @ whiten(prior), images @ whiten(prior), strict=True)
    ]
    assert int(np.argmin(truth)) == 4
    assert found.agreement[others].min() > 0.6


def test_white_noise_is_rough_and_photographs_are_not():
    noise = np.random.default_rng(0).uniform(-1, 1, (900, 256)).astype(np.float32)
    assert roughness(image_prior((16, 16), noise)) > WHITE
    assert roughness(image_prior((16, 16))) < WHITE / 10


def test_merged_images_have_mean_clues_and_all_encodings():
    one = Clues(*(np.array([1.0, 3.0, 5.0]) for _ in range(4)), expected=10.0, channels=3)
    both = one.merged(np.array([0, 0, 1]))
    assert both.channels == 3
    np.testing.assert_array_equal(both.again, [2, 5])
    np.testing.assert_array_equal(both.encodings, [4, 5])
    assert both.expected == 15
