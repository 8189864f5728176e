"""k_private = 1: one private vector per encoding, no subsets to find.

Without a public part the encoding is the vector, up to the sign of every pixel, and nothing ties
these signs together. With one, encodings of the same vector are told by their overlap
(`gram_extract`), and at every pixel two encodings |x + c₁| = y₁ and |x + c₂| = y₂ leave one value
that fits both: ±y₁ − c₁, checked against all others. The full attack for k_private = 1 is this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.attacks.overlaps import read_overlaps
from unveil.certify.certificate import FEWEST_PIXELS, made_of_public
from unveil.certify.relabelling import PublicPart, relabelled
from unveil.parallel import Stopwatch
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Encodings, Overlaps, Progress, Recovery

TOLERANCE = 1e-3
APART = 1e-2


def alone(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    overlaps: Overlaps | None,
    name: str,
    memory_limit: int | None,
    progress: Progress | None,
) -> Recovery:
    """Each private vector from the encodings that use it."""
    clock = Stopwatch()
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    y = encodings.magnitudes().astype(np.float64) / scheme.private_weight
    rms = float(np.sqrt(np.mean(y**2))) or 1.0
    c = np.zeros_like(y)
    different = np.arange(m)
    part = None
    if public is None:
        group = np.unique(np.round(y / (TOLERANCE * rms)), axis=0, return_inverse=True)[1].ravel()
    else:
        M, supports = read_overlaps(
            encodings, public, overlaps, clock, memory_limit=memory_limit, progress=progress
        )
        assert supports is not None
        group = connected_components(M.tocsr(), directed=False)[1].astype(np.int64)
        c = (
            public[supports.indices].sum(axis=1, dtype=np.float64)
            * scheme.public_weight
            / scheme.private_weight
        )
        part = PublicPart(supports.indices, public, scheme.public_weight / scheme.private_weight)
        different = np.unique(supports.indices, axis=0, return_inverse=True)[1].ravel()
    count = int(group.max()) + 1
    values, status, reasons = np.zeros((count, d)), [], []
    residual, doubtful = np.zeros(count), np.zeros(count, np.int64)
    rows_of = [np.flatnonzero(group == g) for g in range(count)]
    with clock("pixels"):
        for g, rows in enumerate(rows_of):
            values[g], residual[g], doubtful[g] = _solve(
                y[rows], c[rows], TOLERANCE * rms, APART * rms
            )
        listed = np.zeros(count, bool) if public is None else made_of_public(values, public)
        other = relabelled(group[:, None].astype(np.int64), values, part, encodings.pixel_rms)
        for g, rows in enumerate(rows_of):
            if public is None:
                what, why = (
                    AMBIGUOUS,
                    "k_private=1 and no public part: known up to the sign of every pixel",
                )
            elif len(np.unique(different[rows])) < 2:
                what, why = (
                    AMBIGUOUS,
                    "appears with one public part only: each pixel is one of two values",
                )
            elif residual[g] > TOLERANCE * rms:
                what, why = (
                    UNRESOLVED,
                    f"its {len(rows)} encodings do not fit one vector: noise, or a wrong public part",
                )
            elif doubtful[g]:
                what, why = AMBIGUOUS, f"another value fits as well at {doubtful[g]} of {d} pixels"
            elif d < FEWEST_PIXELS:
                what, why = (
                    AMBIGUOUS,
                    f"{d} pixels are too few to rule out another solution: {FEWEST_PIXELS} are needed",
                )
            elif listed[g]:
                what, why = (
                    AMBIGUOUS,
                    "a combination of public vectors: they may have changed places with the private one",
                )
            elif other[g]:
                what, why = (
                    AMBIGUOUS,
                    "its encodings can be explained by another vector, with other public ones",
                )
            else:
                what, why = (
                    VERIFIED,
                    f"{len(rows)} encodings reproduced at all {d} pixels by one value only",
                )
            status.append(what)
            reasons.append(why)
    verified = status.count(VERIFIED)
    members = sparse.csr_array((np.ones(m, bool), (np.arange(m), group)), shape=(m, count))
    return Recovery(
        vectors=values.astype(np.float32),
        status=np.array(status, dtype="<U10"),
        signed=public is not None,
        members=members,
        residual=residual / rms,
        reasons=tuple(reasons),
        attack=name,
        explanation=f"{verified} of {count} private vectors verified, each from its own encodings (k_private=1)",
        seconds=clock.seconds,
        evidence={"estimated_n_private": count},
    )


def _solve(
    y: NDArray[np.float64], c: NDArray[np.float64], tolerance: float, apart: float
) -> tuple[NDArray[np.float64], float, int]:
    """The value of |x + c| = y that fits all rows best at each pixel, its largest residual, and at
    how many pixels the other value fits as well."""
    options = np.stack([y[0] - c[0], -y[0] - c[0]])
    miss = np.abs(np.abs(options[:, None, :] + c) - y).max(axis=1)
    best = miss.argmin(axis=0)
    pixels = np.arange(y.shape[1])
    both = (miss.max(axis=0) <= 2 * tolerance) & (np.abs(options[0] - options[1]) > apart)
    return options[best, pixels], float(miss.min(axis=0).max()), int(both.sum())
