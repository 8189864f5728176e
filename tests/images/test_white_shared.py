"""Noise that rows of an epoch share is found, and images are better without it."""

import numpy as np

from unveil.images.epochs import Epochs
from unveil.images.prior import smooth_prior
from unveil.images.white_fit import WhiteFit
from unveil.images.white_shared import without_shared_noise

SHAPE = (12, 12)


def test_shared_noise_is_taken_out():
    rng = np.random.default_rng(0)
    prior = smooth_prior(SHAPE, neighbours=0.92)
    n, blocks, d = 10, 12, 144
    images = np.clip(prior.draw(n, rng), -1, 1)
    A, noise = [], []
    for _ in range(blocks):
        part = np.zeros((n, n), np.float32)
        rows = np.arange(n)
        for _ in range(2):
            part[rows, rng.permutation(n)] += rng.uniform(0.15, 0.4, n).astype(np.float32)
        A.append(part)
        # Three public images in each row, each of them in three rows.
        mixing = np.zeros((n, n))
        for _ in range(3):
            mixing[rows, rng.permutation(n)] += rng.uniform(0.1, 0.3, n)
        noise.append(mixing @ rng.uniform(-1, 1, (n, d)))
    A, noise = np.concatenate(A), np.concatenate(noise)
    Y = np.abs(A @ images + noise).astype(np.float32)
    variance = (noise**2).mean(axis=1).astype(np.float32)
    fit = WhiteFit.of(A, variance, prior)
    start = images + 0.2 * rng.standard_normal(images.shape)
    before = fit.settle(Y, start.astype(np.float32), 20)
    after, offsets, left = without_shared_noise(
        Y, before, fit, Epochs(np.arange(len(Y)) // n, n, 2)
    )
    error = [float(np.mean((x - images) ** 2)) for x in (before, after)]
    assert error[1] < 0.9 * error[0]
    assert np.corrcoef(offsets.ravel(), noise.ravel())[0, 1] > 0.5
    assert left.mean() < 0.8 * variance.mean()
