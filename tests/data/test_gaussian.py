"""Gaussian images (`defn:gaussian_images`)."""

from __future__ import annotations

import numpy as np
from scipy import stats

from unveil.data import gaussian_vectors


def test_pixels_are_independent_standard_normals() -> None:
    vectors = gaussian_vectors(40, 5000, np.random.default_rng(0))
    assert vectors.shape == (40, 5000)
    assert vectors.dtype == np.float32
    assert stats.kstest(vectors.ravel(), "norm").pvalue > 1e-3
    gram = vectors @ vectors.T / 5000
    # An off-diagonal entry is N(0, 1/d): six standard deviations.
    assert np.abs(gram - np.eye(40)).max() < 6 * np.sqrt(2 / 5000)


def test_same_generator_same_bytes() -> None:
    first, second = (gaussian_vectors(3, 5, np.random.default_rng(1)).tobytes() for _ in range(2))
    assert first == second


def test_none_is_an_empty_array() -> None:
    assert gaussian_vectors(0, 5, np.random.default_rng(0)).shape == (0, 5)
