"""The full attack: every vector exact where the encodings determine it, nothing wrong verified where they do not."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from unveil import Encodings, Scheme, recover, score, simulate
from unveil.attacks.full import LARGEST, _merge, _needed, estimate_vectors, similarity
from unveil.records import InputError


def attack(encodings, rng=0):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return recover(encodings, attack="full", rng=rng)


@pytest.mark.parametrize(("k", "n", "m", "d"), [(2, 40, 280, 300), (3, 40, 280, 600), (4, 30, 240, 1000), (6, 30, 240, 2000)])
def test_every_vector_is_exact_without_knowing_how_many_there_are(k, n, m, d):
    sim = simulate(Scheme(k), n, m=m, d=d, rng=1)
    recovery = attack(sim.encodings)
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong, found.missing) == (n, 0, 0)
    assert len(recovery) == n
    truth = np.zeros((m, n), bool)
    np.put_along_axis(truth, sim.selection.private, True, axis=1)
    np.testing.assert_array_equal(recovery.members.toarray(), truth[:, found.matches])
    assert recovery.evidence["encodings_explained"] == m
    assert not recovery.signed


@pytest.mark.parametrize("weighting", ["paper", "convex"])
def test_other_weightings_only_change_the_scale(weighting):
    sim = simulate(Scheme(3, weighting=weighting), 20, m=140, d=500, rng=2)
    found = score(attack(sim.encodings), sim.private)
    assert (found.exact, found.wrong) == (20, 0)


def test_duplicated_encodings_change_nothing():
    sim = simulate(Scheme(2), 40, m=280, d=300, rng=3)
    copies = np.random.default_rng(0).integers(0, 280, 14)
    values = np.vstack([sim.encodings.values, sim.encodings.values[copies]])
    found = score(attack(Encodings(values, Scheme(2))), sim.private)
    assert (found.exact, found.wrong) == (40, 0)


@pytest.mark.parametrize("k", [2, 3])
def test_a_vector_used_once_is_left_out_and_said_so(k):
    sim = simulate(Scheme(k), 20, m=150, d=400, rng=4)
    lone = np.random.default_rng(1).standard_normal(400)
    partners = sim.private[: k - 1].sum(axis=0)
    values = np.vstack([sim.encodings.values, np.abs(partners + lone) / np.sqrt(k)])
    recovery = attack(Encodings(values, Scheme(k)))
    found = score(recovery, np.vstack([sim.private, lone]))
    assert (found.exact, found.wrong, found.missing) == (20, 0, 1)
    assert 20 not in found.matches[recovery.verified]
    assert "150 of 151 encodings explained" in recovery.explanation
    assert "1 encodings use vectors that too few others share" in recovery.explanation


@pytest.mark.parametrize("signs", ["random", "kept"])
def test_signs_in_the_input_are_not_needed(signs):
    sim = simulate(Scheme(2, signs=signs), 25, m=180, d=300, rng=5)
    assert (sim.encodings.values < 0).any()
    found = score(attack(sim.encodings), sim.private)
    assert (found.exact, found.wrong) == (25, 0)


def test_the_same_seed_gives_the_same_bytes():
    sim = simulate(Scheme(3), 15, m=110, d=300, rng=6)
    one, two = attack(sim.encodings, rng=7), attack(sim.encodings, rng=7)
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.reasons == two.reasons
    assert (one.members != two.members).nnz == 0


def test_the_scale_of_the_pixels_is_followed_when_it_is_unknown():
    sim = simulate(Scheme(2), 25, m=180, d=300, rng=8)
    found = score(attack(Encodings(100 * sim.encodings.values, Scheme(2), pixel_rms=None)), 100 * sim.private, tolerance=0.1)
    assert (found.exact, found.wrong) == (25, 0)


@pytest.mark.parametrize(("true_k", "told_k"), [(2, 3), (2, 4), (3, 2), (3, 4), (4, 3)])
def test_a_wrong_k_verifies_nothing_wrong(true_k, told_k):
    sim = simulate(Scheme(true_k), 10, m=70, d=100, rng=0)
    assert score(attack(Encodings(sim.encodings.values, Scheme(told_k))), sim.private).wrong == 0


def test_a_wrong_weighting_verifies_nothing():
    sim = simulate(Scheme(2), 20, m=150, d=300, rng=1)
    recovery = attack(Encodings(sim.encodings.values, Scheme(2, weighting="convex")))
    assert not recovery.verified.any()
    assert "scale is in doubt" in recovery.reasons[0]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("pixel_rms", [1.0, None])
def test_a_fixed_vector_hidden_in_every_encoding_verifies_nothing_wrong(k, pixel_rms):
    rng = np.random.default_rng(k)
    sim = simulate(Scheme(k), 15, m=150, d=400, rng=2)
    common = rng.standard_normal(400)
    values = np.abs(sim.private[sim.selection.private].sum(axis=1) + common) / np.sqrt(k)
    recovery = attack(Encodings(values, Scheme(k), pixel_rms))
    if pixel_rms is None:
        # x + c/k mixed without c is the same data: with nothing known of the pixels it is as good a truth as x.
        common_spread = sim.private + (common / k).astype(np.float32)
        assert score(recovery, common_spread).wrong == 0
    else:
        assert score(recovery, sim.private).wrong == 0


@pytest.mark.parametrize("k", [2, 3])
def test_as_many_as_2k_vectors_are_never_verified(k):
    for seed in range(2):
        sim = simulate(Scheme(k), 2 * k, m=60, d=200, rng=seed)
        assert not attack(sim.encodings).verified.any()


@pytest.mark.parametrize(("m", "d"), [(1, 50), (2, 50), (3, 1), (5, 300), (12, 300), (80, 1), (80, 2), (80, 5), (80, 19)])
def test_tiny_instances_verify_nothing_wrong(m, d):
    for k in (2, 3):
        sim = simulate(Scheme(k), 10, m=m, d=d, rng=m + d)
        assert score(attack(sim.encodings), sim.private).wrong == 0


@pytest.mark.parametrize("k", [2, 3, 4])
def test_pure_noise_verifies_nothing(k):
    values = np.abs(np.random.default_rng(k).standard_normal((60, 80)))
    assert not attack(Encodings(values, Scheme(k))).verified.any()


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e-30, 1e18])
@pytest.mark.parametrize("k", [2, 4])
def test_constant_encodings_verify_nothing(constant, k):
    assert not attack(Encodings(np.full((60, 100), constant), Scheme(k))).verified.any()


def test_one_encoding_repeated_verifies_nothing():
    row = np.abs(np.random.default_rng(0).standard_normal(300))
    assert not attack(Encodings(np.tile(row, (80, 1)), Scheme(2))).verified.any()


def test_an_alias_of_other_vectors_is_not_verified():
    """x = a + b − p explains encodings of {a, b, q} as {x, p, q}: it was found where 50 pixels started it wrongly."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    hostile = pytest.importorskip("benchmarks.hostile", reason="benchmarks/ is not part of an installed package")
    assert hostile.spring(hostile.trap("public part denied", 10), "full")[1] == 0


