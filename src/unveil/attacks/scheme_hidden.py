"""Which scheme that hides signs explains the encodings: every one is tried by its attack, the
quickest and surest first, and that is believed which explains most with fewest vectors and least
noise. What it leaves must be noise: the same in all encodings (`attacks.evenness`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.evenness import uneven
from unveil.attacks.full import LARGEST, full
from unveil.attacks.scheme_told import SchemeFound, told
from unveil.attacks.seen import MOST, Seen, likely_k
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import Recovery
from unveil.scheme import Scheme
from unveil.seeds import Rng

EXPLAINS = 0.9
"""Share of encodings that a scheme must explain to be believed at once."""
HALF = 0.5
"""Share below which it is not believed at all."""
MOST_OWN = 4
"""Records per encoding that are tried where weights are unknown: beyond, `full` finds nothing."""
QUIETER = 1.5
"""Factor by which one reading leaves clearly less noise than another."""


def hidden_scheme(
    values: NDArray[np.float32],
    seen: Seen,
    image_shape: tuple[int, ...] | None,
    alone: bool,
    rng: Rng,
    memory_limit: int | None,
) -> SchemeFound | None:
    """Signs hidden: what explains most encodings with fewest vectors and least noise."""
    best: _Reading | None = None
    m = len(values)
    tried: set[int] = set()
    for scheme, recovery in _hidden(values, image_shape, alone, rng, memory_limit):
        k = scheme.k_private
        reading = _Reading(scheme, recovery, not uneven(values, recovery, scheme))
        # 1. As many vectors as encodings explain anything: half as many are evidence.
        if recovery.explained >= HALF * m and 2 * reading.gain >= recovery.explained:
            best = reading if best is None or reading.better(best) else best
        # 2. Exact, with equal weights, and yet nothing verified: another k may be the right one.
        if recovery.exact:
            surely = recovery.verified.any() or recovery.weights is not None
            if best is reading and surely and recovery.explained >= EXPLAINS * m:
                break
            continue
        # 3. Up to noise k records are also k + 1, of which one is hardly there: fewer must have
        # failed.
        if scheme.fixed_weights:
            tried.add(k)
        if best is None or not best.even or best.recovery.explained < EXPLAINS * m:
            continue
        if best.scheme.k_private == 2 or best.scheme.k_private - 1 in tried:
            break
    return None if best is None else replace(told(best.scheme, best.recovery, seen), sure=best.even)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A scheme, what an attack under it returned, and whether all encodings fit equally well."""

    scheme: Scheme
    recovery: Recovery
    even: bool

    @property
    def gain(self) -> int:
        """Encodings explained beyond those that vectors cost."""
        return self.recovery.explained - len(self.recovery)

    def better(self, other: _Reading) -> bool:
        """Even misfits first, then clearly less noise, then equal weights, then fewer vectors."""
        if self.even != other.even:
            return self.even
        ours, theirs = (
            0.0 if one.recovery.exact else float(one.recovery.evidence.get("noise", 0.0))
            for one in (self, other)
        )
        if max(ours, theirs) > QUIETER * min(ours, theirs):
            return ours < theirs
        # Two records with equal weights are also four with weights of their own, two of them next
        # to nothing.
        equal = self.scheme.fixed_weights
        fewer, more = sorted((self.gain, other.gain))
        if equal != other.scheme.fixed_weights and fewer >= EXPLAINS * more:
            return equal
        return self.gain > other.gain


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
        found = tried(full, scheme)
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
