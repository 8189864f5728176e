"""Classes of vectors whose fractions agree, against Smith's idea in its plainest form: kernels
modulo every prime power."""

from itertools import combinations, product

import numpy as np

from unveil.certify.lattice import (
    _determinant,
    _is_prime,
    _merged,
    _minor,
    _primes,
    alike,
    kernel_modulo,
)


def dense(members, n):
    W = np.zeros((len(members), n), int)
    np.put_along_axis(W, members, 1, axis=1)
    return W


def test_kernels_modulo_prime_powers_are_complete():
    for seed, (p, e) in product(range(6), [(2, 1), (2, 2), (3, 1), (2, 3)]):
        W = np.random.default_rng(seed).integers(0, 2, (5, 4))
        q = p**e
        all_of = {t for t in product(range(q), repeat=4) if not (W @ t % q).any()}
        generators = kernel_modulo(W, p, e)
        span = {tuple(generators @ c % q) for c in product(range(q), repeat=generators.shape[1])}
        assert span == all_of


def test_minors_are_determinants():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.integers(0, 2, (6, 6))
        true = round(np.linalg.det(A))
        assert _determinant(A.copy(), 101) == true % 101
        assert _minor(A, 3, rng) == abs(true)
    assert all(_is_prime(p) for p in _primes())
    assert not _is_prime(2**31 - 3)


def test_classes_are_those_of_fractions():
    """t = c/12 for all c: those with W t in integers, entry by entry."""
    grid = np.array(list(product(range(12), repeat=5)))
    rows = np.array(list(combinations(range(5), 3)))
    kinds = set()
    for seed in range(25):
        members = rows[np.sort(np.random.default_rng(seed).choice(10, 7, replace=False))]
        W = dense(members, 5)
        if np.linalg.matrix_rank(W) < 5:
            continue
        t = grid[(grid @ W.T % 12 == 0).all(axis=1)]
        same = (t[:, :, None] == t[:, None, :]).all(axis=0)
        group = alike(members, 5, np.random.default_rng(0))
        assert (group[:, None] == group).tolist() == same.tolist()
        kinds.add(len(np.unique(group)))
        first = _merged(members, 5)
        assert (same | (first[:, None] != first)).all()
    assert kinds >= {1}


def test_six_vectors_met_in_none_or_three_are_a_class_of_their_own():
    rng = np.random.default_rng(0)
    inside = [np.sort(np.r_[rng.choice(6, 3, False), 6 + rng.choice(10, 1)]) for _ in range(60)]
    members = np.unique(inside + [np.sort(6 + rng.choice(10, 4, False)) for _ in range(60)], axis=0)
    group = alike(members, 16, rng)
    assert len(np.unique(group[6:])) == 1
    assert group[6] not in group[:6]


def test_groups_of_more_than_63_bits_are_doubt_and_no_crash():
    """66 blocks of four vectors; every row takes two of one and two of another: the order of the
    group is a power of 2 beyond 2⁶²."""
    rng = np.random.default_rng(66)
    rows = []
    for _ in range(3 * 264):
        a, b = rng.permutation(66)[:2]
        rows.append(np.r_[4 * a + rng.permutation(4)[:2], 4 * b + rng.permutation(4)[:2]])
    group = alike(np.array(rows), 264, np.random.default_rng(0))
    assert len(np.unique(group)) > 66


def test_a_minor_that_needs_more_primes_than_there_are_is_none(monkeypatch):
    monkeypatch.setattr("unveil.certify.lattice._primes", lambda: [2**31 - 1])
    W = np.random.default_rng(0).integers(0, 2, (40, 30))
    assert _minor(W, 3, np.random.default_rng(0)) == 0
