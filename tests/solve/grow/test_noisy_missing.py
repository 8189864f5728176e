"""A vector that no column stands for is found in the encodings left over; a split one becomes
one."""

import numpy as np
from tests.relations.test_signed import NOISE, told

from unveil.solve.grow.noisy_growth import hold_noisy
from unveil.solve.grow.noisy_missing import _consensus, _doubtful, with_missing


def overlaps(subsets):
    S = (subsets[:, None, :, None] == subsets[None, :, None, :]).any(axis=(2, 3)).astype(float)
    np.fill_diagonal(S, 0)
    return S


def held(subsets, patterns, known, n):
    """The solution of the encodings that use the `known` vectors alone."""
    y = np.abs(patterns.z).astype(np.float32)
    rows = np.flatnonzero(np.isin(subsets, known).all(axis=1))
    start = np.linalg.lstsq(
        np.eye(n)[subsets].sum(axis=1), aligned(subsets, patterns, n), rcond=None
    )[0]
    members = np.searchsorted(known, subsets[rows])
    return y, hold_noisy(y, rows, members, NOISE, np.random.default_rng(0), start=start[known])


def aligned(subsets, patterns, n):
    """z with the rows' signs as the vectors have them, from the overlaps of signed encodings."""
    white = patterns.z @ np.linalg.inv(patterns.C)
    A = (white @ patterns.z.T) * (overlaps(subsets) > 0)
    return np.where(np.linalg.eigh(A)[1][:, -1] < 0, -1.0, 1.0)[:, None] * patterns.z


def test_missing_vectors_come_back():
    n = 24
    subsets, patterns = told(n, 240, 24, 0)
    y, noisy = held(subsets, patterns, np.arange(n - 2), n)
    assert len(noisy.rows) < 210
    found = with_missing(y, patterns, overlaps(subsets), noisy, np.random.default_rng(1), None)
    assert len(found.values) == n
    assert len(found.rows) == 240
    # Encodings that share a vector share a column.
    W = np.eye(n)[found.members].sum(axis=1)
    same = (subsets[found.rows][:, None, :, None] == subsets[found.rows][None, :, None]).sum(
        axis=(2, 3)
    )
    np.testing.assert_array_equal(W @ W.T, same)


def test_a_vector_in_two_parts_is_doubtful():
    subsets, patterns = told(12, 66, 24, 3)
    _, noisy = held(subsets, patterns, np.arange(12), 12)
    assert not _doubtful(noisy).any()
    noisy.values[1] = noisy.values[0]
    noisy.values[1, 5] += 3
    np.testing.assert_array_equal(np.flatnonzero(_doubtful(noisy)), [0, 1])


def test_most_rows_decide_a_pixel():
    """Three of four partners are right; the value at which most agree is the one, at every
    pixel."""
    rng = np.random.default_rng(4)
    v, partner = rng.standard_normal(30) * 3, rng.standard_normal((8, 30))
    y = np.abs(v + partner + 0.01 * rng.standard_normal((8, 30)))
    partner[6:] = rng.standard_normal((2, 30))
    assert np.abs(_consensus(y, partner, np.ones(8), 0.04**2) - v).max() < 0.05
