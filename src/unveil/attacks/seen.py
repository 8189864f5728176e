"""What values show before any attack: signs, clipping, rounding, scale, repeats, how alike
encodings are. Nothing is assumed of how they were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import hypergeom

from unveil.attacks.full import LARGEST
from unveil.exact.problem import grid_step
from unveil.checks import row_blocks
from unveil.gram.correlation import squared_correlations
from unveil.gram.sign_masks import coin_squares, go_together, sampled
from unveil.scheme import Signs

CLIPPED = 1e-3
"""Share of values at the very end of the range from which on they were cut off there: of continuous
values one is."""
FEWEST_PIXELS = 20
"""Pixels below which signs of pairs of encodings say nothing."""
MOST = 6
"""Records per encoding that are tried: published schemes mix 2 to 4."""
MOST_RECORDS = 2000
"""Private records up to which their number is told by how alike encodings are."""
REPEATED = 0.9
"""Share of different encodings below which one is taken for a record that was released often."""
ALIKE = 0.9
"""Correlation of magnitudes from which on two encodings are the same up to noise: those that share
half of their records have 0.2."""
FEWEST, SURELY = 4, 5.0
"""Different encodings from which on it can be asked whether they share records, and the standard
errors by which their mean likeness must be above zero."""


@dataclass(frozen=True)
class Seen:
    """signs: "kept" where they go together, "random" where coins explain them, "absolute" where no
    value is negative; clipped: share of values at an end of the range; step: of the grid they lie
    on, 0: none; low, high, size: range and root mean square."""

    signs: Signs
    clipped: float
    step: float
    low: float
    high: float
    size: float

    @property
    def words(self) -> dict[str, str]:
        """The evidence for each, a sentence each."""
        signs = {
            "absolute": "no value is negative: signs are hidden, or records have none",
            "random": "signs of different encodings agree no more often than fair coins: they are "
            "hidden",
            "kept": "signs of different encodings go together: they are kept, or share a mask",
        }[self.signs]
        clipped = f"{100 * self.clipped:.1f} % of values lie at an end of the range: cut off there"
        return {
            "signs": signs,
            "clipped": clipped if self.clipped > CLIPPED else "values do not pile up at an end",
            "rounded": f"values lie on a grid of step {self.step:.3g}"
            if self.step
            else "values lie on no grid",
            "scale": f"values from {self.low:.3g} to {self.high:.3g}, root mean square "
            f"{self.size:.3g}; records come in units in which the weights of an encoding sum to 1",
        }


def look(values: NDArray[np.float32]) -> Seen:
    """What these encodings show."""
    low, high = float(values.min()), float(values.max())
    ends, power = 0, 0.0
    for _, block in row_blocks(values):
        # Zero is where magnitudes begin, no bound that somebody set.
        ends += int((block == high).sum()) + (int((block == low).sum()) if low < 0 else 0)
        power += float(np.square(block, dtype=np.float64).sum())
    signs: Signs = "absolute"
    if low < 0:
        some = sampled(values)
        told = len(some) > 1 and some.shape[1] >= FEWEST_PIXELS
        signs = "kept" if not told or go_together(coin_squares(some)) else "random"
    return Seen(
        signs, ends / values.size, grid_step(np.abs(values)), low, high, float(np.sqrt(power / values.size))
    )


def likely_k(magnitudes: NDArray[np.float32]) -> int:
    """How many records an encoding mixes, by two moments of how alike encodings are.

    Pairs that share s of k records with equal weights have z = s/k. E[z²] tells the number of
    records n for every k, and then E[z⁴] must agree. Two halves of the pixels have independent
    errors, and the product of their estimates no bias.
    """
    if min(magnitudes.shape) < 2:
        return 2  # nothing to compare, or no two halves: the fewest that are a mixture
    halves = [squared_correlations(np.ascontiguousarray(magnitudes[:, h::2])) for h in (0, 1)]
    pairs = np.triu_indices(len(magnitudes), 1)
    first, second = (half[pairs] for half in halves)
    once, twice = float((first + second).mean()) / 2, float((first * second).mean())
    if once <= 0 or twice <= 0:
        return 2
    off = {}
    for k in range(2, MOST + 1):
        n, s = np.arange(k, MOST_RECORDS)[:, None], np.arange(k + 1)
        chance = hypergeom.pmf(s, n, k, k)
        powers = [(chance * (s / k) ** power).sum(axis=1) for power in (2, 4)]
        at = int(np.abs(powers[0] - once).argmin())
        off[k] = abs(np.log(powers[1][at] / twice))
    return min(off, key=lambda k: off[k])


def hold_one_each(values: NDArray[np.float32]) -> int:
    """How many different encodings there are, where they repeat each other and are otherwise no
    more alike than chance leaves; 0 where that is not so."""
    m = len(values)
    if m > LARGEST:
        return 0
    Y = np.abs(values)
    # Few pixels correlate by chance: there encodings must be equal, and most of them.
    if Y.shape[1] < FEWEST_PIXELS and 2 * len(np.unique(Y, axis=0)) > m:
        return 0
    centred = Y - Y.mean(axis=1, keepdims=True)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.float32(1e-30))
    group = connected_components(sparse.csr_array(centred @ centred.T > ALIKE), directed=False)[1]
    first = np.unique(group, return_index=True)[1]
    if len(first) > REPEATED * m:
        return 0
    if len(first) < FEWEST:
        return len(first)
    Z = squared_correlations(Y[first])[np.triu_indices(len(first), 1)]
    return 0 if Z.mean() > SURELY * Z.std() / np.sqrt(len(Z)) else len(first)
