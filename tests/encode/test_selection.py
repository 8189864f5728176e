"""Selection vectors: uniform over subsets, sorted, without repeats, each part from its own generator."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from unveil.encode.selection import draw_selection, selection_matrix
from unveil.records import InputError, Scheme


def draw(k_private, n_private, m, *, k_public=0, n_public=0, seed=0):
    private, public = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    return draw_selection(Scheme(k_private, k_public), n_private, n_public, m, private, public)


# k² ≤ n draws with rejection, k² > n ranks random keys: both ways, and the border k² = n.
@pytest.mark.parametrize(("n", "k"), [(7, 2), (4, 2), (10, 3), (5, 3), (6, 4), (6, 1), (3, 2)])
def test_every_subset_is_equally_likely(n, k):
    subsets = list(combinations(range(n), k))
    m = 400 * len(subsets)
    chosen = draw(k, n, m, seed=n).private
    place = {s: i for i, s in enumerate(subsets)}
    counts = np.bincount([place[tuple(row)] for row in chosen.tolist()], minlength=len(subsets))
    statistic = ((counts - 400) ** 2 / 400).sum()
    # A uniform drawer fails with probability 1e-7 per case (fixed seed: it does not).
    assert statistic < chi2.isf(1e-7, len(subsets) - 1)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (5, 3)])
def test_encodings_are_drawn_independently_of_each_other(n, k):
    chosen = draw(k, n, 40_000, seed=1).private
    same = (chosen[1:] == chosen[:-1]).all(axis=1).mean()
    p = 1 / len(list(combinations(range(n), k)))
    # Six standard deviations: fails with probability 2e-9.
    assert abs(same - p) < 6 * np.sqrt(p * (1 - p) / 40_000)


@pytest.mark.parametrize(("n", "k"), [(50, 3), (9, 3), (8, 3), (100, 6), (30, 6)])
def test_rows_are_sorted_without_repeats_and_within_range(n, k):
    chosen = draw(k, n, 500).private
    assert chosen.shape == (500, k)
    assert chosen.min() >= 0
    assert chosen.max() < n
    assert (np.diff(chosen, axis=1) > 0).all()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_k_equal_to_n_selects_everything(k):
    np.testing.assert_array_equal(draw(k, k, 4).private, np.tile(np.arange(k), (4, 1)))


def test_k_larger_than_n_names_the_part_and_the_cure():
    with pytest.raises(InputError, match="k_private=3 of only 2 private vectors: lower k_private or raise n_private"):
        draw(3, 2, 5)
    with pytest.raises(InputError, match="k_public=2 of only 1 public"):
        draw(2, 5, 5, k_public=2, n_public=1)


def test_a_missing_part_has_no_columns():
    selection = draw(2, 10, 6)
    assert selection.public.shape == (6, 0)
    assert draw(0, 0, 6, k_public=2, n_public=5).private.shape == (6, 0)


def test_one_part_does_not_shift_the_draws_of_the_other():
    small, large = draw(2, 10, 30, k_public=2, n_public=8), draw(3, 50, 30, k_public=2, n_public=8)
    np.testing.assert_array_equal(small.public, large.public)


def test_the_selection_matrix_holds_the_weight_at_the_chosen_places():
    indices = np.array([[0, 2], [1, 3], [2, 3]])
    W = selection_matrix(indices, 5, 0.5).toarray()
    np.testing.assert_array_equal(W, [[0.5, 0, 0.5, 0, 0], [0, 0.5, 0, 0.5, 0], [0, 0, 0.5, 0.5, 0]])
