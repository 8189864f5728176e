"""Tensor decomposition: every private vector, from what three encodings share, which the others
tell.

After Chen, Song, Tao, Zhang: "Symmetric Sparse Boolean Matrix Factorization and Applications", ITCS
2022.

    1  S_i ← LearnPublic                        the public vectors of every encoding, where there is a public part
    2  M ← GramExtract                          overlaps of private subsets, rounded
    3  T_abc ← |S_a ∩ S_b ∩ S_c|                from the encodings that avoid them (`rivals.tensor.intersections`)
    4  W ← Jennrich(M, T), rounded              who mixes whom (`rivals.tensor.jennrich`, `rivals.tensor.boolean_factor`)
    5  x ← every pixel from W, with certificate (`attacks.from_subsets`)

The authors stop at W, and at the brighter pixels of each vector; step 5 is ours. All k_private ≥ 2
alike: no structure is looked for, and no case distinguished. Needs single overlaps to be readable,
a few wrong ones aside, and independent columns of W, so more encodings than vectors. A vector that
one encoding alone uses is found as a column, but not as a vector. Cost: cubic in the number of
encodings that are decomposed (up to 3,000, the others are read off them), cubic in the number of
vectors; memory 97 bytes for each pair of those encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unveil.attacks.from_subsets import from_subsets
from unveil.attacks.overlaps import read_overlaps
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import (
    FIXED_WEIGHTINGS,
    Encodings,
    InputError,
    Overlaps,
    Progress,
    Recovery,
    as_public,
)
from unveil.rivals.tensor.boolean_factor import ROWS, boolean_factor
from unveil.seeds import Rng, child, root

NAME = "tensor"
MOST = 24
"""Private vectors per encoding: the likelihoods of three overlaps are tables of (k+1)⁴ entries."""


def tensor(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector whose encodings the decomposition explains.

    `overlaps`: those to decompose, where they are known from elsewhere; some may be wrong.
    """
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private
    if not 2 <= k <= MOST:
        raise InputError(
            f"k_private={k}: the tensor attack takes 2 to {MOST} private vectors per encoding; use attack='full'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    P = as_public(public, encodings) if scheme.k_public else None
    seed, limit = root(rng), settle_limit(memory_limit)
    clock = Stopwatch()
    M, supports = read_overlaps(
        encodings, P, overlaps, clock, memory_limit=memory_limit, progress=progress
    )
    with clock("decomposition"), one_blas_thread():
        found = boolean_factor(M, child(seed, "tensor"), memory_limit=limit, progress=progress)
    if found is None:
        why = f"the overlaps of {m} encodings cannot be decomposed: it takes more than {k + 1} vectors, and more encodings "
        return Recovery.empty(
            encodings,
            NAME,
            why + f"than these (of {ROWS}, or as many as memory_limit allows)",
            clock.seconds,
        )
    rows, members = found.subsets(k)
    if 2 * len(rows) < m:
        why = f"the decomposition explains {len(rows)} of {m} encodings: too few encodings, too many wrong overlaps, or columns "
        return Recovery.empty(
            encodings,
            NAME,
            why + "of the selection matrix that depend on each other",
            clock.seconds,
        )
    facts = {
        "estimated_n_private": found.W.shape[1],
        "encodings_decomposed": found.decomposed,
        "overlaps_reproduced": float(np.mean(found.fit[rows])),
    }
    draw = child(seed, "pixels")
    return from_subsets(
        encodings,
        NAME,
        rows,
        members,
        draw,
        clock,
        public=P,
        supports=supports,
        facts=facts,
        memory_limit=memory_limit,
        progress=progress,
    )


ATTACK = tensor
