"""Which corners are public, with which signs, and which are surely private."""

import numpy as np
from scipy import sparse

from unveil.certify.public_corners import only_private, public_corners, public_signs
from unveil.records import AMBIGUOUS, VERIFIED

RNG = np.random.default_rng(0)
P = RNG.standard_normal((5, 30)).astype(np.float32)
X = np.vstack([RNG.standard_normal((2, 30)), P[3], P[1]])


def test_public_vectors_are_known_by_their_values():
    assert public_corners(X, P).tolist() == [-1, -1, 3, 1]
    assert public_corners(X, None).tolist() == [-1, -1, -1, -1]


def test_their_signs_are_those_of_every_pixel():
    mask = RNG.choice([-1.0, 1.0], 30)
    np.testing.assert_array_equal(public_signs(mask * X, P), mask)


def test_one_of_them_may_be_a_mirror_image():
    assert public_signs(np.vstack([X[:2], -X[2:3]]), P) is None


def test_signs_that_differ_between_them_say_nothing():
    assert public_signs(np.vstack([X[2], -X[3]]), P) is None


def test_a_pixel_where_all_of_them_are_zero_stays_open():
    none = P.copy()
    none[:, 7] = 0
    assert public_signs(none[[1, 3]].astype(float), none) is None


def test_private_is_what_stands_beside_enough_public_ones():
    # Rows: {0, 2}, {1, 0}; 2 is listed. 1 never stands beside a listed one.
    W = sparse.csr_array(np.array([[0.4, 0.0, 0.6], [0.5, 0.5, 0.0]]))
    status = np.full(3, VERIFIED, "<U10")
    listed = np.array([False, False, True])
    found, reasons = only_private(status, ["", "", ""], W, listed, 1)
    assert found.tolist() == [VERIFIED, AMBIGUOUS, VERIFIED]
    assert "public" in reasons[1]
    assert only_private(status, ["", "", ""], W, listed, 0)[0].tolist() == [VERIFIED] * 3
