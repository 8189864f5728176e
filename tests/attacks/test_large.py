"""The sparse route: everything the dense one promises, from rounded overlaps; nothing wrong
verified."""

import numpy as np
import pytest

from unveil import Encodings, Overlaps, Scheme, score, simulate
from unveil.attacks.full import full
from unveil.attacks.large import MOST_VECTORS, large
from unveil.factor.cliques import CliqueSubsets
from unveil.parallel import Stopwatch
from unveil.records import AMBIGUOUS


def attack(encodings, seed=0, **options):
    return large(encodings, None, np.random.SeedSequence(seed), Stopwatch(), **options)


@pytest.mark.parametrize(("k", "n", "m", "d"), [(2, 150, 1050, 900), (3, 80, 800, 2500)])
def test_every_vector_is_exact_without_knowing_how_many_there_are(k, n, m, d):
    sim = simulate(Scheme(k), n, m=m, d=d, rng=1)
    recovery = attack(sim.encodings)
    found = score(recovery, sim.private)
    used = np.bincount(sim.selection.private.ravel(), minlength=n)
    assert (found.exact, found.wrong) == (int((used >= 2).sum()), 0)
    truth = np.zeros((m, n), bool)
    np.put_along_axis(truth, sim.selection.private, True, axis=1)
    np.testing.assert_array_equal(recovery.members.toarray(), truth[:, found.matches])
    assert recovery.evidence["encodings_explained"] == m
    assert not recovery.signed


def test_the_same_seed_gives_the_same_bytes_and_memory_changes_nothing():
    sim = simulate(Scheme(2), 100, m=700, d=600, rng=2)
    one, two = attack(sim.encodings), attack(sim.encodings, memory_limit=20 << 20)
    again = attack(sim.encodings)
    assert one.vectors.tobytes() == again.vectors.tobytes()
    assert score(two, sim.private).exact == 100


def test_random_signs_and_other_weightings_are_the_same_to_it():
    sim = simulate(Scheme(2, weighting="convex", signs="random"), 100, m=700, d=600, rng=3)
    found = score(attack(sim.encodings), sim.private)
    assert (found.exact, found.wrong) == (100, 0)


def test_self_pairs_copies_and_lone_vectors_do_no_harm():
    sim = simulate(Scheme(2), 100, m=700, d=600, rng=4)
    lone = np.random.default_rng(0).standard_normal(600)
    selves = np.sqrt(2) * np.abs(sim.private[:8])
    more = np.abs(sim.private[3] + lone) / np.sqrt(2)
    values = np.vstack([sim.encodings.values, sim.encodings.values[:20], selves, more])
    recovery = attack(Encodings(values, Scheme(2)))
    found = score(recovery, np.vstack([sim.private, lone]))
    assert (found.exact, found.wrong) == (100, 0)
    assert recovery.evidence["encodings_explained"] == 728
    assert "8 encodings use one vector more than once" in recovery.explanation
    assert "appears in one encoding only, number 728" in recovery.reasons[-1]


