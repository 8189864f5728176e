"""Data that are not negative: |Xw| = Xw, and nothing was hidden (images in [0, 1], counts, zeros
and ones).

    1  is Y linear as it is?      n vectors make a matrix of rank n; absolute values of sums of both
                                  signs have full rank. And rows of W sum to k, so that some
                                  combination of columns is 1 in every row, whatever n is
    2  x ← MixUp                  as if signs had been kept (`attacks.mixup`)
    3  in doubt ← values whose sign the other encodings do not tie to the rest, or that have a
                  mirror image; pairs: all solutions of a pixel of few levels
                  (`certify.open_values`)

What is proved is a solution of y = Wx with all signs plus; since each pixel may be turned, the
recovery is not signed. Values that could be negative after all are listed as doubtful: a vector
alone at a pixel, all of whose partners are zero there. For k ≥ 3 two vectors and more that turn
together, by values that agree in all of their encodings, are not looked for.

Cost: the singular values of a part of Y, then that of `mixup`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from unveil.attacks.units import column_units
from unveil.certify.open_values import open_values as every_open_value
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.mixing import recover_mixture
from unveil.mixing.model import rank as rank_of_sizes
from unveil.mixing.model import spectrum
from unveil.parallel import one_blas_thread
from unveil.records import VERIFIED, Progress, Recovery
from unveil.seeds import Rng

NAME = "unhidden"
MOST = 800
"""Encodings and pixels whose rank is looked at: a tenth of a second. More private vectors than that
are not noticed."""
ZERO = 1e-5
"""What counts as zero, relative to the largest value of a pixel: rounding leaves about 1e-7, times
the condition of W."""
SAME = 1e-5
"""How near to each other rows or columns of rms 1 are one: rounding leaves about 1e-7."""
POOR = 0.8
"""The share of full rank below which it is no accident."""
FALL = 30.0
"""Factor by which the spectrum of rounded sums falls at its rank, at least; that of magnitudes
falls gently."""
ENOUGH = 0.9
"""The share of encodings that must be explained where nothing is verified; a chance fit of a few of
them means nothing."""


def nothing_hidden(encodings: Encodings, public: ArrayLike | None = None) -> bool:
    """Whether the magnitudes look like sums of few vectors without any absolute value taken."""
    scheme = encodings.scheme
    if scheme.signs == "kept" or not scheme.fixed_weights or scheme.k_private < 2:
        return False
    if scheme.k_public:
        P = as_public(public, encodings)
        return P is not None and bool(P.min() >= 0 or P.max() <= 0)
    step = (-(-encodings.m // MOST), -(-encodings.d // MOST))
    Y = _different(np.abs(encodings.values[:: step[0], :: step[1]]).astype(np.float64))
    if min(Y.shape) < scheme.k_private + 2:
        return False
    with one_blas_thread():
        values, vectors = spectrum(Y)
    rank = rank_of_sizes(values)
    if rank < scheme.k_private + 2:
        return False
    if rank < POOR * min(Y.shape) or _ones_in_span(Y, values[:rank], vectors[:, :rank]):
        return True
    fall = _falling_rank(values)
    sharp = fall is not None and values[fall - 1] > FALL * values[fall]
    # A rank well below the full one: the smallest eigenvalues fall by large factors as well.
    return fall is not None and sharp and scheme.k_private + 2 <= fall < 0.6 * min(Y.shape)


def _falling_rank(values: NDArray[np.float64]) -> int | None:
    """Where falling eigenvalues fall most, or None where they fall nowhere by more than chance."""
    safe = np.maximum(values, 1e-11 * max(float(values[0]), 1e-300))
    last = int(0.95 * len(safe))  # the smallest eigenvalues of noise fall by large factors as well
    if last < 2:
        return None
    # The largest fall; elsewhere eigenvalues of noise fall slowly.
    falls = safe[: last - 1] / safe[1:last]
    best = int(falls.argmax())
    return best + 1 if falls[best] > 4.0 else None


def _ones_in_span(
    Y: NDArray[np.floating], values: NDArray[np.float64], vectors: NDArray[np.float64]
) -> bool:
    """Whether some combination β of most columns is 1 in every row; from the r leading eigenvalues
    and eigenvectors of YYᵀ.

    Rows of W sum to k, so that Y = WX has one where its vectors are independent: Xβ = 1/k. This
    tells sums from magnitudes even if there are as many vectors as columns, where the rank says
    nothing. Columns whose signs were hidden have no part in β.
    """
    if len(values) >= len(Y):
        return False
    rest, weights = np.ones(len(Y)), np.zeros(Y.shape[1])
    for _ in range(2):  # once more, for what rounding left
        step = Y.T @ (vectors @ (vectors.T @ rest / values))
        weights += step
        rest = rest - Y @ step
    size = np.abs(weights)
    most = 2 * np.count_nonzero(size > 1e-4 * size.max()) > len(size)
    return bool(np.sqrt(np.mean(rest**2)) < 1e-5 and most)


def _different(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row and each column once, columns in units of their rms, without those that are
    constant: repeats cost rank, hidden or not."""
    Y = Y / np.maximum(np.sqrt(np.mean(Y**2, axis=0)), 1e-30)
    Y = Y[:, np.ptp(Y, axis=0) > SAME]
    for _ in range(2):
        Y = Y[np.sort(np.unique(np.rint(Y / SAME), axis=0, return_index=True)[1])].T
    return Y


