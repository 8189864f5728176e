"""An attacker who knows some of the records, and which encodings mix which: substitution.

    1  an encoding all of whose records are known but one leaves |c + x| = y, with c known
    2  two such encodings leave one value of x at every pixel: ±y₁ − c₁ that also fits y₂
    3  the record found is known from now on: again from 1

With signs kept, or records without negative values, one encoding is enough. Cost: one pass over
the encodings for each round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encodings import Encodings
from unveil.parallel import Stopwatch
from unveil.records import UNRESOLVED, Recovery

NAME = "substitution"
"""How the audit lists it."""
Floats = NDArray[np.float64]


def substitution(
    encodings: Encodings,
    members: NDArray[np.int64],
    private: NDArray[np.float32],
    known: NDArray[np.bool_],
) -> Recovery:
    """The records that follow from the `known` ones; members (m, k): the records of each
    encoding."""
    # 1. Sums instead of means: weights are known, and dividing once keeps the formulas those of |c
    # + x| = y.
    clock = Stopwatch()
    # Who knows records without a negative value expects no other: then no sign was hidden.
    kept = encodings.scheme.signs == "kept" or bool(known.any() and (private[known] >= 0).all())
    y = (encodings.values if kept else encodings.magnitudes()).astype(np.float64)
    y = y / encodings.scheme.private_weight
    x = np.where(known[:, None], private, 0.0).astype(np.float64)
    have = known.copy()
    # 2. Rounds of substitution: a record that was found makes others reachable.
    with clock("substitution"):
        while True:
            open_ones = (~have[members]).sum(axis=1)
            rows = np.flatnonzero(open_ones == 1)
            if not len(rows):
                break
            target = members[rows][~have[members[rows]]]
            before = int(have.sum())
            for j in np.unique(target):
                mine = rows[target == j]
                # A record may be mixed with itself: it counts as often as it occurs, and is no part
                # of c.
                c = np.where((members[mine] == j)[:, :, None], 0.0, x[members[mine]]).sum(axis=1)
                times = (members[mine] == j).sum(axis=1)
                # Two different encodings decide between the two values of a pixel; a repeat says
                # the same again.
                if kept or len(np.unique(np.sort(members[mine], axis=1), axis=0)) > 1:
                    x[j], have[j] = _solve(y[mine], c, times, kept), True
            if int(have.sum()) == before:
                break
    # 3. What is new, with the encodings that use it.
    new = np.flatnonzero(have & ~known)
    uses = [np.flatnonzero((members == j).any(axis=1)) for j in new]
    names = np.repeat(np.arange(len(new)), [len(rows) for rows in uses])
    rows = np.concatenate(uses) if uses else np.empty(0, np.int64)
    return Recovery(
        vectors=x[new].astype(np.float32),
        status=np.full(len(new), UNRESOLVED, dtype="<U10"),
        signed=True,
        members=sparse.csr_array(
            (np.ones(len(rows), bool), (rows, names)), shape=(encodings.m, len(new))
        ),
        residual=np.zeros(len(new)),
        reasons=("follows from records that are known",) * len(new),
        attack=NAME,
        explanation=f"{len(new)} of {int((~known).sum())} records follow from {int(known.sum())}",
        seconds=clock.seconds,
    )


def _solve(y: Floats, c: Floats, times: NDArray[np.int64], kept: bool) -> Floats:
    """x of |c + times·x| = y at every pixel, by all rows: the candidate that fits them best, then
    the mean of what the rows say with its signs."""
    if kept:
        return np.asarray(((y - c) / times[:, None]).mean(axis=0))
    options = np.stack([y[0] - c[0], -y[0] - c[0]]) / times[0]
    miss = np.abs(np.abs(c + times[:, None] * options[:, None, :]) - y).sum(axis=1)
    best = options[miss.argmin(axis=0), np.arange(y.shape[1])]
    signed = np.copysign(y, c + times[:, None] * best)
    return np.asarray(((signed - c) / times[:, None]).mean(axis=0))
