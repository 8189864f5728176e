"""The end of every attack: vectors with their subsets become a `Recovery`.

certified    subsets hold exactly: the certificate judges every vector
recovery     what attacks share whose subsets hold up to noise (`attacks.finish_noisy`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certificate import certify
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch
from unveil.records import Recovery
from unveil.solve.model import Members, PublicPart
from unveil.solve.pixels.settle import Settled

FAINTEST = 1e-5
"""A smaller weight leaves open which vector it belongs to: no member is named."""


def recovery(
    name: str,
    vectors: NDArray[np.floating],
    status: NDArray[np.str_],
    reasons: Sequence[str],
    members: sparse.csr_array,
    residual: NDArray[np.float64],
    explanation: str,
    clock: Stopwatch,
    facts: Mapping[str, Any],
    *,
    signed: bool,
    explained: int,
    exact: bool,
    weights: sparse.csr_array | None = None,
    doubtful: NDArray[np.bool_] | None = None,
) -> Recovery:
    """A `Recovery`, with all arrays of the types it promises; a mask of doubts only where there are
    any."""
    return Recovery(
        vectors=vectors.astype(np.float32),
        status=np.asarray(status).astype("<U10"),
        signed=signed,
        members=members,
        residual=residual,
        reasons=tuple(reasons),
        attack=name,
        explanation=explanation,
        seconds=clock.seconds,
        evidence=facts,
        weights=weights,
        doubtful=doubtful if doubtful is not None and doubtful.any() else None,
        explained=explained,
        exact=exact,
    )


def certified(
    encodings: Encodings,
    name: str,
    settled: Settled,
    unit: float,
    public: PublicPart | None,
    clock: Stopwatch,
    facts: Mapping[str, Any],
    *,
    doubtful: NDArray[np.bool_] | None = None,
) -> Recovery:
    """The recovery of the exact route, as the certificate judges it; vectors that one encoding
    alone uses come last.

    public: the public part of all encodings, in the units of the data
    doubtful (n, d): values at which others fit, where all solutions were searched for
    """
    # 1. Who mixes whom, as one claim. Columns that were not solved are open.
    (m, d), k = encodings.values.shape, encodings.scheme.k_private
    n, singles = len(settled.solution.values), settled.singles
    members = np.full((m, k), -1, np.int64)
    members[settled.rows] = settled.members
    members[settled.repeats[0]] = settled.repeats[1]
    for place, single in enumerate(singles):
        members[single.row] = np.append(single.partners, n + place)
    values = np.vstack([settled.solution.values, *(single.value[None] for single in singles)])
    mask = np.zeros(values.shape, bool)
    mask[:, ~settled.solution.solved] = True
    mask[n:] = True
    if doubtful is not None:
        mask[:n] |= doubtful
    # 2. The certificate.
    given: tuple[Any, ...] = ()
    if public is not None:
        given = public.vectors, public.names
    with clock("certificate"):
        judged = certify(
            encodings, (values * unit).astype(np.float32), members, *given, doubtful=mask
        )
    # 3. In words.
    explained, open_values = judged.explained, judged.doubtful
    text = f"{int(judged.verified.sum())} of {len(judged)} private vectors verified; "
    text += f"{explained} of {m} encodings explained exactly"
    twice = int((np.diff(np.sort(settled.repeats[1], axis=1), axis=1) == 0).any(axis=1).sum())
    if twice:
        text += f"; {twice} encodings use one vector more than once"
    if open_values is not None:
        text += f"; {int(open_values.sum())} of {open_values.size} values in doubt, listed in "
        text += "`doubtful`"
    if explained < m:
        text += f"; {m - explained} encodings use vectors that too few others share"
        text += ", or their public part was not found" if public is not None else ""
    told = {"encodings_explained": explained, "equations": explained * d, "unknowns": n * d}
    return replace(
        judged,
        attack=name,
        explanation=text,
        seconds=clock.seconds,
        evidence={**facts, **told, **judged.evidence},
        exact=True,
    )


def placed(
    rows: NDArray[np.int64],
    members: Members,
    weights: NDArray[np.float64],
    shape: tuple[int, int],
) -> sparse.csr_array:
    """The weights as an m×n matrix, without those too small to tell whose they are."""
    keep = weights.ravel() > FAINTEST
    at = np.repeat(rows, members.shape[1])[keep], members.ravel()[keep]
    return sparse.csr_array((weights.ravel()[keep], at), shape=shape)


def incidence(pairs: list[tuple[NDArray[np.int64], Members]], m: int, n: int) -> sparse.csr_array:
    """(m, n): who uses what, from several (rows, members)."""
    rows = np.concatenate([np.repeat(rows, members.shape[1]) for rows, members in pairs])
    names = np.concatenate([members.ravel() for _, members in pairs])
    out = sparse.csr_array((np.ones(len(rows), bool), (rows, names)), shape=(m, n))
    out.sum_duplicates()
    return out
