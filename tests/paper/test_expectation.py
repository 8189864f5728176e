"""How many florals to expect: tiny cases counted by hand or by enumeration, larger ones by Monte
Carlo."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from unveil import Overlaps, Scheme, find_all_florals, simulate
from unveil.paper.floral import encodings_needed, estimate_n_private, expected_florals


def gram(sets):
    return np.array([[len(set(a) & set(b)) for b in sets] for a in sets])


def inclusion_exclusion(n, k, m):
    """C(n, k+2) times the probability that m draws from C(n, k) subsets miss none of t given
    ones."""
    t, total = comb(k + 2, 2), comb(n, k)
    return comb(n, k + 2) * sum((-1) ** j * comb(t, j) * (1 - j / total) ** m for j in range(t + 1))


def test_six_draws_of_four_vectors_by_enumeration():
    draws = 0
    for drawn in product(range(6), repeat=6):
        draws += len(set(drawn)) == 6
    assert expected_florals(4, 2, 6) == pytest.approx(draws / 6**6, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "k", "m"),
    [(4, 2, 6), (4, 2, 20), (5, 2, 12), (12, 2, 60), (30, 2, 200), (9, 3, 120), (5, 3, 40)],
)
def test_the_expectation_equals_inclusion_and_exclusion(n, k, m):
    assert expected_florals(n, k, m) == pytest.approx(inclusion_exclusion(n, k, m), rel=1e-6)


@pytest.mark.parametrize(("n", "k", "m"), [(12, 2, 60), (7, 3, 60)])
def test_the_expectation_agrees_with_florals_found_in_random_systems(n, k, m):
    rng = np.random.default_rng(n)
    every = list(combinations(range(n), k))
    counts = []
    for _ in range(120):
        sets = [every[i] for i in rng.integers(len(every), size=m)]
        found = find_all_florals(Overlaps.from_array(gram(sets), k))
        # The other family, with k−2 vectors common to all rows, is not counted.
        counts.append(
            sum(len(set.intersection(*(set(sets[r]) for r in f.rows))) == 0 for f in found)
        )
    # Five standard errors, 119 degrees of freedom: 2e-6.
    assert abs(np.mean(counts) - expected_florals(n, k, m)) < 5 * np.std(counts, ddof=1) / np.sqrt(
        120
    )
    assert np.mean(counts) > 0.3


def test_no_florals_without_enough_vectors_or_enough_draws():
    assert expected_florals(3, 2, 1000) == 0
    assert expected_florals(1, 2, 1000) == 0
    assert expected_florals(10, 2, 0) == 0
    assert expected_florals(10, 2, 5) == 0
    assert expected_florals(10, 2, 6) > 0


def test_expectations_grow_with_m_towards_all_sets_of_k_plus_two():
    values = [expected_florals(8, 3, m) for m in (10, 30, 100, 300, 1000, 10_000)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(comb(8, 5))


@pytest.mark.parametrize(
    ("n", "k"), [(5, 2), (20, 2), (100, 2), (12, 3), (30, 3), (20, 4), (12, 6)]
)
def test_encodings_needed_is_the_first_m_that_expects_one(n, k):
    m = encodings_needed(n, k)
    assert expected_florals(n, k, m) >= 1 > expected_florals(n, k, m - 1)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (7, 5), (9, 7)])
def test_with_k_plus_two_vectors_nine_in_ten_is_asked_for(n, k):
    m = encodings_needed(n, k)
    assert expected_florals(n, k, m) >= 0.9 > expected_florals(n, k, m - 1)


def test_encodings_needed_follows_the_papers_exponent():
    # m ~ n^(k − 2/(k+1)): 4/3 for k = 2, 5/2 for k = 3, and the constants cancel in a ratio.
    for k, exponent in ((2, 4 / 3), (3, 5 / 2)):
        ratio = encodings_needed(2000, k) / encodings_needed(1000, k)
        assert np.log2(ratio) == pytest.approx(exponent, abs=0.02)


def test_too_few_vectors_for_any_floral_are_refused():
    with pytest.raises(ValueError, match="at least k_private"):
        encodings_needed(3, 2)


@pytest.mark.parametrize(("n", "k"), [(10, 2), (40, 3), (12, 5)])
def test_n_is_estimated_from_the_mean_overlap(n, k):
    sets = simulate(Scheme(k), n, m=600, d=1, rng=n).selection.private.tolist()
    # The mean overlap of pairs is k²/n. Its spread comes from how often each vector was drawn: σ of
    # the estimate is below 1 %.
    assert estimate_n_private(Overlaps.from_array(gram(sets), k)) == pytest.approx(n, rel=0.05)


def test_the_estimate_is_exact_for_a_complete_system_with_repeats_counted():
    # All pairs of 6, each twice: Σ over ordered pairs of different encodings = 30·30·(4/6) − 30·2.
    sets = 2 * list(combinations(range(6), 2))
    assert estimate_n_private(Overlaps.from_array(gram(sets), 2)) == pytest.approx(
        4 / ((600 - 60) / (30 * 29))
    )


def test_nothing_in_common_means_infinitely_many():
    assert estimate_n_private(Overlaps.from_array(2 * np.eye(5, dtype=int), 2)) == float("inf")
    assert estimate_n_private(Overlaps.from_array([[2]], 2)) == float("inf")
