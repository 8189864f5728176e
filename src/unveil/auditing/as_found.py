"""Encodings of an unknown make: the schemes they may follow, and what shows without any attack.

An encoder need not do what it is said to do. So besides the scheme as stated, the audit takes the
encodings for

    sums        with the signs they have, where some values are negative: y = Xw, also through one
                mask that all encodings share
    1 to 4      records in each, instead of the number stated
    MixUp       records with weights of their own in every encoding

and looks whether an encoding simply *is* a record (`copies`): times a number, clipped, rounded,
with a little noise, or with its signs taken off.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.auditing.risks import ALMOST, NOT, Risks, Yardstick, assess, cosines, distinct
from unveil.encodings import Encodings
from unveil.records import UNRESOLVED, Recovery
from unveil.scheme import Scheme

MOST_MIXED = 4
"""Records per encoding that are tried where the number is in doubt: published schemes mix 2 to
4."""
CLEARLY = 0.25
"""What a record leaves unexplained of its copy, as a share of what the next best one leaves."""
COPIES = "copies"
"""The name under which the look at single encodings is listed."""
Floats = NDArray[np.float32]


def schemes_as_found(stated: Scheme, values: Floats) -> tuple[tuple[Scheme, str], ...]:
    """Other schemes that the encodings may follow, the likeliest first, each in words."""
    own = "with weights of their own, signs taken as they are"
    out: list[tuple[Scheme, str]] = [
        (Scheme(k, weighting="unknown", signs="kept"), f"{k} records {own}")
        for k in range(2, MOST_MIXED + 1)
    ]
    k = stated.k_private
    negative = bool((values < 0).any())
    # Signs show in the values, whatever was stated.
    if negative and stated.signs != "kept":
        out.append((replace(stated, signs="kept", masks=0), "signs taken as they are"))
    if not negative and stated.signs == "kept":
        out.append((replace(stated, signs="absolute"), "signs taken for hidden"))
    ks = [other for other in range(2, MOST_MIXED + 1) if other != k]
    if negative:
        out += [
            (Scheme(other, signs="kept"), f"{other} records, signs taken as they are")
            for other in ks
        ]
    out.append((Scheme(2, weighting="half-normal"), "weights of their own"))
    out += [(Scheme(other), f"{other} records, signs hidden") for other in ks]
    return tuple(out)


def copies(
    encodings: Encodings, private: Floats, *, relative_tolerance: float
) -> tuple[Recovery, Risks]:
    """Encodings that are a record up to one factor: each record with the encoding most like it.

    Where only the magnitudes are right, the record is known approximately.
    """
    first, group = distinct(private)
    truth = private[first].astype(np.float64)
    Y = encodings.values.astype(np.float64)
    # 1. The encoding nearest to each record, and the factor between them.
    rows, factor = _nearest(Y, truth)
    found = (Y[rows] * factor[:, None]).astype(np.float32)
    n = len(rows)
    yard = Yardstick.of(private[first], relative_tolerance)
    kept = np.array([_its_own(yard, found[j], j) for j in range(n)], bool)
    recovery = Recovery(
        vectors=found[kept],
        status=np.full(int(kept.sum()), UNRESOLVED, dtype="<U10"),
        signed=True,
        members=sparse.csr_array(
            (np.ones(int(kept.sum()), bool), (rows[kept], np.arange(int(kept.sum())))),
            shape=(encodings.m, int(kept.sum())),
        ),
        residual=np.zeros(int(kept.sum())),
        reasons=("an encoding is this record, up to a factor",) * int(kept.sum()),
        attack=COPIES,
        explanation=f"{int(kept.sum())} of {n} records look like an encoding as it is",
    )
    risks = assess(recovery, private, relative_tolerance=relative_tolerance)
    # 2. Magnitudes: |y| may be |x| at every pixel though signs are gone.
    rows, factor = _nearest(np.abs(Y), np.abs(truth))
    miss = np.abs(np.abs(Y[rows]) * factor[:, None] - np.abs(truth)).max(axis=1)
    known = (miss <= yard.bound) & (np.abs(truth).max(axis=1) > yard.bound)
    outcome = np.where((risks.outcome == NOT) & known[group], ALMOST, risks.outcome)
    return recovery, replace(risks, outcome=outcome.astype(np.int8))


def _its_own(yard: Yardstick, found: Floats, j: int) -> bool:
    """Whether a vector is like record j and clearly less like any other: where records are alike, a
    mixture is like some of them by chance."""
    if float(np.abs(found - yard.truth[j]).max()) <= yard.bound:
        return True
    alike = cosines((found - yard.common)[None], yard.truth - yard.common)[0]
    other = float(np.delete(alike, j).max(initial=0.0))
    return bool(1 - float(alike[j]) ** 2 <= CLEARLY * (1 - other**2) and alike[j] > 0)


def _nearest(
    Y: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each record: the encoding with the largest cosine, and the factor between them."""
    power = np.einsum("ij,ij->i", Y, Y)
    product = truth @ Y.T
    size = np.linalg.norm(truth, axis=1)[:, None] * np.sqrt(np.maximum(power, 1e-30))
    rows = np.abs(product / np.maximum(size, 1e-30)).argmax(axis=1)
    return rows, product[np.arange(len(truth)), rows] / np.maximum(power[rows], 1e-30)
