"""Which encodings look like those of Gaussian vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unveil.attacks import normal_pixels
from unveil.attacks.normal_pixels import look_normal
from unveil.encode.simulate import simulate
from unveil.scheme import Scheme

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


@pytest.mark.parametrize(
    ("scheme", "n", "m", "d"),
    [
        (Scheme(2), 100, 700, 1024),
        (Scheme(2), 30, 1500, 500),
        (Scheme(6), 100, 500, 300),
        (Scheme(2, 2), 100, 700, 256),
    ],
)
def test_gaussian_vectors_do(scheme: Scheme, n: int, m: int, d: int) -> None:
    n_public = 500 if scheme.k_public else 0
    sim = simulate(scheme, n, n_public=n_public, m=m, d=d, rng=3)
    assert look_normal(sim.encodings)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, size: rng.uniform(-1, 1, size),
        lambda rng, size: rng.laplace(size=size),
        lambda rng, size: rng.choice([-1.0, 1.0], size),
        lambda rng, size: np.cumsum(rng.standard_normal(size), axis=1),
        lambda rng, size: rng.standard_normal(size) * np.where(np.arange(size[1]) % 2, 1, 3),
        lambda rng, size: np.repeat(rng.standard_normal((size[0], size[1] // 2)), 2, axis=1),
        lambda rng, size: np.zeros(size),
    ],
    ids=["uniform", "Laplace", "signs", "walks", "two scales", "pairs of pixels", "nothing"],
)
def test_others_do_not(draw: Draw) -> None:
    private = draw(np.random.default_rng(1), (100, 400)).astype(np.float32)
    assert not look_normal(simulate(Scheme(2), private=private, m=700, rng=0).encodings)


def test_of_few_pixels_nothing_is_said() -> None:
    sim = simulate(Scheme(2), 100, m=700, d=normal_pixels.FEWEST - 1, rng=0)
    assert not look_normal(sim.encodings)
