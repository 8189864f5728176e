"""k_private = 1: one private vector per encoding, no subsets to find.

Without a public part the encoding is the vector, up to the sign of every pixel where signs are
hidden, and nothing ties these signs together. With one, encodings of the same vector are told by
their overlap (`gram_extract`), and at every pixel two encodings |x + c₁| = y₁ and |x + c₂| = y₂
leave one value that fits both: ±y₁ − c₁, checked against all others. The full attack for
k_private = 1 is this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.attacks.finish import recovery
from unveil.attacks.overlaps import read_overlaps
from unveil.certify.aliases import made_of_public
from unveil.certify.certificate import FEWEST_PIXELS
from unveil.certify.moved_list import moved
from unveil.certify.relabelling import relabelled
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch, must_fit
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Overlaps, Progress, Recovery
from unveil.solve.model import APART, ROW, PublicPart, rms

BYTES = 32
"""Memory per value of the encodings: y, c and the vectors in double precision, and a copy."""


def alone(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    overlaps: Overlaps | None,
    name: str,
    limit: int,
    progress: Progress | None,
) -> Recovery:
    """Each private vector from the encodings that use it. `limit`: bytes of memory."""
    clock, scheme, (m, d) = Stopwatch(), encodings.scheme, encodings.values.shape
    what = f"attack='full' on {m:,} encodings of {d:,} pixels"
    must_fit(BYTES * m * d, what, limit, "attack fewer of them")
    if public is None and scheme.signs == "kept":
        return _as_they_are(encodings, name, clock)
    # 1. Who uses the same vector: equal encodings, or with a public part those that overlap.
    y = encodings.magnitudes().astype(np.float64) / scheme.private_weight
    scale = rms(y)
    near = ROW * scale
    c = np.zeros_like(y)
    different = np.arange(m)
    part = None
    if public is None:
        group = np.unique(np.round(y / near), axis=0, return_inverse=True)[1].ravel()
    else:
        M, supports = read_overlaps(
            encodings, public, overlaps, clock, memory_limit=limit, progress=progress
        )
        assert supports is not None
        group = connected_components(M.tocsr(), directed=False)[1].astype(np.int64)
        c = (
            public[supports.indices].sum(axis=1, dtype=np.float64)
            * scheme.public_weight
            / scheme.private_weight
        )
        # Encodings with the same public part say the same: they count once.
        part = PublicPart(supports.indices, public, scheme.public_weight / scheme.private_weight)
        different = np.unique(supports.indices, axis=0, return_inverse=True)[1].ravel()
    # 2. Each vector from its encodings.
    count = int(group.max()) + 1
    rows_of = [np.flatnonzero(group == g) for g in range(count)]
    values = np.zeros((count, d))
    residual, doubtful = np.zeros(count), np.zeros(count, np.int64)
    with clock("pixels"):
        for g, rows in enumerate(rows_of):
            values[g], residual[g], doubtful[g] = _solve(y[rows], c[rows], near, APART * scale)
        listed = np.zeros(count, bool) if public is None else made_of_public(values, public)
        # Other public vectors of the list with which another value fits.
        members = group[:, None].astype(np.int64)
        other = relabelled(members, values, part, encodings.pixel_rms)
        if part is not None:
            other |= moved(members, count, part, kept=False)
    # 3. The first doubt decides.
    status, reasons = np.full(count, AMBIGUOUS, "<U10"), []
    for g, rows in enumerate(rows_of):
        if public is None:
            why = "k_private=1 and no public part: known up to the sign of every pixel"
        elif len(np.unique(different[rows])) < 2:
            why = "appears with one public part only: each pixel is one of two values"
        elif residual[g] > near:
            status[g] = UNRESOLVED
            why = f"its {len(rows)} encodings do not fit one vector: noise, or a wrong public part"
        elif doubtful[g]:
            why = f"another value fits as well at {doubtful[g]} of {d} pixels"
        elif d < FEWEST_PIXELS:
            why = f"{d} pixels are too few to rule out another solution: "
            why += f"{FEWEST_PIXELS} are needed"
        elif listed[g]:
            why = "a combination of public vectors: they may have changed places with the "
            why += "private one"
        elif other[g]:
            why = "its encodings can be explained by another vector, with other public ones"
        else:
            status[g] = VERIFIED
            why = f"{len(rows)} encodings reproduced at all {d} pixels by one value only"
        reasons.append(why)
    verified = int((status == VERIFIED).sum())
    text = f"{verified} of {count} private vectors verified, each from its own encodings "
    text += "(k_private=1)"
    fits = residual <= near
    return recovery(
        name,
        values,
        status,
        reasons,
        sparse.csr_array((np.ones(m, bool), (np.arange(m), group)), shape=(m, count)),
        residual / scale,
        text,
        clock,
        {"estimated_n_private": count},
        signed=public is not None,
        explained=int(fits[group].sum()),
        exact=bool(fits.any()),
    )


def _as_they_are(encodings: Encodings, name: str, clock: Stopwatch) -> Recovery:
    """Signs kept and nothing mixed in: every encoding is the record. Nothing can confirm it."""
    y = encodings.values.astype(np.float64) / encodings.scheme.private_weight
    near, m = ROW * rms(y), encodings.m
    group = np.unique(np.round(y / near), axis=0, return_inverse=True)[1].ravel()
    count = int(group.max()) + 1
    members = sparse.csr_array((np.ones(m), (np.arange(m), group)), shape=(m, count))
    values = np.asarray(members.T @ y) / np.bincount(group)[:, None]
    why = "k_private=1 and signs kept: the encoding as it is, if it holds one record alone"
    return recovery(
        name,
        values,
        np.full(count, AMBIGUOUS, "<U10"),
        [why] * count,
        members.astype(bool),
        np.zeros(count),
        f"{count} different encodings, each a record as it is where k_private=1",
        clock,
        {"estimated_n_private": count},
        signed=True,
        explained=m,
        exact=True,
    )


def _solve(
    y: NDArray[np.float64], c: NDArray[np.float64], tolerance: float, apart: float
) -> tuple[NDArray[np.float64], float, int]:
    """The value of |x + c| = y that fits all rows best at each pixel, its largest residual, and at
    how many pixels the other value fits as well."""
    # The first row leaves two values; the others decide. Both fit, if the worse one does within
    # twice the tolerance.
    options = np.stack([y[0] - c[0], -y[0] - c[0]])
    miss = np.abs(np.abs(options[:, None, :] + c) - y).max(axis=1)
    best = miss.argmin(axis=0)
    pixels = np.arange(y.shape[1])
    both = (miss.max(axis=0) <= 2 * tolerance) & (np.abs(options[0] - options[1]) > apart)
    return options[best, pixels], float(miss.min(axis=0).max()), int(both.sum())