def unhidden(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector, where taking absolute values changed nothing."""
    if not nothing_hidden(encodings, public):
        raise InputError(
            "the encodings are not sums of few vectors as they are: signs were hidden; "
            "use attack='relations'"
        )
    # 1. As if signs had been kept.
    kept = replace(
        encodings, values=np.abs(encodings.values), scheme=replace(encodings.scheme, signs="kept")
    )
    recovery = recover_mixture(kept, public, rng=rng, memory_limit=memory_limit, progress=progress)
    explained = recovery.explained
    if explained < ENOUGH * encodings.m and not recovery.verified.any():
        return Recovery.empty(encodings, NAME, recovery.explanation, recovery.seconds)
    words = (
        f"{recovery.explanation}; no sign was hidden, since the sums are not negative: |Xw| = Xw"
    )
    # 2. Values that could be negative after all: no encoding with them would show it. With a public
    # part the sums are its own, and signs are known.
    if encodings.scheme.k_public:
        return replace(recovery, attack=NAME, explanation=words)
    doubtful = (
        open_values(recovery)
        if (recovery.status == VERIFIED).any()
        else np.zeros(recovery.vectors.shape, bool)
    )
    if doubtful.any():
        words += (
            f"; {int(doubtful.sum())} of {doubtful.size} values could be negative after all, "
            "listed in `doubtful`"
        )
    return replace(
        recovery,
        attack=NAME,
        explanation=words,
        signed=False,
        doubtful=doubtful if doubtful.any() else None,
    )


def open_values(recovery: Recovery) -> NDArray[np.bool_]:
    """(r, d) values with another solution of |Wx| = y: a piece of the vectors that are not zero at
    a pixel, with no link to the largest one, may have the other sign; and so may x_v → −2a − x_v,
    where the partners of v sum to a in every encoding. Of pairs every solution is looked for."""
    x = recovery.vectors.astype(np.float64)
    members = csr_array(recovery.members)
    rows = np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))
    names = members.indices
    r, d = x.shape
    near = ZERO * np.maximum(np.abs(x).max(axis=0), 1e-30)
    total = members.astype(np.float64) @ x
    # 1. Mirror images: the rest of every encoding of v is the same.
    order = np.argsort(names, kind="stable")
    starts = np.searchsorted(names[order], np.arange(r))
    used = np.diff(np.append(starts, len(names))) > 0
    out = np.zeros((r, d), bool)
    for block in range(0, d, 256):
        part = slice(block, block + 256)
        rest = total[rows[order], part] - x[names[order], part]
        low = np.minimum.reduceat(rest, starts[used], axis=0)
        high = np.maximum.reduceat(rest, starts[used], axis=0)
        mirrored = (high - low <= 4 * near[part]) & (
            np.abs(2 * (high + x[used, part])) > 4 * near[part]
        )
        out[used, part] = mirrored
    # 2. Pieces: vectors that are not zero and meet each other. Only pixels with zeros can fall
    # apart.
    some = np.abs(x) > near
    ends = np.repeat(np.arange(len(names)), np.diff(members.indptr)[rows])
    others = (
        np.concatenate([np.arange(members.indptr[i], members.indptr[i + 1]) for i in rows])
        if len(rows)
        else ends
    )
    u, v = names[ends], names[others]
    for p in np.flatnonzero((~some).any(axis=0) & some.any(axis=0)):
        linked = some[u, p] & some[v, p]
        graph = coo_array(
            (np.ones(int(linked.sum()), np.int8), (u[linked], v[linked])), shape=(r, r)
        )
        piece = connected_components(graph, directed=False)[1]
        size = np.bincount(piece[some[:, p]], minlength=piece.max() + 1)
        out[:, p] |= some[:, p] & (piece != int(size.argmax()))
    # 3. Pairs: what several vectors may do together, in units in which columns are alike.
    count = np.diff(members.indptr)
    if (count <= 2).all():
        pairs = names[members.indptr[:-1][count == 2][:, None] + np.arange(2)].astype(np.int64)
        misfit = np.full(d, float(recovery.residual.max()))
        out |= every_open_value(pairs, x / column_units(recovery.vectors), None, misfit)
    return out


ATTACK = unhidden
