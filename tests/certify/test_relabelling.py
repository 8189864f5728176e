"""Vectors whose encodings can be read in another way are told from those whose size, or whose
encodings, exclude that."""

from itertools import combinations

import numpy as np
import pytest

from unveil.certify.relabelling import relabelled
from unveil.solve.model import PublicPart

N, N_PUBLIC, D = 12, 20, 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
P = RNG.standard_normal((N_PUBLIC, D)).astype(np.float32)


def subsets(n, k, m, seed=0):
    return (
        np.random.default_rng(seed)
        .permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
        .astype(np.int64)
    )


def instance(k=2, k_public=2, weight=0.8, m=100):
    return subsets(N, k, m), PublicPart(subsets(N_PUBLIC, k_public, m, seed=1), P, weight)


def sums(x, members, public):
    return x[members].sum(axis=1) + public.weight * public.vectors[public.names].sum(
        axis=1, dtype=float
    )


def added(public, names):
    return PublicPart(np.vstack([public.names, names]), public.vectors, public.weight)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_vectors_of_many_encodings_leave_no_doubt(k):
    members, public = instance(k)
    for rms in (1.0, None):
        assert not relabelled(members, X, public, rms).any()
        assert k == 1 or not relabelled(members, X, None, rms).any()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_wrong_public_vector_in_all_encodings_of_one_vector_is_seen(k, known):
    """z = x_q + w·(P_l − P_j) stands for x_q in two encodings that use P_l, which is taken for
    P_j."""
    members, public = instance(k)
    partners = [[3, 4][: k - 1], [5, 6][: k - 1]]
    q = 2 if known else N
    x = np.vstack([X, RNG.standard_normal((1, D))])
    right, true_names = np.array([[*row, q] for row in partners]), np.array([[7, 8], [7, 9]])
    x_z = x[q] + public.weight * (P[7].astype(float) - P[1])
    z = N + 1 if known else N
    wrong, names = np.array([[*row, z] for row in partners]), np.array([[1, 8], [1, 9]])
    values = np.vstack([x, x_z]) if known else np.vstack([X, x_z])
    np.testing.assert_allclose(
        sums(values, wrong, PublicPart(names, P, public.weight)),
        sums(x, right, PublicPart(true_names, P, public.weight)),
    )
    assert np.flatnonzero(
        relabelled(np.vstack([members, wrong]), values, added(public, names), 1.0)
    ).tolist() == [z]


def test_size_excludes_the_other_reading_where_there_are_pixels_enough():
    members, public = instance()
    members, public = np.vstack([members, [[N, 3], [N, 5]]]), added(public, [[1, 8], [1, 9]])
    x = np.vstack([X, RNG.standard_normal((1, D))])
    assert not relabelled(members, x, public, 1.0).any()
    assert np.flatnonzero(relabelled(members, x, public, None)).tolist() == [N]  # of unknown size
    few = PublicPart(public.names, P[:, :12], public.weight)
    assert np.flatnonzero(relabelled(members, x[:, :12], few, 1.0)).tolist() == [N]


def test_a_private_partner_can_be_the_wrong_one_as_well():
    """{z, p, a} and {z, p, b} are {z', q, a} and {z', q, b} with z' = z + p − q."""
    members = np.vstack([subsets(N, 3, 100), [[N, 3, 4], [N, 3, 5]]])
    true = RNG.standard_normal(D)
    for value, doubt in ((true, []), (true + X[6] - X[3], [N])):
        assert (
            np.flatnonzero(relabelled(members, np.vstack([X, value]), None, 1.0)).tolist() == doubt
        )


def test_twins_that_are_always_together_make_no_third_vector():
    """x + x' of all their encodings is read as z + p with z = x + x' − p, for a p that is known
    from elsewhere; no vector that is known takes its place."""
    twins = np.random.default_rng(9).standard_normal((2, D))
    rows = [[N, 3, a] for a in range(N) if a != 3]
    members = np.vstack([subsets(N, 3, 100), rows])
    for value, d, doubt in (
        (twins[0], D, []),
        (twins.sum(axis=0) - X[3], D, [N]),
        (twins[0], 60, [N]),  # so few pixels do not tell either size
    ):
        x = np.vstack([X, value])[:, :d]
        assert np.flatnonzero(relabelled(members, x, None, 1.0)).tolist() == doubt
        assert np.flatnonzero(relabelled(members, x, None, None)).tolist() == [N]


def test_two_encodings_with_their_partners_exchanged():
    """|z + a| and |z + b| are |z' + b| and |z' + a| with z' = −(z + a + b)."""
    members = np.vstack([subsets(N, 2, 100), [[N, 3], [N, 4]]])
    true = RNG.standard_normal(D)
    other = -(true + X[3] + X[4])
    np.testing.assert_allclose(np.abs(other + X[4]), np.abs(true + X[3]))
    for value, doubt in ((true, []), (other, [N])):
        assert (
            np.flatnonzero(relabelled(members, np.vstack([X, value]), None, 1.0)).tolist() == doubt
        )
        assert np.flatnonzero(relabelled(members, np.vstack([X, value]), None, None)).tolist() == [
            N
        ]  # of unknown size
        assert not relabelled(members, np.vstack([X, value]), None, None, kept=True).any()


def test_a_mirror_image_may_need_one_vector_more():
    """{z,a,b}, {z,b,c}, {z,a,c} are {z',c,e}, {z',a,e}, {z',b,e} with z' = −(z + a + b + c + e)."""
    members = np.vstack([subsets(N, 3, 100), [[N, 3, 4], [N, 4, 5], [N, 3, 5]]])
    true = RNG.standard_normal(D)
    other = -(true + X[[3, 4, 5, 8]].sum(axis=0))
    for value, doubt in ((true, []), (other, [N])):
        assert (
            np.flatnonzero(relabelled(members, np.vstack([X, value]), None, 1.0)).tolist() == doubt
        )


