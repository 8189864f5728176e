"""Who mixes which copy: moves within a cluster, and templates that explain encodings."""

import numpy as np

from unveil.encode.copies import Copies
from unveil.gram.aligned import align
from unveil.images.cropped_memberships import copy_columns, copy_memberships, place_cluster

COPIES = Copies((10, 10), 2)


def whitened(n=8, m=320, seed=0, noise=0.6):
    """Whitened squares as if they were: white templates of padded images, weighted and noisy."""
    rng = np.random.default_rng(seed)
    wide = rng.standard_normal((n, *COPIES.wide)).astype(np.float32)
    every = COPIES.all_of(wide)
    pairs = np.stack([rng.choice(n, 2, replace=False) for _ in range(m)])
    copy = rng.integers(0, COPIES.count, (m, 2))
    weight = rng.uniform(0.3, 0.6, (m, 2))
    Z = np.einsum("ij,ijd->id", weight**2, every[pairs, copy])
    Z += noise * 0.2 * rng.standard_normal(Z.shape)
    Z /= np.sqrt(np.mean(Z**2))
    return Z.reshape(m, 10, 10, 1).astype(np.float32), pairs, copy, weight


def test_the_copies_of_a_cluster_are_right_up_to_one_move():
    Z, pairs, copy, _ = whitened()
    rows = np.flatnonzero((pairs == 1).any(axis=1))
    true = copy[rows, (pairs[rows] == 1).argmax(axis=1)]
    found = place_cluster(Z, rows, align(Z, 4, False), COPIES)
    inside = found >= 0
    assert inside.mean() > 0.9
    apart = COPIES.steps[found[inside]] - COPIES.steps[true[inside]]
    moves, counts = np.unique(apart, axis=0, return_counts=True)
    assert counts.max() > 0.9 * inside.sum()
    assert not moves[counts.argmax()].any()


def test_members_and_their_copies_are_found():
    Z, pairs, copy, weight = whitened()
    law = np.sort(weight.ravel())
    found = copy_memberships(Z, align(Z, 4, False), COPIES, 2, 8, law, rng=np.random.default_rng(0))
    probability = found.found.probability
    true = np.zeros((320, 8))
    np.put_along_axis(true, pairs, 1, axis=1)
    overlap = probability.T @ true
    names = overlap.argmax(axis=1)
    assert sorted(names) == list(range(8))
    assert ((probability > 0.5) == true[:, names]).mean() > 0.95
    for column, name in enumerate(names):
        rows = np.flatnonzero((pairs == name).any(axis=1) & (probability[:, column] > 0.5))
        told = copy[rows, (pairs[rows] == name).argmax(axis=1)]
        assert (found.copy[rows, column] == told).mean() > 0.9


def test_nothing_alike_gives_nothing():
    Z = np.random.default_rng(0).standard_normal((40, 10, 10, 1)).astype(np.float32)
    law = np.linspace(0.1, 0.5, 50)
    rng = np.random.default_rng(0)
    assert copy_memberships(Z, align(Z, 4, False), COPIES, 2, 10, law, rng=rng) is None


def test_values_lie_at_their_copies():
    values = np.array([[0.5, 0], [0, 0.25]], np.float32)
    out = copy_columns(values, np.array([[3, 1], [2, 24]]), COPIES)
    assert out.shape == (2, 50)
    assert out[0, 3] == 0.5
    assert out[1, 49] == 0.25
    assert out.nnz == 2