def test_given_overlaps_some_of_them_wrong_are_used():
    sim = simulate(Scheme(2), 100, m=700, d=40, rng=5)  # far too few pixels to read overlaps from
    W = np.zeros((700, 100), int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    M = W @ W.T
    i, j = np.random.default_rng(0).integers(0, 700, (2, 300))
    M[i, j] = M[j, i] = 1
    np.fill_diagonal(M, 2)
    found = score(attack(sim.encodings, overlaps=Overlaps.from_array(M, 2)), sim.private)
    assert found.wrong == 0
    assert (
        found.exact >= 98
    )  # with fewer pixels than vectors those with three partners stay in doubt


def test_a_part_of_an_encoding_that_is_overwritten_costs_that_encoding_only():
    sim = simulate(Scheme(2), 100, m=700, d=600, rng=6)
    values = sim.encodings.values.copy()
    values[7, 300:] = np.abs(np.random.default_rng(0).standard_normal(300))
    recovery = attack(Encodings(values, Scheme(2)))
    assert score(recovery, sim.private).wrong == 0
    assert recovery.evidence["encodings_explained"] <= 699 or not recovery.verified.any()


@pytest.mark.parametrize(("true_k", "told_k"), [(2, 3), (3, 2)])
def test_a_wrong_k_verifies_nothing_wrong(true_k, told_k):
    sim = simulate(Scheme(true_k), 60, m=500, d=1000, rng=7)
    assert score(attack(Encodings(sim.encodings.values, Scheme(told_k))), sim.private).wrong == 0


def test_a_common_part_a_wrong_weighting_and_noise_verify_nothing_wrong():
    sim = simulate(Scheme(2), 60, m=500, d=1000, rng=8)
    rng = np.random.default_rng(0)
    common = np.abs(
        sim.private[sim.selection.private].sum(axis=1) + rng.standard_normal(1000)
    ) / np.sqrt(2)
    noisy = np.abs(sim.encodings.values + 1e-3 * rng.standard_normal((500, 1000)))
    for encodings in (Encodings(common, Scheme(2)), Encodings(noisy, Scheme(2))):
        assert score(attack(encodings), sim.private).wrong == 0
    recovery = attack(Encodings(sim.encodings.values, Scheme(2, weighting="convex")))
    assert (recovery.status == AMBIGUOUS).all()
    assert "scale is in doubt" in recovery.reasons[0]


@pytest.mark.parametrize(
    "values",
    [np.zeros((60, 30)), np.ones((60, 1)), np.tile(np.arange(50.0), (80, 1)), np.ones((3, 40))],
)
def test_encodings_without_structure_are_explained_as_such(values):
    for k in (2, 3):
        recovery = attack(Encodings(values, Scheme(k)))
        assert not recovery.verified.any()
        assert "no consistent explanation" in recovery.explanation


def test_it_says_when_overlaps_cannot_be_read():
    sim = simulate(Scheme(2), 300, m=1000, d=60, rng=9)
    recovery = attack(sim.encodings)
    assert not recovery.verified.any()
    assert "expected to be wrong; use more pixels" in recovery.explanation


def test_it_says_when_there_are_too_many_vectors(monkeypatch):
    many = CliqueSubsets(np.zeros((60, 3), np.int64), MOST_VECTORS + 1)
    monkeypatch.setattr("unveil.attacks.large.find_cliques", lambda _: many)
    recovery = attack(simulate(Scheme(3), 20, m=60, d=50, rng=0).encodings)
    assert not len(recovery)
    assert f"up to {MOST_VECTORS}" in recovery.explanation


def test_where_it_explains_too_little_the_dense_route_takes_over():
    sim = simulate(Scheme(2), 60, m=500, d=110, rng=10)
    assert not len(attack(sim.encodings, least=1.1))
    found = score(full(sim.encodings, rng=0), sim.private)
    assert (found.exact, found.wrong) == (60, 0)


def test_a_public_part_is_taken_off_and_settles_the_signs():
    sim = simulate(Scheme(2, 2), 60, n_public=300, m=420, d=700, rng=3)
    recovery = large(sim.encodings, sim.public, np.random.SeedSequence(0), Stopwatch())
    found = score(recovery, sim.private)
    used = np.bincount(sim.selection.private.ravel(), minlength=60)
    assert (found.exact, found.wrong) == (int((used >= 2).sum()), 0)
    assert recovery.signed
    assert recovery.explained == 420


def test_a_wrong_public_list_is_verified_nowhere():
    sim = simulate(Scheme(2, 2), 40, n_public=200, m=280, d=500, rng=4)
    other = simulate(Scheme(2, 2), 40, n_public=200, m=280, d=500, rng=5).public
    recovery = large(sim.encodings, other, np.random.SeedSequence(0), Stopwatch())
    assert not recovery.verified.any()


@pytest.mark.parametrize(
    ("shared", "explained", "compared"), [(8, 0.99, 350), (1e9, 0.99, 700), (8, 2, 700)]
)
def test_half_of_the_encodings_are_compared_where_that_explains_all(
    monkeypatch, shared, explained, compared
):
    for name, value in (("MANY", 700), ("ENOUGH_SHARED", shared), ("EXPLAINED", explained)):
        monkeypatch.setattr(f"unveil.attacks.large.{name}", value)
    sim = simulate(Scheme(2), 90, m=700, d=1100, rng=5)
    recovery = attack(sim.encodings)
    assert recovery.evidence["encodings_compared"] == compared
    assert recovery.evidence["encodings_explained"] == 700
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (90, 0)
