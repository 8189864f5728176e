"""Compiled products of sparse matrices, against NumPy's own."""

import numpy as np
import pytest
from scipy import sparse

from unveil.gram.sparse_rows import COLUMNS, gather_rows, mix_rows, there_and_back
from unveil.parallel import using


@pytest.fixture
def A():
    rng = np.random.default_rng(0)
    dense = rng.random((30, 7)) * (rng.random((30, 7)) < 0.3)
    dense[3] = 0  # nobody is in it
    return sparse.csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("d", [1, 5, COLUMNS + 3])
def test_rows_are_gathered_whatever_their_length_and_by_whom(A, d):
    X = np.random.default_rng(1).standard_normal((30, d)).astype(np.float32)
    found = []
    for workers in (1, 2):
        with using(workers=workers):
            found.append(gather_rows(A, X))
    np.testing.assert_allclose(found[0], A.toarray().T @ X, rtol=1e-4, atol=1e-5)
    assert found[0].tobytes() == found[1].tobytes()


def test_whole_numbers_are_gathered_too(A):
    X = np.random.default_rng(1).integers(-9, 9, (30, 4)).astype(np.int16)
    np.testing.assert_allclose(gather_rows(A, X), A.toarray().T @ X, rtol=1e-4, atol=1e-5)


def test_some_rows_are_mixed_in_place(A):
    X = np.random.default_rng(2).standard_normal((7, 11)).astype(np.float32)
    out = np.full((10, 11), np.nan, np.float32)
    mix_rows(A, slice(2, 12), X, out)
    np.testing.assert_allclose(out, A.toarray()[2:12] @ X, rtol=1e-4, atol=1e-5)


def test_there_and_back_is_both_products(A):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((7, 6)).astype(np.float32)
    scale = rng.random((30, 6)).astype(np.float32)
    dense = A.toarray()
    np.testing.assert_allclose(
        there_and_back(A, scale, X), dense.T @ (scale * (dense @ X)), rtol=1e-4, atol=1e-5
    )
