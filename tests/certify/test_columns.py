"""Columns of zeros and ones, against trying all of them."""

from itertools import combinations, product

import numpy as np

from unveil.certify.columns import candidates


def design(n, m, k, seed):
    rows = np.array(list(combinations(range(n), k)))
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), m, replace=False))]


def dense(members, n):
    W = np.zeros((len(members), n))
    np.put_along_axis(W, members, 1, axis=1)
    return W


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
