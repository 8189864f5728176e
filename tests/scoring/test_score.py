"""Exact, wrong, missing: what counts, what does not, and that relative signs do."""

import sys

import numpy as np
import pytest
from scipy import sparse

from unveil import Encodings, Recovery, Scheme, recover, score, simulate
from unveil.checks import InputError, row_blocks

VERIFIED, AMBIGUOUS = "verified", "ambiguous"


def private(n=6, d=50, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def recovery(vectors, status=VERIFIED, signed=False):
    r = len(vectors)
    status = np.array([status] * r if isinstance(status, str) else status, dtype="<U10")
    members = sparse.csr_array((3, r), dtype=bool)
    return Recovery(
        np.asarray(vectors, np.float32), status, signed, members, np.zeros(r), ("",) * r, "test", ""
    )


def counts(scores):
    return scores.exact, scores.wrong, scores.missing


def test_the_truth_itself_is_exact_and_the_rest_is_missing():
    X = private()
    scores = score(recovery(X[[4, 1]]), X)
    assert counts(scores) == (2, 0, 4)
    assert scores.matches.tolist() == scores.nearest.tolist() == [4, 1]
    assert scores.error.tolist() == [0, 0]


def test_one_sign_per_pixel_common_to_all_vectors_is_free():
    X = private()
    coins = np.random.default_rng(1).choice([-1, 1], size=50)
    assert counts(score(recovery(coins * X[:4]), X)) == (4, 0, 2)


def test_with_signs_every_sign_counts():
    X = private()
    assert counts(score(recovery(X[:4], signed=True), X)) == (4, 0, 2)
    flipped = X[:4].copy()
    flipped[:, 7] *= -1
    assert counts(score(recovery(flipped, signed=True), X)) == (0, 4, 6)


def test_one_vector_with_a_pixel_flipped_against_the_others_is_wrong():
    X = private()
    for pixel in range(50):
        flipped = X[:4].copy()
        flipped[2, pixel] *= -1
        scores = score(recovery(flipped), X)
        small = abs(X[2, pixel]) <= 0.005
        assert counts(scores) == ((4, 0, 2) if small else (3, 1, 3))
        if not small:
            assert scores.matches.tolist() == [0, 1, -1, 3]
            assert scores.nearest[2] == 2


def test_magnitudes_alone_are_not_exact():
    X = private()
    assert counts(score(recovery(np.abs(X[:4])), X)) == (0, 4, 6)


def test_a_wrong_vector_is_wrong_and_spoils_no_other():
    X = private()
    stranger = private(1, seed=9)
    scores = score(recovery(np.vstack([X[:3], stranger])), X)
    assert counts(scores) == (3, 1, 3)
    assert scores.matches[3] == -1


def test_a_vector_returned_twice_counts_once_and_is_not_wrong():
    X = private()
    assert counts(score(recovery(X[[2, 2, 2, 5]]), X)) == (2, 0, 4)


@pytest.mark.parametrize("status", ["ambiguous", "unresolved"])
def test_unverified_vectors_are_never_exact_and_never_wrong(status):
    X = private()
    stranger = private(1, seed=9)
    scores = score(recovery(np.vstack([X[:3], stranger]), status), X)
    assert counts(scores) == (0, 0, 6)
    # What they match is still said.
    assert scores.matches.tolist() == [0, 1, 2, -1]


def test_unverified_vectors_do_not_choose_the_signs():
    X = private()
    vectors = np.vstack([X[:2], -X[2:6]])
    status = [VERIFIED] * 2 + [AMBIGUOUS] * 4
    scores = score(recovery(vectors, status), X)
    assert counts(scores) == (2, 0, 4)
    assert scores.matches.tolist() == [0, 1, -1, -1, -1, -1]


def test_a_single_pixel_beyond_the_tolerance_is_wrong():
    X = private()
    for shift, exact in ((0.009, 1), (0.011, 0)):
        moved = X[:1].copy()
        moved[0, 3] += shift
        scores = score(recovery(moved, signed=True), X)
        assert counts(scores) == (exact, 1 - exact, 6 - exact)
        assert scores.error[0] == pytest.approx(shift, abs=1e-6)
        assert score(recovery(moved), X, tolerance=0.02).exact == 1


def test_an_empty_recovery_misses_everything():
    empty = Recovery.empty(Encodings(np.ones((3, 50)), Scheme()), "paper", "nothing", {})
    scores = score(empty, private())
    assert counts(scores) == (0, 0, 6)
    assert scores.matches.shape == scores.error.shape == (0,)


def test_the_order_of_private_vectors_does_not_matter():
    X = private(40)
    order = np.random.default_rng(2).permutation(40)
    expected = score(recovery(X[:9]), X)
    permuted = score(recovery(X[:9]), X[order])
    assert counts(permuted) == counts(expected)
    np.testing.assert_array_equal(order[permuted.matches], expected.matches)


def test_blocks_of_private_vectors_do_not_matter(monkeypatch):
    X = private(40)
    monkeypatch.setattr(
        sys.modules[score.__module__], "row_blocks", lambda array: row_blocks(array, numbers=150)
    )
    scores = score(recovery(X[[39, 0, 17]]), X)
    assert scores.matches.tolist() == [39, 0, 17]


def test_private_vectors_that_differ_in_signs_only_are_told_apart():
    X = private(3)
    X[1] = X[0]
    X[1, ::2] *= -1
    assert counts(score(recovery(X), X)) == (3, 0, 0)


def test_bad_input_is_refused_in_one_sentence():
    X = private()
    with pytest.raises(InputError, match="private vectors have 49 pixels, recovered ones 50"):
        score(recovery(X), X[:, :49])
    for tolerance in (0, -1, float("nan")):
        with pytest.raises(InputError, match="tolerance"):
            score(recovery(X), X, tolerance=tolerance)
    with pytest.raises(InputError, match="private: the value at row 0"):
        score(recovery(X), np.full((6, 50), np.nan))


@pytest.mark.parametrize("size", [2e5, 1e-4])
def test_the_usual_tolerance_goes_with_the_units(size):
    X = (size * np.random.default_rng(0).random((12, 40))).astype(np.float32)
    sim = simulate(Scheme(2), private=X, m=90, rng=0)
    recovery = recover(sim.encodings, rng=0)
    scores = score(recovery, X)
    assert (scores.exact, scores.wrong) == (12, 0)
    shuffled = np.random.default_rng(1).permutation(X.ravel()).reshape(X.shape)
    assert score(recovery, shuffled).exact == 0


def test_vectors_of_equal_magnitudes_are_matched_by_their_signs():
    """±1 everywhere: magnitudes say nothing, and one sign per pixel is free."""
    rng = np.random.default_rng(0)
    truth = rng.choice([-1.0, 1.0], (8, 30)).astype(np.float32)
    turned = truth[rng.permutation(8)] * rng.choice([-1, 1], 30)
    found = recovery(turned, signed=False)
    assert (score(found, truth).exact, score(found, truth).wrong) == (8, 0)
    turned[3, 5] *= -1
    assert score(recovery(turned, signed=False), truth).wrong == 1


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("offset", [1e4, 1e5])
def test_records_beside_a_large_offset_are_told_apart(offset, signed):
    """Years, pressures: squares of the offset would drown what sets records apart."""
    truth = np.random.default_rng(0).standard_normal((12, 60))
    truth[:, :30] += offset
    found = recovery(truth.astype(np.float32), signed=signed)
    scores = score(found, truth)
    assert (scores.exact, scores.wrong) == (12, 0)
