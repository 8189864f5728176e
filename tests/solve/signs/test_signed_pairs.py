"""Every pixel of known pairs: exact in general position; elsewhere, what is not in doubt is what
all solutions share."""

from itertools import combinations, product

import numpy as np
import pytest

from unveil.solve.signs.signed_pairs import four_cycles, solve_signed_pairs


def graph(n, m, seed):
    return np.array(list(combinations(range(n), 2)))[
        np.random.default_rng(seed).permutation(n * (n - 1) // 2)[:m]
    ]


def test_four_cycles_as_a_search_of_all():
    pairs = graph(12, 30, 0)
    row = {frozenset(p): i for i, p in enumerate(pairs.tolist())}
    expected = set()
    for a, b, c, d in combinations(range(12), 4):
        for order in ((a, b, c, d), (a, c, b, d), (a, b, d, c)):
            edges = [frozenset((order[i], order[(i + 1) % 4])) for i in range(4)]
            if all(e in row for e in edges):
                expected.add(tuple(sorted(row[e] for e in edges)))
    got = four_cycles(pairs, 12, 10**6)
    assert len(got) == len(expected)
    assert {tuple(sorted(q)) for q in got.tolist()} == expected
    z = np.random.default_rng(1).standard_normal((12, 3))[pairs].sum(axis=1)
    np.testing.assert_allclose(
        z[got[:, 0]] - z[got[:, 1]] + z[got[:, 2]] - z[got[:, 3]], 0, atol=1e-12
    )
    assert len(four_cycles(pairs, 12, 10)) <= 10


def test_exact_in_general_position():
    pairs = graph(60, 420, 1)
    x = np.random.default_rng(2).standard_normal((60, 70)).astype(np.float32)
    y = np.abs(x[pairs].sum(axis=1))
    got = solve_signed_pairs(y, pairs, 60, np.full(70, 1e-5))
    assert not got.doubtful.any()
    assert (got.misfit < 1e-5).all()
    sign = np.sign((got.values * x).sum(axis=0))
    np.testing.assert_allclose(sign * got.values, x, atol=1e-5)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_what_is_not_in_doubt_is_common_to_all_solutions(levels):
    """Oracle: all solutions of a pixel, by trying every sign of every encoding's first vector along
    a tree."""
    pairs = graph(7, 13, 3)
    x = np.random.default_rng(levels).integers(0, levels, (7, 30)).astype(np.float64)
    y = np.abs(x[pairs].sum(axis=1)).astype(np.float32)
    got = solve_signed_pairs(y, pairs, 7, np.full(30, 1e-5))
    W = np.zeros((13, 7))
    W[np.arange(13)[:, None], pairs] = 1
    inverse = np.linalg.pinv(W)
    signs = np.array(list(product([1.0, -1.0], repeat=13)))
    for p in range(30):
        z = signs * y[:, p]
        values = z @ inverse.T
        solutions = values[(np.abs(values @ W.T - z) < 1e-6).all(axis=1)]
        sure = ~got.doubtful[:, p]
        # Up to the pixel's sign every solution has these values.
        for s in solutions:
            same = [
                np.abs(s[sure] - turn * got.values[sure, p]).max(initial=0.0) < 1e-4
                for turn in (1, -1)
            ]
            assert any(same)


def test_a_wrong_pair_leaves_everything_in_doubt():
    pairs = graph(30, 200, 4)
    x = np.random.default_rng(5).standard_normal((30, 20)).astype(np.float32)
    y = np.abs(x[pairs].sum(axis=1))
    wrong = pairs.copy()
    wrong[0] = [pairs[0, 0], next(v for v in range(30) if v not in pairs[0])]
    got = solve_signed_pairs(y, wrong, 30, np.full(20, 1e-5))
    sure = ~got.doubtful
    sign = np.sign((got.values * x * sure).sum(axis=0))
    assert np.abs(np.where(sure, sign * got.values - x, 0)).max() < 1e-3
