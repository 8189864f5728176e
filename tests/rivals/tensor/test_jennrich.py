"""Jennrich's algorithm on tensors with known columns, with wrong entries, and against alternating
least squares."""

import numpy as np
import pytest

from unveil.rivals.tensor.jennrich import jennrich, jointly_diagonal


def contracted(W, count, rng, noise=0.0):
    v = rng.standard_normal((count, len(W)))
    A = np.einsum("ai,bi,vi->vab", W, W, v @ W)
    E = noise * rng.standard_normal(A.shape)
    return A + E + E.transpose(0, 2, 1)


def decompose(W, A):
    values, vectors = np.linalg.eigh(W @ W.T)
    r = W.shape[1]
    return jennrich(values[-r:], vectors[:, -r:], A)


def same_columns(found, W):
    """The largest distance of a true column to the nearest found one."""
    return np.abs(found[:, :, None] - W[:, None, :]).max(axis=0).min(axis=0).max()


def alternating_least_squares(T, r, rng, steps=300):
    """The textbook's, for a symmetric tensor: three factors, each in turn."""
    factors = [rng.standard_normal((len(T), r)) for _ in range(3)]
    for _ in range(steps):
        for mode in range(3):
            x, y = (factors[other] for other in range(3) if other != mode)
            products = np.einsum("ir,jr->ijr", x, y).reshape(-1, r)
            unfolded = np.moveaxis(T, mode, 0).reshape(len(T), -1)
            factors[mode] = np.linalg.lstsq(products, unfolded.T, rcond=None)[0].T
    return factors


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("kind", ["boolean", "positive"])
def test_known_columns_come_back(kind, count):
    rng = np.random.default_rng(count)
    W = (rng.random((60, 15)) < 0.2).astype(float) if kind == "boolean" else rng.random((40, 15))
    assert same_columns(decompose(W, contracted(W, count, rng)), W) < 1e-6


def test_several_contractions_bear_what_one_does_not():
    rng = np.random.default_rng(5)
    W = (rng.random((150, 40)) < 0.1).astype(float)
    errors = [
        same_columns(decompose(W, contracted(W, count, np.random.default_rng(6), noise=0.05)), W)
        for count in (1, 8)
    ]
    assert errors[1] < 0.3
    assert errors[0] > 2 * errors[1]


def test_the_result_is_that_of_alternating_least_squares():
    rng = np.random.default_rng(2)
    W = rng.random((12, 4)) + np.eye(12, 4)
    factors = alternating_least_squares(np.einsum("ai,bi,ci->abc", W, W, W), 4, rng)
    found = decompose(W, contracted(W, 3, rng))
    for factor in factors:
        unit, theirs = (
            found / np.linalg.norm(found, axis=0),
            factor / np.linalg.norm(factor, axis=0),
        )
        np.testing.assert_allclose(np.abs(unit.T @ theirs).max(axis=1), 1, atol=1e-4)


def test_dependent_columns_do_not_come_back():
    """Four columns with one relation: no orthogonal basis of their span diagonalises, and nothing
    pretends to."""
    rng = np.random.default_rng(0)
    W = rng.random((20, 4))
    W[:, 3] = W[:, 0] + W[:, 1] - W[:, 2]
    values, vectors = np.linalg.eigh(W @ W.T)
    assert same_columns(jennrich(values[-3:], vectors[:, -3:], contracted(W, 4, rng)), W) > 0.05


def test_a_joint_diagonaliser_is_orthogonal_and_best():
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    A = Q @ (rng.standard_normal((6, 20, 1)) * np.eye(20)) @ Q.T
    E = 0.02 * rng.standard_normal(A.shape)
    A += E + E.transpose(0, 2, 1)
    found = jointly_diagonal(A)
    np.testing.assert_allclose(found.T @ found, np.eye(20), atol=1e-10)

    def off(Q):
        B = Q.T @ A @ Q
        return (B**2).sum() - (np.einsum("vii->vi", B) ** 2).sum()

    assert off(found) <= min(off(Q), off(np.linalg.eigh(A[0])[1]))
    for p, q in [(0, 1), (3, 17), (8, 9)]:  # no rotation of a plane improves it
        for angle in (1e-3, -1e-3):
            turn = np.eye(20)
            turn[[p, q], [p, q]], turn[p, q], turn[q, p] = (
                np.cos(angle),
                np.sin(angle),
                -np.sin(angle),
            )
            assert off(found @ turn) >= off(found)
