"""The inner loops against plain NumPy: pairs of an interval, and the relations of one share."""

import numpy as np
import pytest

from unveil.relations.share import _bucketed, _keys, pairs_between, search_share


@pytest.mark.parametrize("free", [True, False])
def test_pairs_between(free):
    values = np.sort(np.random.default_rng(0).random(60))
    i, j = np.triu_indices(60, 1)
    difference, total = values[j] - values[i], values[j] + values[i]
    for low, high in ((0.0, 0.2), (0.2, 0.9), (0.9, np.inf)):
        expected = ((difference >= low) & (difference < high)).sum()
        if free:
            expected += ((total >= low) & (total < high)).sum()
        assert pairs_between(values, free, low, high) == expected


def test_every_key_is_in_one_share_and_buckets_keep_them():
    y = np.random.default_rng(1).random((40, 5))
    order = np.argsort(y[:, 0])
    grid = np.full(3, 1e-3)
    shares = [(0.0, 0.3, 0, 1), (0.3, 0.8, 0, 2), (0.3, 0.8, 1, 2), (0.8, np.inf, 0, 1)]
    keys = np.concatenate(
        [_keys(y, -y, True, y[order, 0], order, 3, grid, *share) for share in shares]
    )
    assert len(keys) == 40 * 39 // 2 * 8
    sorted_, start = _bucketed(keys)
    np.testing.assert_array_equal(np.sort(sorted_), np.sort(keys))
    assert (
        (np.diff(sorted_ >> np.uint64(55)) >= 0).all()
        if sorted_.dtype != np.uint64
        else start[-1] == len(keys)
    )


def test_a_planted_relation_is_found():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((30, 8))
    z[3] = z[0] - z[1] + z[2]
    y = np.abs(z)
    order = np.argsort(y[:, 0])
    spread, nats = np.full(8, 1e-9), np.full(8, 10.0)
    found = search_share(
        y,
        -y,
        True,
        y[order, 0],
        order,
        2,
        np.full(2, 1e-7),
        spread,
        nats,
        50.0,
        0.0,
        np.inf,
        0,
        1,
        1000,
        1000,
    )
    assert {tuple(sorted(q)) for q in found.tolist()} == {(0, 1, 2, 3)}
