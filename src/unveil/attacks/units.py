"""Encodings in the units in which they are solved: private weights are 1, and so is the rms of a
private pixel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.encodings import Encodings
from unveil.records import Supports
from unveil.scheme import Scheme
from unveil.solve.model import PublicPart, Values

LEAST_SHARE = 1e-3
"""Of the power of the encodings, the private part is taken to have this share at least: a public
part that was found wrongly can seem to hold all of it."""
OFFSET = 4.0
"""A column's mean, in units of its spread, from which on it is taken off. What a pixel is worth is
judged by the size of its values, and an offset says nothing of the records."""


@dataclass(frozen=True, eq=False)
class Task:
    """Encodings in units in which private weights are 1 and private pixels have rms `unit`: y = |Σ
    x + offsets|, the offsets being the sum of the `public` part; its weight is in these units as
    well."""

    y: Values
    offsets: Values | None
    public: PublicPart | None
    unit: float
    scheme: Scheme

    def public_in_pixels(self) -> PublicPart | None:
        """The public part in the units of the encodings, as the certificate takes it."""
        if self.public is None:
            return None
        return replace(self.public, weight=self.public.weight * self.unit)


def in_units(encodings: Encodings, P: Values | None, supports: Supports | None) -> Task:
    """The unit is what is left of the encodings' power without their public part."""
    scheme = encodings.scheme
    a, k = scheme.private_weight, scheme.k_private
    Y = encodings.magnitudes()
    # Row by row: all squares at once take twice the memory of the encodings.
    power = float(np.mean([np.mean(np.square(row, dtype=np.float64)) for row in Y]))
    # Without a public part all power is that of k private vectors.
    if P is None or supports is None:
        unit = max(np.sqrt(power / k) / a, 1e-30)
        return Task(Y / np.float32(a * unit), None, None, unit, scheme)
    # With a public part: its power is known, the rest is private.
    c = P[supports.indices].sum(axis=1) * np.float32(scheme.public_weight)
    part = float(np.mean(np.square(c, dtype=np.float64)))
    unit = max(np.sqrt(max(power - part, LEAST_SHARE * power) / k) / a, 1e-30)
    part_of_all = PublicPart(supports.indices, P, scheme.public_weight / (a * unit))
    return Task(Y / np.float32(a * unit), c / np.float32(a * unit), part_of_all, unit, scheme)


def column_offsets(values: Values, total: float) -> NDArray[np.float64]:
    """(d,) what may be taken off each column of the records, so that its mean is no larger than its
    spread: 0 where it is not much larger. total: the sum of an encoding's weights.

    Not all of the mean: records that it is taken off are combinations of each other.
    """
    mean, spread = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    far = np.abs(mean) > OFFSET * spread
    return np.asarray(np.where(far & (spread > 0), mean - np.copysign(spread, mean), 0.0) / total)


def column_units(values: Values) -> Values:
    """(d,) the rms of each column as a power of two, so that dividing by it rounds nothing.

    Columns of zeros have that of all."""
    rms = np.sqrt(np.mean(np.square(values, dtype=np.float64), axis=0))
    mean = float(np.sqrt(np.mean(rms**2))) or 1.0
    return np.exp2(np.rint(np.log2(np.where(rms > 0, rms, mean)))).astype(np.float32)
