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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.full import LARGEST, full
from unveil.attacks.mixup import mixup
from unveil.attacks.relations import relations
from unveil.attacks.seen import MOST, Seen, hold_one_each, likely_k, look
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.gram.mask_pool import mask_groups, relative_masks
from unveil.gram.whitened import exact_rank, rank_of, spectrum
from unveil.parallel import one_blas_thread
from unveil.records import AMBIGUOUS, Recovery
from unveil.scheme import Scheme, Weighting
from unveil.seeds import Rng
from unveil.solve.model import rms
from unveil.solve.simplex import Corners, find_corners

MOST_OWN = 4
"""The same where weights are unknown and signs hidden: beyond, that attack finds nothing."""
EXPLAINS = 0.9
"""Share of encodings that a scheme must explain to be believed at once."""
HALF = 0.5
"""Share below which it is not believed at all."""
EQUAL, EQUAL_NOISY = 1e-3, 0.05
"""How far weights may be from 1/k to be equal: found to five digits without noise."""
CLEAR = 0.02
"""A weight below it is none."""
NOISIEST = 0.5
"""Noise, in units of the records, beyond which corners mean nothing."""
MOSTLY = (0.05, 0.95)
"""Between these quantiles weights mostly lie."""
MOST_MIXED = 16
"""Records that nobody mixes more of: schemes in use have two to six in an encoding."""
MOST_LOOKED_AT, MOST_VALUES = 1000, 2_000_000
"""Encodings and values up to which a stated scheme is doubted without being asked: some seconds."""


@dataclass(frozen=True, eq=False)
class SchemeFound:
    """scheme: what the encodings follow; evidence: a sentence for each of its parts; recovery: what
    was recovered on the way, None: the attack is still to be run; vectors: how many explain the
    encodings, 0: not counted; exact: to rounding."""

    scheme: Scheme
    evidence: dict[str, str]
    recovery: Recovery | None = None
    vectors: int = 0
    exact: bool = True

    @property
    def words(self) -> str:
        return "; ".join(self.evidence.values())


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
    if seen.signs == "kept" or (seen.signs == "absolute" and not alone and _low_rank(values)):
        found = _kept(values, seen, rng, memory_limit)
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
    best: tuple[int, SchemeFound] | None = None
    m = len(values)
    for scheme, recovery in _hidden(values, image_shape, alone > 0, rng, memory_limit):
        # As many vectors as encodings explain anything: half as many are evidence.
        gain = recovery.explained - len(recovery)
        if recovery.explained < HALF * m or 2 * gain < recovery.explained:
            continue
        if best is None or gain > best[0]:
            best = gain, _told(scheme, recovery, seen)
        # Exact, with equal weights, and yet nothing verified: another k may be the right one.
        sure = recovery.verified.any() or not recovery.exact or recovery.weights is not None
        if sure and recovery.explained >= EXPLAINS * m:
            break
    if best is not None:
        return best[1]
    return _alone(alone, m, seen) if alone else None


def _low_rank(values: NDArray[np.float32]) -> bool:
    """Whether encodings span fewer dimensions than there could be."""
    sizes = spectrum(values.astype(np.float64))[0]
    return exact_rank(sizes) < min(values.shape) or rank_of(sizes) is not None


