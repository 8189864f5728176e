"""MixUp: every vector with its signs, nothing wrong verified, and a word where it does not
apply."""

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import unveil
import unveil.attacks.mixup
from unveil import Encodings, InputError, Overlaps, Scheme, recover, score, simulate
from unveil.data.bundled import fashion_mnist
from unveil.supports.pursuit import pursue

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
mixup_module = sys.modules["unveil.attacks.mixup"]


def attack(sim, **options):
    return recover(sim.encodings, sim.public, attack="mixup", rng=0, **options)


@pytest.mark.parametrize(
    ("k", "weighting"), [(2, "equal"), (3, "convex"), (4, "paper"), (6, "equal")]
)
def test_every_vector_comes_back_with_its_signs(k, weighting):
    sim = simulate(Scheme(k, weighting=weighting, signs="kept"), 40, m=280, d=100, rng=k)
    recovery = attack(sim)
    assert recovery.signed
    assert (score(recovery, sim.private).exact, score(recovery, sim.private).wrong) == (40, 0)
    np.testing.assert_array_equal(recovery.members.sum(axis=1), k)


def test_it_is_what_recover_chooses():
    sim = simulate(Scheme(3, signs="kept"), 60, m=400, d=70, rng=0)
    recovery = recover(sim.encodings, rng=0)
    assert recovery.attack == "mixup"
    assert score(recovery, sim.private).exact == 60


