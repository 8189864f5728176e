"""A scheme that encodings follow, with a sentence of evidence for each of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.seen import Seen
from unveil.records import Recovery
from unveil.scheme import Scheme, Weighting
from unveil.solve.simplex import Corners

EQUAL, EQUAL_NOISY = 1e-3, 0.05
"""How far weights may be from 1/k to be equal: found to five digits without noise."""
CLEAR = 0.02
"""A weight below it is none."""
MOSTLY = (0.05, 0.95)
"""Between these quantiles weights mostly lie."""


@dataclass(frozen=True, eq=False)
class SchemeFound:
    """scheme: what the encodings follow; evidence: a sentence for each of its parts; recovery: what
    was recovered on the way, None: the attack is still to be run; vectors: how many explain the
    encodings; exact: to rounding; sure: not where some encodings fit far better than others, so
    that what is left is no noise."""

    scheme: Scheme
    evidence: dict[str, str]
    recovery: Recovery | None = None
    vectors: int = 0
    exact: bool = True
    sure: bool = True

    @property
    def words(self) -> str:
        evidence = "; ".join(self.evidence.values())
        if self.sure:
            return f"the scheme was found out: {evidence}"
        return (
            "the scheme was not found out: what explains most is this, and yet some encodings fit "
            f"far better than others, as where noise was added to weights of their own: {evidence}"
        )


def by_corners(found: Corners, seen: Seen) -> SchemeFound:
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


def told(scheme: Scheme, recovery: Recovery, seen: Seen) -> SchemeFound:
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
    kept = recovery if same and scheme.signs != "kept" else None
    return SchemeFound(found, evidence, kept, len(recovery), recovery.exact)


def alone_each(different: int, m: int, seen: Seen) -> SchemeFound:
    """Encodings that repeat each other and have nothing else in common: one record each."""
    evidence = {
        "k_private": f"{m} encodings are {different} different ones, repeated, and share nothing "
        "else: one record each",
        **seen.words,
    }
    scheme = Scheme(1, weighting="convex", signs=seen.signs)
    return SchemeFound(scheme, evidence, vectors=different)


def _spread(weights: NDArray[np.float64]) -> str:
    low, high = np.quantile(weights, MOSTLY) if weights.size else (0.0, 1.0)
    return f"every encoding has weights of its own, mostly from {low:.2f} to {high:.2f}"


def _noise(exact: bool, size: float) -> str:
    if exact:
        return "no noise: they are reproduced to rounding"
    return f"noise of about {size:.2g}" if size else "not reproduced to rounding: noise"
