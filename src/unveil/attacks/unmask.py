"""TextHide (Huang, Song, Chen, Li, Arora, Findings of EMNLP 2020): y = σ∘Σ λ_j·x_j, σ one of a pool
of masks, weights new in every encoding, some of the x_j public.

    1  groups ← Masks(Y)       rows that share a mask, by how alike they are (`gram.mask_pool`)
    2  σ ← Masks(Y, groups)    up to one sign per pixel, common to all; with the public vectors
                               themselves
    3  x, W ← Corners(σ∘y)     as in MixUp: at most d + 1 records (`solve.simplex`), or more of them
                               (`solve.many_corners`); then σ once more, by what the x_j say of each
                               pixel
    4  status ← Certificate    the rows of one mask are MixUp. A record is verified if those of one
                               mask alone exclude another reading (`certify.own_weights`): what
                               other masks are found to be plays no part. Nothing is verified where
                               there are more records than pixels

Needs vectors that have something in common, as features of sentences have, or few masks: rows of a
mask that share no record and have no common mean are not told from those of other masks.

Cost: products of all pairs, m²·d, and m·n·d for each of some dozen turns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.attacks.finish import recovery
from unveil.certificate import certify
from unveil.checks import InputError
from unveil.encode.weights import sample_weights
from unveil.encodings import Encodings, as_public
from unveil.gram.mask_pool import FEWEST, mask_groups, relative_masks
from unveil.gram.whitened import exact_rank
from unveil.parallel import Stopwatch, must_fit, one_blas_thread
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Progress, Recovery
from unveil.scheme import Scheme
from unveil.seeds import Rng
from unveil.solve.many_corners import find_many_corners, guess_corners
from unveil.solve.model import rms
from unveil.solve.public_corners import public_corners, public_signs
from unveil.solve.simplex import Corners, find_corners

NAME = "unmask"
BYTES = 64
"""Per value of the encodings: copies in double precision, whitened ones, residuals."""
DRAWS = 20_000
"""Rows of weights from which the mean of their squares is taken: two digits."""
FIRST_TURNS, MENDS = 25, 3
"""Turns of corners before masks are looked at again, and how often: nearly all members are right by
then."""
EXPLAINED = 0.5
"""Share of encodings that must be reproduced: fewer are what chance leaves."""
ALIKE = 0.1
"""Distance to a public vector's magnitudes, in units of the usual one, of one that has them."""
BY_SIGNS = 0.5
"""The same, in units of the distance with signs, of one that differs by signs alone: the nearest of
real sentences have 0.97 and more."""
FAINTEST = 1e-5
"""A smaller weight leaves open which record it belongs to: no member is named."""

Floats = NDArray[np.float64]


def takes(scheme: Scheme) -> bool:
    """Whether `unmask` can take encodings of this scheme on."""
    several = scheme.k_private >= 1 and scheme.k_private + scheme.k_public >= 2
    return several and scheme.signs == "masked" and not scheme.fixed_weights


