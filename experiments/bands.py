"""How sure a measured number is: intervals for means, shares and exponents, all at 95%."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import linregress
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
    n, mean, half = len(array), array.mean(axis=0), np.zeros(array.shape[1:])
    if n > 1:
        half = student.ppf(UPPER, n - 1) * array.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)


def share_band(count: ArrayLike, trials: ArrayLike) -> Band:
    """A share with Wilson's interval, which stays inside [0, 1] and has a width at 0 and 1 as
    well."""
    trials = np.asarray(trials, dtype=np.float64)
    share, z2 = np.asarray(count, dtype=np.float64) / trials, NORMAL**2
    centre = share + z2 / (2 * trials)
    half = NORMAL * np.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    low, high = ((centre + side * half) / (1 + z2 / trials) for side in (-1, 1))
    return Band(share, np.maximum(low, 0), np.minimum(high, 1))


def power_law(x: ArrayLike, y: ArrayLike) -> Slope:
    """The exponent of y in x by least squares in logarithms, with Student's interval."""
    line, n = linregress(np.log(x), np.log(y)), len(np.asarray(x))
    half = float(student.ppf(UPPER, n - 2) * line.stderr) if n > 2 else 0.0
    exponent = float(line.slope)
    return Slope(exponent, exponent - half, exponent + half, float(np.exp(line.intercept)))
