"""Public vectors that may change places."""

import numpy as np

from unveil.certify.public import public_fixed


def rows(seed):
    rng = np.random.default_rng(seed)
    members = np.array([rng.choice(30, 2, replace=False) for _ in range(240)])
    return members, np.array([rng.choice(25, 2, replace=False) for _ in range(240)])


def test_random_places_stay():
    assert public_fixed(*rows(0), np.ones(30, bool)).sum() >= 29


def test_a_public_vector_in_all_rows_of_a_private_one():
    members, public = rows(1)
    mine = (members == 3).any(axis=1)
    public[mine, 0] = 25
    fixed = public_fixed(members, public, np.ones(30, bool))
    assert not fixed[3]
    assert fixed.sum() >= 28


def test_a_public_vector_in_all_rows():
    members, public = rows(2)
    public[:, 0] = 25
    assert not public_fixed(members, public, np.ones(30, bool)).any()
