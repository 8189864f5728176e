"""MixUp as it is used (Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018): y = Σ λ_j·x_j, signs kept,
weights new in every encoding and unknown. Singularized and k-fold mixup are the same with other λ.

    1  x, W ← Corners(Y): encodings lie on the faces of a simplex whose corners are the records
              (`solve.simplex`)
    2  status ← Certificate, where encodings are reproduced (`certify.own_weights`); under noise
              standard errors

Any law of the weights, as long as those of an encoding sum to 1; any data with at most d + 1
records in general position. Public vectors are corners like the others: with k_public of them
each encoding mixes k_private + k_public, and corners that are in the public list are left out.

Cost: a spectrum of the encodings, m·d·min(m, d), and m·n² for each of some dozen turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.attacks.finish import recovery
from unveil.certificate import certify
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch, must_fit, one_blas_thread
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import AMBIGUOUS, UNRESOLVED, Progress, Recovery
from unveil.scheme import Scheme
from unveil.seeds import Rng
from unveil.solve.model import rms
from unveil.solve.public_corners import public_corners
from unveil.solve.simplex import Corners, find_corners

NAME = "unmix"
BYTES = 48
"""Per value of the encodings: copies in double precision, and their coordinates."""
NOISIEST = 0.5
"""Noise, in units of a record's rms, up to which what was found means something."""
EXPLAINED = 0.5
"""Share of encodings that must be explained up to noise: fewer are what chance leaves."""
FAINTEST = 1e-5
"""A smaller weight leaves open which record it belongs to: no member is named."""
FAINT = 1e-2
"""Under noise a smaller weight is none."""
FLAT = 1e-9
"""Eigenvalues of WᵀW below this share of their mean are none: such a record is not determined."""


def takes(scheme: Scheme) -> bool:
    """Whether `unmix` can take encodings of this scheme on."""
    several = scheme.k_private >= 1 and scheme.k_private + scheme.k_public >= 2
    return several and scheme.signs == "kept" and not scheme.fixed_weights


def unmix(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    n_private: int | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every record, and every weight with it.

    n_private: how many records there are, public ones included where the scheme mixes some;
    None: as many as the rank of the encodings says
    """
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if not takes(scheme):
        raise InputError(
            f"signs={scheme.signs!r}, weighting={scheme.weighting!r}: attack='unmix' is for "
            "signs='kept', weights of their own and two records or more; use attack='mixup' "
            "for fixed weights, attack='full' for hidden signs"
        )
    P = as_public(public, encodings) if public is not None else None
    what = f"attack='unmix' on {m:,} encodings of {d:,} pixels"
    limit = bytes_allowed(memory_limit)
    must_fit(BYTES * m * d + 24 * min(m, d) ** 2, what, limit, "attack fewer of them")
    clock = Stopwatch()
    k = scheme.k_private + scheme.k_public
    with clock("corners"), one_blas_thread():
        Y = encodings.values.astype(np.float64)
        found = find_corners(Y, k, n_private, progress=progress)
    if found is None or found.fits.mean() < EXPLAINED or _too_noisy(found):
        nothing = f"the {m} encodings are not mixtures of {k} out of fewer records than encodings "
        nothing += f"and at most {d + 1}: another k_private, more encodings or less noise is needed"
        return Recovery.empty(encodings, NAME, nothing, clock.seconds)
    # Weights, without those too faint to tell whose they are.
    W = found.matrix.tocsr()
    W.data[W.data <= (FAINTEST if found.exact else FAINT)] = 0
    W = sparse.csr_array(W)
    W.eliminate_zeros()
    with clock("certificate"), one_blas_thread():
        judged = certify(encodings, found.values.astype(np.float32), W != 0, P, weights=W)
    return _told(encodings, found, P, judged, clock)


def _too_noisy(found: Corners) -> bool:
    return not found.exact and found.noise > NOISIEST * rms(found.values)


def _approximate(found: Corners) -> tuple[NDArray[np.str_], list[str]]:
    """Under noise nothing is proved, but how far off each record is likely to be is known."""
    error = standard_errors(found)
    known, noise = error <= NOISIEST * rms(found.values), found.noise
    status = np.where(known, UNRESOLVED, AMBIGUOUS).astype("<U10")
    reasons = [
        f"known to about ±{size:.2g} per pixel: the encodings carry noise of about {noise:.2g}"
        if sure
        else "the encodings that use it do not determine it"
        for size, sure in zip(error, known, strict=True)
    ]
    return status, reasons


def standard_errors(found: Corners) -> NDArray[np.float64]:
    """(n,) of a pixel of every corner: noise·√diag (WᵀW)⁻¹. Weights are known much better than
    pixels are, since all pixels speak for each."""
    W = found.matrix[found.fits]
    gram = (W.T @ W).toarray()
    bound = FLAT * max(float(np.trace(gram)) / len(gram), 1e-300)
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(found.noise * np.sqrt((vectors**2 / np.maximum(values, bound)).sum(axis=1)))


def _told(
    encodings: Encodings,
    found: Corners,
    P: NDArray[np.float32] | None,
    judged: Recovery,
    clock: Stopwatch,
) -> Recovery:
    """The recovery, in words; corners that are public vectors are left out."""
    m, k = found.members.shape
    # 1. Which corners are private, and what is said of them.
    private = public_corners(found.values, P) < 0
    names, k_public = np.flatnonzero(private), encodings.scheme.k_public
    status, reasons = judged.status, list(judged.reasons)
    if not found.exact:
        status, reasons = _approximate(found)
    assert judged.weights is not None
    W = sparse.csr_array(judged.weights[:, names])
    # 2. What to say.
    status = status[names]
    explained = int(found.fits.sum())
    kind = "private vectors" if P is not None or not k_public else "vectors, private and public,"
    text = f"{int(judged.verified[names].sum())} of {len(names)} {kind} verified; "
    text += f"{explained} of {m} encodings explained exactly as mixtures of {k}, weights found "
    text += "with them"
    if not found.exact:
        text = f"{int((status == UNRESOLVED).sum())} {kind} recovered to about "
        text += f"±{np.median(standard_errors(found)):.2g} per pixel; {explained} of {m} encodings "
        text += f"explained as mixtures of {k} up to noise of about {found.noise:.2g}, so that "
        text += "nothing is exact"
    if len(names) < len(private):
        text += f"; {len(private) - len(names)} further corners are public vectors"
    facts: dict[str, Any] = {
        "estimated_n_private": len(names),
        "encodings_explained": explained,
        "mixed": float(np.median((found.weights > FAINT).sum(axis=1))),
        "equations": explained * encodings.d,
        "unknowns": found.values.size + explained * (k - 1),
    }
    if not found.exact:
        facts["noise"] = found.noise
        facts["standard_error"] = standard_errors(found)[names].tolist()
    return recovery(
        NAME,
        found.values[names],
        status,
        [reasons[i] for i in names],
        W.astype(bool),
        np.full(len(names), found.noise / rms(encodings.values)),
        text,
        clock,
        facts,
        signed=True,
        explained=explained,
        exact=found.exact,
        weights=W,
    )


ATTACK = unmix
