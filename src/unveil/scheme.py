"""How encodings are made: y = |Σ_public a_pub·p + Σ_private a_priv·x| (`defn:select_distribution`).

The printed definition fixes one weight per part. Released code draws weights anew for every
encoding; those laws are functions of `encode.weights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from numbers import Real
from typing import Literal, get_args

from unveil.checks import InputError, is_count

Fixed = Literal["equal", "paper", "convex"]
Drawn = Literal["half-normal", "released", "uniform", "dirichlet", "sorted", "dominant"]
Weighting = Literal[Fixed, Drawn, "unknown"]
Signs = Literal["absolute", "random", "kept", "masked"]
Pairing = Literal["independent", "epochs", "epochs-in-order"]

WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
SIGNS: tuple[Signs, ...] = get_args(Signs)
PAIRINGS: tuple[Pairing, ...] = get_args(Pairing)
FIXED_WEIGHTINGS: tuple[Weighting, ...] = get_args(Fixed)
EXACT_WEIGHTINGS: tuple[Weighting, ...] = (*FIXED_WEIGHTINGS, "half-normal")
"""Those the attacks that recover exact values take on."""
MOST_MIXED = 10**9
"""Vectors per encoding: beyond it counts of subsets leave 64 bits, and nobody mixes so many."""


@dataclass(frozen=True)
class Scheme:
    """How encodings are made: how many vectors each one mixes, with which weights and signs.

    Parameters
    ----------
    k_private, k_public : int
        Private and public vectors that each encoding mixes; one of them at least.
    weighting : str
        "equal": every selected entry is 1/√(k_public + k_private), so that the selection vector
        has norm 1.
        "paper": 1/√k_public and 1/√k_private as printed; norm √2 when both parts are present.
        "convex": every selected entry is 1/(k_public + k_private); entries sum to 1.
        "half-normal": magnitudes of normal numbers divided by their sum, drawn anew for every
        encoding and unknown; a public part only where signs are "masked".
        "released", "uniform", "dirichlet", "sorted", "dominant": weights of private and public
        vectors together, drawn anew for every encoding and unknown (`unveil.encode.weights`).
        "unknown": one of these; `attack="natural"` finds out which.
    signs : str
        "absolute": y = |Xw|. "random": y = ±Xw with a fair coin per pixel (InstaHide as
        released); it carries the same information. "kept": y = Xw (MixUp). "masked": y = σ∘Xw, σ
        one of a pool of fair ±1 vectors, drawn anew for every encoding (TextHide).
    pairing : str
        "independent": every encoding draws a subset of private vectors of its own.
        "epochs": as a training run does. In each epoch every private vector is mixed with those
        that random permutations put at its place, one for each further slot. A vector may meet
        itself; its weights then add. Public vectors of an epoch are as many as private ones, new
        ones in every epoch, each used once per slot. Rows of an epoch come in random order.
        "epochs-in-order": the same with the rows of an epoch in the order of the private vectors,
        so that row numbers give identities away, as in the challenge of InstaHide's authors.
    masks : int
        How many masks the pool has, where signs are "masked"; 0: not known.
    alpha : float
        The parameter of "dirichlet": Dirichlet(α, …, α), for two vectors the Beta(α, α) of MixUp.
        Below 1 one vector outweighs the others, above 1 weights are alike.

    References
    ----------
    `defn:select_distribution` of the paper.

    Examples
    --------
    >>> import unveil
    >>> scheme = unveil.Scheme(k_private=2, k_public=2)
    >>> scheme.private_weight, scheme.public_variance
    (0.5, 0.5)
    """

    k_private: int = 2
    k_public: int = 0
    weighting: Weighting = "equal"
    signs: Signs = "absolute"
    pairing: Pairing = "independent"
    masks: int = 0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        # 1. How many, with which weights and signs.
        for name in ("k_private", "k_public", "masks"):
            value = getattr(self, name)
            if not is_count(value) or value > MOST_MIXED:
                raise InputError(f"{name}={value!r}: give a whole number, 0 or more")
            # NumPy's integers overflow silently; Python's do not.
            object.__setattr__(self, name, int(value))
        if self.k_private + self.k_public == 0:
            raise InputError("k_private=0 and k_public=0: an encoding must mix at least one vector")
        words = {"weighting": WEIGHTINGS, "signs": SIGNS, "pairing": PAIRINGS}
        for name, choices in words.items():
            if (value := getattr(self, name)) not in choices:
                raise InputError(f"{name}={value!r}: choose one of {', '.join(choices)}")
        # 2. What does not go together.
        if self.weighting == "half-normal" and self.k_public and self.signs != "masked":
            raise InputError(
                f"weighting={self.weighting!r} with k_public={self.k_public}: weights of their own "
                "need k_public=0, or weighting='released'"
            )
        if self.masks and self.signs != "masked":
            raise InputError(f"masks={self.masks} with signs={self.signs!r}: use signs='masked'")
        # 3. The law's parameter.
        # Below, weights are 0 and 1 in single precision; above, all are equal.
        number = isinstance(self.alpha, Real) and not isinstance(self.alpha, bool)
        if not (number and 1e-3 <= self.alpha <= 1e6):
            raise InputError(f"alpha={self.alpha!r}: give a number from 0.001 to 1e+06")
        if self.alpha != 1 and self.weighting != "dirichlet":
            raise InputError(
                f"alpha={self.alpha} with weighting={self.weighting!r}: use weighting='dirichlet'"
            )
        object.__setattr__(self, "alpha", float(self.alpha))

    @property
    def fixed_weights(self) -> bool:
        """Whether all encodings have the same weights."""
        return self.weighting in FIXED_WEIGHTINGS

    @property
    def is_mixture(self) -> bool:
        """Whether signs were not hidden value by value, or weights are drawn anew that can be found
        behind hidden signs: what the attack "mixing" undoes."""
        if self.k_private < 1 or self.k_private + self.k_public < 2:
            return False
        if self.fixed_weights:
            return self.signs == "kept" and self.k_private >= 2
        half_normal = self.weighting == "half-normal" and not self.k_public
        return half_normal or self.signs in ("kept", "masked")

    @property
    def private_weight(self) -> float:
        """The weight of each selected private vector."""
        return self._weight(self.k_private)

    @property
    def public_weight(self) -> float:
        """The weight of each selected public vector."""
        return self._weight(self.k_public)

    @property
    def private_variance(self) -> float:
        """What the private part adds to E[y²] when vectors are standard: ‖[w]_private‖²."""
        return self.k_private * self.private_weight**2

    @property
    def public_variance(self) -> float:
        """What the public part adds to E[y²] when vectors are standard: ‖[w]_public‖²."""
        return self.k_public * self.public_weight**2

    def require_weighting(self, *known: Weighting) -> None:
        """Asked by what can take on some weightings only."""
        if self.weighting not in known:
            attack = "mixing" if self.weighting in EXACT_WEIGHTINGS else "natural"
            raise InputError(
                f"weighting={self.weighting!r}: every encoding has weights of its own; "
                f"use attack='{attack}'"
            )

    def _weight(self, part: int) -> float:
        # A part that is not there has weight 0 under every law, also where others have no one
        # weight.
        if part == 0:
            return 0.0
        self.require_weighting(*FIXED_WEIGHTINGS)
        total = self.k_private + self.k_public
        one = {"equal": 1 / sqrt(total), "paper": 1 / sqrt(part), "convex": 1 / total}
        return one[self.weighting]
