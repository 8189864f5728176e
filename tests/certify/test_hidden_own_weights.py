"""Signs hidden and weights of their own: what is proved, and each condition failing on purpose."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.certify.hidden_own_weights import _connected, certify_hidden_own_weights
from unveil.solve.simplex import Corners


def corners(members, n, d=60, seed=0):
    rng = np.random.default_rng(seed)
    weights = np.abs(rng.standard_normal(members.shape)) + 0.02
    weights /= weights.sum(axis=1, keepdims=True)
    values = rng.standard_normal((n, d))
    return Corners(values, members, weights, np.ones(len(members), bool), 1e-7, True)


def subsets(n, m, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, k, replace=False) for _ in range(m)])


@pytest.mark.parametrize("k", [3, 4])
def test_an_honest_solution_is_proved(k):
    known, why = certify_hidden_own_weights(corners(subsets(15, 200, k), 15))
    assert known.all()
    assert why == ""


def test_as_many_pixels_as_vectors_prove_nothing():
    known, why = certify_hidden_own_weights(corners(subsets(15, 200), 15, d=15))
    assert not known.any()
    assert "too few to rule out other signs" in why


@pytest.mark.parametrize("what", ["values", "weights"])
def test_levels_prove_nothing(what):
    found = corners(subsets(15, 200), 15)
    if what == "values":
        found = replace(found, values=np.rint(4 * found.values) / 4)
    else:
        # Equal weights, found to four digits.
        near = 1e-4 * np.random.default_rng(0).random(found.weights.shape)
        found = replace(found, weights=1 / 3 + near - near.mean(axis=1, keepdims=True))
    known, why = certify_hidden_own_weights(found)
    assert not known.any()
    assert "levels" in why


def test_parts_that_share_nothing_have_signs_of_their_own():
    members = np.vstack([subsets(15, 200), subsets(15, 200, seed=1) + 15])
    found = corners(members, 30)
    known, why = certify_hidden_own_weights(found)
    assert not known.any()
    assert "signs are their own" in why
    # The doubt is not idle: half of the pixels turned in one part only is a reading as well.
    other = found.values.copy()
    other[15:, :30] *= -1
    assert np.allclose(np.abs(found.matrix @ other), np.abs(found.matrix @ found.values))


def test_connected_is_that_no_two_parts_have_ranks_that_add_up():
    rng = np.random.default_rng(0)
    for m, n in ((5, 3), (6, 4)):
        for _ in range(30):
            W = rng.random((m, n)) * (rng.random((m, n)) < 0.5)
            if np.linalg.matrix_rank(W) < n:
                continue
            split = any(
                np.linalg.matrix_rank(W[part]) + np.linalg.matrix_rank(W[~part]) == n
                for code in range(1, 2**m - 1)
                for part in [np.array([code >> i & 1 for i in range(m)], bool)]
            )
            assert _connected(W) == (not split)
