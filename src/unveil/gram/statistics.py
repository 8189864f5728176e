"""Pair statistics as features: one row per encoding, so that a product of two rows estimates a
known function of their overlap.

    folded     (|y| − mean)/rms                 mean Ψ(z): the paper (`alg:private_attack`)
    squares    y²/mean(y²) − 1                  mean 2z²: locally optimal at overlap 0, heavy tails
    assisted   y·tanh(yμ/σ²) − μ                needs the public part μ; nearly linear in the
                                                private overlap
    likelihood folded features for the product, then the likelihood of the pair for all that survive
               (`gram/engine/likelihood.py`)

The assisted feature is the posterior mean of the private part g given y = |μ + g| and μ, σ² the
variance of g: of the two signs ±y the one that agrees with μ is e^{2yμ/σ²} times as likely. Rows
are divided by √d (and by σ), so that products are averages. Screening pixels come first in every
row (`pixel_order`). Cost: a few operations per number, in blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.checks import InputError, row_blocks
from unveil.encodings import Encodings
from unveil.folded import signed
from unveil.gram.levels import Levels, assisted_levels, folded_levels, squares_levels
from unveil.scheme import Scheme
from unveil.supports.folded.survey import mean_square

Statistic = Literal["folded", "squares", "likelihood", "assisted"]
STATISTICS: tuple[Statistic, ...] = ("folded", "squares", "likelihood", "assisted")
Floats = NDArray[np.float32]
LEAST = 1e-3
"""Least variance of the private part, per variance of the public part: what is left of E[y²] may
come out negative."""
PASS = 1 << 20
"""Numbers of one pass over all of them: 4 MiB, near enough to the cache."""
FLAT = 1e-12
"""Contrast, per mean square, below which a row is constant up to rounding."""


@dataclass(frozen=True, eq=False)
class KnownPublic:
    """What is known of the public part: sorted `supports` (m, k_public), and for the assisted
    statistic the vectors themselves.

    `variance` is σ², that of the private part; `ratio` is E[μ²]/σ².
    """

    supports: NDArray[np.int32]
    vectors: Floats | None
    weight: float
    variance: float
    ratio: float


def public_part(
    encodings: Encodings, supports: NDArray[np.int64], vectors: Floats | None
) -> KnownPublic:
    """σ² from the scheme when the pixels' root mean square is known, else from what the public part
    leaves of E[y²]."""
    scheme = encodings.scheme
    sorted_supports = np.ascontiguousarray(np.sort(supports, axis=1), dtype=np.int32)
    if vectors is None:
        return KnownPublic(
            sorted_supports, None, scheme.public_weight, scheme.private_variance, 0.0
        )
    public_power = scheme.public_variance * mean_square(vectors, PASS)
    if encodings.pixel_rms is not None:
        variance = scheme.private_variance * encodings.pixel_rms**2
    else:
        variance = max(
            mean_square(encodings.values, PASS) - public_power, LEAST * public_power, 1e-30
        )
    return KnownPublic(
        sorted_supports, vectors, scheme.public_weight, variance, public_power / variance
    )


def statistic_levels(statistic: Statistic, scheme: Scheme, public: KnownPublic | None) -> Levels:
    """Mean, noise and skewness of the product of two features at every lattice point."""
    if statistic == "squares":
        return squares_levels(scheme)
    if statistic == "assisted":
        if public is None or public.vectors is None:
            raise InputError(
                "statistic='assisted' without public vectors: pass public= and k_public of 1 or "
                "more"
            )
        return assisted_levels(scheme.k_private, scheme.k_public, public.ratio)
    return folded_levels(scheme)


def pixel_order(d: int, screen: int) -> NDArray[np.intp]:
    """All pixels, `screen` evenly spaced ones first: images are smooth, so a corner of them would
    not stand for the rest."""
    if screen >= d:
        return np.arange(d)
    first = np.arange(screen) * d // screen
    return np.concatenate([first, np.delete(np.arange(d), first)])


def feature_rows(
    values: Floats,
    statistic: Statistic,
    order: NDArray[np.intp],
    public: KnownPublic | None = None,
    start: int = 0,
) -> tuple[Floats, Floats]:
    """Features (rows, d) in `order`, and mean/rms of each row, which takes folded features back to
    magnitudes.

    `start` is the place of the first row among all encodings: it finds the supports. A row without
    contrast has zero features.
    """
    values = np.asarray(values)
    if statistic == "assisted":
        assert public is not None
        return _assisted_rows(values, order, public, start), np.empty(0, np.float32)
    out = np.empty(values.shape, np.float32)
    offset = np.empty(len(values), np.float32)
    _fill_rows(values, order, statistic == "squares", out, offset)
    return out, offset


def _assisted_rows(
    values: Floats, order: NDArray[np.intp], public: KnownPublic, start: int
) -> Floats:
    assert public.vectors is not None
    out = np.empty(values.shape, np.float32)
    variance = np.float32(public.variance)
    scale = np.float32(1 / np.sqrt(public.variance * values.shape[1]))
    for at, rows in row_blocks(values, 1 << 18):
        y = np.abs(rows)
        chosen = public.supports[start + at : start + at + len(rows)]
        # Posterior mean of the private part; a constant row says nothing.
        mu = np.zeros(rows.shape, np.float32)
        for column in chosen.T:
            mu += public.vectors[column]
        mu *= np.float32(public.weight)
        r = signed(y, mu, variance)
        r -= mu
        r *= scale
        r[y.min(axis=1) == y.max(axis=1)] = 0
        out[at : at + len(rows)] = r[:, order]
    return out


@njit(cache=True, nogil=True)
def _fill_rows(values, order, squared, out, offset):  # type: ignore[no-untyped-def]
    """Folded or squared features of every row. Sums in double precision; a row without contrast
    becomes zeros."""
    rows, d = values.shape
    for i in range(rows):
        total, power = 0.0, 0.0
        for x in range(d):
            y = np.float64(abs(values[i, x]))
            total += y
            power += y * y
        mean, square = total / d, power / d
        contrast = square - mean * mean > FLAT * square
        offset[i] = mean / np.sqrt(square) if square > 0 else 0.0
        if not contrast:
            out[i, :] = 0
        elif squared:
            scale = np.float32(1 / (square * np.sqrt(d)))
            shift = np.float32(1 / np.sqrt(d))
            for x in range(d):
                y = values[i, order[x]]
                out[i, x] = y * y * scale - shift
        else:
            scale = np.float32(1 / np.sqrt(square * d))
            shift = np.float32(mean)
            for x in range(d):
                out[i, x] = (abs(values[i, order[x]]) - shift) * scale
