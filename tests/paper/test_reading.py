"""The two families of sets behind a floral: votes for the right one, none for the wrong one."""

from itertools import combinations

import numpy as np
import pytest
from tests.paper.test_floral import gram

from unveil import Overlaps
from unveil.paper.floral import floral_labels, read_floral, swap_reading
from unveil.records import Floral

EVERY_K = range(2, 7)


def system(k, family, n, others, seed=0):
    """The sets of one floral in the order of its labels, then other random k-subsets of n
    vectors."""
    labels = floral_labels(k).tolist()
    if family == "subsets":
        sets = [tuple(s) for s in labels]
    else:  # names are petals 0..k+1, the core comes after them
        sets = [(*range(k + 2, 2 * k), *sorted(set(range(k + 2)) - set(s))) for s in labels]
    rng = np.random.default_rng(seed)
    sets += [tuple(rng.choice(n, k, replace=False).tolist()) for _ in range(others)]
    return sets, Floral(np.arange(len(labels)), floral_labels(k))


@pytest.mark.parametrize("k", EVERY_K)
def test_both_families_have_the_same_floral_matrix(k):
    t = len(floral_labels(k))
    matrices = [gram(system(k, family, 3 * k, 0)[0]) for family in ("subsets", "sunflower")]
    np.testing.assert_array_equal(matrices[0][:t, :t], matrices[1][:t, :t])


@pytest.mark.parametrize("n_more", [1, 3, 12])
@pytest.mark.parametrize("k", EVERY_K)
def test_exact_overlaps_vote_for_the_right_family_only(k, n_more):
    n = 2 * k + n_more
    sets, floral = system(k, "subsets", n, 300)
    reading = read_floral(Overlaps.from_array(gram(sets), k), floral)
    exactly_one = sum(len(set(s) & set(range(k + 2))) == 1 for s in sets)
    assert reading.subsets == exactly_one > 0
    assert reading.sunflower == 0

    sets, floral = system(k, "sunflower", n, 300)
    reading = read_floral(Overlaps.from_array(gram(sets), k), floral)
    assert reading.subsets == 0
    assert reading.sunflower > 0
    # g vectors shared with core and petals; those with 0 < g < k vote.
    fractions = sum(0 < len(set(s) & set(range(2 * k))) < k for s in sets)
    assert reading.sunflower == fractions


@pytest.mark.parametrize("k", EVERY_K)
@pytest.mark.parametrize("family", ["subsets", "sunflower"])
def test_without_other_encodings_nothing_is_decided(k, family):
    sets, floral = system(k, family, 2 * k, 0)
    reading = read_floral(Overlaps.from_array(gram(sets), k), floral)
    assert (reading.subsets, reading.sunflower) == (0, 0)


@pytest.mark.parametrize("k", EVERY_K)
@pytest.mark.parametrize("family", ["subsets", "sunflower"])
def test_with_n_equal_to_2k_no_encoding_can_vote(k, family):
    sets, floral = system(k, family, 2 * k, 300)
    reading = read_floral(Overlaps.from_array(gram(sets), k), floral)
    assert (reading.subsets, reading.sunflower) == (0, 0)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("k", EVERY_K)
@pytest.mark.parametrize("family", ["subsets", "sunflower"])
def test_one_wrong_overlap_per_encoding_does_not_turn_the_vote(k, family, every):
    sets, floral = system(k, family, 2 * k + 4, 400)
    t = len(floral.rows)
    M = gram(sets)
    rng = np.random.default_rng(1)
    for row in range(t, len(M), every):
        column = rng.integers(t)
        change = 1 if M[row, column] == 0 else rng.choice([-1, 1])
        M[row, column] += change
        M[column, row] += change
    reading = read_floral(Overlaps.from_array(M, k), floral)
    votes = {"subsets": reading.subsets, "sunflower": reading.sunflower}
    right = votes.pop(family)
    assert list(votes.values()) == [0]
    # For k = 2 an encoding with a wrong overlap abstains from "sunflower"; those without one still
    # vote.
    assert right > 10 or (k, family, every) == (2, "sunflower", 1)


@pytest.mark.parametrize("k", EVERY_K)
def test_an_encoding_that_would_need_more_core_than_there_is_does_not_vote(k):
    # Overlap k−1 with every row: k−1 vectors of a core that has k−2. Neither family makes such an
    # encoding.
    t = len(floral_labels(k))
    M = k * np.eye(t + 1, dtype=int)
    M[:t, :t] = gram(floral_labels(k).tolist())
    M[t, :t] = M[:t, t] = k - 1
    reading = read_floral(Overlaps.from_array(M, k), Floral(np.arange(t), floral_labels(k)))
    assert (reading.subsets, reading.sunflower) == (0, 0)


def test_swapping_the_labels_for_k_of_two_swaps_the_families():
    sets, floral = system(2, "subsets", 10, 200)
    overlaps = Overlaps.from_array(gram(sets), 2)
    swapped = swap_reading(floral)
    labels = swapped.labels.tolist()
    assert sorted(map(tuple, labels)) == list(combinations(range(4), 2))
    for before, after in zip(floral.labels.tolist(), labels, strict=True):
        assert sorted(before + after) == [0, 1, 2, 3]
    right, wrong = read_floral(overlaps, floral), read_floral(overlaps, swapped)
    assert right.subsets > 0
    assert (wrong.subsets, wrong.sunflower) == (0, right.subsets)
    np.testing.assert_array_equal(swap_reading(swapped).labels, floral.labels)


@pytest.mark.parametrize("k", EVERY_K)
def test_renaming_vectors_and_moving_rows_keep_the_votes(k):
    sets, floral = system(k, "subsets", 2 * k + 3, 150)
    expected = read_floral(Overlaps.from_array(gram(sets), k), floral)
    rng = np.random.default_rng(2)
    order = rng.permutation(len(sets))
    moved = Floral(np.argsort(order)[floral.rows], floral.labels)
    reading = read_floral(Overlaps.from_array(gram([sets[i] for i in order]), k), moved)
    assert reading == expected
