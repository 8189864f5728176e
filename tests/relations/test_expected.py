"""Expected relations against all quadruples, counted one by one."""

from collections import Counter
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

from unveil.relations.expected import PER_ENCODING, enough_encodings, expected_relations


def counted(subsets):
    """Pairs of pairs with the same sum as multisets."""
    sums = Counter(tuple(sorted(a + c)) for a, c in combinations(subsets, 2))
    return sum(comb(times, 2) for times in sums.values())


def counted_plainly(subsets):
    """The same over quadruples and their three pairings."""
    found = 0
    for a, b, c, d in combinations(subsets, 4):
        for one, two in (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c))):
            found += sorted(one[0] + one[1]) == sorted(two[0] + two[1])
    return found


@pytest.mark.parametrize(("n", "k"), [(4, 2), (6, 2), (6, 3), (7, 4), (3, 2)])
def test_all_subsets_are_counted_exactly(n, k):
    subsets = list(combinations(range(n), k))
    assert expected_relations(n, len(subsets), k) == pytest.approx(counted(subsets), rel=1e-12)


def test_a_quadruple_has_one_pairing():
    rng = np.random.default_rng(0)
    every = list(combinations(range(7), 3))
    subsets = [every[i] for i in rng.choice(len(every), 18, replace=False)]
    assert counted(subsets) == counted_plainly(subsets)


@pytest.mark.parametrize(
    ("n", "m", "k"), [(20, 60, 2), (30, 120, 2), (12, 80, 3), (16, 150, 3), (11, 90, 4)]
)
def test_random_designs_have_as_many_on_average(n, m, k):
    """The mean of 200 designs lies within five of its standard errors. Failure 1e-6."""
    rng = np.random.default_rng(n * m)
    every = list(combinations(range(n), k))
    counts = [
        counted([every[i] for i in rng.choice(len(every), m, replace=False)]) for _ in range(200)
    ]
    assert abs(np.mean(counts) - expected_relations(n, m, k)) < 5 * np.std(counts) / sqrt(
        len(counts)
    )


def test_the_leading_term_is_that_of_disjoint_pairs():
    n, m, k = 1000, 5000, 3
    disjoint = comb(n - k, k) / comb(n, k)
    plain = m**4 / 4 * (comb(2 * k, k) / 2 - 1) / comb(n, k) ** 2 * disjoint
    # m²/2 pairs, each with C(2k, k)/2 − 1 others of the same sum, there with probability (m/N)²;
    # each counted twice.
    assert expected_relations(n, m, k) == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize(("n", "k"), [(30, 2), (100, 2), (1000, 2), (30, 3), (100, 4)])
def test_enough_is_the_fewest(n, k):
    m = enough_encodings(n, k)
    assert expected_relations(n, m, k) >= PER_ENCODING * m
    assert expected_relations(n, m - 1, k) < PER_ENCODING * (m - 1)


def test_where_all_subsets_are_too_few_all_are_named():
    assert enough_encodings(4, 2) == 6


def test_more_encodings_than_subsets_are_refused():
    with pytest.raises(ValueError, match="only 6 different"):
        expected_relations(4, 7, 2)
