"""What was settled, as a recovery: exact with a certificate vector by vector, or under noise; and
what is left, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certify.certificate import certify
from unveil.certify.contradictions import contradicting
from unveil.certify.open_values import open_values
from unveil.certify.relabelling import PublicPart
from unveil.parallel import Stopwatch
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Encodings, Recovery
from unveil.solve.pixels.chance import DRAWS, chance_nats, spare_nats
from unveil.solve.pixels.noisy import NoisySolution
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.pixels.settle import MOST_LEFT, Settled
from unveil.solve.subsets.descent import Members, uses

REPRODUCED = 1e-4
"""Residual up to which a pixel counts as reproduced, relative to the rms of y
(`solve.pixels.pixels`)."""


def certified(
    encodings: Encodings,
    name: str,
    settled: Settled,
    unit: float,
    public: PublicPart | None,
    clock: Stopwatch,
    facts: Mapping[str, Any],
    *,
    kept: bool = False,
    doubtful: NDArray[np.bool_] | None = None,
    nats: NDArray[np.float64] | None = None,
) -> Recovery:
    """The recovery of the exact route; vectors that one encoding alone uses come last, as what they
    are.

    public: the public part of all encodings; kept: signs were never hidden; doubtful (n, d): values
    at which others fit, where all solutions were searched for; nats (d,): what each pixel says
    against chance. Both are found here where not given
    """
    m, d = encodings.m, encodings.d
    rows, members, signed = settled.rows, settled.members, kept or public is not None
    solution = replace(settled.solution, values=settled.solution.values * unit)
    with clock("certificate"):
        part = None if public is None else replace(public, names=public.names[rows])
        searched = doubtful is not None
        if not searched and not kept and solution.solved.all():
            found = open_values(members, solution.values, part, solution.misfit)
            doubtful = found if found.any() else None
        if nats is None:
            nats = _nats(encodings, solution, public)
        against, theirs = _against(encodings, settled, solution, public, doubtful)
        status, reasons = certify(
            encodings,
            members,
            len(rows),
            solution,
            public=part,
            signed=signed,
            nats=nats,
            doubtful=doubtful,
            searched=searched,
            against=uses(theirs, len(solution.values)),
        )
    n = len(status)
    settled = replace(
        settled, singles=[single for single in settled.singles if single.row not in against]
    )
    pairs = [(rows, members), settled.repeats]
    for place, single in enumerate(settled.singles):
        pairs.append((np.array([single.row]), np.append(single.partners, n + place)[None, :]))
        reasons.append(
            f"appears in one encoding only, number {single.row}: each pixel is one of two values"
        )
    status = np.append(status, [AMBIGUOUS] * len(settled.singles)).astype("<U10")
    values = np.vstack(
        [solution.values, *(single.value[None, :] * unit for single in settled.singles)]
    )
    explained = len(rows) + len(settled.repeats[0])
    left = m - explained - len(against)
    text = f"{int((status == VERIFIED).sum())} of {len(status)} private vectors verified; "
    text += f"{explained} of {m} encodings explained exactly"
    twice = int((np.diff(np.sort(settled.repeats[1], axis=1), axis=1) == 0).any(axis=1).sum())
    if twice:
        text += f"; {twice} encodings use one vector more than once"
    mask = None
    if doubtful is not None and (doubtful.any() or settled.singles):
        mask = np.vstack([doubtful, np.ones((len(settled.singles), d), bool)])
        text += f"; {int(doubtful.sum())} of {doubtful.size} values in doubt, listed in `doubtful`"
    if len(against):
        text += f"; {len(against)} encodings are nearly sums of known vectors, and contradict them: damaged, it seems"
    if left:
        text += f"; {left} encodings use vectors that too few others share"
        text += ", or their public part was not found" if public is not None else ""
    return Recovery(
        vectors=values.astype(np.float32),
        status=status,
        signed=signed,
        members=incidence(pairs, m, len(values)),
        residual=np.full(len(status), float(np.max(solution.misfit, initial=0.0))),
        reasons=tuple(reasons),
        attack=name,
        explanation=text,
        seconds=clock.seconds,
        doubtful=mask,
        evidence={
            **facts,
            "encodings_explained": explained,
            "equations": len(rows) * d,
            "unknowns": n * d,
        },
    )


def _nats(
    encodings: Encodings, solution: PixelSolution, public: PublicPart | None
) -> NDArray[np.float64]:
    """What each pixel says against chance, within what counts as reproduced, from some of the
    encodings."""
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(encodings.m)[:DRAWS])
    y = (encodings.magnitudes(some) / encodings.scheme.private_weight).astype(np.float32)
    c = None
    if public is not None:
        c = (
            public.weight * public.vectors[public.names[some]].sum(axis=1, dtype=np.float64)
        ).astype(np.float32)
    bound = np.full(
        encodings.d, REPRODUCED * float(np.sqrt(np.mean(np.square(y, dtype=np.float64))))
    )
    return chance_nats(y, c, solution.values, encodings.scheme.k_private, bound, rng)


def _against(
    encodings: Encodings,
    settled: Settled,
    solution: PixelSolution,
    public: PublicPart | None,
    doubtful: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.int64], Members]:
    """Encodings that are not explained, and that known vectors nearly reproduce, with these
    vectors."""
    rows, k = np.append(settled.rows, settled.repeats[0]), encodings.scheme.k_private
    left = np.setdiff1d(np.arange(encodings.m), rows)
    if not len(left) or len(left) > MOST_LEFT or not solution.solved.all():
        return np.empty(0, np.int64), np.empty((0, k), np.int64)
    y = (encodings.magnitudes(left) / encodings.scheme.private_weight).astype(np.float32)
    c = None
    if public is not None:
        c = (
            public.weight * public.vectors[public.names[left]].sum(axis=1, dtype=np.float64)
        ).astype(np.float32)
    places, members = contradicting(y, c, solution.values, k, np.random.default_rng(0), doubtful)
    return left[places], members


def approximate(
    encodings: Encodings,
    name: str,
    noisy: NoisySolution,
    unit: float,
    signed: bool,
    clock: Stopwatch,
    facts: Mapping[str, Any],
    doubtful: NDArray[np.bool_] | None = None,
) -> Recovery:
    """The recovery under noise: nothing is proved, but how far off each vector is likely to be is
    known. Empty, if chance explains as much (`solve.pixels.chance`).

    doubtful (n, d): values that are open, noise or not
    """
    scheme, m = encodings.scheme, encodings.m
    rows, n = len(noisy.rows), len(noisy.values)
    if spare_nats(noisy.nats, rows, n, scheme.k_private, m) < 0:
        why = f"{n} vectors that fit {rows} of {m} encodings up to noise fit as many by chance: more pixels are needed"
        return Recovery.empty(encodings, name, why, clock.seconds)
    size = noisy.noise * unit * scheme.private_weight
    error = noisy.error * unit
    status = np.where(noisy.determined, UNRESOLVED, AMBIGUOUS).astype("<U10")
    reasons = tuple(
        f"known to about ±{error[i]:.2g} per pixel: the encodings carry noise of about {size:.2g}"
        if noisy.determined[i]
        else "the encodings that use it do not determine it"
        for i in range(len(error))
    )
    return Recovery(
        vectors=(noisy.values * unit).astype(np.float32),
        status=status,
        signed=signed,
        members=incidence([(noisy.rows, noisy.members)], m, len(error)),
        residual=np.full(len(error), noisy.noise),
        reasons=reasons,
        attack=name,
        explanation=f"{int(noisy.determined.sum())} private vectors recovered to about ±{np.median(error):.2g} per pixel; "
        f"{len(noisy.rows)} of {m} encodings explained up to noise of about {size:.2g}, so that nothing is exact",
        seconds=clock.seconds,
        doubtful=doubtful if doubtful is not None and doubtful.any() else None,
        evidence={
            **facts,
            "encodings_explained": len(noisy.rows),
            "noise": size,
            "standard_error": error.tolist(),
        },
    )


def incidence(pairs: list[tuple[NDArray[np.int64], Members]], m: int, n: int) -> sparse.csr_array:
    rows = np.concatenate([np.repeat(rows, members.shape[1]) for rows, members in pairs])
    names = np.concatenate([members.ravel() for _, members in pairs])
    out = sparse.csr_array((np.ones(len(rows), bool), (rows, names)), shape=(m, n))
    out.sum_duplicates()
    return out
