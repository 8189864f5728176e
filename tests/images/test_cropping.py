"""Images under their copies: fits against dense least squares, and weights summed over copies."""

import numpy as np
from scipy import sparse

import unveil.images.cropping as module
from unveil.encode.copies import Copies
from unveil.images.cropping import Cropping
from unveil.images.sign_fields import Mixture

SHAPE = (4, 3)


def instance(seed=0, n=2, m=30):
    rng = np.random.default_rng(seed)
    cropping = Cropping(Copies(SHAPE, 1, True), np.array([-1.0], np.float32))
    count = cropping.copies.count
    rows = np.repeat(np.arange(m), 2)
    columns = rng.integers(0, n * count, 2 * m)
    weights = sparse.csr_array(
        (rng.uniform(0.2, 0.5, 2 * m).astype(np.float32), (rows, columns)), shape=(m, n * count)
    )
    mixture = Mixture(weights, rng.uniform(0.1, 0.3, m).astype(np.float32))
    return cropping, mixture, rng


def test_the_fit_is_that_of_dense_least_squares(monkeypatch):
    cropping, mixture, rng = instance()
    d, n = 12, 2
    E = rng.standard_normal((30, d)).astype(np.float32)
    mean, towards = (rng.standard_normal(d).astype(np.float32) for _ in range(2))
    rest = 1 - np.asarray(mixture.weights.sum(axis=1)).ravel()
    # Every image pixel, one at a time, gives a column of the design.
    black = cropping.mixed(mixture.weights, np.zeros((n, d), np.float32))
    design = np.empty((30 * d, n * d))
    for p in range(n * d):
        one = np.zeros(n * d, np.float32)
        one[p] = 1
        design[:, p] = (cropping.mixed(mixture.weights, one.reshape(n, d)) - black).ravel()
    w = np.repeat(1 / mixture.noise, d)
    target = (E - rest[:, None] * mean - black).ravel()
    exact = np.linalg.solve(
        (design.T * w) @ design + np.eye(n * d),
        (design.T * w) @ target + np.tile(towards, n),
    ).reshape(n, d)
    monkeypatch.setattr(module, "STEPS", 60)
    start = np.zeros((n, d), np.float32)
    found = cropping.fit(mixture)(E, rest.astype(np.float32), mean, None, towards, start)
    np.testing.assert_allclose(found, exact, atol=1e-3)


def test_weights_of_images_are_the_sums_over_their_copies():
    cropping, mixture, _ = instance()
    count = cropping.copies.count
    dense = mixture.weights.toarray().reshape(30, 2, count).sum(axis=2)
    np.testing.assert_allclose(cropping.of_images(mixture.weights).toarray(), dense, rtol=1e-6)


def test_what_an_encoding_adds_is_its_weight_by_the_precision_of_the_image():
    cropping, mixture, _ = instance()
    fit = cropping.fit(mixture)
    row, column = (part[0] for part in mixture.weights.nonzero())
    image = column // cropping.copies.count
    share = mixture.weights[row, column] / mixture.noise[row] / fit.diagonal[image].mean()
    assert abs(fit.shares()[row, column] - share) < 1e-5
