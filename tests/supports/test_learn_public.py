"""LearnPublic: one call for both methods, checked input, the truth at generous d."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, learn_public, simulate
from unveil.records import WEIGHTINGS, InputError
from unveil.supports import METHODS


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_both_methods_find_the_truth_at_generous_d(method, weighting):
    sim = simulate(Scheme(2, 2, weighting, "random"), 10, n_public=20, m=12, d=8000, rng=3)
    supports = learn_public(sim.encodings, sim.public, method=method)
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.method == method
    assert supports.confidence.shape == (12,)
    assert ((supports.confidence > 0) & (supports.confidence <= 1)).all()


@pytest.mark.parametrize("method", ["diagonal", "sdp"])
def test_a_single_public_vector_per_encoding_is_found(method):
    sim = simulate(Scheme(2, 1), 10, n_public=10, m=12, d=20_000, rng=1)
    np.testing.assert_array_equal(learn_public(sim.encodings, sim.public, method=method).indices, sim.selection.public)


@pytest.mark.parametrize("method", METHODS)
def test_no_public_part_means_empty_supports(method):
    encodings = Encodings(np.ones((4, 6)), Scheme(2, 0))
    for public in (None, np.ones((3, 6))):
        supports = learn_public(encodings, public, method=method)
        assert supports.indices.shape == (4, 0)
        assert supports.confidence.tolist() == [1.0] * 4


def test_a_memory_limit_does_not_change_supports():
    sim = simulate(Scheme(2, 2), 10, n_public=50, m=12, d=500, rng=3)
    tight = learn_public(sim.encodings, sim.public, memory_limit=10_000)
    np.testing.assert_array_equal(tight.indices, learn_public(sim.encodings, sim.public).indices)


def test_permuting_public_vectors_permutes_supports():
    sim = simulate(Scheme(2, 2), 10, n_public=50, m=12, d=4000, rng=4)
    order = np.random.default_rng(0).permutation(50)
    there, here = learn_public(sim.encodings, sim.public[order]), learn_public(sim.encodings, sim.public)
    np.testing.assert_array_equal(np.sort(order[there.indices], axis=1), here.indices)


def test_the_sdp_reports_every_encoding_as_progress():
    sim = simulate(Scheme(2, 2), 10, n_public=8, m=3, d=500, rng=4)
    seen = []
    learn_public(sim.encodings, sim.public, method="sdp", progress=lambda *step: seen.append(step))
    assert seen == [("learn public", i, 3) for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("public", "method", "complaint"),
    [
        (np.ones((5, 6)), "guess", "method='guess': choose one of diagonal, sdp"),
        (None, "diagonal", "no public vectors"),
        (np.ones((5, 7)), "diagonal", "7 pixels, encodings 6"),
        (np.ones((1, 6)), "sdp", "k_public=2 of only 1"),
        (np.full((5, 6), np.nan), "diagonal", "public: the value at row 0"),
        (np.ones((1001, 6)), "sdp", "n_public=1001.*use method='diagonal'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(public, method, complaint):
    with pytest.raises(InputError, match=complaint):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), public, method=method)


def test_a_memory_limit_of_nothing_is_refused():
    with pytest.raises(InputError, match="memory_limit=0"):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), np.ones((5, 6)), memory_limit=0)
