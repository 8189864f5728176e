"""Diagonal thresholding: a plain twin for one encoding, and blocks that do not matter."""

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.records import Scheme
from unveil.supports.paper.diagonal import KEPT, diagonal_supports

PLENTY = 1 << 30


def plain(y, public, k):
    """The whole method for one encoding, in float64 and without blocks."""
    y2, P = y.astype(np.float64) ** 2, public.astype(np.float64)
    score = [float((y2 * p**2).sum()) for p in P]
    kept = sorted(range(len(P)), key=lambda j: -score[j])[: max(KEPT, k)]
    z = y2 / y2.mean() - 1
    M = np.array([[(z * P[a] * P[b]).mean() - (a == b) * z.mean() for b in kept] for a in kept])
    v = np.abs(np.linalg.eigh(M)[1][:, -1])
    order = np.argsort(-v)
    margin = 1 - v[order[k]] / v[order[k - 1]] if len(kept) > k else 1.0
    return sorted(kept[a] for a in order[:k]), margin


# At 150 pixels many answers are wrong: the twin must be wrong in the same way.
@pytest.mark.parametrize(
    ("n_public", "k_public", "d"),
    [(60, 2, 150), (60, 3, 2000), (200, 4, 800), (26, 1, 150), (40, 30, 200)],
)
def test_the_whole_method_equals_the_plain_twin(n_public, k_public, d):
    sim = simulate(Scheme(2, k_public), 10, n_public=n_public, m=15, d=d, rng=n_public)
    indices, margin = diagonal_supports(sim.encodings.values, sim.public, k_public, limit=PLENTY)
    for i, y in enumerate(sim.encodings.values):
        expected, expected_margin = plain(y, sim.public, k_public)
        assert indices[i].tolist() == expected
        assert margin[i] == pytest.approx(expected_margin, abs=1e-3)


@pytest.mark.parametrize("limit", [1, 5_000, 60_000, 1_000_000])
def test_a_tiny_memory_limit_changes_nothing(limit):
    sim = simulate(Scheme(2, 3), 10, n_public=80, m=20, d=300, rng=0)
    expected, expected_margin = diagonal_supports(sim.encodings.values, sim.public, 3, limit=PLENTY)
    indices, margin = diagonal_supports(sim.encodings.values, sim.public, 3, limit=limit)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(margin, expected_margin, atol=1e-4)


@pytest.mark.parametrize("n_public", [2, 3, 10, 24, 25, 26])
def test_any_number_of_public_vectors_will_do(n_public):
    sim = simulate(Scheme(2, 2), 10, n_public=n_public, m=12, d=6000, rng=n_public)
    indices, margin = diagonal_supports(sim.encodings.values, sim.public, 2, limit=PLENTY)
    np.testing.assert_array_equal(indices, sim.selection.public)
    assert ((margin > 0) & (margin <= 1)).all()


def test_supports_are_sorted_and_distinct_even_for_an_encoding_of_zeros():
    sim = simulate(Scheme(2, 3), 10, n_public=40, m=5, d=100, rng=0)
    y = sim.encodings.values.copy()
    y[2] = 0
    indices, margin = diagonal_supports(y, sim.public, 3, limit=PLENTY)
    assert (np.diff(indices, axis=1) > 0).all()
    assert ((margin >= 0) & (margin <= 1)).all()


def test_progress_reaches_the_last_encoding():
    sim = simulate(Scheme(2, 2), 10, n_public=30, m=20, d=100, rng=0)
    seen = []
    diagonal_supports(
        sim.encodings.values, sim.public, 2, limit=20_000, progress=lambda *step: seen.append(step)
    )
    assert len(seen) > 1
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert seen[-1] == ("learn public", 20, 20)
