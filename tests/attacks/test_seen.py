"""What values show before any attack."""

import numpy as np
import pytest

from unveil import Scheme, recover, simulate
from unveil.attacks.seen import hold_one_each, likely_k, look


def made(signs="absolute", k=2, **options):
    return simulate(Scheme(k, signs=signs), 15, m=120, d=200, rng=0, **options).encodings.values


@pytest.mark.parametrize("signs", ["absolute", "random", "kept"])
def test_signs_are_told(signs):
    assert look(made(signs)).signs == signs


def test_clipped_and_rounded_values_are_seen():
    values = made("kept")
    assert look(values).clipped < 1e-3
    assert look(np.clip(values, -1, 1)).clipped > 0.1
    assert "cut off" in look(np.clip(values, -1, 1)).words["clipped"]
    assert look(values).step == 0
    assert look(np.rint(values * 10) / 10).step == pytest.approx(0.1, rel=1e-3)
    assert look(3 * values).size == pytest.approx(3 * look(values).size, rel=1e-4)


def test_one_record_each_is_told_from_mixtures():
    assert hold_one_each(made(k=1)) == 15
    assert hold_one_each(made(k=1, noise=0.05)) == 15
    assert hold_one_each(made(k=2)) == 0


@pytest.mark.parametrize("k", [2, 3, 4])
def test_two_moments_tell_how_many_are_mixed(k):
    sim = simulate(Scheme(k), 60, m=300, d=2000, rng=1)
    assert likely_k(sim.encodings.magnitudes()) == k


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0, 1])
def test_encodings_that_are_all_the_same_are_no_warning(value):
    assert likely_k(np.full((1, 6), value, np.float32)) == 2
    assert likely_k(np.full((6, 1), value, np.float32)) == 2
    assert not len(recover(np.full((30, 40), value, np.float32)))
