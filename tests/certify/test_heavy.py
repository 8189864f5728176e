"""Heavy columns, against all integer columns and fractions of small entries."""

from itertools import combinations, product

import numpy as np

from unveil.certify.heavy import (
    even_weights,
    fractions_heavy,
    least_eigenvalue,
    reweighed,
    whole_columns_heavy,
)


def design(n, m, k, seed):
    rows = np.array(list(combinations(range(n), k)))
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), m, replace=False))]


def test_whole_columns_are_as_heavy_as_is_said():
    n, k, heavy = 7, 3, 0
    grid = np.array(list(product(range(-1, 2), repeat=n)))
    for seed in range(12):
        members = design(n, 20 + seed, k, seed)
        weight = even_weights(members, n)
        floor = least_eigenvalue(members, n, weight)
        good, asked = whole_columns_heavy(members, n, weight, floor, False)
        if seed % 2:  # weighed anew, as where some have no certificate
            weight = reweighed(members, n, weight, asked, even=True)
            floor = least_eigenvalue(members, n, weight)
            good, asked = whole_columns_heavy(members, n, weight, floor, False)
        size = np.abs(grid[:, members].sum(axis=2))
        fits = (size <= 1).all(axis=1)
        degree = np.bincount(members.ravel(), np.repeat(weight, k), minlength=n)
        for i in np.flatnonzero(good):
            mine = fits & (grid[:, i] != 0)
            assert (size[mine] @ weight >= degree[i] - 1e-9).all()
            outside = size[mine][:, (members != i).all(axis=1)].any(axis=1)
            assert (size[mine][outside] @ weight > degree[i] + 1e-3).all()
        heavy += good.sum()
    assert heavy > 20


def test_fractions_are_as_heavy_as_is_said():
    """With k = 3, n = 12: all t of ±1/3, ±2/3 with one class of fractions."""
    passed = 0
    for seed in range(8):
        members = design(12, 150, 3, seed)
        weight = even_weights(members, 12)
        if fractions_heavy(members, 12, weight, least_eigenvalue(members, 12, weight), False):
            degree = np.sort(np.bincount(members.ravel(), np.repeat(weight, 3)))
            t = np.array(list(product((1, -2), repeat=12)))
            size = np.abs(t[:, members].sum(axis=2)) / 3
            assert (size[(size <= 1).all(axis=1)] @ weight > degree[-2:].mean()).all()
            passed += 1
    assert passed


def test_weights_are_positive_and_bring_degrees_together():
    members = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 4], [0, 3, 4], [0, 1, 4]])
    weight = even_weights(members, 5)
    assert (weight > 0).all()
    degree = np.bincount(members.ravel(), np.repeat(weight, 3))
    assert degree.max() / degree.min() < 5 / 2
