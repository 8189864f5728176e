"""The end of every attack: vectors with their subsets become a `Recovery`.

certified    subsets hold exactly: every doubt is asked about, vector by vector
recovery     what it shares with attacks that judge their vectors by themselves, and with those
             whose subsets hold up to noise (`attacks.finish_noisy`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certify.certificate import certify
from unveil.certify.contradictions import contradicting, reproduced_by_known
from unveil.certify.open_values import open_values
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch
from unveil.records import AMBIGUOUS, VERIFIED, Recovery
from unveil.solve.model import PIXEL, ROW, Members, PublicPart, Values, rms, uses
from unveil.solve.pixels.chance import DRAWS, chance_nats
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.pixels.settle import MOST_LEFT, Settled

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
    kept: bool = False,
    doubtful: NDArray[np.bool_] | None = None,
    nats: NDArray[np.float64] | None = None,
) -> Recovery:
    """The recovery of the exact route; vectors that one encoding alone uses come last, as what they
    are.

    public: the public part of all encodings, in the units of the data
    kept: signs were never hidden
    doubtful (n, d): values at which others fit, where all solutions were searched for
    nats (d,): what each pixel says against chance. Both are found here where not given
    """
    m, d = encodings.m, encodings.d
    rows, members, signed = settled.rows, settled.members, kept or public is not None
    solution = replace(settled.solution, values=settled.solution.values * unit)
    # 1. Values that are open, encodings that contradict, and every other doubt.
    with clock("certificate"):
        # Where all solutions were searched for, what is open is known; else coincidences tell.
        part = None if public is None else replace(public, names=public.names[rows])
        searched = (
            kept or doubtful is not None
        )  # with its signs a pixel is linear, and W says how many solutions it has
        if not searched and solution.solved.all():
            found = open_values(members, solution.values, part, solution.misfit)
            doubtful = found if found.any() else None
        if not kept:
            doubtful = _missed_by_repeats(encodings, settled, solution, public, doubtful)
        if nats is None:
            nats = _nats(encodings, solution, public)
        against, theirs = _against(encodings, settled, solution, public, doubtful)
        turned = _with_public_turned(encodings, settled, solution, public)
        others = np.setdiff1d(np.arange(m), np.append(rows, settled.repeats[0]))
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
            left=None if public is None else public.names[others],
        )
    # 2. Vectors that one encoding alone uses. One that contradicts known vectors is damaged, and
    # shows none.
    n = len(status)
    singles = [single for single in settled.singles if single.row not in against]
    pairs = [(rows, members), settled.repeats]
    for place, single in enumerate(singles):
        pairs.append((np.array([single.row]), np.append(single.partners, n + place)[None, :]))
        reasons.append(
            f"appears in one encoding only, number {single.row}: each pixel is one of two values"
        )
    status = np.append(status, [AMBIGUOUS] * len(singles))
    values = np.vstack([solution.values, *(single.value[None, :] * unit for single in singles)])
    mask = None
    if doubtful is not None:
        mask = np.vstack([doubtful, np.ones((len(singles), d), bool)])
    # 3. In words.
    explained = len(rows) + len(settled.repeats[0])
    left = max(0, m - explained - len(against) - turned)
    text = f"{int((status == VERIFIED).sum())} of {len(status)} private vectors verified; "
    text += f"{explained} of {m} encodings explained exactly"
    # A vector that meets itself, as it may in epochs.
    twice = int((np.diff(np.sort(settled.repeats[1], axis=1), axis=1) == 0).any(axis=1).sum())
    if twice:
        text += f"; {twice} encodings use one vector more than once"
    if doubtful is not None and (doubtful.any() or singles):
        text += f"; {int(doubtful.sum())} of {doubtful.size} values in doubt, listed in `doubtful`"
    if len(against):
        text += f"; {len(against)} encodings are nearly sums of known vectors, and contradict them:"
        text += " damaged, it seems"
    if turned:
        text += f"; {turned} encodings hold with their public vectors negated: the list contradicts"
        text += " itself, and signs are left open"
    if left:
        text += f"; {left} encodings use vectors that too few others share"
        text += ", or their public part was not found" if public is not None else ""
    told = {"encodings_explained": explained, "equations": len(rows) * d, "unknowns": n * d}
    return recovery(
        name,
        values,
        status,
        reasons,
        incidence(pairs, m, len(values)),
        np.full(len(status), float(np.max(solution.misfit, initial=0.0))),
        text,
        clock,
        {**facts, **told},
        signed=signed and not turned,
        explained=explained,
        exact=True,
        doubtful=mask,
    )


def _some(
    encodings: Encodings, rows: NDArray[np.int64], public: PublicPart | None
) -> tuple[Values, Values | None]:
    """y and c of these rows, in units in which private weights are 1."""
    y = (encodings.magnitudes(rows) / encodings.scheme.private_weight).astype(np.float32)
    return y, None if public is None else public.total(rows)


def _missed_by_repeats(
    encodings: Encodings,
    settled: Settled,
    solution: PixelSolution,
    public: PublicPart | None,
    doubtful: NDArray[np.bool_] | None,
) -> NDArray[np.bool_] | None:
    """`doubtful`, and what encodings that were not solved with speak against. They were told by
    nearly all of their pixels; at one that they miss, the values of their vectors fitted the others
    by chance."""
    rows, members = settled.repeats
    if not len(rows) or not solution.solved.all():
        return doubtful
    y, c = _some(encodings, rows, public)
    totals = solution.values[members].sum(axis=1)
    if c is not None:
        totals = totals + c
    missed = np.abs(np.abs(totals) - y) > ROW * rms(y)
    if not missed.any():
        return doubtful
    out = np.zeros(solution.values.shape, bool) if doubtful is None else doubtful.copy()
    row, pixel = np.nonzero(missed)
    for member in members.T:
        out[member[row], pixel] = True
    return out


def _nats(
    encodings: Encodings, solution: PixelSolution, public: PublicPart | None
) -> NDArray[np.float64]:
    """What each pixel says against chance, within what counts as reproduced, from some of the
    encodings."""
    # A sample of rows will do; always the same one, so that a certificate can be repeated.
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(encodings.m)[:DRAWS])
    y, c = _some(encodings, some, public)
    bound = np.full(encodings.d, PIXEL * rms(y))
    return chance_nats(y, c, solution.values, encodings.scheme.k_private, bound, rng)


def _not_explained(encodings: Encodings, settled: Settled) -> NDArray[np.int64]:
    """Encodings to be asked what they say against the solution: none where pixels are open, and
    none where they are too many to be exceptions."""
    explained = np.append(settled.rows, settled.repeats[0])
    left = np.setdiff1d(np.arange(encodings.m), explained)
    return left if len(left) <= MOST_LEFT and settled.solution.solved.all() else left[:0]


def _against(
    encodings: Encodings,
    settled: Settled,
    solution: PixelSolution,
    public: PublicPart | None,
    doubtful: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.int64], Members]:
    """Encodings that are not explained, and that known vectors nearly reproduce, with these
    vectors."""
    left, k = _not_explained(encodings, settled), encodings.scheme.k_private
    if not len(left):
        return np.empty(0, np.int64), np.empty((0, k), np.int64)
    y, c = _some(encodings, left, public)
    places, members = contradicting(y, c, solution.values, k, np.random.default_rng(0), doubtful)
    return left[places], members


def _with_public_turned(
    encodings: Encodings,
    settled: Settled,
    solution: PixelSolution,
    public: PublicPart | None,
) -> int:
    """How many encodings that are not explained would be with −c for their public part c. With one
    of them the list has vectors of both signs, and which are the wrong ones nobody knows: with all
    vectors negated the others hold."""
    left = _not_explained(encodings, settled)
    if public is None or not len(left):
        return 0
    y, c = _some(encodings, left, public)
    if c is None:
        return 0
    k, draw = encodings.scheme.k_private, np.random.default_rng(0)
    return int(reproduced_by_known(y, -c, solution.values, k, draw).sum())


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
