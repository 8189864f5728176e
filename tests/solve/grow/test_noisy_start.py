"""Members half right and likely signs: alternation puts most of them right, and values near the
truth."""

import numpy as np
from tests.relations.test_signed import NOISE, told

from unveil.solve.grow.noisy_start import agreeing, alternate, noisy_start, row_weights


def guess(subsets, n, wrong, seed):
    rng = np.random.default_rng(seed)
    out = subsets.copy()
    off = rng.random(len(out)) < wrong
    out[off, 0] = (out[off, 1] + rng.integers(1, n, off.sum())) % n
    W = np.zeros((len(out), n))
    W[np.arange(len(out))[:, None], out] = 1
    return W


def test_a_guess_with_a_third_wrong_comes_right():
    subsets, patterns = told(30, 400, 24, 0, wrong=0.03)
    y = np.abs(patterns.z).astype(np.float32)
    x, members, miss = noisy_start(y, patterns, guess(subsets, 30, 0.33, 1), NOISE)
    fits = miss <= (2 * NOISE) ** 2
    right = (np.sort(members, axis=1) == np.sort(subsets, axis=1)).all(axis=1)
    assert fits.mean() > 0.7
    assert right[fits].mean() > 0.98
    assert x.shape == (30, 24)


def test_alternation_stays_at_the_truth():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((12, 30))
    members = np.array([(a, b) for a in range(12) for b in range(a)])
    y = np.abs(x[members].sum(axis=1) + 0.02 * rng.standard_normal((len(members), 30)))
    found, theirs, miss = alternate(y.astype(np.float32), x, 0.02)
    np.testing.assert_array_equal(np.sort(theirs, axis=1), np.sort(members, axis=1))
    assert np.abs(found - x).max() < 0.1
    assert miss.max() < (2 * 0.02) ** 2


def test_rows_that_do_not_fit_do_not_count():
    weight, typical = row_weights(np.array([1.0, 1.0, 1.0, 100.0]), 0.1)
    assert typical == 1.0
    assert weight[-1] == 0
    assert (weight[:3] > 0.5).all()
    assert row_weights(np.zeros(3), 0.1)[1] == 0.1**2


def test_rows_agree_after_their_signs_are_turned():
    rng = np.random.default_rng(3)
    v = rng.standard_normal(20)
    signs = np.array([1, -1, -1, 1, -1])
    z = signs[:, None] * v + 0.1 * rng.standard_normal((5, 20))
    turned = agreeing(z, z)
    assert np.abs(np.sign(turned @ v).sum()) == 5
