"""Vectors that could have taken in a public vector which is listed wrongly."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover, score
from unveil.certify.wrong_list import taking_in


def design(seed, n=8, rows=60, k=3, n_public=5):
    rng = np.random.default_rng(seed)
    members = np.array([rng.choice(n, k, replace=False) for _ in range(rows)])
    names = np.array([rng.choice(n_public, 2, replace=False) for _ in range(rows)])
    return members, names


def kept(members, names, h, absorbing):
    """Rows that are explained if h is listed wrongly and these vectors have taken it in."""
    # Rows with two of them would hold it twice.
    return (names == h).any(axis=1) == np.isin(members, absorbing).sum(axis=1)


@pytest.mark.parametrize("absorbing", [[3], [3, 6]])
def test_vectors_that_took_it_in_are_found_and_no_others(absorbing):
    members, names = design(0)
    good = kept(members, names, 2, absorbing)
    found = taking_in(members[good], 8, names[good], names[~good])
    assert np.flatnonzero(found).tolist() == absorbing


def test_rows_left_over_at_random_speak_against_nobody():
    for seed in range(20):
        members, names = design(seed)
        good = np.random.default_rng(seed).random(len(members)) < 0.8
        assert not taking_in(members[good], 8, names[good], names[~good]).any()


def test_a_public_vector_in_every_row_is_no_evidence():
    members, names = design(1)
    names[:, 0] = 7
    good = np.arange(len(members)) < 50
    assert not taking_in(members[good], 8, names[good], names[~good]).any()
    assert not taking_in(members, 8, names, names[:0]).any()


def test_a_list_with_vectors_of_the_wrong_size_verifies_no_wrong_vector():
    """Of 120 encodings 32 of 44 with public vector 0 are left over, and the other twelve are those
    of one private vector, which had taken it in: it came back as verified."""
    rng = np.random.default_rng(5)
    X, P = rng.standard_normal((12, 400)), rng.standard_normal((4, 400))
    scheme = Scheme(3, 2, "paper")
    members, names = design(5, n=12, rows=120, n_public=4)
    # Vector 0 meets public vector 0 in every encoding that can be explained.
    first = (members == 0).any(axis=1)
    names[first, 0], names[first, 1] = 0, rng.integers(1, 4, int(first.sum()))
    wrong = P.copy()
    wrong[0] *= 2
    Y = np.abs(
        scheme.private_weight * X[members].sum(axis=1) + scheme.public_weight * P[names].sum(axis=1)
    ).astype(np.float32)
    recovery = recover(Encodings(Y, scheme, 1.0), wrong.astype(np.float32), attack="tensor", rng=0)
    assert score(recovery, X).wrong == 0
