"""Which vectors make a core: random designs, and weights that prove what even ones do not."""

from itertools import combinations

import numpy as np
import pytest

from unveil.certify.core import core
from unveil.certify.heavy import even_weights, least_eigenvalue, whole_columns_heavy
from unveil.certify.lattice import alike


@pytest.mark.parametrize(("n", "m", "k"), [(60, 300, 2), (60, 300, 3), (60, 300, 4), (100, 400, 6)])
def test_random_designs_are_cores_almost_whole(n, m, k):
    rng = np.random.default_rng(0)
    members = np.unique([np.sort(rng.choice(n, k, replace=False)) for _ in range(m)], axis=0)
    for repeats in (False, True):
        found = core(members, n, np.ones(n, bool), repeats=repeats).sum()
        assert found >= 0.9 * n or (repeats and k > 3)


def test_rows_weighed_anew_prove_what_even_weights_do_not():
    """Random designs at m = 3n of which no core was found; 40 and 50 vectors."""
    for k, n, seed in ((3, 40, 1), (4, 50, 5)):
        rng = np.random.default_rng([seed, n, k])
        members = np.sort(np.argsort(rng.random((3 * n, n)), axis=1)[:, :k], axis=1)
        members = np.unique(members, axis=0)
        weight = even_weights(members, n)
        floor = least_eigenvalue(members, n, weight)
        assert not whole_columns_heavy(members, n, weight, floor, False)[0].all()
        assert core(members, n, np.ones(n, bool), repeats=False).all()


def test_without_classes_thirds_pass_for_whole_columns():
    """Mutation: ten vectors, and another reading by thirds, W' = W·T, T = 1 − r·rᵀ/3 with r = ±1 at
    six of them. Every row has r in 0 or ±3, or a sign turned. Heavy columns alone let all of it
    pass, since they speak of one class."""
    T = np.eye(10)
    r = np.zeros(10)
    r[[0, 6, 7]], r[[1, 4, 5]] = 1, -1
    T -= np.outer(r, r) / 3
    every = np.array(list(combinations(range(10), 3)))
    images = T[every].sum(axis=1)
    whole = np.all(np.isclose(images, np.round(images)), axis=1)
    one_sign = (images > -0.5).all(axis=1) | (images < 0.5).all(axis=1)
    others = every[whole & one_sign & (np.abs(images).max(axis=1) < 1.5)]
    assert len(others) >= 40
    passed = 0
    for seed in range(60):
        rows = others[np.random.default_rng(seed).permutation(len(others))[:40]]
        group = alike(rows, 10, np.random.default_rng(0))
        largest = group == np.bincount(group).argmax()
        moved = np.abs(r) > 0
        passed += bool((core(rows, 10, np.ones(10, bool), repeats=False) & moved).any())
        assert not (core(rows, 10, largest, repeats=False) & moved).any()
    assert passed
