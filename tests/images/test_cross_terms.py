"""Starting images from squares: eigenvectors by numpy of the matrix written out, and true images
where there is no noise."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.cross_terms import BLOCK, RIDGE, cross_terms
from unveil.parallel import using


def problem(n=6, m=400, d=30, k=2, public=0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.9, 0.9, (n, d))
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    weights = rng.dirichlet(np.full(k + public, 3.0), m)
    L = np.zeros((m, n))
    np.put_along_axis(L, members, weights[:, :k], axis=1)
    z = L @ x
    for column in weights.T[k:]:
        z += column[:, None] * rng.uniform(-0.9, 0.9, (m, d))
    return np.abs(z).astype(np.float32), L, x


def run(Y, L, seed=0, **options):
    return cross_terms(
        Y, sparse.csr_array(L), sparse.csr_array(L**2), np.random.default_rng(seed), **options
    )


def plain(Y, L, public):
    """Every pixel on its own: least squares for the magnitudes, numpy's eigenvector of the
    residual's cross terms."""
    m, n = L.shape
    total = L.sum(axis=1)
    Q = L**2
    if public:
        Q = np.column_stack(
            [
                Q,
                np.ones(m),
                np.clip(1 - total, 0.05, 0.75) ** 2,
                (total**2 - (L**2).sum(axis=1)) / 2,
            ]
        )
    ridge = np.full(Q.shape[1], 1e-8)
    ridge[:n] = RIDGE * np.trace((L**2).T @ L**2) / n
    out = np.empty((n, Y.shape[1]))
    for p, y in enumerate(Y.T.astype(np.float64)):
        coefficients = np.linalg.solve(Q.T @ Q + np.diag(ridge), Q.T @ y**2)
        residual = y**2 - Q @ coefficients
        M = (L * residual[:, None]).T @ L
        np.fill_diagonal(M, 0)
        magnitude = np.clip(coefficients[:n], 0.001, 1)
        v = np.linalg.eigh(M)[1][:, -1] * np.sqrt(magnitude.sum())
        out[:, p] = 0.5 * np.sign(v) * np.sqrt(magnitude) + 0.5 * v
    return out


def gaps(Y, L):
    """How far the two largest eigenvalues are apart, of the largest in magnitude: power iteration
    needs some."""
    residual = Y.astype(np.float64) ** 2
    residual -= L**2 @ np.linalg.lstsq(L**2, residual, rcond=None)[0]
    out = []
    for r in residual.T:
        M = (L * r[:, None]).T @ L
        np.fill_diagonal(M, 0)
        values = np.linalg.eigvalsh(M)
        out.append((values[-1] - values[-2]) / np.abs(values).max())
    return np.array(out)


def up_to_a_sign(found, truth):
    return found * np.where((found * truth).sum(axis=0) < 0, -1, 1)


@pytest.mark.parametrize("public", [0, 1])
def test_values_are_those_of_the_matrix_written_out(public):
    Y, L, _ = problem(public=public)
    expected = plain(Y, L, bool(public))
    found = up_to_a_sign(run(Y, L, public=bool(public)), expected)
    apart = gaps(Y, L) > 0.3
    assert apart.mean() > 0.6
    close = np.abs(found - expected).max(axis=0) < 0.02
    assert close[apart].mean() > 0.95


def test_pixels_of_private_images_alone_come_back_up_to_their_sign():
    Y, L, x = problem()
    found = up_to_a_sign(run(Y, L, public=False), x)
    assert np.median(np.abs(found - x).max(axis=0)) < 0.2
    assert np.corrcoef(found.ravel(), x.ravel())[0, 1] > 0.9


def test_with_public_images_the_values_are_close():
    Y, L, x = problem(public=2, m=2000)
    found = up_to_a_sign(run(Y, L), x)
    assert np.corrcoef(found.ravel(), x.ravel())[0, 1] > 0.8


def test_order_of_encodings_and_pixels_only_moves_the_result():
    Y, L, _ = problem()
    one = run(Y, L, public=False)
    order = np.random.default_rng(1).permutation(len(Y))
    np.testing.assert_allclose(
        np.abs(run(Y[order], L[order], public=False)), np.abs(one), atol=1e-2
    )
    np.testing.assert_allclose(
        np.abs(run(np.ascontiguousarray(Y[:, ::-1]), L, public=False)),
        np.abs(one[:, ::-1]),
        atol=1e-2,
    )


def test_blocks_and_workers_change_nothing():
    Y, L, _ = problem(d=BLOCK + 40, m=150)
    with using(workers=1):
        one = run(Y, L)
    with using(workers=2):
        np.testing.assert_array_equal(run(Y, L), one)
    np.testing.assert_allclose(
        run(np.ascontiguousarray(Y[:, BLOCK:]), L), one[:, BLOCK:], atol=1e-3
    )


def test_a_pixel_that_is_always_black_stays_finite():
    Y, L, _ = problem()
    Y[:, 3] = 0
    found = run(Y, L)
    assert np.isfinite(found).all()
    assert np.abs(found[:, 3]).max() < 0.05


def test_of_two_images_the_largest_eigenvalue_wins_against_its_negative():
    """[[0, c], [c, 0]] has eigenvalues ±c: plain power iteration would not settle."""
    share = np.random.default_rng(1).uniform(0.2, 0.8, (100, 1))
    L = np.hstack([share, 1 - share])
    x = np.random.default_rng(2).uniform(-0.9, 0.9, (2, 30))
    Y = np.abs(L @ x).astype(np.float32)
    expected = plain(Y, L, False)
    np.testing.assert_allclose(up_to_a_sign(run(Y, L, public=False), expected), expected, atol=1e-3)
