"""A few of the hostile instances of benchmarks/hostile.py: nothing wrong is ever verified, nothing
crashes."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

import unveil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
hostile = pytest.importorskip(
    "benchmarks.hostile", reason="benchmarks/ is not part of an installed package"
)


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_wrong_vector_is_verified(kind):
    for seed in range(3):
        _, wrong = hostile.spring(hostile.trap(kind, 5000 + seed), "paper")
        assert wrong == 0


@pytest.mark.parametrize("kind", [kind for kind in hostile.FAMILIES if "public" not in kind])
def test_no_wrong_vector_of_a_family_is_verified(kind):
    """The true overlaps are told, so that the certificate is asked in earnest."""
    _, wrong = hostile.spring(hostile.family(kind, 7003), "told")
    assert wrong == 0


def test_a_trial_that_takes_too_long_is_reported(monkeypatch):
    monkeypatch.setattr(hostile, "LIMIT", 1)
    monkeypatch.setattr(hostile, "spring", lambda trap, attack: time.sleep(3))
    _, _, measured, passed = hostile.rows(1, "exact", "tree")[0]
    assert not passed
    assert "1 too slow" in measured


def test_wrong_k_with_a_common_vector_is_seen_through():
    """Encodings of c + x_a + x_b with k_private = 2 claimed satisfy every equation of a floral, for
    x + c/2."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 3000)).astype(np.float32)
    # One draw: it takes seven seconds to look through all florals.
    values = unveil.simulate(unveil.Scheme(3), private=x, m=245, rng=0).encodings.values
    recovery = unveil.learn_private_image(unveil.Encodings(values, unveil.Scheme(2)))
    assert not recovery.verified.any()


def test_encodings_that_were_not_solved_with_speak_against_a_value_that_fits_the_others():
    # Eight encodings of one vector fit a wrong value of a pixel to 7e-5 by chance; twenty others,
    # told by their other pixels, miss it by 0.03.
    trap = hostile.family("planted", 90_000)
    recovery = unveil.recover(trap.encodings, attack="tensor", rng=0)
    assert unveil.score(recovery, trap.private).wrong == 0


def test_data_in_which_overlaps_show_one_cluster_verify_nothing_wrong():
    trap = hostile.family("heavy tails", 90_003)
    assert hostile.spring(trap, "noisy-relations")[1] == 0


@pytest.mark.parametrize("attack", [None, "line-graph", "tensor"])
def test_a_list_with_vectors_of_both_signs_misleads_no_attack(attack):
    trap = hostile.family("negated public", 92_005)
    recovery = unveil.recover(trap.encodings, trap.public, attack=attack, rng=0)
    assert unveil.score(recovery, trap.private).wrong == 0


@pytest.mark.filterwarnings("error")
def test_least_squares_of_levels_does_not_overflow():
    trap = hostile.family("discrete", 92_003, signs="kept")
    assert hostile.spring(trap, "mixup")[1] == 0


def test_a_vector_that_took_in_a_public_one_of_the_wrong_size_is_not_verified():
    # The list has public vector 0 at half its size: the twelve encodings with it that are explained
    # are those of one private vector, which holds the other half.
    trap = hostile.family("scaled public", 300_010)
    assert hostile.spring(trap, "tensor")[1] == 0
