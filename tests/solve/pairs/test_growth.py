"""Growth: right pairs are recognised among wrong ones, wrong ones corrected, rare vectors added."""

import numpy as np
import pytest

from unveil.solve.pairs.growth import grow, grow_pairs, merge_equal
from unveil.solve.pairs.peeling import sums


def problem(n=60, m=420, d=200, seed=0, extra=()):
    rng = np.random.default_rng(seed)
    members = np.vstack(
        [
            rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2],
            np.array(extra, int).reshape(-1, 2),
        ]
    )
    x = rng.standard_normal((int(members.max()) + 1, d))
    return rng, members, x, np.abs(x[members].sum(axis=1)).astype(np.float32)


def named(found, truth):
    """Whether the pairs of the right rows are the true ones under one renaming of columns."""
    name = {}
    for row in np.flatnonzero(found.right):
        for c in found.members[row]:
            name.setdefault(int(c), set(truth[row].tolist())).intersection_update(
                truth[row].tolist()
            )
    return all(len(names) == 1 for names in name.values()) and len(
        {min(names) for names in name.values()}
    ) == len(name)


def test_growth_takes_only_what_fits():
    rng, members, x, y = problem()
    hi, lo = sums(y, None, 1.0)
    wrong = members.copy()
    rows = rng.permutation(420)[:80]
    wrong[rows] = (wrong[rows] + [7, 13]) % 60
    values, known = grow(hi, lo, wrong, 60, 1e-3, rng)
    assert known.all()
    signs = np.sign((values * x).sum(axis=0))
    assert (np.abs(signs * values - x).max(axis=0) < 1e-4).mean() > 0.97


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_wrong_and_unknown_pairs_are_corrected(share):
    rng, members, _, y = problem(seed=1)
    start = members.copy()
    rows = rng.permutation(420)[: int(420 * share)]
    start[rows[::2]] = (start[rows[::2]] + [7, 13]) % 60
    start[rows[1::2]] = -1
    out = grow_pairs(y, 1.0, start, 60, rng)
    assert out.right.all()
    np.testing.assert_array_equal(np.sort(out.members, axis=1), np.sort(members, axis=1))


def test_the_weight_is_only_a_unit():
    rng, members, _, y = problem(seed=2)
    assert grow_pairs(np.float32(0.3) * y, 0.3, members, 60, rng).right.all()


def test_two_columns_of_one_vector_become_one():
    rng, members, _, y = problem(seed=3)
    split = members.copy()
    split[:200][members[:200] == 5] = 60
    out = grow_pairs(y, 1.0, split, 61, rng)
    assert out.right.all()
    np.testing.assert_array_equal(np.sort(out.members, axis=1), np.sort(members, axis=1))


def test_vectors_that_two_or_three_encodings_use_are_added():
    rng, members, _, y = problem(seed=4, extra=[(0, 60), (1, 60), (2, 61), (3, 61), (4, 61)])
    start = members.copy()
    start[420:] = -1
    out = grow_pairs(y, 1.0, start, 60, rng)
    assert out.right.all()
    assert out.columns >= 62
    assert named(out, members)


def test_a_vector_used_once_or_with_itself_stays_unexplained_and_does_no_harm():
    rng, members, _, y = problem(seed=5, extra=[(0, 60), (7, 7), (8, 8)])
    start = members.copy()
    start[420:] = [[0, 1], [7, 3], [-1, -1]]
    out = grow_pairs(y, 1.0, start, 61, rng)
    np.testing.assert_array_equal(out.right, np.arange(423) < 420)
    np.testing.assert_array_equal(
        np.sort(out.members[:420], axis=1), np.sort(members[:420], axis=1)
    )


def test_pure_noise_has_no_right_pair():
    rng = np.random.default_rng(0)
    members = rng.permuted(np.tile(np.arange(30), (200, 1)), axis=1)[:, :2]
    out = grow_pairs(
        np.abs(rng.standard_normal((200, 100))).astype(np.float32), 1.0, members, 30, rng
    )
    assert not out.right.any()


def test_equal_columns_are_merged_even_where_some_pixels_are_spoilt():
    x = np.random.default_rng(0).standard_normal((8, 100))
    x[5] = x[2]
    x[5, [0, 9, 40]] += 1
    merged = merge_equal(x, np.ones(8, bool), np.array([[5, 1], [2, 5], [-1, 7]]), 1e-3)
    np.testing.assert_array_equal(merged, [[2, 1], [2, 2], [-1, 7]])
    x[5, 50:] += 1
    np.testing.assert_array_equal(
        merge_equal(x, np.ones(8, bool), np.array([[5, 1]]), 1e-3), [[5, 1]]
    )
