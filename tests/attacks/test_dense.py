"""The dense route of the full attack, asked directly: what it finds, and what it needs to know
before it starts. Its choice among the routes is tested in test_full.py."""

import numpy as np
import pytest

from unveil import Encodings, Overlaps, Scheme, score, simulate
from unveil.attacks.dense import dense, dense_bytes, more_columns
from unveil.checks import InputError
from unveil.encode.selection import selection_matrix
from unveil.factor.annealed import anneal
from unveil.parallel import Stopwatch


def attack(sim, overlaps=None, limit=None):
    seed = np.random.SeedSequence(0)
    return dense(sim.encodings, None, overlaps, seed, Stopwatch(), limit, None)


@pytest.fixture(scope="module")
def sim():
    return simulate(Scheme(3), 20, m=160, d=300, rng=3)


def test_all_vectors_from_similarities(sim):
    scores = score(attack(sim), sim.private)
    assert (scores.exact, scores.wrong, scores.missing) == (20, 0, 0)


def test_annealing_waits_until_the_first_guess_leads_nowhere(monkeypatch):
    asked = []

    def watched(*args):
        asked.append(args[0].shape)
        return anneal(*args)

    monkeypatch.setattr("unveil.attacks.dense.anneal", watched)
    # Noise lowers the level of shared pairs, as wrong rows do; every encoding is explained all the
    # same.
    many = simulate(Scheme(2), 40, m=400, d=300, rng=4)
    noise = np.random.default_rng(0).normal(0, 0.05, many.encodings.values.shape)
    noisy = np.abs(many.encodings.values + noise).astype(np.float32)
    seed = np.random.SeedSequence(0)
    found = dense(
        Encodings(noisy, many.encodings.scheme), None, None, seed, Stopwatch(), None, None
    )
    assert len(found) == 40
    assert not asked
    # Three encodings per vector: the first guess is wrong in most rows.
    few = simulate(Scheme(4), 60, m=180, d=1000, rng=4)
    scores = score(attack(few), few.private)
    assert asked
    assert scores.wrong == 0
    assert scores.exact >= 57


def test_few_encodings_that_leave_values_open_are_given_no_error():
    """60 encodings of 40 vectors: a tree here, a pair there. A third of the values is wrong, and
    the encodings are exact."""
    few = simulate(Scheme(2), 40, m=60, d=400, rng=1)
    found = attack(few)
    assert len(found)
    assert set(found.status) == {"ambiguous"}
    assert "other values fit as well" in found.explanation
    assert found.evidence["standard_error"] == [None] * len(found)


def test_true_overlaps_do_as_well(sim):
    W = selection_matrix(sim.selection.private, 20).astype(np.int64)
    told = Overlaps.from_array((W @ W.T).toarray(), 3)
    scores = score(attack(sim, told), sim.private)
    assert (scores.exact, scores.wrong, scores.missing) == (20, 0, 0)


def test_it_says_how_much_memory_it_lacks(sim):
    with pytest.raises(InputError, match="attack fewer of them"):
        attack(sim, limit=dense_bytes(160, 300, public=False) // 2)


def test_memory_grows_with_pairs_of_encodings():
    few, many = (dense_bytes(m, 100, public=False) for m in (1000, 4000))
    assert 10 < many / few < 20
    assert dense_bytes(1000, 100, public=True) > few


def test_columns_to_spare():
    assert more_columns(10) == 13
    assert more_columns(100) == 110
