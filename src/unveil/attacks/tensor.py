"""Tensor decomposition: every private vector, by decomposing T_abc = |S_a ∩ S_b ∩ S_c|, estimated
from the remaining encodings.

After Chen, Song, Tao, Zhang: "Symmetric Sparse Boolean Matrix Factorization and Applications", ITCS
2022. S_a is the set of private vectors that encoding a mixes.

    1  P_a ← LearnPublic             the public vectors of every encoding, where there are any
    2  M_ab ← |S_a ∩ S_b|            GramExtract, rounded
    3  T_abc ← |S_a ∩ S_b ∩ S_c|     from the encodings that avoid them
                                     (`rivals.tensor.intersections`)
    4  W ← Jennrich(M, T), rounded   who mixes whom (`rivals.tensor.jennrich`,
                                     `rivals.tensor.boolean_factor`)
    5  x ← every pixel from W        with certificate (`attacks.from_subsets`)

The authors stop at W, and at the brighter pixels of each vector; step 5 is ours. Every k_private
from 2 on is treated alike. Single overlaps must be readable, a few wrong ones aside, and columns of
W independent, which takes more encodings than vectors. A vector that one encoding alone uses is
found as a column, but its values are not.

Cost: cubic in the number of encodings that are decomposed (up to 3,000; the others are read off
them) and in the number of vectors. Memory: 97 bytes for each pair of those encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unveil.attacks.from_subsets import from_subsets
from unveil.attacks.overlaps import read_overlaps
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Overlaps, Progress, Recovery
from unveil.rivals.tensor.boolean_factor import ROWS, boolean_factor
from unveil.scheme import FIXED_WEIGHTINGS
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
            f"k_private={k}: the tensor attack takes 2 to {MOST} private vectors per encoding; "
            "use attack='full'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    # 1. and 2. Overlaps, the public part taken out where there is one.
    P = as_public(public, encodings) if scheme.k_public else None
    seed, limit = root(rng), settle_limit(memory_limit)
    clock = Stopwatch()
    M, supports = read_overlaps(
        encodings, P, overlaps, clock, memory_limit=memory_limit, progress=progress
    )
    # 3. and 4. Who mixes whom.
    with clock("decomposition"), one_blas_thread():
        found = boolean_factor(M, child(seed, "tensor"), memory_limit=limit, progress=progress)
    if found is None:
        why = (
            f"the overlaps of {m} encodings cannot be decomposed: it takes more than {k + 1} "
            f"vectors, and more encodings than these (of {ROWS}, or as many as memory_limit allows)"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # Half of the encodings or more: a decomposition of chance explains a few as well.
    rows, members = found.subsets(k)
    if 2 * len(rows) < m:
        why = (
            f"the decomposition explains {len(rows)} of {m} encodings: too few encodings, too many "
            "wrong overlaps, or columns of the selection matrix that depend on each other"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    # 5. Values with their certificate.
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
