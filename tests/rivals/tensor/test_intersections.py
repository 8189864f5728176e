"""What three encodings share: against the tensor of the true subsets, and a plain twin of the
kernel."""

from math import comb

import numpy as np
import pytest

import unveil
from unveil.encode import draw_selection, selection_matrix
from unveil.rivals.tensor.intersections import avoids, bytes_per_pair, contractions, log_cells


def incidence(k, n, m, seed):
    rng = np.random.default_rng(seed)
    return (
        selection_matrix(draw_selection(unveil.Scheme(k), n, 0, m, rng, rng).private, n)
        .toarray()
        .astype(int)
    )


def overlaps(W):
    return (W @ W.T).astype(np.int8)


def brute_force(W):
    return np.einsum("ai,bi,ci->abc", W, W, W)


def twin(M, k, n):
    """The tensor entry by entry, by counting cells one encoding at a time."""
    m, table = len(M), log_cells(n, k)
    place = {
        (0, 0, 0): 0,
        (1, 0, 0): 1,
        (0, 1, 0): 2,
        (0, 0, 1): 3,
        (1, 1, 0): 4,
        (1, 0, 1): 5,
        (0, 1, 1): 6,
        (1, 1, 1): 7,
    }
    T = np.zeros((m, m, m), int)
    for a in range(m):
        for b in range(m):
            for c in range(m):
                ab, ac, bc = int(M[a, b]), int(M[a, c]), int(M[b, c])
                low, high = max(0, ab + ac - k, ab + bc - k, ac + bc - k), min(ab, ac, bc)
                others = [
                    place[tuple((M[d, [a, b, c]] > 0).astype(int))]
                    for d in range(m)
                    if d not in (a, b, c)
                ]
                scores = [table[ab, ac, bc, t, others].sum() for t in range(low, high + 1)]
                T[a, b, c] = low + int(np.argmax(scores))
    return T


@pytest.mark.parametrize(("k", "n", "m"), [(2, 12, 60), (3, 25, 150), (4, 40, 350)])
def test_the_tensor_is_that_of_the_true_subsets(k, n, m):
    W = incidence(k, n, m, seed=k)
    some = [0, m // 2, m - 1]
    found = contractions(overlaps(W), k, n, np.eye(m)[some])
    np.testing.assert_array_equal(found, [(W * W[c]) @ W.T for c in some])


def test_few_encodings_leave_few_entries_wrong():
    W = incidence(3, 25, 50, seed=1)
    wrong = contractions(overlaps(W), 3, 25, np.eye(50)) != brute_force(W)
    assert 0 < wrong.mean() < 0.02


@pytest.mark.parametrize(("k", "n"), [(2, 8), (3, 9)])
def test_the_kernel_does_what_its_plain_twin_does(k, n):
    """With so few encodings many entries are wrong, and they must be the same ones."""
    M = overlaps(incidence(k, n, 15, seed=3))
    np.testing.assert_allclose(
        contractions(M, k, n, np.eye(15)), np.moveaxis(twin(M, k, n), 2, 0), atol=1e-12
    )


def test_a_contraction_is_the_sum_of_slices():
    W = incidence(2, 10, 40, seed=0)
    v = np.random.default_rng(1).standard_normal((2, 40))
    np.testing.assert_allclose(
        contractions(overlaps(W), 2, 10, v), np.einsum("abc,vc->vab", brute_force(W), v), atol=1e-10
    )


def test_copies_of_an_encoding_share_all_it_has():
    W = np.repeat(incidence(2, 12, 30, seed=2), 2, axis=0)
    np.testing.assert_array_equal(
        contractions(overlaps(W), 2, 12, np.eye(60)[[7]])[0], brute_force(W)[:, :, 7]
    )


@pytest.mark.parametrize(("n", "k"), [(9, 2), (11, 3), (30, 5)])
def test_probabilities_of_the_cells_are_those_of_counting(n, k):
    sizes = np.arange(n - k + 1)
    np.testing.assert_allclose(
        avoids(n, k, sizes.astype(float)), [comb(n - s, k) / comb(n, k) for s in sizes]
    )
    cells = np.exp(log_cells(n, k))
    assert cells.shape == (k + 1,) * 4 + (8,)
    np.testing.assert_allclose(cells[1, 1, 1, 1].sum(), 1, atol=1e-12)
    rng = np.random.default_rng(0)
    S = (
        np.array([0, *range(1, k)]),
        np.array([0, *range(k, 2 * k - 1)]),
        np.array([0, *range(2 * k - 1, 3 * k - 2)]),
    )
    if 3 * k - 2 <= n:  # three sets with one element in common and nothing else
        d = np.argsort(rng.random((200_000, n)), axis=1)[:, :k]
        meets = [np.isin(d, s).any(axis=1) for s in S]
        # 5 sigma of 200,000 draws, and what SLIP adds
        np.testing.assert_allclose(
            np.mean(meets[0] & meets[1] & meets[2]), cells[1, 1, 1, 1, 7], atol=0.007
        )
        np.testing.assert_allclose(
            np.mean(~(meets[0] | meets[1] | meets[2])), cells[1, 1, 1, 1, 0], atol=0.007
        )


def test_memory_is_counted_and_progress_told():
    told = []
    M = overlaps(incidence(2, 8, 12, seed=0))
    out = contractions(M, 2, 8, np.eye(12)[:3], progress=lambda *step: told.append(step))
    assert told[-1] == ("intersection tensor", 12, 12)
    assert bytes_per_pair(3) >= 1 + 8 + out.nbytes // 12**2
