"""Encodings that nobody explains: their members are named, their pair found, a missing vector
added."""

import numpy as np

from unveil.solve.pairs.peeling import sums
from unveil.solve.pairs.unexplained import (
    _largest,
    add_missing,
    likely_beside,
    likely_members,
    pair_fits,
    search_pairs,
)


def problem(n=60, m=420, d=300):
    """(pairs of n vectors, these, y = |their sums|)."""
    rng = np.random.default_rng(0)
    members = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    x = rng.standard_normal((n, d))
    return members, x, np.abs(x[members].sum(axis=1)).astype(np.float32)


def test_the_matched_filter_names_the_members():
    members, x, y = problem()
    leads = likely_members(y, x, 4)
    assert leads.shape == (420, 4)
    hit = (leads[:, :, None] == members[:, None, :]).any(axis=1)
    assert hit.mean() > 0.99


def test_with_a_public_part_the_matched_filter_knows_the_sign():
    # Two of a hundred vectors are in every sum, at a hundred pixels. Beside c both are among the
    # four likeliest in 99% of cases, by squares alone in 83%.
    rng = np.random.default_rng(6)
    x, c = rng.normal(size=(100, 100)), rng.normal(size=(200, 100))
    pairs = np.array([rng.choice(100, 2, replace=False) for _ in range(200)])
    y = np.abs(x[pairs].sum(axis=1) + c)

    def hits(leads):
        return (leads[:, :, None] == pairs[:, None, :]).any(axis=1).mean()

    assert hits(likely_beside(y - c, -y - c, x, 4)) > 0.95 > hits(likely_members(y, x, 4))


def test_the_pair_of_an_encoding_is_found_among_its_leads_and_all_others():
    members, x, y = problem(n=20, m=60, d=80)
    hi, lo = sums(y, None, 1.0)
    found = search_pairs(hi, lo, x, np.arange(20), members[:, :1], 1e-3)
    np.testing.assert_array_equal(found, members)
    # Without its lead no pair fits; chance never does.
    wrong = np.array([[next(i for i in range(20) if i not in row)] for row in members])
    assert (search_pairs(hi, lo, x, np.arange(20), wrong, 1e-3) == -1).all()


def test_a_pair_fits_up_to_the_pixels_that_are_allowed():
    members, x, y = problem(n=5, m=4, d=50)
    hi, lo = sums(y, None, 1.0)
    a, b = members[0]
    assert pair_fits(hi, lo, x, 0, a, b, 1e-3, 0)
    x[a, :3] += 1
    assert pair_fits(hi, lo, x, 0, a, b, 1e-3, 3)
    assert not pair_fits(hi, lo, x, 0, a, b, 1e-3, 2)


def test_two_encodings_that_miss_one_vector_share_a_new_column():
    x = np.random.default_rng(1).standard_normal((6, 80))
    pairs = np.array([[0, 5], [1, 5], [2, 3]])
    hi, lo = sums(np.abs(x[pairs].sum(axis=1)).astype(np.float32), None, 1.0)
    members, new = add_missing(hi, lo, x[:5], pairs[:, :1], 1e-3, 5)
    assert new == 1
    np.testing.assert_array_equal(members, [[0, 5], [1, 5], [-1, -1]])


def test_the_likeliest_come_first_as_in_a_full_sort():
    rng = np.random.default_rng(4)
    likeness = rng.standard_normal((20, 30)).astype(np.float32)
    out = np.empty((20, 4), np.int64)
    _largest(likeness, out)
    np.testing.assert_array_equal(out, np.argsort(-likeness, axis=1)[:, :4])
