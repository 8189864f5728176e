"""LearnPublic (`alg:public_attack`): one call for every method, checked input, supports with confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unveil.parallel import memory_limit as settle_limit
from unveil.records import Encodings, InputError, Progress, Supports, as_public
from unveil.supports.diagonal import diagonal_supports
from unveil.supports.moment import moment_matrix
from unveil.supports.sdp import solve_sdp, top_coordinates

METHODS = ("diagonal", "sdp")
SDP_LARGEST = 1000


def learn_public(
    encodings: Encodings,
    public: ArrayLike | None,
    *,
    method: str = "diagonal",
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Supports:
    """supp([w]_S) of every encoding: `indices` (m, k_public), sorted in each row, with a confidence in [0, 1].

    method  "diagonal": the screen of the paper's experiments, any n_public, all encodings in blocks
            "sdp":      the paper's program, one encoding at a time, n_public up to a few hundred
    """
    if method not in METHODS:
        raise InputError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    vectors = as_public(public, encodings)
    k = encodings.scheme.k_public
    if vectors is None or k == 0:
        return Supports(np.empty((encodings.m, 0), np.int64), np.ones(encodings.m), method)
    if method == "sdp":
        if len(vectors) > SDP_LARGEST:
            raise InputError(f"method='sdp' with n_public={len(vectors)}: it costs n_public³ per step; use method='diagonal'")
        indices, margin = np.empty((encodings.m, k), np.int64), np.empty(encodings.m)
        for i in range(encodings.m):
            moment = moment_matrix(encodings.magnitudes(slice(i, i + 1))[0], vectors)
            indices[i], margin[i] = top_coordinates(solve_sdp(moment, k).matrix, k)
            if progress:
                progress("learn public", i + 1, encodings.m)
    else:
        indices, margin = diagonal_supports(
            encodings.magnitudes(), vectors, k, limit=settle_limit(memory_limit), progress=progress
        )
    return Supports(indices, margin, method)
