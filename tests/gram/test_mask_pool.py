"""Masks of a pool: rows are put together by them, and their signs come back."""

import numpy as np
import pytest

from unveil.gram.mask_pool import mask_groups, relative_masks


def masked(pool, m=600, d=60, *, mean=3.0, seed=0):
    """Mixtures of two records that have something in common, masked; masks, who has which."""
    rng = np.random.default_rng(seed)
    private = rng.standard_normal((40, d)) + mean * rng.standard_normal(d)
    chosen = rng.integers(0, 40, (m, 2))
    share = rng.random((m, 1))
    below = share * private[chosen[:, 0]] + (1 - share) * private[chosen[:, 1]]
    masks = 1 - 2 * rng.integers(0, 2, (pool, d))
    which = rng.integers(0, pool, m)
    return (below * masks[which]).astype(np.float32), masks, which, private.astype(np.float32)


@pytest.mark.parametrize("pool", [1, 4, 12])
def test_rows_of_a_mask_are_a_group(pool):
    values, _, which, _ = masked(pool)
    groups = mask_groups(values)
    told = groups >= 0
    assert told.mean() > 0.98
    assert len(set(zip(groups[told], which[told], strict=True))) == pool == groups.max() + 1
    # By falling size.
    assert (np.diff(np.bincount(groups[told])) <= 0).all()


def test_coins_of_their_own_are_no_group():
    values, _, _, _ = masked(1)
    coins = 1 - 2 * np.random.default_rng(1).integers(0, 2, values.shape)
    assert (mask_groups(values * coins) == -1).all()


@pytest.mark.parametrize("pool", [4, 12])
@pytest.mark.parametrize("known", [False, True])
def test_masks_come_back(pool, known):
    values, masks, which, private = masked(pool)
    groups = mask_groups(values)
    found = relative_masks(values, groups, private[:20] if known else None)
    names = [which[groups == g][0] for g in range(pool)]
    apart = found * masks[names]
    # One sign per pixel may be common to all, unless vectors without a mask are at hand.
    assert (apart == (1 if known else apart[0])).all()


def test_without_a_common_mean_records_that_rows_share_are_enough():
    values, masks, which, _ = masked(2, m=600, d=400, mean=0.0)
    groups = mask_groups(values)
    assert groups.max() == 1
    found = relative_masks(values, groups)
    names = [which[groups == g][0] for g in range(2)]
    apart = found * masks[names]
    assert (apart[0] == apart[1]).all()
