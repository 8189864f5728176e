"""Relations by likely signs: true ones are found under noise, chance is not taken for one."""

import numpy as np

from unveil.gram.folded_normal import Patterns
from unveil.relations.signed import find_signed, shared_nats

NOISE = 0.07


def told(n, m, d, seed, wrong=0.0):
    """(subsets, patterns) of correlated records, with signs as they are but for a share that is
    wrong."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 6)) @ rng.standard_normal((6, d)) + 0.3 * rng.standard_normal(
        (n, d)
    )
    x /= x.std(axis=0)
    every = np.array([(a, b) for a in range(n) for b in range(a)])
    subsets = every[rng.choice(len(every), m, replace=False)]
    z = x[subsets].sum(axis=1) + NOISE * rng.standard_normal((m, d))
    z *= np.where(rng.random((m, 1)) < 0.5, -1, 1)
    C = z.T @ z / m
    flips = rng.random((m, d)) < wrong
    return subsets, Patterns(np.where(flips, -z, z), np.full((m, d), max(wrong, 0.01)), C)


def is_relation(subsets, quad):
    names, count = np.unique(subsets[quad], return_counts=True)
    return len(names) == 4 and (count == 2).all()


def test_encodings_that_share_a_vector_stand_out():
    subsets, patterns = told(20, 120, 24, 0)
    nats, opposite = shared_nats(patterns, NOISE)
    i, j = np.triu_indices(120, 1)
    shared = (subsets[i][:, :, None] == subsets[j][:, None]).any(axis=(1, 2))
    assert np.median(nats[i, j][shared]) > 0.5
    assert np.median(nats[i, j][~shared]) < -0.5
    np.testing.assert_array_equal(opposite, opposite.T)


def test_true_relations_are_found_and_no_others():
    subsets, patterns = told(20, 120, 24, 1, wrong=0.02)
    nats, opposite = shared_nats(patterns, NOISE)
    i, j = np.triu_indices(120, 1)
    best = np.argsort(-nats[i, j])[:800]
    pairs = np.column_stack([i[best], j[best]])
    quads = find_signed(patterns, NOISE, pairs, opposite[pairs[:, 0], pairs[:, 1]])
    right = sum(is_relation(subsets, quad) for quad in quads)
    assert len(quads) > 100
    assert right >= 0.97 * len(quads)
    assert len(np.unique(np.sort(quads, axis=1), axis=0)) == len(quads)


def test_vectors_that_nobody_mixed_have_none():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((100, 6)) @ rng.standard_normal((6, 24)) + 0.3 * rng.standard_normal(
        (100, 24)
    )
    patterns = Patterns(z, np.full(z.shape, 0.01), z.T @ z / 100)
    nats, opposite = shared_nats(patterns, NOISE)
    i, j = np.triu_indices(100, 1)
    best = np.argsort(-nats[i, j])[:800]
    pairs = np.column_stack([i[best], j[best]])
    assert len(find_signed(patterns, NOISE, pairs, opposite[pairs[:, 0], pairs[:, 1]])) == 0


def test_one_pair_has_no_relation():
    _, patterns = told(8, 20, 12, 3)
    assert find_signed(patterns, NOISE, np.array([[0, 1]]), np.array([False])).shape == (0, 4)
