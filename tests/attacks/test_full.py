"""The full attack: every vector exact where the encodings determine it, nothing wrong verified
where they do not."""

import sys
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unveil import Encodings, Overlaps, Scheme, learn_public, recover, score, simulate
from unveil.attacks.dense import dense, dense_bytes
from unveil.attacks.full import LARGEST, full
from unveil.checks import InputError
from unveil.parallel import Stopwatch
from unveil.records import Recovery


def attack(encodings, rng=0):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return recover(encodings, attack="full", rng=rng)


@pytest.mark.parametrize(
    ("k", "n", "m", "d"),
    [(2, 40, 280, 300), (3, 40, 280, 600), (4, 30, 240, 1000), (6, 30, 240, 2000)],
)
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
    assert "appears in one encoding only, number 150" in recovery.reasons[-1]


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
    found = score(
        attack(Encodings(100 * sim.encodings.values, Scheme(2), pixel_rms=None)),
        100 * sim.private,
        tolerance=0.1,
    )
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
    # Large enough that pairs are solved and judged before they are given up.
    sim = simulate(Scheme(k), 12, m=120, d=200, rng=2)
    common = rng.standard_normal(200)
    values = np.abs(sim.private[sim.selection.private].sum(axis=1) + common) / np.sqrt(k)
    recovery = attack(Encodings(values, Scheme(k), pixel_rms))
    if pixel_rms is None:
        # x + c/k mixed without c is the same data: with nothing known of the pixels it is as good a
        # truth as x.
        common_spread = sim.private + (common / k).astype(np.float32)
        assert score(recovery, common_spread).wrong == 0
    else:
        assert score(recovery, sim.private).wrong == 0


@pytest.mark.parametrize("k", [2, 3])
def test_as_many_as_2k_vectors_are_never_verified(k):
    for seed in range(2):
        sim = simulate(Scheme(k), 2 * k, m=60, d=200, rng=seed)
        assert not attack(sim.encodings).verified.any()


@pytest.mark.parametrize(
    ("m", "d"), [(1, 50), (2, 50), (3, 1), (5, 300), (12, 300), (80, 1), (80, 2), (80, 5), (80, 19)]
)
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
    """x = a + b − p explains encodings of {a, b, q} as {x, p, q}: it was found where 50 pixels
    started it wrongly."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    hostile = pytest.importorskip(
        "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
    )
    assert hostile.spring(hostile.trap("public part denied", 10), "full")[1] == 0


@pytest.mark.parametrize(
    ("kind", "seed", "exact"),
    [("honest", 48, 7), ("honest", 154, 10), ("honest", 74, 14), ("wrong k", 133, 0)],
)
def test_a_public_vector_learned_wrongly_makes_no_new_private_one(kind, seed, exact):
    """x_q + P_l − P_j stood for x_q in the few encodings whose P_l was taken for P_j, and was
    verified."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    hostile = pytest.importorskip(
        "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
    )
    trap = hostile.trap(kind, seed)
    found = score(recover(trap.encodings, trap.public, attack="full", rng=0), trap.private)
    assert (found.exact, found.wrong) == (exact, 0)


def test_errors_name_the_cure():
    with pytest.raises(InputError, match="k_private of 1 or more"):
        recover(Encodings(np.ones((5, 5)), Scheme(0, 1)), np.ones((2, 5)), attack="full")
    with pytest.raises(InputError, match="pass public="):
        recover(Encodings(np.ones((5, 5)), Scheme(2, 1)), attack="full")
    with pytest.raises(InputError, match="are not those of these 5"):
        full(
            Encodings(np.ones((5, 5)), Scheme(2)),
            overlaps=Overlaps.from_array(np.zeros((4, 4), int), 2),
        )
    with pytest.raises(InputError, match=f"up to {LARGEST}"):
        attack(Encodings(np.ones((LARGEST + 1, 1)), Scheme(1)))


@pytest.mark.parametrize(("k_public", "weighting"), [(1, "equal"), (2, "paper"), (2, "convex")])
def test_with_a_public_part_signs_come_back_too(k_public, weighting):
    sim = simulate(Scheme(2, k_public, weighting), 30, n_public=200, m=240, d=300, rng=k_public)
    recovery = recover(sim.encodings, sim.public, attack="full", rng=0)
    assert recovery.signed
    found = score(recovery, sim.private)
    assert (found.exact, found.wrong) == (30, 0)
    np.testing.assert_allclose(recovery.vectors, sim.private[found.matches], atol=1e-3)


