"""LearnPublic (`alg:public_attack`): one call for every method, checked input, supports with confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import worker_count
from unveil.records import Encodings, InputError, Progress, Supports, as_public
from unveil.supports.confidence import confidence, is_certain
from unveil.supports.diagonal import diagonal_supports
from unveil.supports.folded import Floats, Model
from unveil.supports.folded_em import block_columns, folded_em
from unveil.supports.moment import moment_matrix
from unveil.supports.sdp import solve_sdp, top_coordinates
from unveil.supports.survey import Public, survey_public

METHODS = ("folded-em", "diagonal", "sdp")
SDP_LARGEST = 1000


def learn_public(
    encodings: Encodings,
    public: ArrayLike | None,
    *,
    method: str = "folded-em",
    workers: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Supports:
    """supp([w]_S) of every encoding: `indices` (m, k_public), sorted in each row, with a confidence in [0, 1].

    method  "folded-em": search in the folded-normal likelihood, with confidence; public vectors may be memory-mapped
            "diagonal":  the screen of the paper's experiments, any n_public, all encodings in blocks
            "sdp":       the paper's program, one encoding at a time, n_public up to a few hundred
    """
    if method not in METHODS:
        raise InputError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    limit, workers = settle_limit(memory_limit), worker_count(workers)
    vectors = as_public(public, encodings)
    k = encodings.scheme.k_public
    if vectors is None or k == 0:
        return Supports(np.empty((encodings.m, 0), np.int64), np.ones(encodings.m), method, np.ones(encodings.m, bool))
    if method == "sdp":
        return _sdp(encodings, vectors, progress)
    if method == "diagonal":
        found = diagonal_supports(encodings.magnitudes(), vectors, k, limit=limit, progress=progress)
        return Supports(*found, method)
    surveyed = survey_public(vectors, block_columns(encodings.d, limit))
    model = Model(k, encodings.scheme.public_weight, _private_variance(encodings, surveyed), surveyed.power)
    best = folded_em(encodings, surveyed, model, limit=limit, workers=workers, progress=progress)
    return Supports(
        best.indices,
        confidence(best.margin, best.fit),
        method,
        certain=is_certain(best.margin, best.fit),
        interchangeable=surveyed.interchangeable,
    )


def _sdp(encodings: Encodings, vectors: Floats, progress: Progress | None) -> Supports:
    k = encodings.scheme.k_public
    if len(vectors) > SDP_LARGEST:
        raise InputError(f"method='sdp' with n_public={len(vectors)}: it costs n_public³ per step; use method='folded-em'")
    indices, margin = np.empty((encodings.m, k), np.int64), np.empty(encodings.m)
    for i in range(encodings.m):
        moment = moment_matrix(encodings.magnitudes(slice(i, i + 1))[0], vectors)
        indices[i], margin[i] = top_coordinates(solve_sdp(moment, k).matrix, k)
        if progress:
            progress("learn public", i + 1, encodings.m)
    return Supports(indices, margin, "sdp")


def _private_variance(encodings: Encodings, public: Public) -> float:
    return encodings.scheme.private_variance
