"""Each algorithm as printed against the same at full speed, and the printed system end to end."""

from itertools import combinations

import numpy as np
import pytest

import unveil
from unveil import Overlaps, Scheme, score, simulate
from unveil.paper.floral import find_floral_submatrix
from unveil.paper.learn_public import printed_support
from unveil.paper.private_image import printed_signs, solve_sign_system


def true_overlaps(sim):
    W = np.zeros((sim.encodings.m, len(sim.private)), int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    return W @ W.T


def test_learn_public_printed_and_fast_find_the_same_supports():
    sim = simulate(Scheme(2, 2), 20, n_public=30, m=6, d=5000, rng=0)
    printed = unveil.learn_public(sim.encodings, sim.public, method="printed")
    fast = unveil.learn_public(sim.encodings, sim.public, method="fast")
    assert (printed.method, fast.method) == ("sdp", "folded-em")
    np.testing.assert_array_equal(printed.indices, fast.indices)
    one, _ = printed_support(sim.encodings.magnitudes()[0], sim.public, 2)
    np.testing.assert_array_equal(one, fast.indices[0])


@pytest.mark.parametrize(
    ("scheme", "d"), [(Scheme(2), 12_000), (Scheme(2, 2), 60_000), (Scheme(2, 2, "paper"), 60_000)]
)
def test_gram_extract_printed_and_fast_agree_where_pixels_suffice(scheme, d):
    sim = simulate(scheme, 10, n_public=12 if scheme.k_public else 0, m=30, d=d, rng=1)
    supports = None
    if scheme.k_public:
        supports = unveil.Supports(sim.selection.public, np.ones(30), "known")
    for method in ("printed", "fast"):
        found = unveil.gram_extract(sim.encodings, sim.public, supports=supports, method=method)
        np.testing.assert_array_equal(found.toarray(), true_overlaps(sim))


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_both_floral_searches_find_one_or_none(k):
    rng = np.random.default_rng(k)
    whole = [set(s) for s in combinations(range(k + 2), k)]
    extra = [set(rng.choice(k + 5, k, replace=False).tolist()) for _ in range(12)]
    sets = whole + [s for s in extra if s not in whole]
    rng.shuffle(sets)
    for some in (sets, [s for s in sets if s != whole[0]]):
        M = np.array([[len(a & b) for b in some] for a in some])
        printed, fast = (
            find_floral_submatrix(Overlaps.from_array(M, k), method=how)
            for how in ("printed", "fast")
        )
        # Both check every pair, so that a floral is one; both find one where there is one.
        assert (printed is None) == (fast is None)
        for floral in (f for f in (printed, fast) if f is not None):
            A = floral.incidence
            np.testing.assert_array_equal(A @ A.T, M[np.ix_(floral.rows, floral.rows)])


@pytest.mark.parametrize("public", [False, True])
def test_all_sign_patterns_give_what_a_few_do(public):
    rng = np.random.default_rng(3)
    A = np.array([[i in s for i in range(4)] for s in combinations(range(4), 2)], dtype=np.int64)
    x, c = rng.standard_normal((4, 40)), rng.standard_normal((6, 40)) if public else None
    y = np.abs(0.7 * A @ x + (0 if c is None else c)).astype(np.float32)
    fast = solve_sign_system(y, A, 0.7, c)
    found = printed_signs(y.astype(float), 0.7 * A, c)
    turn = 1 if public else np.sign((found * fast.values).sum(axis=0))
    np.testing.assert_allclose(turn * found, fast.values, atol=1e-5)


def test_the_printed_system_end_to_end():
    """SDP, printed rounding, Algorithm 3 line by line, all 2⁶ sign patterns."""
    sim = simulate(Scheme(2, 2), 6, n_public=12, m=40, d=30_000, rng=2)
    recovery = unveil.learn_private_image(sim.encodings, sim.public, method="printed")
    assert recovery.evidence["method"] == "printed"
    assert len(recovery) == 4
    result = score(recovery, sim.private, tolerance=1e-3)
    assert result.wrong == 0
    # As printed, the labels of k = 2 are right half of the time (erratum 8); then all is exact.
    if recovery.verified.all():
        assert result.exact == 4