def test_wrong_public_supports_are_found_again_once_the_vectors_are_known():
    sim = simulate(Scheme(2, 2), 30, n_public=500, m=240, d=200, rng=0)
    wrong = (learn_public(sim.encodings, sim.public).indices != sim.selection.public).any(axis=1)
    assert wrong.sum() >= 5
    recovery = recover(sim.encodings, sim.public, attack="full", rng=0)
    assert score(recovery, sim.private).exact == 30
    explained = np.diff(recovery.members.indptr) > 0
    assert explained[wrong].mean() > 0.8


def test_encodings_that_nothing_explains_do_not_cost_all_rounds():
    sim = simulate(Scheme(2), 12, m=120, d=200, rng=0)
    values = np.vstack(
        [sim.encodings.values, np.abs(np.random.default_rng(0).standard_normal((100, 200)))]
    )
    recovery = attack(Encodings(values, Scheme(2)))
    assert recovery.evidence["feedback_rounds"] < 25
    assert score(recovery, sim.private).exact == 12


def test_few_encodings_may_pause_before_they_are_explained():
    """A third of the 25 encodings are explained for more than six rounds, then all."""
    sim = simulate(Scheme(2, 1, "paper"), 8, n_public=19, m=25, d=100, rng=32)
    encodings = Encodings(sim.encodings.values, sim.encodings.scheme, None)
    recovery = recover(encodings, sim.public, attack="full", rng=0)
    assert recovery.evidence["encodings_explained"] == 25


def test_wrong_public_vectors_verify_nothing():
    sim = simulate(Scheme(2, 1), 15, n_public=30, m=120, d=300, rng=3)
    other = np.random.default_rng(0).standard_normal(sim.public.shape)
    assert not recover(sim.encodings, other, attack="full", rng=0).verified.any()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("damage", ["noise", "8 bits"])
def test_under_noise_the_error_is_close_to_least_squares_with_the_truth(k, damage):
    n, m, d = 40, 320, 600
    sim = simulate(Scheme(k), n, m=m, d=d, noise=0.05 if damage == "noise" else 0, rng=k)
    Y = sim.encodings.magnitudes()
    if damage == "8 bits":
        Y = np.round(Y / Y.max() * 255) / 255 * Y.max()
    recovery = attack(Encodings(Y, Scheme(k)))
    W = np.zeros((m, n))
    np.put_along_axis(W, sim.selection.private, 1 / np.sqrt(k), axis=1)
    best = np.linalg.lstsq(W, np.copysign(Y, W @ sim.private), rcond=None)[0]
    V = recovery.vectors.astype(float)
    near = (np.abs(V) @ np.abs(sim.private).T / np.linalg.norm(sim.private, axis=1)).argmax(axis=1)
    assert sorted(near) == list(range(n))
    V = V * np.sign((V * sim.private[near]).sum(axis=0))
    error, least = (np.sqrt(np.mean((X - sim.private[near]) ** 2, axis=1)) for X in (V, best[near]))
    assert (error < 1.5 * least).all()
    # It says how far off it is, and proves nothing.
    assert set(recovery.status) == {"unresolved"}
    assert "known to about" in recovery.reasons[0]
    np.testing.assert_allclose(recovery.evidence["standard_error"], error, rtol=0.5)


