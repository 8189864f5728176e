"""recover(): any attack by name, all with one signature."""

import inspect

import numpy as np
import pytest

from unveil import (
    Scheme,
    gram_extract,
    learn_private_image,
    learn_public,
    plan,
    recover,
    score,
    simulate,
)
from unveil.attacks import ATTACKS, attack_called
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import Recovery


def test_the_paper_by_name_is_learn_private_image():
    sim = simulate(Scheme(2), 20, m=120, d=3072, rng=0)
    by_name, direct = (
        recover(sim.encodings, attack="paper", rng=1),
        learn_private_image(sim.encodings),
    )
    np.testing.assert_array_equal(by_name.vectors, direct.vectors)
    assert by_name.attack == "paper"
    assert by_name.explanation == direct.explanation


def test_public_vectors_and_options_are_handed_on():
    sim = simulate(Scheme(2, 1), 15, n_public=20, m=60, d=1000, rng=0)
    stages = set()
    recovery = recover(
        sim.encodings,
        sim.public,
        memory_limit=10_000_000,
        progress=lambda stage, *_: stages.add(stage),
    )
    assert isinstance(recovery, Recovery)
    assert "learn public" in stages
    with pytest.raises(InputError, match="memory_limit"):
        recover(sim.encodings, sim.public, memory_limit=0)


def test_an_unknown_attack_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match=r"attack='magic': choose one of .*paper"):
        recover(Encodings(np.ones((2, 2)), Scheme()), attack="magic")


def test_every_attack_takes_what_recover_hands_on():
    """By the names that `recover` has for it, in its order."""
    names = list(inspect.signature(recover).parameters)
    for attack in map(attack_called, ATTACKS):
        shared = [name for name in inspect.signature(attack).parameters if name in names]
        assert shared == [name for name in names if name in shared]
        assert {"encodings", "public", "rng", "memory_limit", "progress"} <= set(shared)


@pytest.mark.parametrize(
    "attack", sorted(set(ATTACKS) - {"natural", "mixing", "phase-retrieval", "absolute"})
)
def test_every_attack_answers_an_easy_instance(attack):
    sim = simulate(Scheme(2), 15, m=100, d=3072, rng=1)
    recovery = recover(sim.encodings, attack=attack, rng=0)
    assert recovery.attack == attack
    assert recovery.verified.any()


@pytest.mark.parametrize("weighting", ["released", "uniform", "dirichlet", "sorted"])
@pytest.mark.parametrize(("k_private", "k_public"), [(2, 0), (2, 2), (1, 2)])
def test_weights_drawn_with_the_public_part_are_refused_by_all_that_needs_fixed_ones(
    weighting, k_private, k_public
):
    scheme = Scheme(k_private, k_public, weighting)
    n_public = 10 if k_public else 0
    sim = simulate(scheme, 12, n_public=n_public, m=40, d=60, rng=0)
    refused = "every encoding has weights of its own; use (attack='natural'|method='folded-em')"
    for name in ("exact", "paper", "line-graph", "tensor"):
        with pytest.raises(InputError, match=refused if k_private > 1 else "weights|k_private=1"):
            recover(sim.encodings, sim.public, attack=name)
    with pytest.raises(InputError, match=refused):
        gram_extract(sim.encodings, sim.public)
    for method in ("folded-em", "diagonal", "sdp") if k_public else ():
        with pytest.raises(
            InputError, match=r"weights of its own; use method='folded-em' with weights='unknown'"
        ):
            learn_public(sim.encodings, sim.public, method=method)


def test_supports_are_learned_where_weights_are_drawn_with_the_public_part():
    """Two strong public vectors, so that some supports are certain; none of those is wrong."""
    sim = simulate(Scheme(1, 2, "dirichlet"), 12, n_public=30, m=60, d=1500, rng=3)
    found = learn_public(sim.encodings, sim.public, weights="unknown")
    assert found.certain.sum() > 10
    np.testing.assert_array_equal(found.indices[found.certain], sim.selection.public[found.certain])


def test_half_normal_weights_are_attacked_and_planned_as_before():
    assert plan(Scheme(2, weighting="half-normal"), 12).attack == "mixing"
    sim = simulate(Scheme(2, weighting="half-normal"), 12, m=90, d=400, rng=0)
    recovery = recover(sim.encodings, rng=0)
    assert recovery.verified.sum() >= 10
    assert score(recovery, sim.private).wrong == 0


@pytest.mark.parametrize("seed", range(3))
def test_epochs_with_vectors_that_meet_themselves_verify_nothing_wrong(seed):
    sim = simulate(Scheme(2, pairing="epochs"), 25, m=250, d=600, rng=seed)
    assert (sim.selection.private[:, 0] == sim.selection.private[:, 1]).any()
    scores = score(recover(sim.encodings, rng=0), sim.private)
    assert scores.wrong == 0
    assert scores.exact >= 23


def test_two_encodings_per_vector_and_many_pixels_are_enough():
    sim = simulate(Scheme(3), 40, m=80, d=3000, rng=2)
    scores = score(recover(sim.encodings, rng=0), sim.private)
    assert scores.exact >= 30
    assert scores.wrong == 0


def test_one_private_vector_per_encoding_is_not_handed_to_attacks_that_refuse_it():
    sim = simulate(Scheme(1), 5, m=20, d=30, rng=0)
    assert recover(sim.encodings, rng=0).attack == "exact"


def _mixed(x, m, k):
    rng = np.random.default_rng(1)
    members = np.array([rng.choice(len(x), k, replace=False) for _ in range(m)])
    return np.abs(x[members].sum(axis=1) / np.sqrt(k))


def _hopeless():
    """Encodings that determine nothing, by name, with k_private."""
    rng = np.random.default_rng(0)
    return {
        "binary columns": (_mixed(rng.choice([-1.0, 1.0], (40, 20)), 240, 2), 2),
        "binary columns, three mixed": (_mixed(rng.choice([-1.0, 1.0], (40, 20)), 240, 3), 3),
        "three columns of five levels": (_mixed(rng.integers(-2, 3, (40, 3)), 240, 2), 2),
        "one encoding, many times": (
            np.repeat(np.abs(rng.standard_normal((1, 40))), 90, axis=0),
            2,
        ),
        "constant": (np.full((90, 40), 1.7), 2),
        "zeros": (np.zeros((90, 40)), 2),
        "one value per encoding": (np.repeat(rng.random((90, 1)), 40, axis=1), 2),
        "three encodings": (np.abs(rng.standard_normal((3, 40))), 2),
        "one encoding": (np.abs(rng.standard_normal((1, 40))), 2),
    }


@pytest.mark.parametrize("name", _hopeless())
def test_hopeless_encodings_end_in_words(name):
    """By default, whatever attacks are tried: nothing verified, and a reason."""
    values, k = _hopeless()[name]
    recovery = recover(Encodings(values, Scheme(k), pixel_rms=None), rng=0)
    assert not recovery.verified.any()
    assert len(recovery.explanation) > 40
    assert all(recovery.reasons)