def test_errors_name_the_cure():
    with pytest.raises(InputError, match="k_private of 2 or more"):
        attack(Encodings(np.ones((5, 5)), Scheme(1)))
    with pytest.raises(InputError, match="attack='paper'"):
        recover(Encodings(np.ones((5, 5)), Scheme(2, 1)), np.ones((3, 5)), attack="full")
    with pytest.raises(InputError, match=f"up to {LARGEST}"):
        attack(Encodings(np.ones((LARGEST + 1, 1)), Scheme(2)))


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_the_similarity_is_1_for_one_shared_vector_and_0_for_none(k):
    sim = simulate(Scheme(k), 5 * k, m=120, d=4000, rng=k)
    W = np.zeros((120, 5 * k))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    overlap, S = W @ W.T, similarity(sim.encodings.magnitudes(), k)
    assert abs(S[overlap == 0].mean()) < 0.1
    assert abs(S[overlap == 1].mean() - 1) < 0.1


@pytest.mark.parametrize(("k", "n"), [(2, 40), (3, 40), (4, 30)])
def test_the_number_of_vectors_is_estimated_within_a_quarter(k, n):
    sim = simulate(Scheme(k), n, m=300, d=1000, rng=k)
    assert abs(estimate_vectors(similarity(sim.encodings.magnitudes(), k), k) - n) <= n // 4


def test_copies_of_a_vector_get_one_name_and_unsolved_ones_stay_apart():
    x = np.random.default_rng(0).standard_normal((6, 40))
    x[4], x[5] = x[1], np.nan
    np.testing.assert_array_equal(_merge(x, np.array([[0, 4], [4, 2], [5, 3]])), [[0, 1], [1, 2], [5, 3]])


def test_rows_that_lonely_columns_explain_are_dropped_to_the_end_of_the_chain():
    members = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 4]])  # 4 is lonely, then 3 is
    np.testing.assert_array_equal(_needed(members), [True, True, True, False, False, False])
