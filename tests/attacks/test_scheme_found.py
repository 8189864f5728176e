"""Encodings without a word on how they were made: the scheme is found out."""

from itertools import combinations

import numpy as np
import pytest

from unveil import InputError, Scheme, recover, score, simulate
from unveil.attacks.scheme_found import find_scheme
from unveil.attacks.seen import hold_one_each


def made(k, weighting, signs, *, noise=0.0, scale=3.0, m=200, d=80, seed=0):
    scheme = Scheme(k, weighting=weighting, signs=signs)
    sim = simulate(scheme, 15, m=m, d=d, noise=noise, rng=seed)
    return sim, sim.encodings.values * np.float32(scale)


@pytest.mark.parametrize(
    ("k", "weighting", "noise"),
    [
        (1, "convex", 0.0),
        (2, "convex", 0.0),
        (2, "dirichlet", 0.0),
        (3, "convex", 0.0),
        (3, "dirichlet", 0.02),
    ],
)
def test_signs_kept(k, weighting, noise):
    _, values = made(k, weighting, "kept", noise=noise)
    found = find_scheme(values, rng=0)
    assert (found.scheme.k_private, found.scheme.signs) == (k, "kept")
    assert found.scheme.fixed_weights == (k == 1 or weighting == "convex")
    assert ("no noise" in found.evidence["noise"]) == (not noise)


@pytest.mark.parametrize(
    ("k", "weighting", "signs"),
    [(1, "convex", "absolute"), (2, "convex", "random"), (2, "half-normal", "absolute")],
)
def test_signs_hidden(k, weighting, signs):
    sim, values = made(k, weighting, signs, m=140, d=100)
    found = find_scheme(values, rng=0)
    assert (found.scheme.k_private, found.scheme.signs) == (k, signs)
    assert found.scheme.weighting == weighting
    if k > 1:
        assert found.recovery.verified.all()
        assert score(found.recovery, 3 * sim.private).wrong == 0


def test_masks_of_a_pool():
    rng = np.random.default_rng(0)
    private = rng.standard_normal((15, 80)) + 3 * rng.standard_normal(80)
    scheme = Scheme(2, weighting="half-normal", signs="masked", masks=3)
    sim = simulate(scheme, private=private, m=240, rng=0)
    recovery = recover(sim.encodings.values, rng=0)
    said = recovery.evidence["scheme"]
    assert (said["k_private"], said["signs"], said["masks"]) == (2, "masked", 3)
    scores = score(recovery, sim.private)
    assert (recovery.attack, scores.exact, scores.wrong) == ("unmask", 15, 0)


def test_recover_takes_an_array_alone():
    sim, values = made(3, "dirichlet", "kept")
    recovery = recover(values, rng=0)
    assert score(recovery, 3 * sim.private).exact == 15
    assert recovery.evidence["scheme"]["k_private"] == 3
    assert set(recovery.evidence["scheme"]["because"]) >= {"k_private", "weighting", "signs"}
    assert "found out" in recovery.explanation


def test_an_array_with_its_scheme_is_not_asked_again():
    sim, values = made(2, "convex", "kept")
    recovery = recover(values, scheme=Scheme(2, weighting="convex", signs="kept"), rng=0)
    assert score(recovery, 3 * sim.private).exact == 15
    assert "scheme" not in recovery.evidence
    with pytest.raises(InputError, match="scheme= beside"):
        recover(values, attack="mixup")
    with pytest.raises(InputError, match="which have one"):
        recover(sim.encodings, scheme=Scheme(3))


def test_noise_alone_follows_no_scheme():
    values = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    assert find_scheme(values, rng=0) is None


@pytest.mark.parametrize(("n", "k", "signs"), [(6, 4, "kept"), (7, 5, "absolute")])
def test_complements_are_not_verified_where_k_was_not_told(n, k, signs):
    X = np.random.default_rng(n).standard_normal((n, 60)).astype(np.float32)
    Z = np.array([X[list(rows)].mean(axis=0) for rows in combinations(range(n), k)])
    recovery = recover(np.abs(Z) if signs == "absolute" else Z, rng=0)
    assert len(recovery) == n
    assert not recovery.verified.any()
    assert "state k_private" in recovery.explanation


def test_encodings_released_three_times_change_nothing():
    X = np.random.default_rng(82).standard_normal((20, 60)).astype(np.float32)
    Y = np.abs([X[list(rows)].mean(axis=0) for rows in combinations(range(20), 2)])
    recovery = recover(np.repeat(Y, 3, axis=0), rng=0)
    assert score(recovery, X).exact == 20


def test_pairs_of_a_narrow_table_are_not_taken_for_single_records():
    # Eight columns correlate by chance, and some pairs are drawn twice.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 8)).astype(np.float32)
    rows = np.array([rng.choice(60, 2, replace=False) for _ in range(500)])
    assert hold_one_each(np.abs(X[rows].mean(axis=1))) == 0
