"""Columns of zeros and ones, against trying all of them."""

from itertools import product

import numpy as np
from tests.certify.test_small import dense, design

from unveil.certify.columns import candidates


def test_candidates_are_all_columns_of_zeros_and_ones():
    for seed in range(10):
        members = design(6, 9 + seed % 6, 2 + seed % 2, seed)
        W = dense(members, 6)
        if np.linalg.matrix_rank(W) < 6:
            continue
        values = (
            np.array(list(product((0, 1), repeat=len(members)))) if len(members) <= 12 else None
        )
        found = candidates(members, 6, 10_000)
        image = np.rint(found @ W.T)
        assert np.abs(found @ W.T - image).max() < 1e-9
        if values is not None:
            t = values @ np.linalg.pinv(W).T
            true = {
                tuple(v)
                for v, w in zip(values.tolist(), t @ W.T, strict=True)
                if np.abs(v - w).max() < 1e-9
            }
            assert {tuple(v) for v in image.astype(int).tolist()} == true
    assert candidates(design(6, 15, 2, 0), 6, 3) is None
