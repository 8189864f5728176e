"""Signs by the clearest relations: right without noise, nearly right with some."""

from itertools import combinations

import numpy as np

from unveil.solve.grow.relation_starts import start_from_relations


def all_pairs(n):
    members = np.array(list(combinations(range(n), 2)))
    sums = {}
    for a, b in combinations(range(len(members)), 2):
        sums.setdefault(tuple(sorted([*members[a], *members[b]])), []).append((a, b))
    quads = [
        p + q for same in sums.values() for p, q in combinations(same, 2) if len({*p, *q}) == 4
    ]
    return members.astype(np.int64), np.array(quads, dtype=np.int64)


def test_without_noise_values_are_exact_up_to_a_sign_per_pixel():
    members, quads = all_pairs(8)
    x = np.random.default_rng(0).standard_normal((8, 20))
    y = np.abs(x[members].sum(axis=1)).astype(np.float32)
    found = start_from_relations(y, members, 8, quads, np.random.default_rng(1))
    sign = np.sign((found * x).sum(axis=0))
    np.testing.assert_allclose(found * sign, x, atol=1e-5)


def test_with_noise_they_are_near():
    members, quads = all_pairs(10)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((10, 40))
    y = np.abs(x[members].sum(axis=1) + 0.02 * rng.standard_normal((len(members), 40))).astype(
        np.float32
    )
    found = start_from_relations(y, members, 10, quads, rng)
    sign = np.sign((found * x).sum(axis=0))
    assert np.median(np.abs(found * sign - x)) < 0.05
