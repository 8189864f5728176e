"""recover(): any attack by name, all with one signature."""

import inspect

import numpy as np
import pytest

from unveil import Scheme, learn_private_image, recover, simulate
from unveil.attacks import ATTACKS
from unveil.records import Encodings, InputError, Recovery


def test_the_paper_by_name_is_learn_private_image():
    sim = simulate(Scheme(2), 20, m=120, d=3072, rng=0)
    by_name, direct = recover(sim.encodings, attack="paper", rng=1), learn_private_image(sim.encodings)
    np.testing.assert_array_equal(by_name.vectors, direct.vectors)
    assert by_name.attack == "paper"
    assert by_name.explanation == direct.explanation


def test_public_vectors_and_options_are_handed_on():
    sim = simulate(Scheme(2, 1), 15, n_public=20, m=60, d=1000, rng=0)
    stages = set()
    recovery = recover(sim.encodings, sim.public, memory_limit=10_000_000, progress=lambda stage, *_: stages.add(stage))
    assert isinstance(recovery, Recovery)
    assert "learn public" in stages
    with pytest.raises(InputError, match="memory_limit"):
        recover(sim.encodings, sim.public, memory_limit=0)


def test_an_unknown_attack_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match=r"attack='magic': choose one of .*paper"):
        recover(Encodings(np.ones((2, 2)), Scheme()), attack="magic")


def test_every_attack_has_the_same_signature_as_recover():
    wanted = [name for name in inspect.signature(recover).parameters if name != "attack"]
    for attack in ATTACKS.values():
        assert list(inspect.signature(attack).parameters) == wanted


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_every_attack_answers_an_easy_instance(attack):
    sim = simulate(Scheme(2), 15, m=100, d=3072, rng=1)
    recovery = recover(sim.encodings, attack=attack, rng=0)
    assert recovery.attack == attack
    assert recovery.verified.any()
