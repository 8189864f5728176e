"""Verified only where no other reading exists: designs that allow one, and weights that are not in
general position, are in doubt."""

import numpy as np
import pytest

from unveil.certify.own_weights import certify_own_weights
from unveil.records import AMBIGUOUS, VERIFIED
from unveil.solve.simplex import Corners, find_corners


def corners(members, weights, *, d=30, seed=0, n=None):
    members, weights = np.asarray(members), np.asarray(weights, float)
    n = members.max() + 1 if n is None else n
    values = np.random.default_rng(seed).standard_normal((n, d))
    return Corners(values, members, weights, np.ones(len(members), bool), 1e-7, True)


def design(n, m, k, seed=0):
    rng = np.random.default_rng(seed)
    members = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    return members, rng.dirichlet(np.ones(k), m)


@pytest.mark.parametrize(("k", "m"), [(2, 120), (3, 160), (4, 200)])
def test_many_encodings_verify_everything(k, m):
    status, reasons = certify_own_weights(corners(*design(10, m, k)))
    assert (status == VERIFIED).all(), reasons


def test_a_record_that_one_partner_follows_everywhere_is_in_doubt():
    members, weights = design(10, 150, 2)
    members = np.vstack([members, [[10, 3]] * 6])
    weights = np.vstack([weights, np.random.default_rng(1).dirichlet([1, 1], 6)])
    status, reasons = certify_own_weights(corners(members, weights))
    assert status[10] == AMBIGUOUS
    assert "another reading" in reasons[10]
    assert (status[:10] == VERIFIED).all()
    # One partner more, and it is the only point on two lines.
    more = np.vstack([members, [[10, 4]]]), np.vstack([weights, [[0.4, 0.6]]])
    assert (certify_own_weights(corners(*more))[0] == VERIFIED).all()


def test_there_is_another_reading_where_one_partner_is_everywhere():
    """The claim behind the test above: x_10 may lie anywhere on its line."""
    members, weights = design(10, 150, 2)
    members = np.vstack([members, [[10, 3]] * 6])
    weights = np.vstack([weights, np.random.default_rng(1).dirichlet([1, 1], 6)])
    truth = corners(members, weights)
    y = truth.matrix @ truth.values
    other = truth.values.copy()
    other[10] += 0.5 * (other[10] - other[3])
    shifted = weights.copy()
    shifted[150:, 0] /= 1.5
    shifted[150:, 1] = 1 - shifted[150:, 0]
    read = Corners(other, members, shifted, truth.fits, 1e-7, True)
    np.testing.assert_allclose(read.matrix @ read.values, y, atol=1e-9)


@pytest.mark.parametrize("levels", [[0.5], [0.3, 0.6]])
def test_weights_in_few_levels_prove_nothing(levels):
    members, _ = design(12, 200, 2)
    share = np.random.default_rng(2).choice(levels, 200)
    status, reasons = certify_own_weights(corners(members, np.column_stack([share, 1 - share])))
    assert (status == AMBIGUOUS).all()
    assert "few levels" in reasons[0] or "too few" in reasons[0]


def test_weights_tied_to_records_prove_nothing():
    members, _ = design(12, 200, 2)
    size = 1 + np.random.default_rng(2).random(12)
    weights = size[members] / size[members].sum(axis=1, keepdims=True)
    status, reasons = certify_own_weights(corners(members, weights))
    assert (status == AMBIGUOUS).all()
    assert "tied to records" in reasons[0] or "too few" in reasons[0]


def test_fewer_records_than_stated_are_said_in_words():
    members, weights = design(10, 150, 3)
    weights[:, 2] = 1e-4
    weights /= weights.sum(axis=1, keepdims=True)
    status, reasons = certify_own_weights(corners(members, weights))
    assert (status == AMBIGUOUS).all()
    assert "k_private=2" in reasons[0]


def test_records_that_depend_on_each_other_prove_nothing():
    members, weights = design(10, 150, 2)
    found = corners(members, weights)
    found.values[9] = (found.values[0] + found.values[1]) / 2
    assert (certify_own_weights(found)[0] == AMBIGUOUS).all()


def test_one_encoding_is_no_proof():
    members, weights = design(10, 150, 2)
    found = corners(np.vstack([members, [[10, 0]]]), np.vstack([weights, [[0.5, 0.5]]]))
    status, reasons = certify_own_weights(found)
    assert status[10] == AMBIGUOUS
    assert "one encoding only" in reasons[10]


def test_nothing_wrong_is_verified_over_many_small_designs():
    """Few encodings, so that doubt is common: what is verified equals a record."""
    rng = np.random.default_rng(3)
    verified = 0
    for _ in range(25):
        n, k = int(rng.integers(5, 12)), int(rng.integers(2, 4))
        members, weights = design(n, int(rng.integers(4, 12)) * n, k, int(rng.integers(1e9)))
        truth = corners(members, weights, seed=int(rng.integers(1e9)), n=n)
        y = (truth.matrix @ truth.values).astype(np.float32).astype(np.float64)
        found = find_corners(y, k)
        if found is None or not found.exact:
            continue
        for i in np.flatnonzero(certify_own_weights(found)[0] == VERIFIED):
            assert np.abs(truth.values - found.values[i]).max(axis=1).min() < 1e-3
            verified += 1
    assert verified > 50
