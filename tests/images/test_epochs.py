"""Rows in epochs: told from rows in no order, products within an epoch forgotten, and members
matched so that every image has its k rows."""

import numpy as np
import pytest

from unveil.images.epochs import (
    Epochs,
    dispersion,
    epochs_of,
    even_columns,
    forget_within,
    logistic,
    matched_odds,
    matched_subsets,
)

N, T, K = 12, 30, 2


def members(seed=0, found=0.7):
    """(m, n) who is in which row, each of two slots a permutation; and what was found of it."""
    rng = np.random.default_rng(seed)
    true = np.zeros((N * T, N), bool)
    for _ in range(K):
        order = np.concatenate([rng.permutation(N) for _ in range(T)])
        true[np.arange(N * T), order] = True
    return true, true & (rng.random(true.shape) < found)


def order(m=N * T):
    return Epochs(np.arange(m) // N, N, K)


def test_rows_in_order_are_told_from_shuffled_ones():
    _, seen = members()
    assert epochs_of(seen, N, K) is not None
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(seen)
        assert epochs_of(shuffled, N, K) is None


def test_too_few_rows_or_another_number_of_images_tell_nothing():
    _, seen = members()
    assert epochs_of(seen[: 3 * N], N, K) is None
    for n in (N - 3, N - 1, N + 1, 2 * N - 1):
        assert epochs_of(seen, n, K) is None


def test_dispersion_is_variance_over_mean_of_whole_epochs():
    _, seen = members()
    counts = seen[: N * 10].reshape(10, N, N).sum(axis=1)
    cut = seen[: N * 10 + 5]
    np.testing.assert_allclose(
        dispersion(cut, order(len(cut))), counts.var(axis=0) / counts.mean(axis=0), rtol=1e-6
    )


def test_products_within_an_epoch_are_forgotten_and_no_others():
    m = 2 * N + 5
    matrix = np.random.default_rng(0).random((m, m)).astype(np.float32)
    left = matrix.copy()
    forget_within(left, order(m))
    block = np.arange(m) // N
    within = (block[:, None] == block) & ~np.eye(m, dtype=bool)
    assert not left[within].any()
    np.testing.assert_array_equal(left[~within], matrix[~within])


def test_of_ranked_rows_the_best_k_of_each_epoch_stay_in_their_order():
    epochs = Epochs(np.array([0, 0, 0, 1, 1, 1]), 3, 2)
    ranked = np.array([5, 2, 4, 0, 1, 3])
    np.testing.assert_array_equal(epochs.most(ranked), [5, 2, 4, 0])
    np.testing.assert_array_equal(epochs.at(np.array([0, 3, 5])).block, [0, 1, 1])


def test_uneven_columns_and_repeats_are_dropped():
    true, seen = members()
    rng = np.random.default_rng(1)
    public = np.zeros(N * T, bool)  # in some epochs four times, in others never
    for epoch in range(0, T, 3):
        public[epoch * N + rng.permutation(N)[:4]] = True
    repeat = true[:, 0] & (rng.random(N * T) < 0.5)
    columns = np.column_stack([seen, public, repeat]).astype(np.float32)
    keep = even_columns(columns, order(), N + 2)
    assert keep[:N].all()
    assert not keep[N:].any()
    assert even_columns(columns, order(), 5).sum() == 5


def test_matched_odds_fill_every_image_and_every_row():
    true, _ = members()
    rng = np.random.default_rng(2)
    odds = np.where(true, 1.0, -1.0) + 1.5 * rng.standard_normal(true.shape)
    p = logistic(matched_odds(odds, order()))
    np.testing.assert_allclose(p.reshape(T, N, N).sum(axis=1), K, atol=0.05)
    np.testing.assert_allclose(p.sum(axis=1), K, atol=0.15)
    assert ((p > 0.5) == true).mean() > ((odds > 0) == true).mean()


def test_where_images_are_missing_rows_need_not_be_full():
    true, _ = members()
    odds = np.where(true, 4.0, -4.0)[:, :-2]
    p = logistic(matched_odds(odds, order()))
    assert (p.sum(axis=1) < K + 0.05).all()
    np.testing.assert_allclose(p[~true[:, :-2]], 0, atol=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_a_faint_member_is_told_by_who_has_no_place_elsewhere(seed):
    true, _ = members(seed)
    rows = np.flatnonzero(true.sum(axis=1) == K)
    rng = np.random.default_rng(seed)
    candidates = np.tile(np.arange(N), (N * T, 1))
    pairs = np.array([(a, b) for a in range(N) for b in range(a)])
    holds = np.zeros((len(pairs), N))
    np.put_along_axis(holds, pairs, 1, axis=1)
    score = np.where(true, 2.0, 0.0) + rng.standard_normal(true.shape)
    odds = 2 * score @ holds.T
    right = true[rows] @ holds.T == K
    matched = matched_subsets(odds, candidates, holds, np.full(N, float(K)), order())
    share = [(right[np.arange(len(rows)), o[rows].argmax(axis=1)]).mean() for o in (odds, matched)]
    assert share[1] > share[0]