def test_a_shorter_vector_is_not_the_true_one_for_that():
    """The public list holds the private vector x, among fainter ones: {x; 1, 2} and {x; 1, 3} are
    {1; 0, 2} and {1; 0, 3}."""
    faint = (0.5 * P).astype(np.float32)
    faint[0] = RNG.standard_normal(D)
    members = np.array([[0], [0]])
    assert relabelled(
        members, faint[1:2].astype(float), PublicPart(np.array([[0, 2], [0, 3]]), faint, 1.0), 1.0
    )[0]
    assert relabelled(
        members, faint[:1].astype(float), PublicPart(np.array([[1, 2], [1, 3]]), faint, 1.0), 1.0
    )[0]


def test_two_exchanges_at_once_are_in_doubt():
    names = np.array([[1, 2, 3], [1, 2, 4]])
    assert relabelled(np.array([[0], [0]]), X[:1], PublicPart(names, P, 1.0), 1.0)[0]


def test_equal_public_vectors_are_no_alternative():
    members, public = instance()
    members, names = (
        np.vstack([members, [[N, 3], [N, 5]]]),
        np.vstack([public.names, [[1, 8], [1, 9]]]),
    )
    x = np.vstack([X, RNG.standard_normal((1, D))])
    assert not relabelled(
        members, x, PublicPart(names, np.vstack([P, P[1]]), public.weight), 1.0
    ).any()
    # Both are all there is: nothing to swap with.
    two = PublicPart(np.ones((len(members), 1), np.int64), np.vstack([P[1], P[1]]), 1.0)
    assert not relabelled(members, x, two, 1.0).any()


@pytest.mark.parametrize("seed", range(40))
def test_swaps_are_all_readings_there_are(seed):
    """Every other choice of partners for the first encoding, carried over or mirrored: is it one
    for the others too?"""
    rng = np.random.default_rng(seed)
    n, n_public, k, k_public, rows = (
        6,
        int(rng.integers(2, 5)),
        int(rng.integers(2, 4)),
        1,
        int(rng.integers(1, 4)),
    )
    private = np.array([rng.choice(np.arange(1, n), k - 1, replace=False) for _ in range(rows)])
    public = rng.integers(0, n_public, (rows, k_public))
    items = np.zeros((rows, n + n_public), int)
    np.put_along_axis(items, private, 1, axis=1)
    np.put_along_axis(items, n + public, 1, axis=1)
    exists = False
    for others in combinations(range(1, n), k - 1):
        for p in range(n_public):
            other = np.zeros(n + n_public, int)
            other[[*others, n + p]] = 1
            change = items[0] - other
            exists |= bool(change.any() and np.isin(items - change, (0, 1)).all())
            exists |= bool(np.isin(items[0] + other - items, (0, 1)).all())
    # All other encodings there can be leave no doubt about the partners.
    rest = [(subset, p) for subset in combinations(range(1, n), k) for p in range(n_public)]
    members = np.vstack(
        [np.column_stack([np.zeros(rows, np.int64), private]), [subset for subset, _ in rest]]
    )
    public = np.vstack([public, [[p] for _, p in rest]])
    found = relabelled(members, X[:n], PublicPart(public, P[:n_public], 1.0), None)
    assert found[0] == exists


@pytest.mark.parametrize("rms", [1.0, None])
def test_two_that_lean_on_each_other_are_in_doubt(rms):
    """z = x + p − q in encodings with q for p, z' = x' − p + q in those with p for q; the encoding
    of both needs neither."""
    members, public = instance()
    pairs = np.array([[N, 3], [N, 4], [N + 1, 5], [N + 1, 6], [N, N + 1]])
    true, wrong = ([[a, 8], [a, 9], [b, 8], [b, 9], [12, 13]] for a, b in ((1, 2), (2, 1)))
    x = np.vstack([X, RNG.standard_normal((2, D))])
    shift = public.weight * (P[1] - P[2].astype(float))
    values = x + np.vstack([np.zeros((N, D)), shift, -shift])
    names, right = (PublicPart(np.array(rows), P, public.weight) for rows in (wrong, true))
    np.testing.assert_allclose(sums(values, pairs, names), sums(x, pairs, right))
    assert np.flatnonzero(
        relabelled(np.vstack([members, pairs]), values, added(public, wrong), rms)
    ).tolist() == [N, N + 1]
    assert not relabelled(np.vstack([members, pairs]), x, added(public, true), 1.0).any()


def test_nothing_at_all_does_no_harm():
    assert not relabelled(np.array([[0, 1], [1, 2], [2, 0]]), np.zeros((4, 5)), None, None)[3]


def test_a_vector_that_has_not_the_size_itself_is_in_doubt():
    # z in two rows {z, a}, {z, b}: −(z + a + b) fits as well. Ours is too short to be believed.
    members = np.vstack([np.array(list(combinations(range(N - 1), 2))), [(N - 1, 0), (N - 1, 1)]])
    x = X.copy()
    x[-1] *= 0.5
    assert relabelled(members, x, None, 1.0)[-1]
    assert not relabelled(members, X, None, 1.0)[-1]


def test_a_size_that_certain_vectors_have_not_proves_nothing():
    members = np.vstack([np.array(list(combinations(range(N - 1), 2))), [(N - 1, 0), (N - 1, 1)]])
    x = X.copy()
    x[5] *= 2
    out = relabelled(members, x, None, 1.0)
    assert out[-1]
    assert not out[:-1].any()