def _kept(
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
            return _by_corners(found, seen)
    for k in range(2, MOST + 1) if sums and m <= LARGEST else ():
        scheme = Scheme(k, weighting="convex", signs="kept")
        recovery = mixup(Encodings(values, scheme, None), rng=rng, memory_limit=memory_limit)
        if recovery.explained >= EXPLAINS * m and 2 * len(recovery) < m:
            return _told(scheme, recovery, seen)
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
    found = _kept(below, replace(seen, signs="random"), rng, memory_limit, sums=False)
    if found is None:
        return None
    evidence = {**found.evidence, "signs": f"{count} groups of encodings, each behind one mask"}
    scheme = replace(found.scheme, signs="masked", masks=count)
    return SchemeFound(scheme, evidence, vectors=found.vectors, exact=found.exact)


def contradiction(
    encodings: Encodings, tried: Sequence[Recovery], rng: Rng, memory_limit: int | None
) -> str:
    """What speaks against the scheme that was stated, in words; empty: nothing that is quickly
    seen. Asked where attacks under that scheme explain little; `tried`: what they returned."""
    stated, values = encodings.scheme, encodings.values
    if stated.k_public or len(values) > MOST_LOOKED_AT or values.size > MOST_VALUES:
        return ""
    seen = look(values)
    found = None
    if seen.signs == "kept" or (seen.signs == "absolute" and _low_rank(values)):
        found = _kept(values, seen, rng, memory_limit, sums=False)
    elif stated.signs == "kept":
        return f"the encodings contradict signs='kept': {seen.words['signs']}"
    if found is None and any(r.evidence.get("relations") for r in tried):
        for k in range(2, MOST + 1):
            scheme = Scheme(k, weighting="convex")
            recovery = relations(Encodings(values, scheme, None), rng=rng)
            if k != stated.k_private and recovery.explained >= EXPLAINS * len(values):
                found = _told(scheme, recovery, seen)
                break
    if found is None:
        return ""
    said = []
    if found.scheme.k_private != stated.k_private:
        said.append(f"k_private={stated.k_private}")
    if found.scheme.signs == "kept" != stated.signs:
        said.append(f"signs={stated.signs!r}")
    if found.scheme.fixed_weights != stated.fixed_weights:
        said.append(f"weighting={stated.weighting!r}")
    if not said:
        return ""
    because = "; ".join(found.evidence[name] for name in ("k_private", "weighting", "signs"))
    return f"the encodings contradict {' and '.join(said)}: {because}"


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


def _by_corners(found: Corners, seen: Seen) -> SchemeFound:
    """In words, what corners say of k and of weights."""
    m, k = found.members.shape
    clear = found.weights[found.fits & (found.weights > CLEAR).all(axis=1)]
    bound = EQUAL if found.exact else EQUAL_NOISY
    equal = bool(len(clear) and np.median(np.abs(clear - 1 / k).max(axis=1)) < bound)
    weighting: Weighting = "convex" if equal or k == 1 else "unknown"
    evidence = {
        "k_private": f"{int(found.fits.sum())} of {m} encodings are mixtures of {k} out of "
        f"{len(found.values)} vectors, and of no fewer",
        "weighting": "weights are equal" if weighting == "convex" else _spread(clear),
        "noise": _noise(found.exact, found.noise),
        **seen.words,
        "signs": "mixtures hold with the signs that values have: they are kept",
    }
    scheme = Scheme(k, weighting=weighting, signs="kept")
    return SchemeFound(scheme, evidence, vectors=len(found.values), exact=found.exact)


def _hidden(
    values: NDArray[np.float32],
    image_shape: tuple[int, ...] | None,
    alone: bool,
    rng: Rng,
    memory_limit: int | None,
) -> Iterator[tuple[Scheme, Recovery]]:
    """Attacks on schemes that hide signs, the quickest and surest first.

    alone: encodings repeat each other and have nothing else in common
    """
    m = len(values)

    def tried(attack: Callable[..., Recovery], scheme: Scheme) -> Recovery | None:
        encodings = Encodings(values, scheme, None, image_shape)
        try:
            return attack(encodings, rng=rng, memory_limit=memory_limit)
        except InputError:
            return None  # too large for this one: another may take it

    # 1. Exact relations: whether there are any does not depend on k.
    related = False
    for k in range(2, MOST + 1):
        scheme = Scheme(k, weighting="convex")
        found = tried(relations, scheme)
        related |= found is not None and bool(found.evidence.get("relations"))
        if found is None or not related:
            break
        yield scheme, found
    if alone or m > LARGEST:
        return
    # 2. Weights of their own, which have no relations; then equal ones, the likeliest k first.
    for k in () if related else range(2, MOST_OWN + 1):
        scheme = Scheme(k, weighting="half-normal")
        found = tried(full, scheme)
        if found is not None:
            yield scheme, found
    likely = likely_k(np.abs(values))
    for k in sorted(range(2, MOST + 1), key=lambda k: abs(k - likely)):
        scheme = Scheme(k, weighting="convex")
        found = tried(full, scheme)
        if found is not None:
            yield scheme, found


def _told(scheme: Scheme, recovery: Recovery, seen: Seen) -> SchemeFound:
    """A scheme by what an attack explains, in words."""
    m, k = recovery.members.shape[0], scheme.k_private
    weighting, words = scheme.weighting, "equal weights explain the encodings"
    if recovery.weights is not None:
        counts = np.diff(recovery.weights.indptr)
        rows = recovery.weights.data[np.repeat(counts == k, counts)].reshape(-1, k)
        clear = rows[(rows > CLEAR).all(axis=1)]
        clear = clear / clear.sum(axis=1, keepdims=True)
        equal = bool(len(clear) and np.median(np.abs(clear - 1 / k).max(axis=1)) < EQUAL)
        weighting, words = ("convex", "weights are equal") if equal else (weighting, _spread(clear))
    noise = float(recovery.evidence.get("noise", 0.0))
    evidence = {
        "k_private": f"{recovery.explained} of {m} encodings are mixtures of {k} out of "
        f"{len(recovery)} vectors",
        "weighting": words,
        "noise": _noise(recovery.exact, noise),
        **seen.words,
    }
    signs = "kept" if scheme.signs == "kept" else seen.signs
    found = replace(scheme, weighting=weighting, signs="random" if signs == "random" else signs)
    same = weighting == scheme.weighting
    return SchemeFound(found, evidence, recovery if same and scheme.signs != "kept" else None)


def _alone(different: int, m: int, seen: Seen) -> SchemeFound:
    """Encodings that repeat each other and have nothing else in common: one record each."""
    evidence = {
        "k_private": f"{m} encodings are {different} different ones, repeated, and share nothing "
        "else: one record each",
        **seen.words,
    }
    return SchemeFound(Scheme(1, weighting="convex", signs=seen.signs), evidence)


def _spread(weights: NDArray[np.float64]) -> str:
    low, high = np.quantile(weights, MOSTLY) if weights.size else (0.0, 1.0)
    return f"every encoding has weights of its own, mostly from {low:.2f} to {high:.2f}"


def _noise(exact: bool, size: float) -> str:
    if exact:
        return "no noise: they are reproduced to rounding"
    return f"noise of about {size:.2g}" if size else "not reproduced to rounding: noise"
