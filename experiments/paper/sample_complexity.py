"""How many encodings? The paper's n^(k − 2/(k+1)) for k+2 vectors (`lem:setsystemexist`), beside
what all vectors take.

For k = 2 and 3: in nested draws, the m at which a floral first exists, hence the probability that
one exists as m/n^(k−2/(k+1)) varies; its median against n, with the exponent fitted; whether
FindFloralSubmatrix finds one exactly when there is one; and the smallest m from which the strongest
attack of the package recovers *all* n vectors, beside the m at which every vector is in two
different encodings, below which no attack can (docs/attacks.md).
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import product

import numpy as np
from experiments.bands import power_law
from experiments.cells import Cells, Facts
from experiments.paper.first_florals import (
    Subsets,
    first_m,
    has_subsets,
    has_sunflower,
    search_finds,
)

from unveil.attacks import recover
from unveil.encode import draw_selection, simulate
from unveil.encodings import Encodings
from unveil.paper.floral import encodings_needed, expected_florals
from unveil.scheme import Scheme
from unveil.scoring import score

VECTORS = {2: (50, 100, 200, 500, 1000), 3: (20, 30, 40, 50, 70, 100)}
"""n, by k: over a factor of twenty and of five, as far as existence can be decided."""
QUICK = {2: (50, 100, 200), 3: (20, 30, 40)}
"""The same for the quick version."""
LARGEST_SEARCH = 20_000_000
"""Overlapping pairs beyond which existence is decided without the search."""
PIXELS = 2048
"""d of the attack on all vectors: enough that encodings are what limits it."""
FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
"""Multiples of the least m possible that are tried in turn."""
MEDIANS = ("subsets", "predicted", "sunflower", "twice", "attack")
"""What grows with n: m at the first floral of either family, as expected, and for all vectors."""


def exponent(k: int) -> float:
    return k - 2 / (k + 1)


def measure(cells: Cells, full: bool) -> Facts:
    vectors, draws, searched, attacks = (VECTORS, 200, 10, 3) if full else (QUICK, 40, 4, 1)
    factors = list(FACTORS if full else FACTORS[3:])
    # 1. First florals, and all vectors, at each k and n.
    settings = [{"k": k, "n": n} for k, ns in vectors.items() for n in ns]
    asked = [{**s, "draws": draws, "searched": searched} for s in settings]
    existing = cells.run(_existence, asked, "florals")
    asked = [{**s, "draws": attacks, "factors": factors} for s in settings]
    attacked = cells.run(_attack, asked, "all vectors")
    points = [
        {**s, **floral, **attack}
        for s, floral, attack in zip(settings, existing, attacked, strict=True)
    ]
    # 2. Exponents of n, for each k.
    fits: Facts = {str(k): {"theory": round(exponent(k), 4)} for k in vectors}
    for k, what in product(vectors, MEDIANS):
        some = [point for point in points if point["k"] == k]
        fit = power_law([point["n"] for point in some], [point[what]["median"] for point in some])
        fits[str(k)][what] = {name: round(value, 4) for name, value in fit._asdict().items()}
    about = {"draws": draws, "searched": searched, "attacks": attacks, "d": PIXELS}
    return {**about, "points": points, "fits": fits}


def _existence(k: int, n: int, draws: int, searched: int, seed: int) -> Facts:
    """First m of each family, per draw; and how often the search agreed, just before and at the
    first floral of any kind."""
    # Nested draws, long enough that a floral exists in nearly all of them.
    start = encodings_needed(n, k)
    there = {"subsets": partial(has_subsets, n=n), "sunflower": partial(has_sunflower, n=n)}
    first: dict[str, list[int]] = {family: [] for family in there}
    returned = {"asked": 0, "agrees": 0, "real": 0}
    for draw in range(draws):
        rng = np.random.default_rng(np.random.SeedSequence([seed, k, n, draw]))
        drawn = draw_selection(Scheme(k), n, 0, 12 * start, rng, rng).private
        for family, exists in there.items():
            first[family].append(first_m(drawn, exists, start) or len(drawn))
        subsets, m = first["subsets"][-1], min(ms[-1] for ms in first.values())
        if draw < searched and subsets**2 * k * k / n <= LARGEST_SEARCH:
            before, at, real = (search_finds(drawn[:size], n) for size in (m - 1, m, subsets))
            returned["asked"] += 1
            returned["agrees"] += before == "nothing" and at != "nothing"
            returned["real"] += real == "subsets"
    medians = {family: _median(ms) for family, ms in first.items()}
    return {**medians, "predicted": {"median": _predicted(n, k, start)}, "search": returned}


def _median(ms: list[int]) -> Facts:
    return {"median": float(np.median(ms)), "all": sorted(ms)}


def _predicted(n: int, k: int, start: int) -> int:
    """The m at which florals number log 2 in expectation: the median, were they a Poisson
    process."""
    return bisect_left(range(start), np.log(2), key=partial(expected_florals, n, k))


def _attack(k: int, n: int, draws: int, factors: list[float], seed: int) -> Facts:
    """Per draw the m at which every vector is in two different encodings, and the least multiple at
    which all come back."""
    twice, needed, failed = [], [], 0
    for draw in range(draws):
        rng = np.random.default_rng(np.random.SeedSequence([seed, k, n, draw, 1]))
        # Six times what it takes on average until every vector was drawn twice.
        most = int(6 * n * (np.log(n) + 2) / k)
        sim = simulate(Scheme(k), n, m=most, d=PIXELS, rng=rng)
        bound = first_m(sim.selection.private, partial(_all_twice, n=n), n) or most
        twice.append(bound)
        for factor in factors:
            m = min(most, int(np.ceil(factor * bound)))
            part = Encodings(sim.encodings.values[:m], sim.encodings.scheme)
            if score(recover(part, attack="exact", rng=seed), sim.private).exact == n:
                break
        else:
            failed += 1
        needed.append(m)
    return {"twice": _median(twice), "attack": _median(needed), "failed": failed}


def _all_twice(subsets: Subsets, n: int) -> bool:
    different = np.unique(subsets, axis=0)
    return bool((np.bincount(different.ravel(), minlength=n) >= 2).all())