def messy(k, seed, n=40, m=320, d=500):
    """Duplicates, self-pairs and a vector used once; the overlaps, of which one in a hundred is
    wrong."""
    rng = np.random.default_rng(seed)
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    X = np.vstack([sim.private, rng.standard_normal((1, d)).astype(np.float32)])
    rest = range(k - 2)
    subsets = np.vstack(
        [
            sim.selection.private,
            sim.selection.private[rng.integers(0, m, m // 20)],
            [[j, j, *((j + 1 + r) % n for r in rest)] for j in rng.integers(0, n, 10)],
            [[n, 3, *(5 + r for r in rest)]],
        ]
    )
    W = np.zeros((len(subsets), n + 1), int)
    np.put_along_axis(W, subsets, 1, axis=1)
    M = W @ W.T
    wrong = np.triu(rng.random(M.shape) < 0.01, 1)
    M = np.triu(np.where(wrong, rng.integers(0, k + 1, M.shape), M))
    Y = np.abs(X[subsets].sum(axis=1)) / np.sqrt(k)
    return X, Encodings(Y, Scheme(k)), Overlaps.from_array(M + np.triu(M, 1).T, k)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("given", [False, True])
def test_duplicates_self_pairs_a_lone_vector_and_wrong_overlaps(k, given):
    X, encodings, overlaps = messy(k, seed=k)
    recovery = recover(encodings, attack="full", overlaps=overlaps if given else None, rng=0)
    found = score(recovery, X)
    assert (found.exact, found.wrong) == (40, 0)
    last = len(recovery) - 1
    assert recovery.status[last] == "ambiguous"
    assert f"appears in one encoding only, number {encodings.m - 1}" in recovery.reasons[last]
    assert found.nearest[last] == 40
    assert "10 encodings use one vector more than once" in recovery.explanation


def test_encodings_kept_in_half_precision_are_noise_and_come_back_all_the_same():
    """Faint noise: one pixel that gets stuck must not outweigh all others."""
    for seed in range(3):
        sim = simulate(Scheme(2), 20, m=90, d=300, rng=seed)
        halves = sim.encodings.values.astype(np.float16).astype(np.float32)
        recovery = recover(Encodings(halves, Scheme(2)), attack="full", rng=seed)
        assert (recovery.explained, recovery.exact) == (90, False)
        assert len(recovery) == 20
        truth = sim.private[score(recovery, sim.private).nearest]
        # Values up to the sign of each pixel: all but a pixel here and there.
        assert np.mean(np.abs(np.abs(recovery.vectors) - np.abs(truth)) < 0.01) > 0.98


@pytest.mark.parametrize(
    "scheme", [Scheme(2, weighting="half-normal"), Scheme(1)], ids=["half-normal", "alone"]
)
def test_overlaps_that_nothing_reads_are_refused(scheme):
    sim = simulate(scheme, 8, m=30, d=60, rng=0)
    overlaps = Overlaps.from_array(np.zeros((30, 30), int), scheme.k_private)
    with pytest.raises(InputError, match=r"overlaps= with .*leave them out"):
        full(sim.encodings, overlaps=overlaps)


@pytest.mark.parametrize(
    "scheme",
    [Scheme(2), Scheme(2, 1), Scheme(2, weighting="half-normal"), Scheme(1)],
    ids=["dense", "public", "half-normal", "alone"],
)
def test_memory_is_asked_for_before_it_is_taken(scheme, monkeypatch):
    sim = simulate(scheme, 8, n_public=9 if scheme.k_public else None, m=60, d=80, rng=0)

    def taken(*_, **__):
        raise AssertionError("an m×m array was made")

    for name in ("similarity", "learn_public"):
        monkeypatch.setattr(sys.modules["unveil.attacks.dense"], name, taken)
    monkeypatch.setattr(sys.modules["unveil.mixing.hidden"], "squared_correlations", taken)
    with pytest.raises(InputError, match="attack fewer of them, or raise memory_limit"):
        full(sim.encodings, sim.public, memory_limit=100_000)


def test_the_dense_route_takes_no_more_than_it_says():
    """Measured by what NumPy asks for, at a size where the m×m arrays are most of it."""
    sim = simulate(Scheme(2), 60, m=900, d=120, rng=0)
    needed = dense_bytes(900, 120, False)
    tracemalloc.start()
    dense(sim.encodings, None, None, np.random.SeedSequence(0), Stopwatch(), None, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.3 * needed < peak < 1.1 * needed


def test_seconds_of_a_route_that_failed_are_kept(monkeypatch):
    sim = simulate(Scheme(2), 20, m=90, d=300, rng=0)
    module = sys.modules["unveil.attacks.full"]

    def failing(encodings, public, seed, clock, **_):
        clock.seconds["overlaps"] = 123.0
        return Recovery.empty(encodings, "full", "nothing", clock.seconds)

    monkeypatch.setattr(module, "SPARSE_FROM", 50)
    monkeypatch.setattr(module, "large", failing)
    recovery = full(sim.encodings, rng=0)
    assert recovery.seconds["overlaps"] == 123.0
    assert recovery.verified.any()
    assert "feedback" in recovery.seconds


def test_what_is_explained_is_a_field_that_says_the_same_as_the_evidence():
    for sim in (
        simulate(Scheme(2), 15, m=90, d=300, rng=0),
        simulate(Scheme(2), 15, m=90, d=500, noise=0.02, rng=5),
    ):
        recovery = attack(sim.encodings)
        assert recovery.explained == recovery.evidence["encodings_explained"] == 90
        assert recovery.exact == ("noise" not in recovery.evidence)


def test_what_a_route_found_stands_where_the_next_one_does_not_fit(monkeypatch):
    sim = simulate(Scheme(2), 20, m=90, d=300, rng=0)
    module = sys.modules["unveil.attacks.full"]
    some = replace(attack(sim.encodings), explained=40)
    monkeypatch.setattr(module, "SPARSE_FROM", 50)
    monkeypatch.setattr(module, "large", lambda *_, **__: some)
    assert full(sim.encodings, memory_limit=100_000) is some
    assert full(sim.encodings, rng=0).explained == 90


def test_independent_pixels_of_a_dozen_vectors_are_no_image():
    # Of twelve vectors some pixel is always like another, by chance; the way for images took forty
    # times as long as the plain one.
    sim = simulate(Scheme(3), 12, m=250, d=1024, rng=2)
    recovery = attack(sim.encodings)
    assert "growth" not in recovery.seconds
    assert score(recovery, sim.private).exact == 12
