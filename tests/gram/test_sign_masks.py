"""Signs that go together are told from fair coins, whatever the data."""

import numpy as np
import pytest

from unveil.gram.sign_masks import SAMPLE, coin_squares, go_together, sampled


def mixed(rng, m=80, d=120, n=10):
    x = rng.standard_normal((n, d)) * (1 + rng.random(d))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    return x[pairs].sum(axis=1).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_kept_signs_go_together_and_coins_do_not(seed):
    rng = np.random.default_rng(seed)
    y = mixed(rng)
    assert go_together(coin_squares(y))
    assert go_together(coin_squares(y * rng.choice([-1, 1], y.shape[1]).astype(np.float32)))
    assert not go_together(coin_squares(y * rng.choice([-1, 1], y.shape).astype(np.float32)))


def test_the_sample_is_spread_over_all_rows():
    values = np.arange(3 * SAMPLE, dtype=np.float32)[:, None]
    some = sampled(values)
    assert len(some) == SAMPLE
    assert some[0, 0] == 0
    assert some[-1, 0] == 3 * SAMPLE - 1
