"""Overlaps of encodings with signs: the projector depends on subsets alone, and the rank is the
number of vectors."""

import numpy as np
import pytest

import unveil
from unveil.gram.whitened import (
    plain_overlaps,
    plain_similarity,
    rank_of,
    rounded,
    spectrum,
    whitened_similarity,
)


def encoded(k, n=30, m=200, d=400, seed=0, **options):
    sim = unveil.simulate(unveil.Scheme(k, signs="kept"), n, m=m, d=d, rng=seed, **options)
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    return sim.encodings.values, W


@pytest.mark.parametrize(("m", "d"), [(200, 120), (100, 400)])
@pytest.mark.parametrize("k", [2, 4])
def test_the_projector_is_that_of_the_subsets(m, d, k):
    Y, W = encoded(k, m=m, d=d)
    values, vectors = spectrum(Y)
    assert rank_of(values) == 30
    projector = W @ np.linalg.inv(W.T @ W) @ W.T
    np.testing.assert_allclose(
        whitened_similarity(vectors, 30, k), projector * (m * k / 30), atol=1e-3
    )


def test_it_does_not_depend_on_what_the_vectors_are():
    """Vectors that are nearly the same: plain products cannot tell them apart."""
    x = 5 + np.random.default_rng(0).standard_normal((30, 400))
    Y = unveil.simulate(unveil.Scheme(2, signs="kept"), private=x, m=200, rng=0).encodings.values
    other, W = encoded(2)
    np.testing.assert_allclose(
        whitened_similarity(spectrum(Y)[1], 30, 2),
        whitened_similarity(spectrum(other)[1], 30, 2),
        atol=1e-2,
    )
    shared = W @ W.T
    assert (np.rint(plain_similarity(Y, 2)) != shared).mean() > 0.5


def test_the_rank_is_seen_through_noise_and_not_in_noise():
    assert rank_of(spectrum(encoded(2, noise=0.1)[0])[0]) == 30
    rng = np.random.default_rng(0)
    for shape in ((60, 200), (200, 60), (100, 100), (3, 5), (1, 4)):
        assert rank_of(spectrum(rng.standard_normal(shape).astype(np.float32))[0]) is None
    assert rank_of(np.zeros(5)) is None


@pytest.mark.parametrize("limit", [1 << 30, 1 << 16])
def test_plain_overlaps_are_those_of_the_subsets(limit):
    Y, W = encoded(3, d=3000)
    shared = plain_overlaps(Y, 3, limit)
    assert (shared.toarray() != W @ W.T).mean() < 1e-3
    np.testing.assert_array_equal(shared.toarray(), shared.toarray().T)
    np.testing.assert_array_equal(rounded(plain_similarity(Y, 3), 3).toarray(), W @ W.T)
