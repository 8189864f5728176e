"""Records that are all there, but in a disguise that all of them share.

An encoder may add one secret vector to every encoding, or shuffle the columns of all of them in the
same way. The attack then returns x + b, or the values of x in another order, and no vector equals a
record. Yet everything is known of the records but one thing that is the same for all: who knows
one of them, or which values a column takes, has the others. Such records count as approximate; a
shift that is one number for all columns is as free as a factor, and leaves them exact.

    shift    x = a·s∘f + b      one factor a, a sign and a shift for every column
    order    x = a·f[π]         one factor a, one order π of the columns; signs may be off

Both are found from all vectors together, half of which must be right, and hold for `FEWEST` records
at least, to the same bound as exact ones. Cost: a product of all vectors with all records for each
round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from unveil.auditing.risks import ALMOST, EXACT, FEW, NOT, Yardstick, cosines

FEWEST = 3
"""Records that must agree on the disguise: one always does, and two may by chance."""
ROUNDS = 4
"""Rounds in which vectors are matched to records and the shift is fitted: two settle most."""
COLUMNS = 512
"""Columns that are looked for among the others, at most: their pairs are then a quarter of a
million."""
TOGETHER = 64
"""Records whose columns are compared, at most: each adds a number to every column."""
NEARLY_ALL = 0.9
"""Share of the columns that must be found again: some are constant, and equal to others."""
TINY = 1e-30
"""Guards divisions: vectors may be zero."""
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def disguised(vectors: Floats, yard: Yardstick) -> tuple[str, NDArray[np.int8]]:
    """What vectors (r, d) are off by, in words, and the outcome of each distinct record then; empty
    words where they are in no disguise."""
    n, d = yard.truth.shape
    best, words = np.zeros(n, np.int8), ""
    if min(len(vectors), n) < FEWEST or d < FEW or not vectors.any():
        return words, best
    shown, level = _up_to_shift(vectors, yard)
    for which, outcome, off in (
        (shown & level, EXACT, "up to one number that is added to every value"),
        (shown, ALMOST, "up to a vector that is the same for all"),
        (_up_to_order(vectors, yard), ALMOST, "up to the order of the columns"),
    ):
        if which.sum() >= FEWEST and which.sum() > (best > NOT).sum():
            best, words = np.where(which, outcome, NOT).astype(np.int8), off
    return words, best


def _up_to_shift(vectors: Floats, yard: Yardstick) -> tuple[Flags, bool]:
    """Which records are shown, and whether the shift is one number."""
    truth = yard.truth
    # 1. Magnitudes of what differs from the median, which depends neither on signs nor on a shift.
    alike = cosines(*(np.abs(x - np.median(x, axis=0)) for x in (vectors, truth)))
    for _ in range(ROUNDS):
        # 2. The half of the vectors that are most like their records, and what is between both.
        best = alike.argmax(axis=1)
        order = np.argsort(-alike[np.arange(len(best)), best], kind="stable")
        rows = order[: max(FEWEST, len(order) // 2)]
        x, v = truth[best[rows]], vectors[rows]
        x0, v0 = x - x.mean(axis=0), v - v.mean(axis=0)
        signs = np.where((x0 * v0).sum(axis=0) < 0, np.float32(-1), np.float32(1))
        factor = float((x0 * v0 * signs).sum()) / max(float((v0 * v0).sum()), TINY)
        turned = np.float32(factor) * signs * vectors
        shift = np.median(x - turned[rows], axis=0)
        found = turned + shift
        alike = _nearness(found, truth)
    miss = np.abs(found[alike.argmax(axis=0)] - truth).max(axis=1)
    # Signs of columns are free, so that a shift may have either sign.
    level = bool(np.ptp(shift) <= 2 * yard.bound or np.ptp(signs * shift) <= 2 * yard.bound)
    return np.asarray(miss <= yard.bound), level


def _nearness(found: Floats, truth: Floats) -> Floats:
    """Of every vector to every record: the larger the nearer."""
    square = np.square(truth).sum(axis=1)
    return np.asarray(2 * (found @ truth.T) - square - np.square(found).sum(axis=1)[:, None])


def _up_to_order(vectors: Floats, yard: Yardstick) -> Flags:
    # 1. Vectors and records with the same values, and the same products with the others.
    rows, alike = _without_order(vectors, yard.truth)
    ours, theirs = (np.sort(np.abs(x), axis=1) for x in (vectors[rows], yard.truth))
    size = np.einsum("ij,ij->i", ours, ours)
    ratio = np.einsum("ij,ij->i", ours, theirs) / np.maximum(size, TINY)
    factor = np.float32(np.median(ratio[alike >= np.median(alike)]))
    same = np.abs(factor * ours - theirs).max(axis=1) <= yard.bound
    if same.sum() < FEWEST:
        return np.zeros(len(same), bool)
    # 2. The columns of these are the same ones, in one order.
    few = np.flatnonzero(same)[:TOGETHER]
    ours, theirs = factor * np.abs(vectors[rows[few]]), np.abs(yard.truth[few])
    some = np.unique(np.linspace(0, theirs.shape[1] - 1, COLUMNS).astype(int))
    nearest = cdist(theirs[:, some].T, ours.T, "chebyshev").min(axis=1)
    return np.asarray(same & ((nearest <= yard.bound).mean() >= NEARLY_ALL))


def _without_order(vectors: Floats, truth: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The vector most like each record whatever the order of columns, and how like it is."""
    features = [[np.sort(np.abs(x), axis=1)] for x in (vectors, truth)]
    if len(vectors) == len(truth):
        # Zeros and ones say little when sorted; products with all others do not depend on order.
        for each, x in zip(features, (vectors, truth), strict=True):
            gram = np.sort(np.abs(x @ x.T), axis=1)
            each.append(gram * (np.linalg.norm(x) / max(float(np.linalg.norm(gram)), TINY)))
    alike = cosines(*(np.hstack(each) for each in features))
    rows = alike.argmax(axis=0)
    return rows, alike[rows, np.arange(len(truth))]
