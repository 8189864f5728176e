"""Codes against their plain twins."""

import numpy as np

from unveil.solve.codes import _pursue, matrix_of, members_of, mixed, weights_of


def test_mixtures_of_few_are_read_exactly():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40))
    chosen = np.array([rng.choice(60, 3, replace=False) for _ in range(80)])
    weights = rng.dirichlet(np.full(3, 5.0), 80)
    Z = mixed(A, chosen, weights)
    assert np.allclose(Z, matrix_of(chosen, weights, 60) @ A)
    members = members_of(Z, A, 3)
    right = (np.sort(members, axis=1) == np.sort(chosen, axis=1)).all(axis=1)
    assert right.mean() > 0.8
    products = (Z @ A[:25].T).astype(np.float32)
    assert (members_of(Z, A, 3, products) == members).all()
    found = weights_of(Z, A, members)
    assert np.abs(mixed(A, members, found) - Z)[right].max() < 1e-6


def test_pursuit_is_that_of_its_plain_twin():
    rng = np.random.default_rng(0)
    A, Z, k = rng.standard_normal((30, 12)), rng.standard_normal((50, 12)), 3
    gram = (A @ A.T).astype(np.float32)
    members = np.empty((50, k), np.int64)
    inner = (Z @ A.T).astype(np.float32)
    _pursue(inner, gram, np.sqrt(np.diag(gram)), members)
    for z, got in zip(Z, members, strict=True):
        taken, rest = [], z
        for _ in range(k):
            agree = A @ rest / np.linalg.norm(A, axis=1)
            agree[taken] = -np.inf
            taken.append(int(agree.argmax()))
            rest = z - A[taken].T @ np.linalg.lstsq(A[taken].T, z, rcond=None)[0]
        assert got.tolist() == taken
