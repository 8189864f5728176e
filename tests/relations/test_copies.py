"""Encodings of one subset under noise: told apart from others, and the noise by what they
differ."""

import numpy as np
import pytest

from unveil.relations.copies import different, distances, noise_of_copies


def test_copies_are_taken_once():
    rng = np.random.default_rng(3)
    y = rng.random((20, 200)).astype(np.float32)
    twice = np.vstack([y, y[:5] + 0.01 * rng.standard_normal((5, 200))]).astype(np.float32)
    apart = distances(twice)
    assert different(apart, 0.01).tolist() == list(range(20))
    # Copies differ by √2 noises where one of the two is without: by one here, over √2.
    assert noise_of_copies(apart)[0] == pytest.approx(1.1 * 0.01 / np.sqrt(2), rel=0.15)


def test_no_copies_no_noise():
    y = np.random.default_rng(4).random((30, 200)).astype(np.float32)
    assert noise_of_copies(distances(y)) == []
    assert len(different(distances(y), 0.01)) == 30


def test_distances_are_mean_squares():
    y = np.random.default_rng(5).random((4, 6)).astype(np.float32)
    direct = ((y[:, None] - y) ** 2).mean(axis=2)
    np.testing.assert_allclose(distances(y), direct, atol=1e-6)
