"""Few levels, many encodings: the share that a small set must have, by all sets; and where nothing
is settled."""

from itertools import combinations, product

import numpy as np
import pytest

from unveil.certify.ample import _most_alike, settled_by_chance, spread_of

NEAR = np.array([1e-6])


def design(n, m, k, seed):
    rng = np.random.default_rng(seed)
    rows = np.array([np.sort(rng.choice(n, k, replace=False)) for _ in range(4 * m)])
    return rng.permutation(np.unique(rows, axis=0))[:m]


def settled(members, x, pixels=1):
    total = x[members].sum(axis=1)[:, None].astype(float)
    return bool(settled_by_chance(members, total, NEAR, spread_of(members, len(x)), pixels)[0])


@pytest.mark.parametrize(("n", "m", "k"), [(10, 90, 3), (12, 180, 4), (12, 66, 2)])
def test_sets_whose_vectors_are_hardly_ever_alone_are_as_large_as_said(n, m, k):
    """Every set S of vectors each of which is alone in S in at most a tenth of its rows."""
    members = design(n, m, k, 0)
    spread = spread_of(members, n)
    W = np.zeros((len(members), n), bool)
    W[np.arange(len(members))[:, None], members] = True
    share = 0.1
    smallest = 1.0
    for size in range(1, n + 1):
        for S in combinations(range(n), size):
            alone = W[:, list(S)][W[:, list(S)].sum(axis=1) == 1].sum(axis=0)
            if (alone <= share * spread.degree[list(S)]).all():
                smallest = min(smallest, spread.degree[list(S)].sum() / spread.degree.sum())
    assert (1 - share - spread.second) / (k - 1) <= smallest < 1


def test_pictures_of_256_levels_are_settled_by_fifteen_encodings_per_vector_and_not_by_four():
    x = np.random.default_rng(1).integers(-128, 128, 40)
    assert settled(design(40, 600, 4, 2), x, 3072)
    assert not settled(design(40, 160, 4, 2), x, 3072)


@pytest.mark.parametrize("levels", [(0, 1), (-1, 1), (3,)])
def test_two_levels_are_never_settled(levels):
    x = np.random.default_rng(1).choice(levels, 40)
    assert not settled(design(40, 600, 4, 2), x)


def test_structured_rows_are_not_taken_for_random_ones():
    """Two from either half in nearly every row: a = +1 on one half, −1 on the other cancels
    there."""
    rng = np.random.default_rng(3)
    rows = [
        np.append(rng.choice(20, 2, replace=False), 20 + rng.choice(20, 2, replace=False))
        for _ in range(590)
    ]
    members = np.unique(np.sort(np.vstack([*rows, design(40, 10, 4, 4)]), axis=1), axis=0)
    assert not spread_of(members, 40).random
    assert not settled(members, rng.integers(-128, 128, 40))


def test_what_is_settled_has_one_solution():
    """Ten vectors, all 2^9 signs of ten independent rows tried: no other reading of pixels that
    count as settled."""
    n, k = 10, 3
    members = design(n, 118, k, 5)
    W = np.zeros((len(members), n))
    W[np.arange(len(members))[:, None], members] = 1
    basis = [
        r
        for i, r in enumerate(range(len(W)))
        if np.linalg.matrix_rank(W[: r + 1]) > np.linalg.matrix_rank(W[:r])
    ][:n]
    inverse = np.linalg.inv(W[basis])
    signs = np.array(list(product((1, -1), repeat=n)))
    count = 0
    for seed in range(12):
        x = np.random.default_rng(seed).integers(-200, 200, n)
        y = np.abs(W @ x)
        others = (signs * y[basis]) @ inverse.T
        fit = others[(np.abs(np.abs(others @ W.T) - y) < 1e-6).all(axis=1)]
        if settled(members, x):
            count += 1
            assert (np.abs(fit - x) < 1e-6).all(axis=1).sum() + (np.abs(fit + x) < 1e-6).all(
                axis=1
            ).sum() == len(fit)
    assert count


def test_the_commonest_value():
    values = np.array([[1.0, 5.0], [1.0, 4.0], [2.0, 4.0], [1.0, 4.0000001]])
    np.testing.assert_array_equal(_most_alike(values, np.full(2, 1e-6)), [3, 3])
