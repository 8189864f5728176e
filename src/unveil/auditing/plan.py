"""How many encodings does which attack need? Answered from the scheme and counts alone.

Every record must be in two different encodings at least, or its values cannot be told from those of
its partners: uses of a record are nearly Poisson with mean u = m·k/n, and n·(1 + u)·e^(−u) records
are used less than twice. Beyond that each attack has a need of its own:

    relations       four encodings whose signed sum is zero; k = 2, or few records
    overlaps        similarities of whole encodings; any k, many columns
    linear algebra  signs kept: encodings are plain sums
    floral          the paper's attack: where one floral submatrix is to be expected
    own weights     weights drawn anew
    images          pixels that look like pixels
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, comb
from typing import Any

import numpy as np

from unveil.checks import InputError, is_count
from unveil.exact.relations import expected_relations
from unveil.paper.floral import encodings_needed, expected_florals
from unveil.scheme import Scheme
from unveil.shown import Shown


@dataclass(frozen=True)
class Need:
    """What an attack needs, one way it has.

    attack : its name, as `recover(attack=…)` takes it.
    encodings, records : how many encodings it needs for how many of the records.
    enough : whether these encodings, and columns, are there.
    why : what it rests on, in words.
    able : whether more encodings would do; not where columns are too few, or there is noise.
    """

    attack: str
    encodings: int
    records: str
    enough: bool
    why: str
    able: bool = True


@dataclass(frozen=True)
class Plan(Shown):
    """What attacks need on this scheme; `str(plan)` says it in words.

    needs : one per attack that applies, the one that needs least first.
    feasible : one of them should get all records from m encodings.
    """

    scheme: Scheme
    n_private: int
    n_public: int
    m: int
    d: int
    noise: float
    needs: tuple[Need, ...]
    advice: str

    @property
    def feasible(self) -> bool:
        """Whether all records should come back from m encodings, by one attack at least."""
        return any(need.enough and need.records == "all" for need in self.needs)

    @property
    def attack(self) -> str:
        """The attack that should get most: of those that have enough the first, else the first."""
        return next((need.attack for need in self.needs if need.enough), self.needs[0].attack)

    @property
    def needed(self) -> int:
        """Encodings from which on all records should come back, by the least of the attacks; of
        those that have the columns they need, where any has."""
        return _least(self.needs).encodings

    def facts(self) -> dict[str, Any]:
        out = {name: value for name, value in vars(self).items() if name not in ("scheme", "needs")}
        out["scheme"] = dict(vars(self.scheme))
        out["needs"] = [dict(vars(need)) for need in self.needs]
        return {**out, "attack": self.attack, "needed": self.needed, "feasible": self.feasible}

    def __str__(self) -> str:
        return self.advice


def plan(
    scheme: Scheme | None = None,
    n_private: int = 100,
    m: int | None = None,
    d: int = 3072,
    *,
    n_public: int = 0,
    noise: float = 0.0,
) -> Plan:
    """How many encodings does each attack need? From the scheme and the counts alone: nothing is
    attacked, and no time is forecast.

    Parameters
    ----------
    scheme : Scheme
        How encodings are made; None: `Scheme()`.
    n_private : int
        Private vectors behind the encodings.
    m : int
        Encodings; None: as many as all vectors need.
    d : int
        Values of a vector.
    n_public : int
        Public vectors to choose from.
    noise : float
        Standard deviation added to every value, relative to the size of the data.

    Returns
    -------
    Plan
        What each attack needs and whether that is there; `str(plan)` says it in words.

    Examples
    --------
    >>> import unveil
    >>> found = unveil.plan(unveil.Scheme(k_private=2), n_private=100, m=700, d=512)
    >>> found.attack, found.feasible
    ('exact', True)
    >>> unveil.plan(n_private=100, m=50).feasible
    False
    """
    scheme = scheme or Scheme()
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    counts = {"n_private": n_private, "m": 1 if m is None else m, "d": d, "n_public": n_public}
    for name, value in counts.items():
        least = 0 if name == "n_public" else 1
        if not is_count(value, least):
            raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
    for part, k, n in (
        ("private", scheme.k_private, n_private),
        ("public", scheme.k_public, n_public),
    ):
        if k > n:
            raise InputError(
                f"k_{part}={k} of only {n} {part} vectors: lower k_{part} or raise n_{part}"
            )
    if scheme.k_private < 1:
        raise InputError("k_private=0: nothing private is mixed; use k_private of 1 or more")
    m = encodings_for_all(scheme, n_private) if m is None else int(m)
    needs = tuple(_needs(scheme, n_private, m, d, noise))
    advice = _advice(needs, n_private, m)
    return Plan(scheme, n_private, n_public, m, d, noise, needs, advice)


def encodings_for_all(
    scheme: Scheme, n: int, images: bool = False, per_record: int = 7, per_image: int = 50
) -> int:
    """From about how many encodings on all n private vectors should come back.

    per_record : int    Encodings per record from which on attacks on fixed weights lock in
                        (`benchmarks/golden.py`).
    per_image : int     Of images with weights drawn anew: the challenge has 50.
    """
    k = max(1, scheme.k_private)
    if images and not scheme.fixed_weights:
        return per_image * n
    return max(per_record * n, ceil(_uses(n) * n / k), k + 10)


def _uses(n: int, seldom: float = 0.1) -> float:
    """Mean uses per record at which `seldom` records of n are used less than twice."""
    uses = 1.0
    while n * (1 + uses) * np.exp(-uses) > seldom:
        uses += 0.1
    return uses


def _needs(scheme: Scheme, n: int, m: int, d: int, noise: float) -> list[Need]:
    k, twice = scheme.k_private, ceil(_uses(n) * n / max(1, scheme.k_private))
    out = []

    def need(attack: str, least: int, why: str, *, records: str = "all", able: bool = True) -> None:
        out.append(Need(attack, least, records, able and m >= least, why, able))

    if not scheme.fixed_weights:
        kept = scheme.signs == "kept"
        why = "weights drawn anew and signs hidden; needs many columns of generic values"
        if kept:
            why = "signs kept: encodings lie in the simplex of the records"
        need("mixing", max((10 if kept else 20) * n, twice), why)
        why = "weights drawn anew, pixels of natural images; 50 per image are usual, 5 a start"
        need("natural", 50 * n, why)
        return out
    if scheme.signs == "kept":
        why = f"plain sums: rank n, and every record used twice ({m * k / n:.1f} uses each)"
        need("mixing", max(n, twice), why)
    if k >= 2 and n > 2 * k:
        why = "relations, two per encoding; four columns are enough, of any distribution"
        if noise:
            why = "relations hold up to noise: only for small noise and many columns"
        able = d >= 4 and not noise
        need("exact", max(_encodings_for_relations(n, k), twice), why, able=able)
    columns = 30 * k * k
    why = f"similarities, from {columns:,} or more columns of generic values ({d:,} here)"
    need("exact", encodings_for_all(scheme, n), why, able=d >= columns)
    if n >= k + 2 and k >= 2:
        why = f"a floral submatrix: {expected_florals(n, k, m):.2g} are to be expected"
        need("paper", encodings_needed(n, k), why, records=f"{k + 2}")
    return sorted(out, key=lambda need: (need.records != "all", not need.enough, need.encodings))


def _encodings_for_relations(n: int, k: int) -> int:
    """The least m with two relations per encoding, by bisection."""
    counts = range(k + 2, min(comb(n, k), 10**7))
    least = bisect_left(counts, True, key=lambda m: expected_relations(n, m, k) >= 2 * m)
    return counts.start + least


def _least(needs: tuple[Need, ...]) -> Need:
    """The attack on all records that needs fewest encodings, of those that more encodings help."""
    whole = [need for need in needs if need.records == "all"]
    return min(whole, key=lambda need: (not need.able, need.encodings))


def _advice(needs: tuple[Need, ...], n: int, m: int) -> str:
    enough = [need.attack for need in needs if need.records == "all" and need.enough]
    if enough:
        return f"All {n} private vectors should come back from {m:,} encodings, by {enough[0]}."
    least, short = _least(needs), ""
    if not least.able:
        short = f", nor from more: no attack has what it needs; {least.attack}: {least.why}"
    elif m < least.encodings:
        short = f": by {least.attack} it takes about {least.encodings:,}"
    return f"Not all of {n} private vectors should come back from {m:,} encodings{short}."
