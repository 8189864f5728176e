"""Relations under noise, against the subsets that made the encodings."""

import numpy as np

from unveil.relations.noisy import blurred, find_noisy


def noisy_pairs(n, m, d, noise, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    u, v = np.triu_indices(n, 1)
    pairs = np.column_stack([u, v])[rng.permutation(len(u))[:m]]
    z = x[pairs].sum(axis=1) + noise * rng.standard_normal((m, d))
    return np.abs(z).astype(np.float32), pairs


def test_relations_found_are_true():
    # The chance of one false relation is e^−16 by construction, if pixels are independent, as they
    # are here.
    y, pairs = noisy_pairs(24, 150, 60, 0.02, 0)
    view, found = find_noisy(y, 0.02, 1 << 30, np.random.default_rng(1))
    assert len(found) > 100
    assert view.m == 150
    counts = np.array([np.bincount(pairs[q].ravel(), minlength=24) for q in found.quads])
    assert (counts % 2 == 0).all()


def test_numbers_of_chance_have_no_relations():
    y = np.abs(np.random.default_rng(2).standard_normal((120, 60))).astype(np.float32)
    assert len(find_noisy(y, 0.02, 1 << 30, np.random.default_rng(1))[1]) == 0


def test_pixels_that_do_not_go_together_stay_as_they_are():
    y = np.random.default_rng(3).random((50, 40)).astype(np.float32)
    same, noise = blurred(y, 0.1, np.random.default_rng(0))
    assert same is y
    assert noise == 0.1
