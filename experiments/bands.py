"""How sure a measured number is: intervals for means, shares and exponents, all at 95%."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]
UPPER = 0.975
"""Quantile above which 2.5% lie: intervals have 95%."""
NORMAL = 1.96
"""The same quantile of the normal distribution, in standard deviations."""


class Band(NamedTuple):
    """A value with the ends of its interval."""

    value: Array
    low: Array
    high: Array


class Slope(NamedTuple):
    """y ≈ scale·x^exponent"""

    exponent: float
    low: float
    high: float
    scale: float


def mean_band(values: ArrayLike) -> Band:
    """Mean over the first axis with Student's interval; a single value has none, and stands
    alone."""
    array = np.asarray(values, dtype=np.float64)
    n, mean = len(array), np.mean(array, axis=0)
    half = (
        student.ppf(UPPER, n - 1) * array.std(axis=0, ddof=1) / np.sqrt(n)
        if n > 1
        else np.zeros_like(mean)
    )
    return Band(mean, mean - half, mean + half)


def share_band(count: ArrayLike, trials: ArrayLike) -> Band:
    """A share with Wilson's interval, which stays inside [0, 1] and has a width at 0 and 1 as
    well."""
    count, trials = np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    z, share = NORMAL, count / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = (
        z
        * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
        / (1 + z * z / trials)
    )
    return Band(share, np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0))


def power_law(x: ArrayLike, y: ArrayLike) -> Slope:
    """The exponent of y in x by least squares in logarithms, with Student's interval."""
    a, b = np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64))
    # The standard error of a slope; two points leave none to estimate it from.
    n, centred = len(a), a - a.mean()
    exponent = float(centred @ b / (centred @ centred))
    left = b - b.mean() - exponent * centred
    error = float(np.sqrt(left @ left / (n - 2) / (centred @ centred))) if n > 2 else 0.0
    half = float(student.ppf(UPPER, n - 2)) * error if n > 2 else 0.0
    return Slope(
        exponent, exponent - half, exponent + half, float(np.exp(b.mean() - exponent * a.mean()))
    )
