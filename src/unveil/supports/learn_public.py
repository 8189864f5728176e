"""LearnPublic (`alg:public_attack`): one call for every method, checked input, supports with
confidence.

`folded-em` has four ways, by what is known (`supports.folded_job`):

    weights of the scheme, k_public given      `supports.folded.search`
    weights of the scheme, k_public unknown    k from a sample (`supports.weights.stepwise`), then
                                               the same
    weights unknown                            `supports.weights.stepwise`, each encoding by itself
    k_private = 0                              `supports.weights.exact`: nothing is noise, so that w
                                               is exact

Where the public vectors are not independent Gaussian pixels (`supports.correlated.pixel_law`) a
warning says so, `supports.correlated.tree_search` goes on from what folded-em found, and its
measured margins decide; with weights or k_public unknown nothing is certain there.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import worker_count
from unveil.records import Progress, Supports
from unveil.supports.correlated.pixel_law import departures
from unveil.supports.folded.search import block_columns
from unveil.supports.folded.survey import survey_public
from unveil.supports.folded_job import FoldedJob, in_doubt
from unveil.supports.paper.diagonal import diagonal_supports
from unveil.supports.paper.sdp import sdp_supports

METHODS = ("folded-em", "diagonal", "sdp")


def learn_public(
    encodings: Encodings,
    public: DataLike | None,
    *,
    method: str = "folded-em",
    k_public: Literal["scheme"] | None = "scheme",
    weights: Literal["scheme", "unknown"] = "scheme",
    workers: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Supports:
    """Which public vectors each encoding uses, supp([w]_S), with a confidence for each.

    Parameters
    ----------
    encodings : Encodings
        The encodings, with their scheme.
    public : array of shape (n_public, d) or None
        The public vectors; may be memory-mapped. None only where the scheme has no public part.
    method : str
        "folded-em": search in the folded-normal likelihood, with confidence.
        "diagonal": the screen of the paper's experiments, any n_public, all encodings in blocks.
        "sdp": the paper's program, one encoding at a time, n_public up to a few hundred.
    k_public : "scheme" or None
        None: unknown, to be estimated ("folded-em" only).
    weights : "scheme" or "unknown"
        "unknown": nonnegative, different in every encoding, to be estimated ("folded-em" only).
    workers : int or None
        Threads; None: one per core. The answer does not depend on it.
    memory_limit : int or None
        Bytes that may be taken; None: half of what is free.
    progress : callable or None
        progress(stage, done, total), called as encodings are done.

    Returns
    -------
    Supports
        `indices` (m, k_public), sorted in each row, `confidence` in [0, 1], `certain`, and a
        `warning` where scheme and encodings contradict each other.

    Raises
    ------
    InputError
        Where vectors do not fit the encodings, or the method does not fit the question.

    References
    ----------
    `alg:public_attack`, `lem:public` and `lem:population` of the paper; docs/learn_public.md.

    Examples
    --------
    >>> import unveil
    >>> scheme = unveil.Scheme(k_private=2, k_public=2)
    >>> sim = unveil.simulate(scheme, n_private=10, n_public=30, m=5, d=600, rng=0)
    >>> supports = unveil.learn_public(sim.encodings, sim.public)
    >>> bool((supports.indices == sim.selection.public).all())
    True
    """
    # 1. A question that can be asked.
    if method not in METHODS:
        raise InputError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    if k_public not in ("scheme", None):
        raise InputError(
            f"k_public={k_public!r}: say it in the Scheme, or give None to have it estimated"
        )
    if weights not in ("scheme", "unknown"):
        raise InputError(f"weights={weights!r}: choose one of scheme, unknown")
    if method != "folded-em" and (k_public is None or weights == "unknown"):
        raise InputError(
            f"method={method!r} needs k_public and weights of the scheme: use method='folded-em'"
        )
    limit, workers = settle_limit(memory_limit), worker_count(workers)
    if k_public is None and public is None:
        raise InputError("k_public=None but no public vectors: pass public=")
    # 2. Vectors that fit; without a public part there is nothing to learn.
    vectors = as_public(public, encodings)
    k = encodings.scheme.k_public
    if vectors is None or (k == 0 and k_public is not None):
        return Supports(
            np.empty((encodings.m, 0), np.int64),
            np.ones(encodings.m),
            method,
            np.ones(encodings.m, bool),
        )
    if weights == "scheme" and not encodings.scheme.fixed_weights and encodings.scheme.k_private:
        raise InputError(
            f"weighting={encodings.scheme.weighting!r}: every encoding has weights of its own; "
            "use method='folded-em' with weights='unknown'"
        )
    # 3. The paper's methods.
    if method == "sdp":
        return sdp_supports(encodings, vectors, progress)
    if method == "diagonal":
        return Supports(
            *diagonal_supports(encodings.magnitudes(), vectors, k, limit=limit, progress=progress),
            method,
        )
    # 4. Folded-em, by what is known.
    surveyed = survey_public(vectors, block_columns(encodings.d, limit))
    if surveyed.count < max(1, 0 if k_public is None else k):
        raise InputError(
            f"k_public={k} of only {surveyed.count} public vectors that differ and are not zero: "
            "lower k_public or add vectors"
        )
    job = FoldedJob(encodings, surveyed, None if k_public is None else k, limit, workers, progress)
    if encodings.scheme.k_private == 0:
        return job.without_private_part()
    # 5. Where vectors are not Gaussian, margins are measured, or nothing is certain.
    differ = departures(surveyed)
    if differ and weights == "scheme" and k_public is not None:
        return job.with_measured_margins(differ)
    found = job.with_unknown_weights() if weights == "unknown" else job.with_equal_weights()
    return in_doubt(found, differ) if differ else found
