"""A few telling pixels of every encoding, and how much each of them says against chance.

A relation is a statement about four encodings that holds at every pixel. To find relations a few
dozen pixels suffice, if they are chosen well: a pixel with many different values tells almost
everything apart, one with two levels almost nothing. So each pixel is weighed by the chance that
four encodings drawn at random fulfil the relation there,

    nats = −log P(some signs give |±y_a ± y_b ± y_c ± y_d| ≤ 3·spread),

measured on random quadruples of the encodings themselves. No distribution is assumed. Pixels that
say most are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_PIXELS = 48
"""Pixels of a sketch: three or four continuous ones prove a relation, images of few levels need
some dozen."""
CHOICE = 4
"""So many times as many good pixels are kept for a random choice among them: the best ones of an
image are neighbours."""
LOOKED = 1024
"""Pixels that are weighed, at random where there are more: the best 200 of a thousand are as good
as those of all."""
QUADRUPLES = 4000
"""Random quadruples that measure chance: 5% of them, the share that is extrapolated, are 200."""
TAIL = 0.05
"""The share of quadruples nearest to a relation, from which the density at zero is read."""
WIDTH = 3.0
"""A residual within so many spreads counts as zero: one in 400 Gaussian residuals is larger."""
ROUNDING = 2.0**-21
"""Residual of a true relation in float32, relative to the largest value of the pixel: four
roundings of 2⁻²⁴, and as many in the sums that made the encodings."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """hi, lo (m, p): the two values Σx may have in each encoding at the chosen `pixels` (p,); lo =
    −hi without a public part.

    spread (p,): standard deviation of a relation's residual; nats (p,): what a residual within
    `WIDTH` of them is worth;
    free: there is no public part, so that one sign per pixel is free.
    """

    hi: Floats
    lo: Floats
    pixels: Index
    spread: Floats
    nats: Floats
    free: bool

    @property
    def m(self) -> int:
        return len(self.hi)

    def of(self, rows: Index) -> Sketch:
        """The sketch of some of the encodings."""
        return replace(self, hi=self.hi[rows], lo=self.lo[rows])


def sketch(
    y: NDArray[np.floating],
    c: NDArray[np.floating] | None,
    noise: float,
    rng: np.random.Generator,
    most: int = MOST_PIXELS,
) -> Sketch:
    """A sketch of |Σx + c| = y (m, d), unit weights. `noise`: standard deviation of each encoding,
    0 for float32 as it is."""
    m, d = y.shape
    if m < 4:
        none = np.empty(0)
        return Sketch(
            np.empty((m, 0)), np.empty((m, 0)), np.empty(0, np.int64), none, none, c is None
        )
    quads = rng.integers(0, m, (QUADRUPLES, 4))
    quads = quads[(np.diff(np.sort(quads, axis=1), axis=1) > 0).all(axis=1)]
    # 1. What chance reaches at every pixel.
    top = np.abs(y).max(axis=0).astype(np.float64)
    spread = np.maximum(2.0 * noise, ROUNDING * np.maximum(top, 1e-30))
    nats = np.zeros(d)
    looked = np.sort(rng.permutation(d)[:LOOKED])
    for start in range(0, len(looked), 256):
        part = looked[start : start + 256]
        nats[part] = nats_against_chance(
            _distance(y[:, part], None if c is None else c[:, part], quads), spread[part]
        )
    # 2. The pixels that say most, not all of them neighbours.
    useful = np.argsort(-nats, kind="stable")[: CHOICE * most]
    useful = useful[nats[useful] > 0]
    chosen = rng.permutation(useful)[:most]
    chosen = chosen[np.argsort(-nats[chosen], kind="stable")].astype(np.int64)
    hi = y[:, chosen].astype(np.float64)
    lo = -hi
    if c is not None:
        hi, lo = hi - c[:, chosen], lo - c[:, chosen]
    return Sketch(
        np.ascontiguousarray(hi),
        np.ascontiguousarray(lo),
        chosen,
        spread[chosen],
        nats[chosen],
        c is None,
    )


def _distance(y: NDArray[np.floating], c: NDArray[np.floating] | None, quads: Index) -> Floats:
    """(quadruples, pixels): how far the best signs are from a relation."""
    a, b, e, f = (y[quads[:, i]].astype(np.float64) for i in range(4))
    if c is None:
        one, two = (a + b, np.abs(a - b)), (e + f, np.abs(e - f))
        return np.asarray(np.minimum.reduce([np.abs(u - v) for u in one for v in two]))
    rest = c[quads[:, 0]] - c[quads[:, 1]] - c[quads[:, 2]] + c[quads[:, 3]]
    signs = (1.0, -1.0)
    return np.asarray(
        np.minimum.reduce(
            [
                np.abs(a + s * b + t * e + u * f - w * rest)
                for s in signs
                for t in signs
                for u in signs
                for w in signs
            ]
        )
    )


def nats_against_chance(distance: Floats, spread: Floats) -> Floats:
    """−log of the chance that a random quadruple passes, per pixel: counted where it happens, else
    read from the tail."""
    counted = (distance <= WIDTH * spread).mean(axis=0)
    edge = np.quantile(distance, TAIL, axis=0)
    smooth = np.where(
        edge > WIDTH * spread, TAIL * WIDTH * spread / np.maximum(edge, 1e-300), counted
    )
    often = counted * len(distance) >= 5
    return np.asarray(
        -np.log(np.clip(np.where(often, np.maximum(counted, smooth), smooth), 1e-12, 1.0))
    )
