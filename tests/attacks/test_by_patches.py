"""Pictures, too few of their encodings for exact relations: all of them come back, and what is not
proved is not said."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover, score, simulate
from unveil.attacks.by_patches import applies, by_patches, outstanding, typical_overlap
from unveil.parallel import Stopwatch
from unveil.relations.expected import enough_encodings


def pictures(n, side=24, seed=0):
    """Smooth random pictures with 256 levels, as files have them."""
    distance = np.abs(np.subtract.outer(np.arange(side), np.arange(side)))
    root = np.linalg.cholesky(0.95**distance)
    X = np.einsum(
        "ij,njk,lk->nil", root, np.random.default_rng(seed).standard_normal((n, side, side)), root
    )
    return (np.clip(np.rint(32 * X.reshape(n, -1)), -128, 127) / 128).astype(np.float32)


def encoded(k, n, m, seed=0):
    sim = simulate(Scheme(k), private=pictures(n, seed=seed), m=m, rng=seed)
    return Encodings(np.abs(sim.encodings.values), Scheme(k), pixel_rms=None), sim


def test_every_picture_comes_back_by_default_where_relations_are_too_few():
    k, n, m = 4, 30, 300
    assert 2 * m < enough_encodings(n, k)
    encodings, sim = encoded(k, n, m)
    recovery = recover(encodings, rng=0)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (n, 0)
    assert recovery.attack == "full"
    assert recovery.evidence["encodings_explained"] == m
    assert "outstanding_eigenvalues" in recovery.evidence


def test_the_same_seed_gives_the_same_bytes_and_all_pictures():
    encodings, sim = encoded(3, 30, 240)
    one, two = (by_patches(encodings, np.random.SeedSequence(5), Stopwatch()) for _ in range(2))
    assert (score(one, sim.private).exact, score(one, sim.private).wrong) == (30, 0)
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert list(one.status) == list(two.status)


def test_a_wrong_k_verifies_nothing():
    encodings, _ = encoded(3, 30, 240)
    told = Encodings(encodings.values, Scheme(2), pixel_rms=None)
    assert not by_patches(told, np.random.SeedSequence(0), Stopwatch()).verified.any()


def test_pictures_that_nobody_mixed_twice_verify_nothing():
    X = pictures(60, seed=3)
    Y = np.abs(X.reshape(20, 3, -1).sum(axis=1)) / np.float32(np.sqrt(3))
    encodings = Encodings(Y, Scheme(3), pixel_rms=None)
    assert not by_patches(encodings, np.random.SeedSequence(0), Stopwatch()).verified.any()


def test_it_applies_to_pictures_within_the_memory_and_to_nothing_else():
    encodings, _ = encoded(3, 30, 240)
    assert applies(encodings, 1 << 30)
    assert not applies(encodings, 1 << 20)
    assert not applies(simulate(Scheme(3), 30, m=300, d=576, rng=0).encodings, 1 << 30)


def test_what_stands_out_is_counted_and_the_typical_overlap_is_that_of_one_shared_vector():
    rng = np.random.default_rng(0)
    W = np.zeros((300, 30))
    np.put_along_axis(
        W, np.array([rng.choice(30, 3, replace=False) for _ in range(300)]), 1, axis=1
    )
    noise = 0.1 * rng.standard_normal((300, 300))
    S = W @ W.T + (noise + noise.T) / 2
    np.fill_diagonal(S, 0)
    assert 25 <= outstanding(S - S.mean()) <= 31
    assert typical_overlap(S, 3, 30) == pytest.approx(1, abs=0.1)


def test_pictures_under_noise_come_back_with_their_errors_and_none_is_verified():
    encodings, sim = encoded(2, 30, 300)
    size = 0.05 * float(np.sqrt(np.mean(encodings.values**2)))
    noise = size * np.random.default_rng(1).standard_normal(encodings.values.shape)
    noisy = Encodings(
        np.abs(encodings.values + noise).astype(np.float32), Scheme(2), pixel_rms=None
    )
    recovery = by_patches(noisy, np.random.SeedSequence(0), Stopwatch())
    assert not recovery.verified.any()
    assert len(recovery) == 30
    for v in sim.private:
        apart = np.sqrt(np.mean((np.abs(recovery.vectors) - np.abs(v)) ** 2, axis=1)).min()
        assert apart < size
