"""Data that are not negative: taking absolute values hides nothing."""

import dataclasses

import numpy as np
import pytest
from tests.attacks.test_relations import encode

import unveil
from unveil.attacks.unhidden import nothing_hidden
from unveil.checks import InputError
from unveil.solve.signs.signed_pairs import solve_signed_pairs


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_counts_come_back_exactly(k):
    x = np.random.default_rng(k).poisson(3, (40, 70)).astype(np.float32)
    _, y = encode(x, 400, k, 1)
    recovery = unveil.recover(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    scores = unveil.score(recovery, x)
    assert recovery.attack == "unhidden"
    assert not recovery.signed
    assert (scores.exact, scores.wrong) == (40, 0)


@pytest.mark.parametrize(("n", "d"), [(40, 40), (40, 41), (40, 48)])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_nearly_as_many_vectors_as_pixels_come_back_exactly(n, d, k):
    """The rank of the encodings is full or nearly so, which says nothing about signs."""
    x = np.random.default_rng(k).poisson(3, (n, d)).astype(np.float32)
    _, y = encode(x, 480, k, 1)
    recovery = unveil.recover(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    scores = unveil.score(recovery, x)
    assert recovery.attack == "unhidden"
    assert (scores.exact, scores.wrong) == (n, 0)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_columns_may_have_units_of_their_own(k):
    """Twelve records of a table of thirteen columns, from thousandths to thousands."""
    rng = np.random.default_rng(k)
    x = (rng.gamma(3.0, size=(12, 13)) * 10.0 ** rng.integers(-3, 4, 13)).astype(np.float32)
    _, y = encode(x, 150, k, 1)
    recovery = unveil.recover(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    assert recovery.attack == "unhidden"
    size = np.abs(x).max(axis=0)
    scores = unveil.score(dataclasses.replace(recovery, vectors=recovery.vectors / size), x / size)
    assert (scores.exact, scores.wrong) == (12, 0)


def test_encodings_drawn_twice_and_columns_that_repeat_do_not_look_linear():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 40)).astype(np.float32)
    _, y = encode(x, 120, 2, 1)
    y = np.vstack([y, y[:60]])
    y = np.hstack([y, y[:, :20], np.ones((len(y), 1), np.float32)])
    assert not nothing_hidden(unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None))


def test_a_sign_that_nothing_ties_to_the_rest_is_in_doubt():
    rng = np.random.default_rng(0)
    x = rng.poisson(3, (30, 50)).astype(np.float32) + rng.random((30, 50)).astype(np.float32)
    subsets, _ = encode(x, 300, 2, 1)
    # At the first pixel two vectors that never meet, of opposite signs, and nothing else: y is
    # linear all the same.
    met = {tuple(pair) for pair in subsets.tolist()}
    u, v = next((i, j) for i in range(30) for j in range(i + 1, 30) if (i, j) not in met)
    x[:, 0] = 0
    x[u, 0], x[v, 0] = 2.5, -3.5
    y = np.abs(x[subsets].sum(axis=1) / np.float32(np.sqrt(2)))
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="unhidden", rng=0
    )
    scores = unveil.score(recovery, x)
    assert scores.wrong == 0
    assert recovery.doubtful is not None
    assert recovery.doubtful[:, 0].any()


def test_pairs_of_few_levels_list_every_value_with_another_solution():
    """Three encodings per vector, zeros and ones: an independent search through all signs."""
    x = np.random.default_rng(120).integers(0, 2, (30, 60)).astype(np.float32)
    _, y = encode(x, 90, 2, 1)
    encodings = unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None)
    recovery = unveil.recover(encodings, attack="unhidden", rng=0)
    assert recovery.verified.all()
    rows = recovery.members.toarray()
    pairs = np.unique([np.flatnonzero(row) for row in rows if row.sum() == 2], axis=0)
    sums = np.abs(recovery.vectors[pairs].sum(axis=1))
    found = solve_signed_pairs(sums, pairs, len(recovery), np.full(60, 1e-4)).doubtful
    assert found.sum() > 100
    assert not (found & ~recovery.doubtful).any()


def test_hidden_signs_are_seen_and_refused():
    x = np.random.default_rng(1).standard_normal((40, 70)).astype(np.float32)
    _, y = encode(x, 300, 2, 1)
    encodings = unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None)
    assert not nothing_hidden(encodings)
    with pytest.raises(InputError, match="signs were hidden"):
        unveil.recover(encodings, attack="unhidden")
