"""Which of the corners are public vectors, and which are surely private? For attacks that find
both alike, since weights are unknown (`attacks.unmix`, `attacks.unmask`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certify.own_weights import FAINT
from unveil.records import AMBIGUOUS, VERIFIED

SAME = 1e-3
"""How near to a public vector a corner must be to be one, relative to its size."""
WITNESSES = 2
"""Public vectors that must agree on the sign of every pixel: one could be a private vector that is
its mirror image."""

Floats = NDArray[np.float64]


def public_corners(values: Floats, P: NDArray[np.float32] | None) -> NDArray[np.int64]:
    """(n,) which public vector each corner is, −1: none."""
    out = np.full(len(values), -1, np.int64)
    for i, value in enumerate(values if P is not None and len(P) else ()):
        apart = np.linalg.norm(P - value, axis=1)
        if apart.min() <= SAME * np.linalg.norm(value):
            out[i] = apart.argmin()
    return out


def public_signs(values: Floats, P: NDArray[np.float32] | None) -> Floats | None:
    """(d,) the sign per pixel, common to all corners, with which public vectors are among them;
    None: they do not tell."""
    if P is None or not len(P):
        return None
    at = public_corners(np.abs(values), np.abs(P))
    found = np.flatnonzero(at >= 0)
    if len(found) < WITNESSES:
        return None
    theirs = P[at[found]].astype(np.float64)
    agree = values[found] * theirs
    clear = np.abs(theirs) > SAME * np.sqrt(np.mean(theirs**2))
    plus, minus = (clear & (agree > 0)).any(axis=0), (clear & (agree < 0)).any(axis=0)
    # A pixel without a clear value, or with both signs, stays open, and with it all others: what is
    # signed is signed everywhere.
    return None if (plus == minus).any() else np.where(plus, 1.0, -1.0)


def only_private(
    status: NDArray[np.str_],
    reasons: list[str],
    W: sparse.csr_array,
    listed: NDArray[np.bool_],
    k_public: int,
) -> tuple[NDArray[np.str_], list[str]]:
    """Status and reasons, with corners in doubt that may be public vectors which are not listed.

    An encoding mixes k_public of them. Where so many are found beside a corner, it is private.
    """
    if not k_public:
        return status, reasons
    clear = sparse.csr_array(W > FAINT)
    full = np.asarray(clear[:, np.flatnonzero(listed)].sum(axis=1)).ravel() >= k_public
    private = np.asarray(clear[np.flatnonzero(full)].sum(axis=0)).ravel() > 0
    doubt = (status == VERIFIED) & ~private & ~listed
    why = "it may be a public vector: no encoding of it holds as many vectors of the public list "
    why += f"as the scheme says ({k_public})"
    status = np.where(doubt, AMBIGUOUS, status).astype("<U10")
    return status, [why if unsure else old for unsure, old in zip(doubt, reasons, strict=True)]
