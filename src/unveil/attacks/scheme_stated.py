"""A scheme that was stated, held against the encodings: what speaks against it, in words.

Asked after every attack under it (`unveil.recover`), the cheapest first:

  by itself     signs that were not hidden, or not kept; weights that came back equal, or one of
                them zero; a vector that is in nearly every encoding and next to nothing
  by another    where nothing was verified, and what was explained is little, or leaves more than
                noise, or needs more vectors than another scheme: sums, one record each, exact
                relations of another k, weights of their own, another k up to noise

A scheme with fewer vectors that explains nearly all encodings contradicts the one stated. Nothing
here changes what is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.evenness import uneven
from unveil.attacks.full import full
from unveil.attacks.scheme_found import kept_scheme, low_rank
from unveil.attacks.scheme_hidden import EXPLAINS, HALF, MOST_OWN, QUIETER
from unveil.attacks.scheme_told import CLEAR, SchemeFound, alone_each, told
from unveil.attacks.seen import MOST, Seen, hold_one_each, likely_k, look
from unveil.encodings import Encodings
from unveil.records import Recovery
from unveil.scheme import Scheme, Weighting
from unveil.seeds import Rng
from unveil.solve.model import rms

MOST_LOOKED_AT, MOST_VALUES = 1000, 2_000_000
"""Encodings and values up to which a stated scheme is doubted without being asked: some seconds."""
ALL = 0.99
"""Share of encodings explained exactly beyond which nobody else is asked."""
LOUD = 0.4
"""Noise, in units of the encodings, from which on it may be what another scheme explains: two
records instead of three leave half."""
SIGNED = 0.1
"""Share of values of each sign from which on signs are there: magnitudes with noise on top have
fewer negative ones."""
NEAREST = 3
"""Numbers of records per encoding that are tried by relations, nearest to what moments say: each is
an attack of its own, and all five took a minute on 390 encodings of 3,000 pixels."""
NOTHING, EVERYWHERE = 0.3, 0.6
"""Size of a vector, in units of the median one, below which it is next to nothing, and share of
encodings that one is in: vectors that are there have about one size and are in few."""


def contradiction(
    encodings: Encodings,
    best: Recovery,
    tried: Sequence[Recovery],
    rng: Rng,
    memory_limit: int | None,
) -> str:
    """What speaks against the scheme that was stated; empty: nothing that is quickly seen.

    best: what came back under it; tried: what all attacks returned
    """
    stated, values = encodings.scheme, encodings.values
    m = len(values)
    # Signs and noise of some rows are those of all.
    seen = look(values[:: -(-m // MOST_LOOKED_AT)])
    # 1. By itself.
    said = _signs(stated, best, values, seen) or _members(stated, best, seen)
    if said:
        return f"the encodings contradict {said}"
    # 2. Whether there is reason to doubt it.
    if best.verified.any() or m > MOST_LOOKED_AT or values.size > MOST_VALUES:
        return ""
    if best.attack == "natural" and len(best):
        return ""
    if best.exact and stated.k_private > 1 and best.explained >= ALL * m:
        return ""
    related = any(one.evidence.get("relations") for one in tried)
    explains = best.explained >= EXPLAINS * m
    up_to_noise = explains and not best.exact
    fewest = stated.k_private == 2 and not stated.k_public
    loud = float(best.evidence.get("noise", 0.0)) > LOUD * rms(values)
    # With signs kept mixtures are linear, and what is even noise leaves nothing to look for.
    settled = fewest or stated.signs == "kept"
    if up_to_noise and settled and not (related or loud or uneven(values, best, stated)):
        return ""
    # 3. By another.
    for found in _others(encodings, best, seen, related, rng, memory_limit):
        better = not explains or up_to_noise or found.vectors < len(best)
        if better and (said := _differs(stated, found.scheme)):
            because = (found.evidence.get(name) for name in ("k_private", "weighting", "signs"))
            return f"the encodings contradict {said}: {'; '.join(filter(None, because))}"
    return ""


def _signs(stated: Scheme, best: Recovery, values: NDArray[np.float32], seen: Seen) -> str:
    """Signs that were not hidden, or not kept."""
    if stated.signs in ("absolute", "random") and seen.signs == "kept":
        negative = float((values < 0).mean())
        if SIGNED <= negative <= 1 - SIGNED:
            return f"signs={stated.signs!r}: {seen.words['signs']}"
    if stated.signs != "kept" or seen.signs == "kept":
        return ""
    # Records without negative values are summed as they are: then no sum passes zero.
    if best.explained >= HALF * len(values):
        hidden = best.attack not in ("mixup", "unmix") and _passes_zero(best)
    else:
        hidden = not low_rank(values)
    return f"signs='kept': {seen.words['signs']}" if seen.signs == "random" or hidden else ""


def _passes_zero(best: Recovery) -> bool:
    """Whether sums of the vectors have both signs at some pixel, in several encodings each."""
    W = best.members.astype(np.float64) if best.weights is None else best.weights
    sums = W @ best.vectors.astype(np.float64)
    return bool(((sums > 0).sum(axis=0) * (sums < 0).sum(axis=0) > len(sums)).any())


def _members(stated: Scheme, best: Recovery, seen: Seen) -> str:
    """Weights that came back equal or zero; a vector that is everywhere and next to nothing."""
    m, k = best.members.shape[0], stated.k_private
    if not len(best) or k < 2 or stated.k_public or best.explained < HALF * m:
        return ""
    if best.weights is not None and best.exact:
        shares = best.weights.multiply(1 / np.maximum(best.weights.sum(axis=1), 1e-30)[:, None])
        counts = np.asarray((shares > CLEAR).sum(axis=1)).ravel()
        usual = int(np.median(counts[counts > 0])) if counts.any() else k
        if usual < k:
            return f"k_private={k}: most encodings mix {usual} of {len(best)} vectors"
        found = told(Scheme(k, weighting="half-normal"), best, seen)
        if found.scheme.fixed_weights and not stated.fixed_weights:
            return f"weighting={stated.weighting!r}: {found.evidence['weighting']}"
    size = np.sqrt(np.mean(np.square(best.vectors, dtype=np.float64), axis=1))
    use = np.asarray(best.members.astype(np.int64).sum(axis=0)).ravel()
    for i in np.flatnonzero((size < NOTHING * np.median(size)) & (use > EVERYWHERE * m)):
        share = size[i] / np.median(size)
        return (
            f"k_private={k}: one of the vectors is in {use[i]} of {m} encodings, with {share:.2f} "
            f"of the usual size: {k - 1} records each are likely"
        )
    return ""


def _others(
    encodings: Encodings,
    best: Recovery,
    seen: Seen,
    related: bool,
    rng: Rng,
    memory_limit: int | None,
) -> Iterator[SchemeFound]:
    """Other schemes that explain nearly all encodings, the quickest to see first."""
    values, stated = encodings.values, encodings.scheme
    m = len(values)

    def by(attack: Callable[..., Recovery], k: int, weighting: Weighting) -> Recovery:
        other = Encodings(values, Scheme(k, weighting=weighting), None)
        return attack(other, rng=rng, memory_limit=memory_limit)

    # 1. Sums as they are, or one record each.
    alone = 0 if seen.signs == "kept" else hold_one_each(values)
    if alone:
        yield alone_each(alone, m, seen)
        return
    if seen.signs == "kept" or (seen.signs == "absolute" and low_rank(values)):
        found = kept_scheme(values, seen, rng, memory_limit, sums=False)
        if found is not None:
            yield found
    # 2. Exact relations, which equal weights have whatever k is. Each k is an attack of its own:
    # those are tried that are nearest to what moments say.
    likely = likely_k(np.abs(values))
    for k in sorted(sorted(range(2, MOST + 1), key=lambda k: abs(k - likely))[:NEAREST]):
        recovery = by(full, k, "convex")
        related = related or bool(recovery.evidence.get("relations"))
        if not related:
            break
        if recovery.explained >= EXPLAINS * m:
            yield told(Scheme(k, weighting="convex"), recovery, seen)
    # 3. Weights of their own, which have none.
    for k in () if related else range(2, MOST_OWN + 1):
        recovery = by(full, k, "half-normal")
        if recovery.exact and recovery.explained >= EXPLAINS * m:
            yield told(Scheme(k, weighting="half-normal"), recovery, seen)
    # 4. Another k up to noise, where there is something to explain: a larger one with less of it,
    # or a smaller one with as much. With one more, any vector may be in half of the encodings and
    # taken off the others.
    noise = float(best.evidence.get("noise", 0.0))
    if related or not noise or best.explained < HALF * m:
        return
    own = stated.k_private
    for k in sorted({likely, own - 1, min(own + 1, MOST)} - {own, 1}):
        recovery = by(full, k, "convex")
        factor = 1 / QUIETER if k < own else QUIETER
        less = factor * float(recovery.evidence.get("noise", np.inf)) < noise
        few = k > own or len(recovery) <= len(best)
        if less and few and recovery.explained >= EXPLAINS * m:
            yield told(Scheme(k, weighting="convex"), recovery, seen)


def _differs(stated: Scheme, found: Scheme) -> str:
    """In which of its parts; empty: in none, or public vectors count as records."""
    if stated.k_public and found.k_private == stated.k_private + stated.k_public:
        return ""
    said = []
    if found.k_private != stated.k_private:
        said.append(f"k_private={stated.k_private}")
    if stated.k_public:
        said.append(f"k_public={stated.k_public}")
    if found.signs == "kept" != stated.signs:
        said.append(f"signs={stated.signs!r}")
    if found.k_private > 1 and found.fixed_weights != stated.fixed_weights:
        said.append(f"weighting={stated.weighting!r}")
    return " and ".join(said)
