"""Noise that rows of an epoch share is found, images are better without it, and it tells which of
them are negatives."""

import numpy as np
import pytest

from unveil.images.epochs import Epochs
from unveil.images.prior import smooth_prior
from unveil.images.white_fit import WhiteFit
from unveil.images.white_shared import noise_agrees, shared_noise, without_shared_noise

SHAPE = (12, 12)


N, BLOCKS = 10, 12


@pytest.fixture(scope="module")
def problem():
    """Magnitudes, images, weights, noise, its variance, and epochs."""
    rng = np.random.default_rng(0)
    images = np.clip(smooth_prior(SHAPE, neighbours=0.92).draw(N, rng), -1, 1)
    A, noise, rows = [], [], np.arange(N)
    for _ in range(BLOCKS):
        part = np.zeros((N, N), np.float32)
        for _ in range(2):
            part[rows, rng.permutation(N)] += rng.uniform(0.15, 0.4, N).astype(np.float32)
        A.append(part)
        # Three public images in each row, each of them in three rows.
        mixing = np.zeros((N, N))
        for _ in range(3):
            mixing[rows, rng.permutation(N)] += rng.uniform(0.1, 0.3, N)
        noise.append(mixing @ rng.uniform(-1, 1, (N, 144)))
    A, noise = np.concatenate(A), np.concatenate(noise)
    Y = np.abs(A @ images + noise).astype(np.float32)
    variance = (noise**2).mean(axis=1).astype(np.float32)
    return Y, images, A, noise, variance, Epochs(np.arange(len(Y)) // N, N, 2)


def test_shared_noise_is_taken_out(problem):
    Y, images, A, noise, variance, epochs = problem
    rng = np.random.default_rng(1)
    fit = WhiteFit.of(A, variance, smooth_prior(SHAPE, neighbours=0.92))
    start = images + 0.2 * rng.standard_normal(images.shape)
    before = fit.settle(Y, start.astype(np.float32), 20)
    after, offsets, left = without_shared_noise(Y, before, fit, epochs)
    error = [float(np.mean((x - images) ** 2)) for x in (before, after)]
    assert error[1] < 0.9 * error[0]
    assert np.corrcoef(offsets.ravel(), noise.ravel())[0, 1] > 0.5
    assert left.mean() < 0.8 * variance.mean()


def test_noise_agrees_where_signs_are_right_and_not_next_to_negatives(problem):
    Y, images, A, _, variance, epochs = problem
    wrong = images.copy()
    wrong[:3] *= -1
    right, less = (
        noise_agrees(Y, (A @ x).astype(np.float32), variance, epochs) for x in (images, wrong)
    )
    assert right > 0.85
    assert less < 0.7 * right
    # All images turned are as good as none.
    turned = noise_agrees(Y, (-A @ images).astype(np.float32), variance, epochs)
    assert turned == pytest.approx(right, rel=1e-3)


def test_by_magnitudes_of_products_rows_of_a_negative_are_told_their_noise_as_it_is(problem):
    Y, images, A, noise, variance, epochs = problem
    wrong = images.copy()
    wrong[0] *= -1
    mixed = (A @ wrong).astype(np.float32)
    rows = A[:, 0] > 0.3
    start = shared_noise(Y, mixed, np.zeros_like(Y), variance, epochs)
    told = [
        shared_noise(Y, mixed, *start, epochs, sweeps=1, positive=positive)[0][rows]
        for positive in (False, True)
    ]
    signed, positive = (float((x * noise[rows]).sum()) for x in told)
    assert positive > max(signed, 0)
