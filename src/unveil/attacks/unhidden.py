"""Data that are not negative: |Xw| = Xw, and nothing was hidden (images in [0, 1], counts, zeros
and ones).

    1  is Y linear as it is?      n vectors make a matrix of rank n; absolute values of sums of both
                                  signs have full rank. And rows of W sum to k, so that some
                                  combination of columns is 1 in every row, whatever n is
    2  x ← MixUp                  as if signs had been kept (`attacks.mixup`)
    3  status ← the certificate, for hidden signs: values that could be negative after all are
                listed as doubtful

Cost: the singular values of a part of Y, then that of `mixup`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.attacks.mixup import mixup
from unveil.certificate import certify
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.gram.whitened import exact_rank, ones_in_span, rank_of, spectrum
from unveil.parallel import one_blas_thread
from unveil.records import Progress, Recovery
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
    rank = exact_rank(values)
    if rank < scheme.k_private + 2:
        return False
    if rank < POOR * min(Y.shape) or ones_in_span(Y, values[:rank], vectors[:, :rank]):
        return True
    fall = rank_of(values)
    sharp = fall is not None and values[fall - 1] > FALL * values[fall]
    # A rank well below the full one: the smallest eigenvalues fall by large factors as well.
    return fall is not None and sharp and scheme.k_private + 2 <= fall < 0.6 * min(Y.shape)


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
    recovery = mixup(kept, public, rng=rng, memory_limit=memory_limit, progress=progress)
    explained = recovery.explained
    if explained < ENOUGH * encodings.m and not recovery.verified.any():
        return Recovery.empty(encodings, NAME, recovery.explanation, recovery.seconds)
    words = (
        f"{recovery.explanation}; no sign was hidden, since the sums are not negative: |Xw| = Xw"
    )
    # 2. Signs were hidden all the same: values that could be negative after all are open.
    if encodings.scheme.k_public:
        return replace(recovery, attack=NAME, explanation=words)
    judged = certify(encodings, recovery.vectors, recovery.members, doubtful=recovery.doubtful)
    if judged.doubtful is not None:
        words += (
            f"; {int(judged.doubtful.sum())} of {judged.doubtful.size} values could be negative "
            "after all, listed in `doubtful`"
        )
    return replace(
        judged,
        attack=NAME,
        explanation=words,
        seconds=recovery.seconds,
        evidence=recovery.evidence,
    )


ATTACK = unhidden
