"""Random numbers: the same seed gives the same bytes, and no stage shifts another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.checks import InputError, child, root
from unveil.encode import simulate
from unveil.scheme import Scheme

SEEDS = st.integers(0, 2**64 - 1)
NAMES = st.text("abz-09Σé", min_size=1, max_size=12)


@given(SEEDS, NAMES)
def test_same_seed_same_bytes(seed: int, name: str) -> None:
    first, second = (child(root(seed), name).bytes(32) for _ in range(2))
    assert first == second


@given(SEEDS, SEEDS, NAMES)
def test_other_seed_other_bytes(seed: int, other: int, name: str) -> None:
    same = child(root(seed), name).bytes(32) == child(root(other), name).bytes(32)
    assert same is (seed == other)


def test_stages_are_independent() -> None:
    parent = root(7)
    names = ("private", "public", "selection-private", "selection-public", "signs-and-noise")
    assert len({child(parent, name).bytes(32) for name in names}) == len(names)
    alone = child(root(7), "public").standard_normal(4)
    child(parent, "private").standard_normal(1000)
    assert np.array_equal(child(parent, "public").standard_normal(4), alone)


def test_stages_of_a_simulation_do_not_shift_each_other() -> None:
    scheme = Scheme(k_private=2, k_public=1, signs="random")
    small = simulate(scheme, 6, n_public=4, m=5, d=8, rng=0)
    large = simulate(scheme, 6, n_public=9, m=5, d=8, noise=0.1, rng=0)
    assert np.array_equal(small.private, large.private)
    assert np.array_equal(small.selection.private, large.selection.private)


def test_same_seed_same_simulation() -> None:
    scheme = Scheme(k_private=2, signs="random")
    first, second = (simulate(scheme, 6, m=5, d=8, noise=0.1, rng=3) for _ in range(2))
    assert first.encodings.values.tobytes() == second.encodings.values.tobytes()


def test_a_generator_is_advanced() -> None:
    generator = np.random.default_rng(0)
    state = generator.bit_generator.state
    first, second = root(generator), root(generator)
    assert generator.bit_generator.state != state
    assert child(first, "a").bytes(8) != child(second, "a").bytes(8)
    again = root(np.random.default_rng(0))
    assert child(first, "a").bytes(8) == child(again, "a").bytes(8)


def test_none_is_fresh_and_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert child(root(None), "a").bytes(32) != child(root(None), "a").bytes(32)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_numpy_integers_count_as_seeds() -> None:
    assert child(root(np.int64(5)), "a").bytes(8) == child(root(5), "a").bytes(8)  # type: ignore[arg-type]


@pytest.mark.parametrize("rng", [-1, 1.5, "0", True, np.random.RandomState(0)])
def test_refusals(rng: object) -> None:
    with pytest.raises(InputError, match="whole number of 0 or more"):
        root(rng)  # type: ignore[arg-type]
