"""The full attack: every private vector that the encodings determine.

  fixed weights                 equations and similarities (`unveil.exact`)
  weights new in every encoding members and weights together (`attacks.unequal`)

With a public part signs are determined, without one they are up to a common one per pixel.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from unveil.attacks.unequal import full_unequal
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.exact import recover_exact
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import EXACT_WEIGHTINGS, Scheme
from unveil.seeds import Rng

NAME = "full"
LARGEST = 6000
"""Encodings with weights of their own that m×m matrices are made for: beyond, they take gigabytes."""


def takes(scheme: Scheme, m: int) -> bool:
    """Whether `full` can take m encodings of this scheme on."""
    if scheme.fixed_weights:
        return scheme.k_private >= 1
    own = scheme.weighting in EXACT_WEIGHTINGS and not scheme.k_public
    return scheme.k_private >= 1 and own and m <= LARGEST


def full(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, each with its status and the reason for it.

    `overlaps`: to start from, where they are known from elsewhere; some may be wrong. Only fixed
    weights have a use for them.
    """
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private
    if k < 1:
        raise InputError(
            f"k_private={k}: there is nothing private to recover; use k_private of 1 or more"
        )
    scheme.require_weighting(*EXACT_WEIGHTINGS)
    if not takes(scheme, m):
        raise InputError(
            f"m={m}: with unknown weights the full attack handles up to {LARGEST} encodings and no "
            "public part; pass a part of them"
        )
    if not scheme.fixed_weights:
        if overlaps is not None:
            raise InputError(
                f"overlaps= with weighting={scheme.weighting!r}: nothing reads them there; leave "
                "them out"
            )
        limit = bytes_allowed(memory_limit)
        return full_unequal(encodings, NAME, rng=rng, limit=limit, progress=progress)
    recovery = recover_exact(
        encodings,
        public,
        overlaps=None if overlaps is None else overlaps.of(encodings),
        rng=rng,
        memory_limit=memory_limit,
        progress=progress,
    )
    return replace(recovery, attack=NAME)


ATTACK = full
