"""Do encodings look like those of Gaussian vectors? Then statistics get through, and faster than
exact relations.

A mixture of independent normal pixels is normal at every pixel, and its pixels are independent. Of
magnitudes y three numbers are looked at, on some encodings and pixels:

    kurtosis    E y⁴ / (E y²)², 3 for a normal value
    evenness    how much E y² differs from pixel to pixel
    pixels      mean squared correlation of the y² of two pixels, of all and of neighbours

It decides which attack goes first, and nothing else: where it errs, time is lost.

Cost: one product of `MOST` pixels by as many encodings, some hundredths of a second.
"""

from __future__ import annotations

import numpy as np

from unveil.encodings import Encodings
from unveil.parallel import one_blas_thread

MOST = 600
"""Encodings and pixels that are looked at: a hundredth of a second."""
FEWEST = 100
"""Encodings and pixels below which similarities say little, and relations are soon searched."""
KURTOSIS = 2.7, 3.3
"""Sums of two uniform values have 2.4, of two Laplacian ones 4.5; those of a hundred normal vectors
stay within 0.1."""
UNEVEN = 0.5
"""Standard deviation of E y² over pixels, in units of its mean. n normal vectors leave about
√(2/n): 0.3 for twenty."""
ALIKE = 0.02
"""Mean squared correlation of pixels. Encodings that share vectors are no independent draws: with
20 per vector 0.006 for 600 of them. Neighbours in photographs have 0.2 and more."""


def look_normal(encodings: Encodings) -> bool:
    """Whether statistics of Gaussian vectors probably hold."""
    if min(encodings.m, encodings.d) < FEWEST:
        return False
    # 1. The first pixels, as they lie beside each other, and encodings from everywhere.
    step = -(-encodings.m // MOST)
    power = np.square(encodings.values[::step, :MOST].astype(np.float64))
    mean = power.mean(axis=0)
    level = float(mean.mean())
    if level <= 0 or not mean.min() > 0:
        return False
    # 2. Values, one by one.
    kurtosis = float(np.mean(power**2)) / level**2
    if not KURTOSIS[0] <= kurtosis <= KURTOSIS[1] or mean.std() > UNEVEN * level:
        return False
    # 3. Pixels, two by two.
    centred = power - mean
    size = np.sqrt(np.mean(centred**2, axis=0))
    if not size.min() > 0:
        return False
    unit = centred / size
    with one_blas_thread():
        squared = np.square(unit.T @ unit / len(unit))
    pairs = squared.size - len(squared)
    every = (float(squared.sum()) - float(np.trace(squared))) / pairs
    neighbours = float(np.diagonal(squared, 1).mean())
    return bool(max(every, neighbours) < ALIKE)
