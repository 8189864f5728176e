"""`lem:construct` as printed, the second family it overlooks, and what follows (docs/paper_map.md,
8, 11, 13)."""

from itertools import combinations

import numpy as np
import pytest

import unveil
from unveil.paper.floral import find_floral_submatrix, read_floral
from unveil.records import Overlaps


def matrix(sets):
    return np.array([[len(set(a) & set(b)) for b in sets] for a in sets])


def subsets(k):
    return list(combinations(range(k + 2), k))


def sunflower(k):
    core = tuple(range(k + 2, 2 * k))
    return [core + pair for pair in combinations(range(k + 2), 2)]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_both_families_are_floral(k):
    assert unveil.is_floral(matrix(subsets(k)))
    assert unveil.is_floral(matrix(sunflower(k)))
    assert len({i for s in sunflower(k) for i in s}) == 2 * k


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("public", [False, True])
def test_a_sunflower_solves_the_printed_sign_system_with_wrong_vectors_at_every_pixel(k, public):
    """Inside the floral nothing shows it, public part or not: the signed sums are reproduced."""
    rng = np.random.default_rng(k)
    x = rng.standard_normal((2 * k, 50))
    sets = sunflower(k)
    c = rng.standard_normal((len(sets), 50)) if public else 0.0
    y = np.abs(np.array([x[list(s)].sum(axis=0) for s in sets]) + c)
    floral = find_floral_submatrix(Overlaps.from_array(matrix(sets), k))
    wrong = x.sum(axis=0) / k - x[: k + 2]
    # Name i of the subsets is the petal that is missing: row C ∪ {a, b} is named by the complement
    # of {a, b}.
    A = np.array([[i not in s for i in range(k + 2)] for s in sets], dtype=float)
    np.testing.assert_allclose(np.abs(A @ wrong + c), y, atol=1e-9)
    assert len(floral.rows) == len(sets)
    assert np.abs(np.abs(wrong) - np.abs(x[: k + 2])).max() > 0.5


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("family", [subsets, sunflower])
def test_one_more_encoding_tells_the_families_apart(k, family):
    one_shared = (0, *range(100, 100 + k - 1))
    M = matrix([*family(k), one_shared])
    reading = read_floral(
        Overlaps.from_array(M, k), find_floral_submatrix(Overlaps.from_array(M, k))
    )
    if k == 2:
        # For k = 2 the families are two labellings of one floral: either may be the one found.
        assert reading.subsets + reading.sunflower == 1
    else:
        assert (reading.subsets, reading.sunflower) == ((1, 0) if family is subsets else (0, 1))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_n_equal_to_2k_is_undecidable(k):
    """All subsets complemented and x' = Σx/k − x: an orthogonal map that leaves every encoding as
    it is."""
    n = 2 * k
    Q = np.ones((n, n)) / k - np.eye(n)
    np.testing.assert_allclose(Q @ Q.T, np.eye(n), atol=1e-12)
    x = np.random.default_rng(k).standard_normal((n, 30))
    other = Q @ x
    for s in list(combinations(range(n), k))[:: max(1, k**2)]:
        complement = [i for i in range(n) if i not in s]
        np.testing.assert_allclose(x[list(s)].sum(axis=0), other[complement].sum(axis=0), atol=1e-9)


def test_at_n_equal_to_2k_the_attack_says_ambiguous():
    sim = unveil.simulate(unveil.Scheme(3), 6, m=80, d=8192, rng=0)
    recovery = unveil.learn_private_image(sim.encodings)
    assert len(recovery) == 5
    assert set(recovery.status.tolist()) == {"ambiguous"}
    assert "2·k_private" in recovery.reasons[0]
