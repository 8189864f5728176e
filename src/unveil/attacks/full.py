"""The full attack: every private vector, from about n·log n encodings, with far fewer pixels than
rounding overlaps needs.

  one private vector per encoding   nothing to unmix (`attacks.alone`)
  weights new in every encoding     members and weights together (`unveil.mixing`)
  pixels that go together           as in images: patches of pixels say who is like whom
                                    (`attacks.by_patches`)
  overlaps that can be read         no public part, single overlaps clear: the sparse route is much
                                    faster, and has no limit of encodings (`attacks.large`)
  all else                          similarities pooled over all pairs (`attacks.dense`)

Routes are tried in this order; one that explains nearly all encodings has the last word. With a
public part signs are determined, without one they are up to a common one per pixel.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from unveil.attacks.alone import alone
from unveil.attacks.by_patches import applies as in_patches
from unveil.attacks.by_patches import by_patches
from unveil.attacks.dense import dense, dense_bytes
from unveil.attacks.large import large
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.mixing import recover_mixture
from unveil.parallel import Stopwatch
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import EXACT_WEIGHTINGS, Scheme
from unveil.seeds import Rng, root

NAME = "full"
LARGEST = 6000
"""Encodings that m×m matrices are made for: beyond, they take gigabytes, and factoring them takes
longer than all else."""
SPARSE_FROM = 500
"""Encodings from which the sparse route is tried first; it must explain `ENOUGH` of them."""
ENOUGH = 0.99
"""The share of encodings that a faster route must explain to have the last word: the rest may use
vectors that no other encoding does."""


def takes(scheme: Scheme, m: int) -> bool:
    """Whether `full` can take m encodings of this scheme on."""
    pairs, others = scheme.k_private == 2, scheme.k_private > 2 and not scheme.k_public
    sparse_route = scheme.fixed_weights and (pairs or others)
    known = scheme.fixed_weights or not scheme.k_public
    exact = scheme.k_private >= 1 and scheme.weighting in EXACT_WEIGHTINGS and known
    return exact and (m <= LARGEST or sparse_route)


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

    `overlaps`: to start from, where they are known from elsewhere; some may be wrong. Refused where
    nothing reads them: unknown weights, and k_private = 1 without a public part.
    """
    # 1. Can these be attacked at all?
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private
    if k < 1:
        raise InputError(
            f"k_private={k}: there is nothing private to recover; use k_private of 1 or more"
        )
    scheme.require_weighting(*EXACT_WEIGHTINGS)
    if not takes(scheme, m):
        raise InputError(
            f"m={m}: with unknown weights, k_private=1, or a public part beside more than two "
            f"private vectors the full attack handles up to {LARGEST} encodings; pass a part of "
            "them, or use attack='paper'"
        )
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    given = None if overlaps is None else overlaps.of(encodings)
    if given is not None and (not scheme.fixed_weights or (k == 1 and P is None)):
        raise InputError(
            f"overlaps= with k_private={k}, weighting={scheme.weighting!r} and no public part: "
            "nothing reads them there; leave them out"
        )
    limit = bytes_allowed(memory_limit)
    # 2. Schemes with a route of their own.
    if k == 1:
        return alone(encodings, P, given, NAME, limit, progress)
    if not scheme.fixed_weights:
        mixture = recover_mixture(encodings, rng=rng, memory_limit=memory_limit, progress=progress)
        return replace(mixture, attack=NAME)
    # 3. Pixels that go together: patches. One clock for all routes: what a failed one took counts.
    seed, clock = root(rng), Stopwatch()
    recovery = None
    if P is None and given is None and m <= LARGEST and in_patches(encodings, limit):
        recovery = by_patches(encodings, seed, clock, progress=progress)
        if recovery.verified.any() or recovery.explained >= ENOUGH * m:
            return recovery
    # 4. Overlaps that can be read one by one. Beside a public part, which takes longest to learn,
    # only where the next route cannot follow.
    if m > LARGEST or (P is None and m >= SPARSE_FROM):
        least = ENOUGH if m <= LARGEST else 0.0
        recovery = large(
            encodings,
            P,
            seed,
            clock,
            overlaps=given,
            least=least,
            memory_limit=memory_limit,
            progress=progress,
        )
        if recovery.explained >= least * m:
            return recovery
    # 5. All similarities at once; where they do not fit, what the last route found stands.
    short = dense_bytes(m, encodings.d, P is not None) > limit
    if short and recovery is not None and len(recovery):
        return recovery
    return dense(encodings, P, given, seed, clock, memory_limit, progress)


ATTACK = full