def test_a_public_part_is_taken_off():
    sim = simulate(Scheme(2, 2, signs="kept"), 40, n_public=500, m=300, d=150, rng=0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    assert (score(recovery, sim.private).exact, score(recovery, sim.private).wrong) == (40, 0)


def test_public_parts_that_were_misread_are_found_again():
    sim = simulate(Scheme(2, 3, signs="kept"), 30, n_public=400, m=300, d=60, rng=1)
    first = pursue(sim.encodings.values, sim.public, 3, sim.encodings.scheme.public_weight, 1 << 30)
    misread = (first != sim.selection.public).any(axis=1)
    recovery = attack(sim)
    assert misread.sum() > 10
    assert recovery.evidence["encodings_explained"] > 300 - misread.sum() / 2
    assert score(recovery, sim.private).wrong == 0
    assert score(recovery, sim.private).exact >= 28


def test_images_that_look_alike_are_no_harder():
    pixels = fashion_mnist()[0][::3].reshape(80, -1).astype(np.float32) / np.float32(127.5) - 1
    sim = simulate(Scheme(3, signs="kept"), private=pixels, m=400, rng=0)
    recovery = attack(sim)
    assert (score(recovery, pixels).exact, score(recovery, pixels).wrong) == (80, 0)


def test_more_vectors_than_pixels():
    sim = simulate(Scheme(2, signs="kept"), 120, m=800, d=90, rng=0)
    scores = score(attack(sim), sim.private)
    assert scores.exact >= 100
    assert scores.wrong == 0


def test_overlaps_that_are_known_are_used():
    sim = simulate(Scheme(2, signs="kept"), 40, m=280, d=24, rng=0)
    W = np.zeros((280, 40), int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    told = attack(sim, overlaps=Overlaps.from_array(W @ W.T, 2))
    assert (score(told, sim.private).exact, score(told, sim.private).wrong) == (40, 0)
    assert score(attack(sim), sim.private).exact < 40


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_under_noise_every_vector_comes_with_its_error(noise):
    sim = simulate(Scheme(2, signs="kept"), 40, m=300, d=500, noise=noise, rng=0)
    recovery = attack(sim)
    assert not recovery.verified.any()
    error = np.array(
        [np.sqrt(np.mean((sim.private - x) ** 2, axis=1)).min() for x in recovery.vectors]
    )
    np.testing.assert_allclose(error, recovery.evidence["standard_error"], rtol=0.3)
    assert len(recovery) >= 38
    W = np.zeros((300, 40))
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    ideal = np.linalg.lstsq(W, sim.encodings.values * np.sqrt(2))[0] - sim.private
    assert np.sqrt(np.mean(error**2)) < 1.1 * np.sqrt(np.mean(ideal**2))


def test_brute_force_agrees_on_what_is_determined():
    """Five vectors, k = 2: all pairs that have been drawn; a vector is determined when its
    component has an odd cycle."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        pairs = np.array(list(combinations(range(7), 2)))[
            rng.permutation(21)[: rng.integers(9, 18)]
        ]
        x = rng.standard_normal((7, 300)).astype(np.float32)
        values = x[pairs].sum(axis=1) / np.sqrt(np.float32(2))
        recovery = recover(Encodings(values, Scheme(2, signs="kept")), attack="mixup", rng=0)
        assert score(recovery, x).wrong == 0
        W = np.zeros((len(pairs), 7))
        np.put_along_axis(W, pairs, 1, axis=1)
        determined = np.linalg.matrix_rank(W)
        assert recovery.verified.sum() <= determined


def test_too_few_encodings_are_declined_in_words():
    sim = simulate(Scheme(3, signs="kept"), 100, m=60, d=200, rng=0)
    recovery = attack(sim)
    assert not recovery.verified.any()
    assert recovery.explanation


@pytest.mark.parametrize(
    ("scheme", "match"),
    [
        (Scheme(2), "use attack='full'"),
        (Scheme(2, signs="random"), "use attack='full'"),
        (Scheme(1, signs="kept"), "use attack='full'"),
        (Scheme(2, weighting="half-normal", signs="kept"), "use attack='full'"),
        (Scheme(2, weighting="dirichlet", signs="kept"), "use attack='natural'"),
    ],
)
def test_what_it_cannot_take_on_is_refused(scheme, match):
    with pytest.raises(InputError, match=match):
        attack(simulate(scheme, 10, m=30, d=40, rng=0))


def test_the_memory_limit_is_kept():
    with pytest.raises(InputError, match="raise memory_limit"):
        attack(simulate(Scheme(2, signs="kept"), 10, m=30, d=40, rng=0), memory_limit=1000)


def test_the_same_seed_gives_the_same_bytes():
    sim = simulate(Scheme(2, signs="kept"), 30, m=200, d=80, rng=0)
    assert attack(sim).vectors.tobytes() == attack(sim).vectors.tobytes()


def test_hostile_encodings_verify_nothing_wrong():
    hostile = pytest.importorskip(
        "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
    )
    for kind in hostile.KINDS:
        _, wrong = hostile.spring(hostile.trap(kind, 4, signs="kept"), "mixup")
        assert wrong == 0, kind


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("pixel_rms", [1.0, None])
def test_complements_and_common_parts_are_not_verified(k, pixel_rms):
    sim = simulate(Scheme(k, signs="kept"), 2 * k, m=60, d=200, rng=0)
    assert not recover(
        Encodings(sim.encodings.values, Scheme(k, signs="kept"), pixel_rms), rng=0
    ).verified.any()
    sim = simulate(Scheme(k, signs="kept"), 15, m=150, d=400, rng=2)
    values = sim.encodings.values + np.random.default_rng(k).standard_normal(400).astype(np.float32)
    assert not recover(Encodings(values, Scheme(k, signs="kept"), 1.0), rng=0).verified.any()


def test_an_audit_of_kept_signs_runs_this_attack():
    x = np.random.default_rng(0).standard_normal((30, 60)).astype(np.float32)
    result = unveil.audit(x, Scheme(2, signs="kept"), m=210, seeds=1, rng=0)
    assert result.attack == "mixup"
    assert unveil.plan(Scheme(2, signs="kept"), 30, m=210, d=60).attack == "linear algebra"


def test_a_fit_with_much_noise_does_not_keep_an_exact_one_from_being_tried(monkeypatch):
    """Alike pictures were fitted by too few vectors, and what left no rest was never looked at."""
    sim = simulate(Scheme(2, signs="kept"), 30, m=200, d=60, rng=0)
    real, calls = mixup_module.fit_linear, []

    def noisy_at_first(y, members, trusted, **options):
        fit = real(y, members, trusted, **options)
        calls.append(fit)
        if len(calls) == 1:
            size = np.sqrt(np.mean(fit.values**2))
            return replace(fit, exact=False, miss=np.full(len(fit.rows), 0.2 * size))
        return fit

    monkeypatch.setattr(mixup_module, "fit_linear", noisy_at_first)
    assert attack(sim).verified.all()
    assert len(calls) == 2


@pytest.mark.parametrize("offset", [30, 1000])
def test_a_large_offset_hides_nothing(offset):
    X = (offset + np.random.default_rng(1).standard_normal((14, 60))).astype(np.float32)
    sim = simulate(Scheme(2, weighting="convex", signs="kept"), private=X, m=90, rng=0)
    recovery = recover(replace(sim.encodings, pixel_rms=None), rng=0)
    assert score(recovery, X).exact == 14
