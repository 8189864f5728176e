"""The scheme found out: how many records an encoding mixes, with equal weights or its own, signs
kept or hidden, with noise or without; from the encodings alone.

A scheme is found by what it explains. For each number of records k, the smallest first:

  signs kept     corners of a simplex (`solve.simplex`): k is the least that explains the encodings,
                 and the weights come with it. With more records than pixels plain sums (`mixup`)
  signs masked   rows that share one of a pool of masks are more alike than coins make them
                 (`gram.mask_pool`); with the masks taken off, as signs kept
  signs hidden   exact relations, which equal weights have (`relations`); weights of their own, or
                 equal ones found that way (`full`); then equal weights up to noise (`full`)

What explains most encodings with fewest vectors is believed: a vector costs as many numbers as an
encoding has. Whether records are verified is for the attack and its certificate alone. A public
part is not looked for.

Equal weights have two readings, whatever the data: means of k of n vectors x are means of the n − k
others, with (Σx − (n−k)·x_i)/k in place of x_i. The smaller k is taken; where the other is not far
from what people use, nothing is verified.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.full import LARGEST
from unveil.attacks.mixup import mixup
from unveil.attacks.scheme_hidden import EXPLAINS, hidden_scheme
from unveil.attacks.scheme_told import CLEAR, SchemeFound, alone_each, by_corners, told
from unveil.attacks.seen import MOST, Seen, hold_one_each, look
from unveil.encodings import Encodings
from unveil.gram.mask_pool import mask_groups, relative_masks
from unveil.gram.whitened import exact_rank, rank_of, spectrum
from unveil.parallel import one_blas_thread
from unveil.records import AMBIGUOUS, Recovery
from unveil.scheme import Scheme
from unveil.seeds import Rng
from unveil.solve.model import rms
from unveil.solve.simplex import find_corners

NOISIEST = 0.5
"""Noise, in units of the records, beyond which corners mean nothing."""
MOST_MIXED = 16
"""Records that nobody mixes more of: schemes in use have two to six in an encoding."""


def find_scheme(
    values: NDArray[np.float32],
    image_shape: tuple[int, ...] | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
) -> SchemeFound | None:
    """The scheme that explains the encodings; None: none does."""
    # Encodings that are released several times say nothing new, and are vectors of their own where
    # vectors are counted.
    once = np.unique(values, axis=0, return_index=True)[1]
    if len(once) < len(values) and not hold_one_each(values):
        found = find_scheme(values[np.sort(once)], image_shape, rng=rng, memory_limit=memory_limit)
        return None if found is None else replace(found, recovery=None)
    seen = look(values)
    alone = 0 if seen.signs == "kept" else hold_one_each(values)
    # Magnitudes of records without negative values are sums too, and of low rank then.
    found = None
    if seen.signs == "kept" or (seen.signs == "absolute" and not alone and low_rank(values)):
        found = kept_scheme(values, seen, rng, memory_limit)
    if seen.signs != "absolute":
        # Behind masks every record counts once for each of them, if masks are not seen.
        masked = _masked(values, seen, rng, memory_limit)
        if masked is not None and (
            found is None
            or (masked.exact and not found.exact)
            or (masked.exact == found.exact and 2 * masked.vectors <= found.vectors)
        ):
            return masked
    if found is not None:
        return found
    best = hidden_scheme(values, seen, image_shape, alone > 0, rng, memory_limit)
    if best is not None:
        return best
    return alone_each(alone, len(values), seen) if alone else None


def low_rank(values: NDArray[np.float32]) -> bool:
    """Whether encodings span fewer dimensions than there could be."""
    sizes = spectrum(values.astype(np.float64))[0]
    return exact_rank(sizes) < min(values.shape) or rank_of(sizes) is not None


def kept_scheme(
    values: NDArray[np.float32],
    seen: Seen,
    rng: Rng,
    memory_limit: int | None,
    *,
    sums: bool = True,
) -> SchemeFound | None:
    """Signs kept: corners, else plain sums, where these are asked for."""
    Y = values.astype(np.float64)
    m = len(Y)
    with one_blas_thread():
        # Magnitudes that repeat each other are their own corners: that says nothing of signs.
        for k in range(1 if seen.signs == "kept" else 2, MOST + 1):
            found = find_corners(Y, k)
            if found is None or found.fits.mean() < EXPLAINS:
                continue
            if np.median((found.weights > CLEAR).sum(axis=1)) < k:
                continue
            if not found.exact and found.noise > NOISIEST * rms(found.values):
                continue
            return by_corners(found, seen)
    for k in range(2, MOST + 1) if sums and m <= LARGEST else ():
        scheme = Scheme(k, weighting="convex", signs="kept")
        recovery = mixup(Encodings(values, scheme, None), rng=rng, memory_limit=memory_limit)
        if recovery.explained >= EXPLAINS * m and 2 * len(recovery) < m:
            return told(scheme, recovery, seen)
    return None


def _masked(
    values: NDArray[np.float32], seen: Seen, rng: Rng, memory_limit: int | None
) -> SchemeFound | None:
    """Masks of a pool: corners of what is below them."""
    groups = mask_groups(values)
    count = int(groups.max()) + 1
    rows = np.flatnonzero(groups >= 0)
    if count < 2 or len(rows) < EXPLAINS * len(values):
        return None
    with one_blas_thread():
        below = values[rows] * relative_masks(values, groups)[groups[rows]]
    # Encodings that repeat each other are groups as well: one record each says nothing of masks.
    found = kept_scheme(below, replace(seen, signs="random"), rng, memory_limit, sums=False)
    if found is None:
        return None
    evidence = {**found.evidence, "signs": f"{count} groups of encodings, each behind one mask"}
    scheme = replace(found.scheme, signs="masked", masks=count)
    return SchemeFound(scheme, evidence, vectors=found.vectors, exact=found.exact)


def without_complements(recovery: Recovery, scheme: Scheme) -> Recovery:
    """The recovery under a scheme that was found out, with nothing verified where every encoding
    may as well mix all the other vectors."""
    n, k = len(recovery), scheme.k_private
    if not scheme.fixed_weights or k == 1 or n - k > MOST_MIXED or not recovery.verified.any():
        return recovery
    why = f"means of {k} of {n} vectors are also means of {n - k} others, which are the records if "
    why += f"{n - k} were mixed: state k_private"
    return replace(
        recovery,
        status=np.where(recovery.verified, AMBIGUOUS, recovery.status).astype("<U10"),
        reasons=tuple(
            why if sure else reason
            for sure, reason in zip(recovery.verified, recovery.reasons, strict=True)
        ),
        explanation=f"{n} private vectors recovered, none verified; {recovery.explained} of "
        f"{recovery.members.shape[0]} encodings explained; {why}",
    )
