"""`alg:findsetsystem`, `lem:findsetsystem`."""

from itertools import combinations

import numpy as np
import pytest

import unveil
from unveil.paper.floral import floral_labels


def set_matrix(sets):
    return np.array([[len(set(a) & set(b)) for b in sets] for a in sets])


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_a_hidden_floral_is_found_and_F_explains_all_its_overlaps(k):
    rng = np.random.default_rng(k)
    n = 40
    U = rng.choice(n, k + 2, replace=False)
    sets = [tuple(U[list(s)]) for s in combinations(range(k + 2), k)]
    noise = [tuple(rng.choice(n, k, replace=False)) for _ in range(150)]
    sets = [(sets + sets[:3] + noise)[i] for i in rng.permutation(len(sets) + 3 + len(noise))]
    M = set_matrix(sets)
    florals = unveil.find_all_florals(unveil.Overlaps.from_array(M, k))
    assert {frozenset(x for r in f.rows for x in sets[r]) for f in florals} >= {frozenset(U)}
    for f in florals:
        assert len(f.rows) == (k + 2) * (k + 1) // 2
        np.testing.assert_array_equal(f.incidence @ f.incidence.T, M[np.ix_(f.rows, f.rows)])


@pytest.mark.parametrize("k", [4, 5, 6])
def test_the_rows_of_the_third_group_are_a_floral_of_sparsity_k_minus_4(k):
    """The recursion of the paper: 𝓘''' less {1, 2, k+1, k+2} are all (k−4)-subsets of the k−2 names
    of S*."""
    third = floral_labels(k)[6 + 4 * (k - 2) :]
    fixed = {0, 1, k, k + 1}
    assert all(fixed <= set(s) for s in third.tolist())
    rest = [tuple(sorted(set(s) - fixed)) for s in third.tolist()]
    assert sorted(rest) == sorted(combinations(range(2, k), k - 4))
    if k == 6:
        assert unveil.is_floral(set_matrix(third.tolist()) - 4)


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_the_printed_test_for_the_second_group_cannot_reject_the_wrong_reading(k):
    """The right rows {1, 2, b} ∪ S*∖s of one b are all (k−1)-neighbours of each other, as the wrong
    ones are."""
    second = [set(s) for s in floral_labels(k)[6 : 6 + k - 2].tolist()]
    assert all(len(a & b) == k - 1 for a, b in combinations(second, 2))
