"""In which units pixels were mixed: [−1, 1], [0, 1], bytes, or with a mean and a standard deviation
per channel.

The attack reckons with pixels about zero whose size is that of [−1, 1]. Encodings with a mean and a
standard deviation, as InstaHide's own code makes them, are brought there by one factor: zero stays
where it was, since |·| was taken there. Weights sum to one, so that encodings of [0, 1] or bytes
become such of [−1, 1] by the same line as pixels do; their signs were never hidden.

Which units it were is told by images like those mixed: mixtures of them, drawn by the same law, are
held against the encodings in each unit, decile by decile and channel by channel. Values near zero
tell too: sums of pixels that have both signs pass zero, others do not. Without such images only the
largest value speaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.encode.units import KNOWN, PLAIN, SLACK, WHOLE, Units, as_pixels, as_units
from unveil.encode.weights import sample_weights
from unveil.scheme import Scheme

Floats = NDArray[np.float32]
DRAWS = 300
"""Mixtures and encodings that are held against each other: deciles over all pixels of so many are
sure to a percent."""
DECILES = np.linspace(0.1, 0.9, 9)
"""Where they are compared: the ends are left to outliers."""
FITS = 0.35
"""Largest difference of deciles, by the encodings' root mean square, at which units count as found:
private images of another kind than the public ones differ by 0.2 (clothes among photographs)."""
NEAR, CROSSING = 0.05, 0.005
"""Values up to this share of the root mean square are near zero; where more than so many of all
are, sums pass zero: of photographs 4% are, in [0, 1] hardly any."""
FAINTEST = 0.1
"""Root mean square of encodings, by that of mixtures of like images, below which their units are
none that is known."""
FARTHER = 1.5
"""Times the largest pixel of like images that an encoding may reach: private images can be
brighter, and weights sum to one."""


def settle_units(
    given: dict[str, Floats | None],
    values: Floats,
    scheme: Scheme,
    shape: tuple[int, ...],
    units: Any,
    rng: np.random.Generator,
) -> tuple[dict[str, Floats | None], Units]:
    """Images as the attack reckons with them, and the units of the encodings (m, d).

    given: images by name, the first that there is a sample of what was mixed. Images beyond
    [−1, 1] that are no bytes are in the units of the encodings already, whatever these are.
    """
    # 1. What kind each is. One kind only: else nobody knows what is meant.
    pixels = {name: None if x is None else as_pixels(x) for name, x in given.items()}
    own = [name for name, x in given.items() if x is not None and pixels[name] is None]
    others = [name for name, x in pixels.items() if x is not None]
    largest = float(np.abs(values).max())
    if own:
        top = max(float(np.abs(x).max()) for x in given.values() if x is not None)
        if others or units is not None or largest > FARTHER * top:
            odd = np.asarray(given[own[0]])
            low, high = float(odd.min()), float(odd.max())
            raise InputError(
                f"{own[0]} images from {low:.3g} to {high:.3g}, encodings up to {largest:.3g}: "
                "give images as bytes, or in [-1, 1] or [0, 1]"
            )
        unit = _up_to_scale(top)
        scale = np.float32(1 / top)
        return {name: None if x is None else x * scale for name, x in given.items()}, unit
    # 2. The units of the encodings: said, or found out.
    sample = next((x for x in pixels.values() if x is not None), None)
    unit = find_units(values, scheme, shape, sample, rng) if units is None else as_units(units)
    return {
        name: None if x is None else unit.of_pixels(x, shape) for name, x in pixels.items()
    }, unit


def _up_to_scale(largest: float) -> Units:
    """Units of which only the largest value is known: images come back in [−1, 1], by a factor."""
    return Units("unknown", (0.5,), (0.5 / largest,))


def find_units(
    values: Floats,
    scheme: Scheme,
    shape: tuple[int, ...],
    sample: Floats | None,
    rng: np.random.Generator,
) -> Units:
    """The units of encodings (m, d); sample: images in [−1, 1] like those that were mixed."""
    y = np.abs(values[:: -(-len(values) // DRAWS)])
    largest = float(np.abs(values).max())
    # 1. Without a sample only the largest value speaks.
    if sample is None:
        if largest <= SLACK:
            return PLAIN
        return KNOWN["bytes"] if largest > WHOLE else _up_to_scale(largest)
    # 2. Mixtures of the sample by the same law.
    weights = sample_weights(scheme, DRAWS, rng).astype(np.float32)
    chosen = rng.integers(len(sample), size=weights.shape)
    mixtures = np.einsum("ij,ijd->id", weights, sample[chosen])
    # 3. The units in which they have the encodings' deciles, of those that reach their values and
    #    no others, and pass zero where encodings do.
    scale = float(np.sqrt(np.mean(y.astype(np.float64) ** 2))) + 1e-9  # guards the division
    passes = float(np.mean((y > 0) & (y < NEAR * scale))) > CROSSING
    found: list[tuple[float, Units]] = []
    for unit in KNOWN.values():
        ends = unit.mixed(np.stack([-np.ones_like(y[0]), np.ones_like(y[0])]), shape)
        top = float(np.abs(ends).max())
        if largest > SLACK * top or (top > SLACK and largest <= SLACK):
            continue
        if passes and not unit.about_zero:
            continue
        there = np.abs(unit.mixed(mixtures, shape))
        differ = np.abs(_deciles(y, shape) - _deciles(there, shape)).mean() / scale
        found.append((float(differ), unit))
    best = min(found, key=lambda one: one[0], default=(np.inf, PLAIN))
    # Images of little contrast are mixed to small values, but not to so small ones.
    faint = scale < FAINTEST * float(np.sqrt(np.mean(mixtures.astype(np.float64) ** 2)))
    if best[0] > FITS and (largest > SLACK or faint):
        raise InputError(
            f"encodings up to {largest:.3g} are in none of the units {', '.join(KNOWN)}, by the "
            "like images: say which (units=, a name or (mean, std))"
        )
    return best[1]


def _deciles(y: Floats, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(9, channels)."""
    channels = shape[2] if len(shape) == 3 else 1
    return np.asarray(np.quantile(y.reshape(-1, channels), DECILES, axis=0), np.float64)
