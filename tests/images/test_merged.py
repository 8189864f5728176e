"""One column for several images: taken apart by the directions of what is left of its encodings."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.merged import split_merged
from unveil.images.prior import image_prior


def merged(several, seed=0, n=10, m=400):
    """Columns of which the first has the encodings of `several` images, the last several−1 none;
    who really mixes what."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))
    images = prior.draw(n, rng)
    weights = rng.dirichlet((8.0, 8.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    pairs = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    # Two images of one merged column in one encoding cannot be told: leave them out.
    pairs = pairs[~((pairs == 0) | (pairs > n - several)).all(axis=1)]
    np.put_along_axis(L[: len(pairs)], pairs, weights[: len(pairs)], axis=1)
    L = L[: len(pairs)]
    found = L.copy()
    for column in range(n - several + 1, n):
        found[:, 0] += found[:, column]
        found[:, column] = 0
    guess = images.copy()
    guess[[0, *range(n - several + 1, n)]] = prior.mean
    free = np.arange(n - several + 1, n)
    return prior, L @ images, L, sparse.csr_array(found), guess.astype(np.float32), free


@pytest.mark.parametrize("several", [2, 3])
def test_a_column_of_several_images_becomes_several_columns(several):
    prior, z, L, found, guess, free = merged(several)
    new = split_merged(
        z, found, guess, prior, (found > 0).toarray(), free, 2, np.random.default_rng(0)
    )
    assert [column for column, _ in new] == [0, *free]
    names = [int((L[cluster] > 0).mean(axis=0).argmax()) for _, cluster in new]
    assert sorted(names) == [0, *free]
    for name, (_, cluster) in zip(names, new, strict=True):
        assert (L[cluster, name] > 0).mean() > 0.95
        assert len(cluster) > 0.9 * (L[:, name] > 0).sum()


def test_without_a_free_column_nothing_is_split():
    prior, z, _, found, guess, _ = merged(2)
    nowhere = np.empty(0, np.int64)
    assert (
        split_merged(
            z, found, guess, prior, (found > 0).toarray(), nowhere, 2, np.random.default_rng(0)
        )
        == []
    )


def test_a_column_of_one_image_stays_whole():
    prior, z, L, _, guess, free = merged(2)
    right = sparse.csr_array(L)
    assert (
        split_merged(
            z, right, guess, prior, (right > 0).toarray(), free, 2, np.random.default_rng(0)
        )
        == []
    )


def test_an_image_that_is_merely_frequent_stays_whole():
    """Twice the encodings of others, one direction."""
    rng = np.random.default_rng(1)
    prior = image_prior((16, 16))
    images = prior.draw(10, rng)
    L = np.zeros((300, 10), np.float32)
    L[:150, 0] = L[np.arange(150), rng.integers(1, 10, 150)] = 0.5
    L[150:, 1:] = np.where(rng.permuted(np.tile(np.arange(9), (150, 1)), axis=1) < 2, 0.5, 0)
    weights = sparse.csr_array(L)
    guess = images.copy()
    guess[0] = prior.mean
    found = split_merged(
        L @ images, weights, guess, prior, L > 0, np.array([9]), 2, np.random.default_rng(0)
    )
    assert found == []