def unmask(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The pool of masks, then every record and every weight.

    public: the public vectors; None with k_public above 0: they come back among the records
    """
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if not takes(scheme):
        raise InputError(
            f"signs={scheme.signs!r}, weighting={scheme.weighting!r}: attack='unmask' is for "
            "signs='masked', weights of their own and two records or more"
        )
    P = as_public(public, encodings) if public is not None and scheme.k_public else None
    limit = bytes_allowed(memory_limit)
    what = f"attack='unmask' on {m:,} encodings of {d:,} pixels"
    must_fit(BYTES * m * d + 16 * d * d, what, limit, "attack fewer of them")
    clock = Stopwatch()
    # 1. Who shares a mask, and which.
    with clock("masks"), one_blas_thread():
        groups = mask_groups(encodings.values)
        count = int(groups.max()) + 1
        rows = np.flatnonzero(groups >= 0)
        if 2 * len(rows) < m:
            nothing = f"{m - len(rows)} of {m} encodings are like fewer than {FEWEST - 1} others, "
            nothing += "so that no masks show: more encodings are needed"
            return Recovery.empty(encodings, NAME, nothing, clock.seconds)
        masks = relative_masks(encodings.values, groups, P)
    # 2. Corners of what is below.
    with clock("corners"), one_blas_thread():
        found, masks = _corners(encodings.values[rows], groups[rows], masks, scheme, P, progress)
    if found is None or found.fits.mean() < EXPLAINED:
        nothing = f"{count} masks found; below them no mixtures of "
        nothing += f"{scheme.k_private + scheme.k_public} records that explain most encodings"
        return Recovery.empty(encodings, NAME, nothing, clock.seconds, {"masks": count})
    # 3. What is proved. The sign per pixel that all masks leave open is that of public vectors.
    with clock("certificate"), one_blas_thread():
        signs = public_signs(found.values, P)
        if signs is not None:
            found = replace(found, values=found.values * signs)
        W = _weights(encodings, found, rows)
        judged = certify(encodings, found.values.astype(np.float32), W != 0, P, weights=W)
    return _told(encodings, found, P, count, judged, signs is not None, clock)


def _corners(
    values: NDArray[np.float32],
    groups: NDArray[np.int64],
    masks: NDArray[np.int8],
    scheme: Scheme,
    P: NDArray[np.float32] | None,
    progress: Progress | None,
) -> tuple[Corners | None, NDArray[np.int8]]:
    """Corners, and the masks as they are after it."""
    k = scheme.k_private + scheme.k_public
    known = None if P is None else P.astype(np.float64)
    q = 0 if P is None else len(P)
    weights = sample_weights(scheme, DRAWS, np.random.default_rng(0))
    squares = float(np.square(weights).sum(axis=1).mean())
    start: Floats | None = None
    for _ in range(MENDS):
        # 1. Few corners: linear algebra.
        Z = values.astype(np.float64) * masks[groups]
        lifted = np.column_stack([Z, np.full(len(Z), rms(Z))])
        if exact_rank(np.linalg.eigvalsh(lifted.T @ lifted)[::-1]) < min(lifted.shape):
            found = find_corners(Z, k, progress=progress)
            if found is not None and found.exact and found.fits.mean() >= EXPLAINED:
                return found, masks
        if len(Z) <= Z.shape[1] + 1:
            return None, masks
        # 2. Many: a guess, and masks by it, until these are as they were.
        guess = guess_corners(
            Z, k, squares, known, start=start, turns=FIRST_TURNS, progress=progress
        )
        if guess is None:
            return None, masks
        start = guess.values[q:]
        agree = Z * guess.mixed()
        wrong = np.array([agree[groups == g].sum(axis=0) < 0 for g in range(len(masks))])
        # Public vectors that come back with other signs: these pixels are wrong behind all masks.
        turned = np.zeros(Z.shape[1], bool) if P is None else _turned(start, P)
        if turned.any():
            wrong, start = np.tile(turned, (len(masks), 1)), None
        if not wrong.any():
            break
        masks = np.where(wrong, -masks, masks).astype(np.int8)
    # 3. To the end.
    Z = values.astype(np.float64) * masks[groups]
    return find_many_corners(Z, k, squares, known, start=start, progress=progress), masks


def _turned(found: Floats, P: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(d,) pixels with the other sign in those vectors that have the magnitudes of a public one.

    A private vector that is much like a public one differs from it in more than signs."""
    size, sizes = np.abs(found), np.abs(P).astype(np.float64)
    apart = np.stack([np.linalg.norm(sizes - one, axis=1) for one in size])
    nearest = apart.argmin(axis=1)
    near = apart.min(axis=1) < ALIKE * np.median(apart)
    near &= apart.min(axis=1) < BY_SIGNS * np.linalg.norm(found - P[nearest], axis=1)
    return np.asarray((found[near] * P[nearest[near]]).sum(axis=0) < 0)


def _weights(encodings: Encodings, found: Corners, rows: NDArray[np.int64]) -> sparse.csr_array:
    """(m, n): weights of the rows that are explained, clear enough to tell whose they are."""
    W = found.matrix.tocsr()
    W.data[W.data <= FAINTEST] = 0
    W = sparse.csr_array(sparse.diags_array(found.fits.astype(np.float64)) @ W)
    W.eliminate_zeros()
    at = W.tocoo()
    shape = encodings.m, len(found.values)
    return sparse.csr_array((at.data, (rows[at.row], at.col)), shape=shape)


def _told(
    encodings: Encodings,
    found: Corners,
    P: NDArray[np.float32] | None,
    count: int,
    judged: Recovery,
    signed: bool,
    clock: Stopwatch,
) -> Recovery:
    """The recovery, in words; corners that are public vectors are left out."""
    k, m = found.members.shape[1], encodings.m
    # 1. Corners that some encoding uses and that are not in the public list.
    assert judged.weights is not None
    known = P if signed or P is None else np.abs(P)
    listed = public_corners(found.values if signed else np.abs(found.values), known) >= 0
    used = np.asarray(judged.weights.sum(axis=0)).ravel() > 0
    names = np.flatnonzero(used & ~listed)
    weights = sparse.csr_array(judged.weights[:, names])
    # 2. In words.
    status = judged.status[names]
    explained = int(found.fits.sum())
    sure = int(judged.verified[names].sum())
    kind = "private vectors" if P is not None or not encodings.scheme.k_public else "vectors"
    text = f"{sure} of {len(names)} {kind} verified" if sure else ""
    text = text or f"{len(names)} {kind} recovered, none verified"
    text += f"; {count} masks found, {explained} of {m} encodings explained exactly as mixtures of "
    text += f"{k} below them"
    # 3. In numbers.
    facts: dict[str, Any] = {
        "masks": count,
        "estimated_n_private": len(names),
        "encodings_explained": explained,
        "equations": explained * encodings.d,
        "unknowns": len(names) * encodings.d + explained * (k - 1),
    }
    return recovery(
        NAME,
        found.values[names],
        status,
        [judged.reasons[i] for i in names],
        weights.astype(bool),
        np.full(len(names), found.noise / rms(encodings.values)),
        text,
        clock,
        facts,
        signed=signed,
        explained=explained,
        exact=True,
        weights=weights,
    )


ATTACK = unmask
