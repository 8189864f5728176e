"""Selection vectors: uniform over subsets, sorted, without repeats, each part from its own
generator."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from unveil.checks import InputError
from unveil.encode import draw_selection, selection_matrix
from unveil.scheme import Scheme


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
    with pytest.raises(
        InputError,
        match="k_private=3 of only 2 private vectors: lower k_private or raise n_private",
    ):
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
    np.testing.assert_array_equal(
        W, [[0.5, 0, 0.5, 0, 0], [0, 0.5, 0, 0.5, 0], [0, 0, 0.5, 0.5, 0]]
    )


def epochs(k, n, m, weighting="equal", seed=0, pairing="epochs-in-order", public=(0, 0)):
    rngs = (np.random.default_rng([seed, stage]) for stage in range(3))
    k_public, n_public = public
    return draw_selection(Scheme(k, k_public, weighting, pairing=pairing), n, n_public, m, *rngs)


def test_in_an_epoch_every_vector_has_every_slot_once():
    n, k, m = 7, 3, 35
    chosen = epochs(k, n, m).private.reshape(5, n, k)
    for epoch in chosen:
        np.testing.assert_array_equal(np.bincount(epoch.ravel(), minlength=n), np.full(n, k))
        assert all(i in row for i, row in enumerate(epoch))
    assert len({epoch.tobytes() for epoch in chosen}) == 5


def test_the_last_epoch_is_cut():
    np.testing.assert_array_equal(epochs(2, 7, 17).private, epochs(2, 7, 21).private[:17])


def test_row_numbers_give_no_identity_away_unless_asked_for():
    n, rounds = 6, 3000
    found = epochs(2, n, n * rounds, "sorted", pairing="epochs")
    first = np.take_along_axis(found.private, found.weights.argmax(axis=1)[:, None], axis=1)
    first = first.reshape(rounds, n)
    # The heavier slot has every vector once in an epoch, at any place.
    np.testing.assert_array_equal(np.sort(first, axis=1), np.tile(np.arange(n), (rounds, 1)))
    counts = np.array([np.bincount(first[:, place], minlength=n) for place in range(n)])
    # 36 binomial counts of mean 500: six standard deviations.
    assert np.abs(counts - rounds / n).max() < 6 * np.sqrt(rounds / n * (1 - 1 / n))


def test_public_vectors_of_an_epoch_are_its_own_and_may_repeat_across_slots():
    n, n_public, rounds = 8, 30, 400
    found = epochs(2, n, n * rounds, pairing="epochs", public=(3, n_public))
    chosen = found.public.reshape(rounds, n, 3)
    for epoch in chosen[:50]:
        names, counts = np.unique(epoch, return_counts=True)
        assert len(names) == n
        assert (counts == 3).all()
    # Two slots of a row agree with probability 1/n; three pairs of slots.
    rows = found.public
    same = np.mean([rows[:, a] == rows[:, b] for a, b in ((0, 1), (1, 2))])
    assert same > 0.08
    # Over all epochs every public vector is used, about equally often.
    used = np.bincount(rows.ravel(), minlength=n_public)
    expected = rows.size / n_public
    assert np.abs(used - expected).max() < 6 * 3 * np.sqrt(expected / 3)


def test_fewer_public_vectors_than_private_ones_are_used_again():
    found = epochs(2, 9, 18, pairing="epochs", public=(1, 4))
    assert set(found.public.ravel()) == set(range(4))


def test_partners_in_an_epoch_are_uniform_and_may_be_the_vector_itself():
    n, rounds = 5, 4000
    chosen = epochs(2, n, n * rounds).private
    own = np.tile(np.arange(n), rounds)
    partner = chosen.sum(axis=1) - own
    counts = np.zeros((n, n))
    np.add.at(counts, (own, partner), 1)
    # 25 binomial counts of mean 800: six standard deviations, 25 · 2e-9.
    assert np.abs(counts - rounds / n).max() < 6 * np.sqrt(rounds / n * (1 - 1 / n))


def test_weights_follow_their_vectors_when_rows_are_sorted():
    """Sorted weights in an epoch: the vector whose turn it is has the largest."""
    n, m = 30, 90
    found = epochs(3, n, m, "sorted")
    assert (np.diff(found.private, axis=1) >= 0).all()
    largest = np.take_along_axis(
        found.private, found.weights.argmax(axis=1)[:, None], axis=1
    ).ravel()
    np.testing.assert_array_equal(largest, np.tile(np.arange(n), 3))


def test_sorted_weights_do_not_depend_on_the_index():
    """Subsets are sorted, weights are not tied to the order: each slot has the largest weight as
    often as the others."""
    rngs = (np.random.default_rng([4, stage]) for stage in range(3))
    found = draw_selection(Scheme(2, 3, "sorted"), 20, 20, 20_000, *rngs)
    for weights, k in ((found.weights, 2), (found.public_weights, 3)):
        share = np.bincount(weights.argmax(axis=1), minlength=k) / 20_000
        assert np.abs(share - 1 / k).max() < 6 * np.sqrt(1 / k * (1 - 1 / k) / 20_000)
    assert (found.weights.min(axis=1) >= found.public_weights.max(axis=1)).all()


def test_fixed_weights_have_no_arrays_and_drawn_ones_need_a_generator():
    assert epochs(2, 5, 10).weights is None
    with pytest.raises(InputError, match="needs weight_rng"):
        draw_selection(
            Scheme(2, 2, "released"), 5, 5, 3, *(np.random.default_rng(i) for i in range(2))
        )


def test_an_epoch_of_too_few_vectors_names_the_cure():
    with pytest.raises(InputError, match="k_private=3 of only 2 private vectors"):
        epochs(3, 2, 5)


@pytest.mark.parametrize(("k_private", "k_public"), [(3, 3), (1, 3)])
def test_weights_of_the_released_law_do_not_follow_the_order_of_indices(k_private, k_public):
    """The first two slots weigh more; which vectors get them must be chance. Means of 20,000 rows:
    standard error 0.001, so that 0.01 is ten of them."""
    scheme = Scheme(k_private, k_public, "released")
    rngs = [np.random.default_rng(seed) for seed in (1, 2, 3)]
    chosen = draw_selection(scheme, 30, 30, 20_000, *rngs)
    for weights in (chosen.weights, chosen.public_weights):
        means = weights.mean(axis=0)
        np.testing.assert_allclose(means, means.mean(), atol=0.01)
