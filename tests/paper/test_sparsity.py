"""`lem:fewneighbors`, `lem:house`: close neighbours and houses are rare."""

from math import comb

import numpy as np
import pytest

import unveil
from unveil.encode import draw_selection, selection_matrix


def overlaps(n, k, m, seed):
    rng = np.random.default_rng(seed)
    W = selection_matrix(draw_selection(unveil.Scheme(k), n, 0, m, rng, rng).private, n)
    return (W @ W.T).toarray().astype(int)


@pytest.mark.parametrize(("n", "k", "m"), [(60, 2, 400), (25, 3, 1500)])
def test_degrees_are_the_lemmas_binomials(n, k, m):
    M = overlaps(n, k, m, 0)
    for overlap, pairs in ((k - 1, k * (n - k)), (k - 2, comb(k, 2) * comb(n - k, 2))):
        degree = (overlap == M).sum(axis=1)
        expected = (m - 1) * pairs / comb(n, k)
        # m binomials with this mean: none beyond six standard deviations (probability below 1e-6).
        assert abs(degree.mean() - expected) < 6 * np.sqrt(expected)
        assert degree.max() < expected + 8 * np.sqrt(expected) + 8


def test_the_number_of_houses_is_the_first_moment_of_the_lemma():
    """k = 2: houses (i; j1..j4) are squares of (k−1)-neighbours around i. Counted by force and by
    the lemma's expectation."""
    n, k, m = 14, 2, 60
    counts = []
    for seed in range(12):
        M = overlaps(n, k, m, seed)
        near = (k - 1 == M).astype(int)
        far = (k - 2 == M).astype(int)
        houses = 0
        for i in range(m):
            N = np.flatnonzero(near[i])
            A, F = near[np.ix_(N, N)], far[np.ix_(N, N)]
            # Squares a-b-c-d with far diagonals: pairs of far pairs joined by four near ones.
            pairs = np.argwhere(np.triu(F, 1))
            joined = np.array([A[a] & A[c] for a, c in pairs]).reshape(len(pairs), len(N))
            houses += sum(
                int(joined[p, b] and joined[p, d])
                for p in range(len(pairs))
                for b, d in pairs[p + 1 :]
            )
        counts.append(houses)
    # A house fixes disjoint pairs S1, S2: i = S1 (or S2's role by symmetry) and the four mixed
    # pairs.
    subsets = comb(n, 2)
    expected = comb(m, 1) * comb(m - 1, 4) * 24 * comb(n, 2) * comb(n - 2, 2) / subsets**5
    error = np.std(counts) / np.sqrt(len(counts))
    # Four standard errors plus 10%: the brute count sees sets, not tuples with repeats.
    assert abs(np.mean(counts) - expected) < 4 * error + 0.1 * expected
