"""Classical phase retrieval for encodings without a private part: y = |Pᵀw|, and every encoding by
itself gives its w.

    1  w₀ ← spectral initialisation         with optimal preprocessing (`rivals.classical`)
    2  w ← reweighted amplitude flow        the strongest of three classical methods
    3  S ← weights that are not zero        w ← least squares on S, signs of the mixture fixed
    4  status ← re-encoding at all pixels   and a proof that no other mixture does it
                                            (`certify.mixtures`)

Netrapalli, Jain, Sanghavi (NIPS 2013), Candès, Li, Soltanolkotabi (2015) and their successors,
`rivals.classical`. Nothing is private here: what comes back are the public vectors each encoding
mixes, and how much of each.

w may be anything, so that d must exceed n_public 2 to 4 times: 2·n_public − 1 generic equations
have one solution up to a sign (Balan, Casazza, Edidin 2006). Public vectors need not be generic,
two may have the same magnitudes: "verified" rests on a certificate for the encoding at hand, which
is found from 3 to 4 times as many pixels as vectors on. LearnPublic (`supports.weights.exact`) uses
that w is sparse, and needs far fewer pixels.

Cost: 4·m·n_public·d per step, some hundred steps; blocks of encodings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.certificate import certify
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch, rows_per_block
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Progress, Recovery
from unveil.rivals.classical import retrieve_weights
from unveil.seeds import Rng, child, root
from unveil.solve.model import PIXEL
from unveil.supports.folded.survey import survey_public

NAME = "phase-retrieval"
TOLERANCE = PIXEL
"""Largest residual of a reproduced encoding, relative to its rms."""
NEAR = 0.3
"""Relative residual up to which an encoding is taken for a noisy mixture; what does not converge
has more."""
SMALL = 1e-3
"""Weights below this part of the largest are none; in a noisy mixture, below what `residual` allows
as well."""
INDEPENDENT = 1e-8
"""Least eigenvalue of the normalised Gram matrix of public vectors: below it one is a combination
of others, in single precision."""
TOO_MUCH = 3.0
"""Weights below twice this many standard errors of a noisy mixture are none."""
SWEEPS = 3
"""Times weights and signs of the mixture are found from each other: signs hardly change then."""


def phase_retrieval(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """The public vectors that encodings mix, `members` and `weights` who mixes which."""
    # 1. What is refused: a private part, too few pixels, public vectors that depend on each other.
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if scheme.k_private:
        raise InputError(
            f"k_private={scheme.k_private}: attack='phase-retrieval' is for encodings without a "
            "private part; with one, unveil.learn_public finds the public vectors and "
            "attack='full' the private ones"
        )
    P = as_public(public, encodings)
    assert P is not None
    found = survey_public(P, len(P))
    usable = np.flatnonzero(found.usable)
    n = len(usable)
    if n == 0 or d < 2 * n - 1:
        raise InputError(
            f"{n} public vectors that differ, {d} pixels: classical phase retrieval needs "
            f"at least {max(1, 2 * n - 1)}; unveil.learn_public uses that mixtures are sparse, "
            "and needs far fewer"
        )
    V = P[usable]
    gram = V.astype(np.float64) @ V.T.astype(np.float64)
    size = np.sqrt(np.diag(gram))
    if np.linalg.eigvalsh(gram / np.outer(size, size))[0] < INDEPENDENT:
        raise InputError(
            "public vectors that are combinations of others: drop those, or use unveil.learn_public"
        )
    # 2. Weights of every encoding, in blocks.
    clock, seed = Stopwatch(), root(rng)
    W, miss, residual = np.zeros((m, n)), np.full(m, np.inf), np.ones(m)
    step = rows_per_block(8 * 8 * (d + n), settle_limit(memory_limit), most=4096)
    draw = child(seed, "spectral")
    for start in range(0, m, step):
        rows = slice(start, start + step)
        Y = encodings.magnitudes(rows)
        with clock("phase retrieval"):
            W[rows], residual[rows] = retrieve_weights(Y, V, draw)
        with clock("weights"):
            miss[rows] = _settle(
                Y.astype(np.float64), V.astype(np.float64), W[rows], residual[rows]
            )
        if progress:
            progress("phase retrieval", min(start + step, m), m)
    return _recovery(
        encodings,
        P,
        V,
        W,
        np.isfinite(miss),
        [g[0] for g in found.interchangeable],
        usable,
        clock,
    )


def _settle(
    Y: NDArray[np.float64],
    V: NDArray[np.float64],
    W: NDArray[np.float64],
    residual: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Weights in place: small ones zero, the others by least squares, their sum positive. The
    largest residual of rows that are reproduced at all pixels, infinite for others."""
    out = np.full(len(Y), np.inf)
    for i, (y, w) in enumerate(zip(Y, W, strict=True)):
        if residual[i] > NEAR or not np.abs(w).max() > 0:
            w[:] = 0
            continue
        # Noise of relative size r leaves about r·√(n/d) of the whole on each weight.
        chance = TOO_MUCH * residual[i] * np.linalg.norm(w) / np.sqrt(V.shape[1])
        support = np.flatnonzero(
            np.abs(w) > max(SMALL * np.abs(w).max(), 2 * chance if residual[i] > TOLERANCE else 0.0)
        )
        w[np.setdiff1d(np.arange(len(w)), support)] = 0
        for _ in range(SWEEPS):
            w[support] = np.linalg.lstsq(V[support].T, np.copysign(y, w @ V), rcond=None)[0]
        w *= np.copysign(1.0, w.sum())
        miss = np.abs(np.abs(w @ V) - y).max()
        if miss <= TOLERANCE * np.sqrt(np.mean(y**2)):
            out[i] = miss
    return out


def _recovery(
    encodings: Encodings,
    P: NDArray[np.float32],
    V: NDArray[np.float32],
    W: NDArray[np.float64],
    exact: NDArray[np.bool_],
    doubles: list[int],
    names: NDArray[np.int64],
    clock: Stopwatch,
) -> Recovery:
    """Public vectors that any encoding uses, as the certificate judges them."""
    m, d = encodings.m, encodings.d
    used = np.flatnonzero((W != 0).any(axis=0))
    if not len(used):
        why = (
            f"none of {m} encodings is a mixture of the public vectors: "
            "a private part, other vectors, or too few pixels"
        )
        return Recovery.empty(encodings, NAME, why, clock.seconds)
    weights = sparse.csr_array(W[:, used])
    with clock("certificate"):
        judged = certify(encodings, V[used], weights != 0, P, weights=weights)
    reasons = [
        reason + (", or one equal to it" if names[v] in doubles else "")
        for v, reason in zip(used, judged.reasons, strict=True)
    ]
    near = int((W != 0).any(axis=1).sum()) - int(exact.sum())
    text = "nothing private here: these are the public vectors each encoding mixes; "
    text += f"{int(exact.sum())} of {m} encodings explained exactly" + (
        f", {near} about" if near else ""
    )
    return replace(
        judged,
        reasons=tuple(reasons),
        attack=NAME,
        explanation=text,
        seconds=clock.seconds,
        explained=int(exact.sum()),
        exact=False,
        evidence={
            "public": names[used].tolist(),
            "encodings_explained": int(exact.sum()),
            "equations": d,
            "unknowns": V.shape[0],
        },
    )


ATTACK = phase_retrieval
