"""Which recovered vectors equal which private ones?

Exact means: status "verified", and every pixel within `tolerance` of one private vector. When the
recovery is not signed, one sign per pixel, the same for all vectors, is free: relative signs count.
So vectors are first matched by magnitudes, then one sign per pixel is chosen for all matched
vectors together (the one with the smaller total error), then errors are taken with signs. Values
that a recovery lists as open (`doubtful`) are not compared: they claim nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.checks import DataLike, InputError, as_vectors, row_blocks
from unveil.recovery import Recovery, Scores

SHARE, STEPS = 1e-2, 8
"""Of the spread, and in units of the last digit: a solution of some dozen equations loses three
bits."""
MOST_ALIKE = 50
"""True vectors of the same magnitudes that one recovered vector is taken for: each costs a product
of all with all."""
FAR = 10
"""Tolerances beyond which a pixel is simply wrong: how far off it is must not count."""


def score(recovery: Recovery, private: DataLike, *, tolerance: float | None = None) -> Scores:
    """Hold a recovery against the truth: exact, wrong and missing vectors.

    Parameters
    ----------
    recovery : Recovery
        What an attack returned.
    private : array of shape (n_private, d)
        The vectors that were encoded.
    tolerance : float
        Largest error of a pixel that counts as equal, in the units of the data. None: a hundredth
        of how far records usually are from their mean, and at least what rounding does. (`audit`
        has a `relative_tolerance` instead.)

    Returns
    -------
    Scores
        Counts, and for each recovered vector the private one it equals.

    Raises
    ------
    InputError
        Where the vectors have another number of pixels.

    References
    ----------
    `problem:main` of the paper: recovery up to the signs that encodings do not carry.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=100, d=200, rng=0)
    >>> scores = unveil.score(unveil.recover(sim.encodings, rng=0), sim.private)
    >>> scores.exact, scores.wrong, scores.missing
    (12, 0, 0)
    """
    # 1. The same space, and a tolerance that can be met.
    truth = as_vectors(private, "private")
    if truth.shape[1] != recovery.vectors.shape[1]:
        raise InputError(
            f"private vectors have {truth.shape[1]} pixels, recovered ones "
            f"{recovery.vectors.shape[1]}: score against the data that was encoded"
        )
    if tolerance is None:
        tolerance = usual_tolerance(truth)
    if not tolerance > 0:
        raise InputError(f"tolerance={tolerance!r}: give a positive number")
    # 2. Whom each recovered vector may be, and how far off it is.
    X = recovery.vectors
    told = None if recovery.doubtful is None else ~recovery.doubtful
    if recovery.signed or not len(X):
        nearest = _nearest(X, truth, True, told)
        error = _errors(X, truth, nearest, told)
    else:
        nearest, error = _matched(X, truth, recovery.verified, told, tolerance)
    # 3. A private vector that is returned twice counts once.
    equal = error <= tolerance
    matches = np.where(equal, nearest, -1)
    exact = len(set(matches[equal & recovery.verified].tolist()))
    wrong = int((recovery.verified & ~equal).sum())
    return Scores(exact, wrong, len(truth) - exact, matches, nearest, error, tolerance)


def _matched(
    X: NDArray[np.float32],
    truth: NDArray[np.float32],
    verified: NDArray[np.bool_],
    told: NDArray[np.bool_] | None,
    tolerance: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The true vector of each row of X and its error, with one sign per pixel for all rows: by
    magnitudes first, since signs are not known."""
    # Unverified vectors may be anything: they must not choose the sign when verified ones can.
    voters = verified if verified.any() else np.ones(len(X), dtype=bool)

    def signed(nearest: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        each = sign_votes(X[voters], truth[nearest[voters]], tolerance)
        votes = (each if told is None else each * told[voters]).sum(axis=0)
        turned = np.where(votes < 0, np.float32(-1), np.float32(1)) * X
        # Private vectors that differ in signs only have the same magnitudes: match again, now with
        # signs.
        again = _nearest(turned, truth, True, told)
        return again, _errors(turned, truth, again, told)

    best = signed(_nearest(np.abs(X), truth, False, told))
    # Where many have the same magnitudes, as answers of ±1 have, these tell too little: then one
    # vector is taken for each of those it may be in turn, and its signs decide for the others.
    anchor = int(np.flatnonzero(voters)[0])
    here = np.ones(X.shape[1], bool) if told is None else told[anchor]
    alike = np.abs(np.abs(X[anchor]) - np.abs(truth))[:, here].max(axis=1, initial=0) <= tolerance
    for j in np.flatnonzero(alike)[:MOST_ALIKE]:
        if (best[1][voters] <= tolerance).all():
            break
        signs = np.where(X[anchor] * truth[j] < 0, np.float32(-1), np.float32(1))
        tried = signed(_nearest(signs * X, truth, True, told))
        # That it equals itself says nothing: others must.
        mine, theirs = (int((error <= tolerance).sum()) for _, error in (best, tried))
        if theirs > max(1, mine):
            best = tried
    return best


def _errors(
    X: NDArray[np.float32],
    truth: NDArray[np.float32],
    nearest: NDArray[np.int64],
    told: NDArray[np.bool_] | None,
) -> NDArray[np.float64]:
    """Largest error of each row, over the values that are told."""
    apart = np.abs(X - truth[nearest])
    if told is not None:
        apart[~told] = 0
    return np.asarray(apart.max(axis=1, initial=0.0), np.float64)


def usual_tolerance(truth: NDArray[np.float32]) -> float:
    """A hundredth of the rms of the records without their mean, or a few steps of the largest value
    in single precision."""
    centre = truth.mean(axis=0, dtype=np.float64) if len(truth) > 2 else 0.0
    spread = float(np.sqrt(np.mean(np.square(truth - centre)))) if truth.size else 0.0
    largest = float(np.abs(truth).max(initial=0.0))
    return max(SHARE * spread, STEPS * float(np.finfo(np.float32).eps) * largest) or SHARE


def sign_votes(
    X: NDArray[np.float32], truth: NDArray[np.float32], tolerance: float
) -> NDArray[np.float32]:
    """How much each pixel of each vector speaks for its sign as it is, and, negative, for the other
    one; capped, so that one vector that is far off does not decide for all."""
    cap = np.float32(FAR * tolerance)
    return np.asarray(np.minimum(np.abs(X + truth), cap) - np.minimum(np.abs(X - truth), cap))


def _nearest(
    X: NDArray[np.float32],
    truth: NDArray[np.float32],
    signed: bool,
    told: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Index of the true vector nearest to each row of X in the Euclidean sense (of magnitudes when
    not signed), over the values that are `told`."""
    best = np.full(len(X), np.inf)
    index = np.zeros(len(X), dtype=np.int64)
    # What all have in common is taken off: beside a large offset (a year, a pressure) products in
    # single precision would not see how records differ.
    blocks = (block if signed else np.abs(block) for _, block in row_blocks(truth))
    common = sum(block.sum(axis=0, dtype=np.float64) for block in blocks) / len(truth)
    # Values that are not told count as 0 on both sides.
    shown = (X - common).astype(np.float32)
    if told is not None:
        shown = np.where(told, shown, np.float32(0))
    for start, block in row_blocks(truth):
        # ‖x − t‖² without ‖x‖², which is the same for all t: one product per block.
        T = ((block if signed else np.abs(block)) - common).astype(np.float32)
        size = (
            np.einsum("ij,ij->i", T, T)[None, :]
            if told is None
            else told.astype(np.float32) @ (T * T).T
        )
        distance = size - 2 * (shown @ T.T)
        j = distance.argmin(axis=1) if len(X) else np.empty(0, dtype=np.int64)
        value = distance[np.arange(len(X)), j]
        better = value < best
        best[better], index[better] = value[better], j[better] + start
    return index
