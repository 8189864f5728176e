"""Symmetries of the problem, for instances Hypothesis chooses: what must not change does not."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil import (
    Encodings,
    Overlaps,
    Scheme,
    find_all_florals,
    gram_extract,
    learn_private_image,
    learn_public,
    score,
    simulate,
)
from unveil.encode import encode
from unveil.encodings import Selection
from unveil.paper.overlap_engine import folded_levels
from unveil.scheme import FIXED_WEIGHTINGS

FEW = settings(deadline=None, derandomize=True, max_examples=25)
VERY_FEW = settings(deadline=None, derandomize=True, max_examples=5)

seeds = st.integers(0, 2**32 - 1)
schemes = st.builds(
    Scheme,
    k_private=st.integers(1, 4),
    k_public=st.just(0),
    weighting=st.sampled_from(FIXED_WEIGHTINGS),
)


def gram(sets, n):
    W = np.zeros((len(sets), n), dtype=int)
    np.put_along_axis(W, np.asarray(sets), 1, axis=1)
    return W @ W.T


def borderline(encodings):
    """Whether float32 rounding could decide an entry: some covariance lies within 1e-6 of a
    threshold."""
    y = np.abs(encodings.values.astype(np.float64))
    Z = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(
        (y**2).mean(axis=1, keepdims=True) * encodings.d
    )
    levels = folded_levels(encodings.scheme).balanced()[0]
    return np.abs((Z @ Z.T)[:, :, None] - levels).min() < 1e-6


@FEW
@given(schemes, seeds)
def test_permuting_encodings_permutes_overlaps(scheme, seed):
    encodings = simulate(scheme, 8, m=25, d=200, rng=seed).encodings
    if borderline(encodings):
        return
    order = np.random.default_rng(seed).permutation(25)
    permuted = gram_extract(Encodings(encodings.values[order], scheme)).toarray()
    np.testing.assert_array_equal(permuted, gram_extract(encodings).toarray()[np.ix_(order, order)])


@FEW
@given(schemes, seeds)
def test_permuting_pixels_keeps_overlaps(scheme, seed):
    encodings = simulate(scheme, 8, m=25, d=200, rng=seed).encodings
    if borderline(encodings):
        return
    order = np.random.default_rng(seed).permutation(200)
    permuted = gram_extract(Encodings(encodings.values[:, order], scheme)).toarray()
    np.testing.assert_array_equal(permuted, gram_extract(encodings).toarray())


@FEW
@given(schemes, seeds, st.floats(1e-6, 1e6))
def test_scaling_each_encoding_by_its_own_factor_keeps_overlaps(scheme, seed, factor):
    encodings = simulate(scheme, 8, m=25, d=200, rng=seed).encodings
    if borderline(encodings):
        return
    factors = factor * np.random.default_rng(seed).uniform(0.5, 2, size=(25, 1))
    scaled = gram_extract(Encodings(factors * encodings.values, scheme)).toarray()
    np.testing.assert_array_equal(scaled, gram_extract(encodings).toarray())


@FEW
@given(schemes, seeds)
def test_renaming_private_vectors_keeps_encodings_and_so_overlaps(scheme, seed):
    sim = simulate(scheme, 8, m=25, d=60, rng=seed)
    order = np.random.default_rng(seed).permutation(8)
    renamed = Selection(np.argsort(order)[sim.selection.private], sim.selection.public)
    values = encode(sim.private[order], None, renamed, scheme)
    np.testing.assert_allclose(values, sim.encodings.values, atol=1e-6)
    np.testing.assert_array_equal(gram(renamed.private, 8), gram(sim.selection.private, 8))


@FEW
@given(schemes, seeds)
def test_flipping_the_sign_of_every_private_vector_keeps_encodings(scheme, seed):
    sim = simulate(scheme, 8, m=25, d=60, rng=seed)
    np.testing.assert_array_equal(
        encode(-sim.private, None, sim.selection, scheme), sim.encodings.values
    )
    # Per pixel too: one sign each, the same for all vectors, is what no attack can know without a
    # public part.
    coins = np.random.default_rng(seed).choice(np.float32([-1, 1]), size=60)
    np.testing.assert_array_equal(
        encode(coins * sim.private, None, sim.selection, scheme), sim.encodings.values
    )


@FEW
@given(seeds)
def test_with_a_public_part_flipping_the_private_vectors_changes_encodings(seed):
    sim = simulate(Scheme(2, 1), 8, n_public=4, m=25, d=60, rng=seed)
    assert not np.allclose(
        encode(-sim.private, sim.public, sim.selection, Scheme(2, 1)),
        sim.encodings.values,
        atol=1e-3,
    )


@FEW
@given(st.sampled_from([(2, 6), (2, 7), (3, 6), (3, 7), (4, 7)]), st.floats(0.7, 1.0), seeds)
def test_renaming_vectors_and_permuting_rows_keeps_florals(sizes, density, seed):
    k, n = sizes
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), k)))
    sets = every[rng.permutation(len(every))[: round(density * len(every))]]
    renamed = np.sort(rng.permutation(n)[sets], axis=1)
    order = rng.permutation(len(sets))
    here = find_all_florals(Overlaps.from_array(gram(sets, n), k))
    there = find_all_florals(Overlaps.from_array(gram(renamed[order], n), k))
    assert {frozenset(f.rows.tolist()) for f in here} == {
        frozenset(order[f.rows].tolist()) for f in there
    }
    assert len(here) == len(there)


@VERY_FEW
@given(seeds)
def test_permuting_encodings_permutes_supports(seed):
    sim = simulate(Scheme(2, 2), 8, n_public=30, m=20, d=4000, rng=seed)
    order = np.random.default_rng(seed).permutation(20)
    permuted = learn_public(
        Encodings(sim.encodings.values[order], sim.encodings.scheme), sim.public
    )
    here = learn_public(sim.encodings, sim.public)
    np.testing.assert_array_equal(permuted.indices, here.indices[order])
    np.testing.assert_allclose(permuted.confidence, here.confidence[order], atol=1e-3)


@VERY_FEW
@given(seeds)
def test_whatever_the_order_of_encodings_what_is_verified_is_true(seed):
    sim = simulate(Scheme(2), 12, m=70, d=1536, rng=seed)
    order = np.random.default_rng(seed).permutation(70)
    for values in (sim.encodings.values, sim.encodings.values[order]):
        scores = score(learn_private_image(Encodings(values, Scheme(2))), sim.private)
        assert scores.wrong == 0
