"""Cosines in two bytes: against the matrix itself, over more than one tile, whatever the threads."""

import numpy as np
import pytest
from scipy import sparse

from unveil.gram.cosines import ROWS, UNIT, Alike
from unveil.gram.sparse_rows import COLUMNS, gather_rows, mix_rows, there_and_back
from unveil.parallel import using


def gram_of(m, seed=0):
    Z = np.random.default_rng(seed).standard_normal((m, 40))
    return (Z @ Z.T).astype(np.float32)


@pytest.mark.parametrize("m", [1, 30, ROWS + 7])
def test_the_matrix_comes_back_but_for_rounding(m):
    gram = gram_of(m)
    found = {}
    for workers in (1, 2):
        with using(workers=workers):
            found[workers] = Alike.of(gram)
    alike = found[1]
    np.testing.assert_array_equal(alike.cosines, found[2].cosines)
    np.testing.assert_array_equal(alike.cosines, alike.cosines.T)
    assert (np.diag(alike.cosines) == UNIT).all()
    rows, columns = np.arange(m)[::2], np.arange(m)[::-1]
    most = np.diag(gram).max() / UNIT
    np.testing.assert_allclose(alike.tile(rows, columns), gram[np.ix_(rows, columns)], atol=most)
    A = np.random.default_rng(1).standard_normal((m, 3)) * (np.arange(m)[:, None] % 3 == 0)
    np.testing.assert_allclose(alike.times(A), gram @ A, atol=most * np.sqrt(m) * 3)


def test_an_encoding_of_nothing_is_like_no_other():
    gram = gram_of(5)
    gram[2] = gram[:, 2] = 0
    alike = Alike.of(gram)
    assert (alike.cosines[2, [0, 1, 3, 4]] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_sparse_products_are_those_of_the_whole_matrix(dtype):
    rng = np.random.default_rng(0)
    A = sparse.csr_array(rng.random((50, 6)) * (rng.random((50, 6)) > 0.6)).astype(np.float32)
    X = (100 * rng.standard_normal((50, COLUMNS + 3))).astype(dtype)
    np.testing.assert_allclose(gather_rows(A, X), A.toarray().T @ X, rtol=1e-4, atol=1e-2)
    images = rng.standard_normal((6, 20)).astype(np.float32)
    out = np.empty((10, 20), np.float32)
    mix_rows(A, slice(40, 60), images, out)
    np.testing.assert_allclose(out, A.toarray()[40:] @ images, rtol=1e-4, atol=1e-5)
    scale = rng.standard_normal((50, 20)).astype(np.float32)
    expected = A.toarray().T @ (scale * (A.toarray() @ images))
    np.testing.assert_allclose(there_and_back(A, scale, images), expected, rtol=1e-4, atol=1e-4)
