"""The dialects of λ: how an encoding draws its weights, private and public ones together, k =
k_private + k_public of them.

  half-normal  |N(0, 1)| divided by the sum; private vectors only
  released     the same with public vectors, drawn again while one weight exceeds 0.65 or the first
               two sum to less than 0.3: InstaHide's own code (Huang, Song, Li, Arora, ICML 2020;
               github.com/Hazelsuko07/InstaHide, `train_cross.py`, --upper and --dom). Private slots
               come first. So the bound is on the private ones where k_private = 2, on two of them
               where there are more, and on the private and the first public one where
               k_private = 1. No bounds for k = 1. Without public vectors (`train_inside.py`) there
               is the upper bound only
  uniform      uniform numbers divided by their sum
  dirichlet    Dirichlet(α, …, α), for k = 2 the Beta(α, α) of MixUp (Zhang et al., ICLR 2018);
               α = 1 is uniform over the simplex
  dominant     Dirichlet(3, 1, …, 1), drawn again while one weight exceeds 0.65 or the smallest is
               below a bound of its own, 0 in its examples: GradAttack (Huang, Gupta, Song, Li,
               Arora, NeurIPS 2021; `defenses/mixup.py`, `defenses/instahide.py`). The first slot
               gets more
  sorted       as uniform, in descending order: private slots come first and get the largest. The
               generator of the fusion-denoising attack (FDN) on InstaHide draws so; its two
               private weights of six have means 0.296 and 0.241. For k = 2 a record outweighs what
               it is mixed with, as in MixMatch (Berthelot et al., NeurIPS 2019)

Rows that miss the bounds are drawn again all at once; the law is that of drawing one row again and
again. O(m·k) per round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.scheme import Scheme, Weighting

LARGEST, LEAST_FIRST = 0.65, 0.3
"""The defaults of --upper and --dom in the released code: no weight above the one, and the first
two weights not below the other together."""
FIRST_COUNT = 3.0
"""The first parameter of GradAttack's Dirichlet law; the others are 1."""
ROUNDS = 5000
"""After so many draws of a row the bounds are taken to contradict each other."""

Weights = NDArray[np.float64]
DrawWeights = Callable[[int, Scheme, np.random.Generator], Weights]


def half_normal(m: int, scheme: Scheme, rng: np.random.Generator) -> Weights:
    return _shares(np.abs(rng.standard_normal((m, scheme.k_private + scheme.k_public))))


def released(m: int, scheme: Scheme, rng: np.random.Generator) -> Weights:
    # The lower bound belongs to the code that mixes in public images.
    least = LEAST_FIRST if scheme.k_private and scheme.k_public else 0.0
    return _redrawn(half_normal, lambda found: found[:, :2].sum(axis=1) < least, m, scheme, rng)


def uniform(m: int, scheme: Scheme, rng: np.random.Generator) -> Weights:
    # Numbers in (0, 1]: the sum is never zero.
    return _shares(1.0 - rng.random((m, scheme.k_private + scheme.k_public)))


def dirichlet(m: int, scheme: Scheme, rng: np.random.Generator) -> Weights:
    return rng.dirichlet(np.full(scheme.k_private + scheme.k_public, scheme.alpha), size=m)


def descending(m: int, scheme: Scheme, rng: np.random.Generator) -> Weights:
    return -np.sort(-uniform(m, scheme, rng), axis=1)


def dominant(m: int, scheme: Scheme, rng: np.random.Generator, *, smallest: float = 0.0) -> Weights:
    """`smallest`: what no weight may be below."""
    counts = np.r_[FIRST_COUNT, np.ones(scheme.k_private + scheme.k_public - 1)]

    def draw(rows: int, _: Scheme, rng: np.random.Generator) -> Weights:
        return rng.dirichlet(counts, size=rows)

    return _redrawn(draw, lambda found: found.min(axis=1) < smallest, m, scheme, rng)


LAWS: Mapping[str, DrawWeights] = {
    "half-normal": half_normal,
    "released": released,
    "uniform": uniform,
    "dirichlet": dirichlet,
    "sorted": descending,
    "dominant": dominant,
}


def draw_weights(scheme: Scheme, m: int, rng: np.random.Generator) -> Weights:
    """λ (m, k_private + k_public), private slots first; every row sums to 1."""
    if scheme.weighting not in LAWS:
        raise InputError(
            f"weighting={scheme.weighting!r}: no law to draw weights from; choose one of "
            f"{', '.join(LAWS)}"
        )
    return LAWS[scheme.weighting](m, scheme, rng)


def possible_laws(scheme: Scheme) -> list[Scheme]:
    """The scheme with every law it may follow, where it says "unknown"."""
    if scheme.weighting != "unknown":
        return [scheme]
    names: list[Weighting] = ["released", "uniform", "dirichlet", "sorted", "convex"]
    names += [] if scheme.k_public else ["half-normal"]
    return [replace(scheme, weighting=name) for name in names]


def sample_weights(scheme: Scheme, m: int, rng: np.random.Generator) -> Weights:
    """About m rows of weights: of the scheme's law, of its fixed weights, or of all laws together
    where it is unknown."""
    schemes = possible_laws(scheme)
    return np.concatenate([_sample(one, max(1, m // len(schemes)), rng) for one in schemes])


def _sample(scheme: Scheme, m: int, rng: np.random.Generator) -> Weights:
    if not scheme.fixed_weights:
        return draw_weights(scheme, m, rng)
    each = scheme.private_weight, scheme.public_weight
    return np.tile(np.repeat(each, [scheme.k_private, scheme.k_public]), (m, 1))


def _shares(numbers: Weights) -> Weights:
    numbers /= numbers.sum(axis=1, keepdims=True)
    return numbers


def _redrawn(
    draw: DrawWeights,
    misses: Callable[[Weights], NDArray[np.bool_]],
    m: int,
    scheme: Scheme,
    rng: np.random.Generator,
) -> Weights:
    """Rows drawn again until no weight is above the bound of all laws and none `misses` the bounds
    of its own; one weight alone has none."""
    weights = draw(m, scheme, rng)
    if weights.shape[1] < 2:
        return weights
    todo = np.arange(m)
    for _ in range(ROUNDS):
        todo = todo[(weights[todo].max(axis=1) > LARGEST) | misses(weights[todo])]
        if not todo.size:
            return weights
        weights[todo] = draw(todo.size, scheme, rng)
    raise InputError(
        f"weighting={scheme.weighting!r}: {weights.shape[1]} weights almost never keep the bounds "
        "of their law; lower k_public, or use weighting='uniform'"
    )
