"""k_private = 1: one private vector per encoding, no subsets to find.

Without a public part the encoding is the vector, up to the sign of every pixel where signs are
hidden, and nothing ties these signs together. With one, encodings of the same vector are told by
their overlap (`gram_extract`), and at every pixel two encodings |x + c₁| = y₁ and |x + c₂| = y₂
leave one value that fits both: ±y₁ − c₁, checked against all others. The full attack for
k_private = 1 is this.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.attacks.finish import recovery
from unveil.attacks.overlaps import read_overlaps
from unveil.certificate import certify
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch, must_fit
from unveil.records import AMBIGUOUS, Overlaps, Progress, Recovery
from unveil.solve.model import ROW, rms

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
    indices = None
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
        indices = supports.indices
    # 2. Each vector from its encodings.
    count = int(group.max()) + 1
    rows_of = [np.flatnonzero(group == g) for g in range(count)]
    values = np.zeros((count, d))
    with clock("pixels"):
        for g, rows in enumerate(rows_of):
            values[g] = _solve(y[rows], c[rows])
    # 3. The certificate.
    given = () if public is None or indices is None else (public, indices)
    judged = certify(encodings, values.astype(np.float32), group[:, None], *given)
    text = f"{int(judged.verified.sum())} of {count} private vectors verified, each from its own "
    text += "encodings (k_private=1)"
    return replace(
        judged,
        attack=name,
        explanation=text,
        seconds=clock.seconds,
        evidence={"estimated_n_private": count},
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


def _solve(y: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of |x + c| = y that fits all rows best at each pixel: the first row leaves two."""
    options = np.stack([y[0] - c[0], -y[0] - c[0]])
    miss = np.abs(np.abs(options[:, None, :] + c) - y).max(axis=1)
    return np.asarray(options[miss.argmin(axis=0), np.arange(y.shape[1])])
