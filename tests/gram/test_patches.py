"""Similarity by patches: pixels that go together are found whatever their order, and shared images
show."""

import numpy as np
import pytest

from unveil.gram.energies import whitened_energies
from unveil.gram.patches import go_together, patch_similarity, patches


def pictures(n, side=24, seed=0):
    """Smooth random pictures: neighbours correlate 0.95."""
    distance = np.abs(np.subtract.outer(np.arange(side), np.arange(side)))
    root = np.linalg.cholesky(0.95**distance)
    return np.einsum(
        "ij,njk,lk->nil", root, np.random.default_rng(seed).standard_normal((n, side, side)), root
    ).reshape(n, -1)


def encodings(X, m, k, seed=0):
    """(magnitudes, overlaps of all pairs)"""
    rng = np.random.default_rng(seed)
    members = np.array([rng.choice(len(X), k, replace=False) for _ in range(m)])
    W = np.zeros((m, len(X)))
    np.put_along_axis(W, members, 1, axis=1)
    return np.abs(W @ X).astype(np.float32), W @ W.T


def contrast(S, overlap, q):
    """By how many spreads of unrelated pairs those that share q stand out."""
    above = np.triu(np.ones(S.shape, bool), 1)
    none, some = S[above & (overlap == 0)], S[above & (overlap == q)]
    return (some.mean() - none.mean()) / none.std()


def test_pixels_of_pictures_go_together_and_independent_ones_do_not():
    assert go_together(encodings(pictures(40), 200, 3)[0])
    noise = np.random.default_rng(0).standard_normal((40, 576))
    assert not go_together(encodings(noise, 200, 3)[0])
    assert not go_together(np.ones((10, 300), np.float32))
    assert not go_together(
        np.repeat(np.abs(noise[:, :10]), 4, axis=1).astype(np.float32)
    )  # a table


def test_every_pixel_that_changes_is_in_one_patch():
    Y = encodings(pictures(40), 200, 3)[0]
    Y[:, [3, 77]] = 1.0
    groups = patches(Y, np.random.default_rng(0))
    assert sorted(len(group) for group in groups) == [71, 71, 72, 72, 72, 72, 72, 72]
    np.testing.assert_array_equal(
        np.sort(np.concatenate(groups)), np.setdiff1d(np.arange(576), [3, 77])
    )


def test_patches_are_places_in_the_picture():
    Y = encodings(pictures(60), 400, 3)[0]
    place = np.stack(np.divmod(np.arange(576), 16), axis=1)
    spread = np.mean(
        [place[group].var(axis=0).sum() for group in patches(Y, np.random.default_rng(0))]
    )
    assert spread < 0.4 * place.var(axis=0).sum()


@pytest.mark.parametrize("k", [3, 4])
def test_shared_pictures_stand_out_far_more_than_in_energies(k):
    Y, overlap = encodings(pictures(50), 400, k)
    S = patch_similarity(Y, np.random.default_rng(0))
    np.testing.assert_allclose(S, S.T, atol=1e-6)
    assert not np.diag(S).any()
    assert contrast(S, overlap, 1) > 2 * contrast(whitened_energies(Y).gram, overlap, 1)
    assert contrast(S, overlap, 2) > 2 * contrast(S, overlap, 1)


def test_the_order_of_pixels_and_the_unit_say_nothing():
    Y, _ = encodings(pictures(50), 300, 3)
    shuffled = 7 * Y[:, np.random.default_rng(1).permutation(576)]
    one, other = (patch_similarity(v, np.random.default_rng(0)) for v in (Y, shuffled))
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9
