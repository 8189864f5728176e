"""Units in which pixels are mixed: [−1, 1], [0, 1], bytes, or with a mean and a standard deviation
per channel, as training code has them.

InstaHide's own code mixes private images in CIFAR-10's mean and standard deviation and public ones
in ImageNet's (Huang et al., `train_cross.py`), which is about ±2.5.

The image attack reckons with pixels about zero whose size is that of [−1, 1]. Encodings with a mean
and a standard deviation are brought there by one factor: zero stays where it was, since |·| was
taken there. Weights sum to one, so that encodings of [0, 1] or bytes become such of [−1, 1] by the
same line as pixels do; their signs were never hidden.

Which units it were is told by images like those mixed (`find_units`): mixtures of them, drawn by
the same law, are held against the encodings in each unit, decile by decile and channel by channel.
Values near zero tell too: sums of pixels that have both signs pass zero, others do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.data.images import WHOLE, are_bytes, scaled
from unveil.encode.weights import sample_weights
from unveil.scheme import Scheme

Floats = NDArray[np.float32]
SLACK = 1.01
"""How far beyond its range a value may lie: rounding, and images resized with overshoot."""


@dataclass(frozen=True)
class Units:
    """A pixel p from 0 to 1 became (p − mean)/std, channel by channel."""

    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def about_zero(self) -> bool:
        """Whether pixels have both signs, so that an absolute value hides something."""
        return any(self.mean)

    @property
    def _factor(self) -> np.float32:
        """From these units to the size that pixels have in [−1, 1]."""
        return np.float32(2 * np.mean(self.std))

    def of_pixels(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Images (n, d) in [−1, 1] as the attack reckons with them."""
        return self.mixed(x, shape) * self._factor if self.about_zero else x

    def of_encodings(self, y: Floats) -> Floats:
        """Magnitudes (m, d) as the attack reckons with them."""
        return np.asarray(y * self._factor if self.about_zero else np.abs(self._factor * y - 1))

    def to_pixels(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Back to [−1, 1]."""
        if not self.about_zero:
            return x
        mean, std = self._per_pixel(shape)
        return np.asarray(2 * (x / self._factor * std + mean) - 1, np.float32)

    def mixed(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Images in [−1, 1] in these units."""
        mean, std = self._per_pixel(shape)
        return np.asarray(((x + 1) / 2 - mean) / std, np.float32)

    def black(self, shape: tuple[int, ...]) -> Floats:
        """(channels,): a pixel of 0."""
        dark: Floats = np.full(int(np.prod(shape)), -1, np.float32)
        return self.mixed(dark, shape)[: channels_of(shape)]

    def _per_pixel(self, shape: tuple[int, ...]) -> list[Floats]:
        channels = channels_of(shape)
        pixels = int(np.prod(shape)) // channels
        return [
            np.tile(np.asarray(v if len(v) == channels else [np.mean(v)] * channels, "f4"), pixels)
            for v in (self.mean, self.std)
        ]


def channels_of(shape: tuple[int, ...]) -> int:
    """How many colours (height, width[, channels]) has."""
    return shape[2] if len(shape) == 3 else 1


PLAIN = Units("[-1,1]", (0.5,), (0.5,))
"""What the attack reckons with."""
KNOWN = {
    unit.name: unit
    for unit in (
        PLAIN,
        Units("[0,1]", (0.0,), (1.0,)),
        Units("bytes", (0.0,), (1 / 255,)),
        # The means and deviations that training code has for these two sets of images.
        Units("cifar10", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        Units("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    )
}
"""Units by name; a mean and a standard deviation of one's own can be given too."""


def as_units(given: Any) -> Units:
    """A name, or (mean, std) of pixels from 0 to 1, each one number or one per channel."""
    if isinstance(given, Units):
        return given
    if isinstance(given, str):
        if given not in KNOWN:
            raise InputError(
                f"units={given!r}: choose one of {', '.join(KNOWN)}, or give (mean, std)"
            )
        return KNOWN[given]
    try:
        mean, std = (tuple(float(v) for v in np.atleast_1d(part)) for part in given)
    except (TypeError, ValueError):
        raise InputError(f"units={given!r}: give a name, or (mean, std) per channel") from None
    if not all(np.isfinite(mean)) or not all(0 < v < np.inf for v in std):
        raise InputError(f"units={given!r}: standard deviations are positive, means finite")
    return Units("mean/std", mean, std)


def settle_units(
    given: dict[str, Floats | None],
    values: Floats,
    scheme: Scheme,
    shape: tuple[int, ...],
    units: Any,
    rng: np.random.Generator,
    *,
    farther: float = 1.5,
) -> tuple[dict[str, Floats | None], Units]:
    """Images as the image attack reckons with them, and the units of the encodings (m, d).

    given: images by name; the first that there is is a sample of what was mixed. Images beyond
        [−1, 1] that are no bytes are in the units of the encodings already, whatever these are.
    units: what the user says of the encodings' units; None: found out.
    farther: times the largest pixel of like images that an encoding may reach.
    """
    # 1. What kind each is. One kind only: else nobody knows what is meant.
    there = {name: x for name, x in given.items() if x is not None}
    pixels = {name: as_pixels(x) for name, x in there.items()}
    own = [name for name, x in pixels.items() if x is None]
    largest = float(np.abs(values).max())
    if own:
        top = max(float(np.abs(x).max()) for x in there.values())
        if len(own) < len(there) or units is not None or largest > farther * top:
            odd = there[own[0]]
            raise InputError(
                f"{own[0]} images from {odd.min():.3g} to {odd.max():.3g}, encodings up to "
                f"{largest:.3g}: give images as bytes, or in [-1, 1] or [0, 1]"
            )
        return {**given, **{name: x / np.float32(top) for name, x in there.items()}}, _scaled(top)
    # 2. The units of the encodings: said, or found out.
    shown = {name: x for name, x in pixels.items() if x is not None}
    sample = next(iter(shown.values()), None)
    unit = find_units(values, scheme, shape, sample, rng) if units is None else as_units(units)
    return {**given, **{name: unit.of_pixels(x, shape) for name, x in shown.items()}}, unit


def _scaled(largest: float) -> Units:
    """Units of which only the largest value is known: images come back in [−1, 1], by a factor."""
    return Units("unknown", (0.5,), (0.5 / largest,))


def find_units(
    values: Floats,
    scheme: Scheme,
    shape: tuple[int, ...],
    sample: Floats | None,
    rng: np.random.Generator,
    *,
    draws: int = 300,
    fits: float = 0.35,
    near: float = 0.05,
    crossing: float = 0.005,
    faintest: float = 0.1,
) -> Units:
    """The units of encodings (m, d); sample: images in [−1, 1] like those that were mixed. Without
    them only the largest value speaks.

    draws: mixtures and encodings that are compared; deciles of so many are sure to a percent.
    fits: the largest difference of deciles, by the encodings' root mean square (rms).
    near, crossing: where more than this share of values is below `near`·rms, sums pass zero. Of
        photographs 4% are, in [0, 1] hardly any.
    faintest: rms of encodings, by that of mixtures, below which their units are none that is known.
    """
    y = np.abs(values[:: -(-len(values) // draws)])
    largest = float(np.abs(values).max())
    if sample is None:
        if largest <= SLACK:
            return PLAIN
        return KNOWN["bytes"] if largest > WHOLE else _scaled(largest)
    # 1. Mixtures of the sample by the same law.
    weights = sample_weights(scheme, draws, rng).astype(np.float32)
    chosen = rng.integers(len(sample), size=weights.shape)
    mixtures = np.einsum("ij,ijd->id", weights, sample[chosen])
    # 2. The units in which they have the encodings' deciles, of those that reach their values and
    #    no others, and pass zero where encodings do.
    scale = float(np.sqrt(np.mean(y.astype(np.float64) ** 2))) + 1e-9
    passes = float(np.mean((y > 0) & (y < near * scale))) > crossing
    possible = [(np.inf, PLAIN)]
    for unit in KNOWN.values():
        ends = unit.mixed(np.array([[-1.0], [1.0]], np.float32), shape)
        top = float(np.abs(ends).max())
        reaches = SLACK < largest <= SLACK * top if top > SLACK else largest <= SLACK * top
        if reaches and (unit.about_zero or not passes):
            there = np.abs(unit.mixed(mixtures, shape))
            differ = np.abs(_deciles(y, shape) - _deciles(there, shape)).mean() / scale
            possible.append((float(differ), unit))
    apart, best = min(possible, key=lambda one: one[0])
    # 3. Images of little contrast are mixed to small values, but not to so small ones.
    faint = scale < faintest * float(np.sqrt(np.mean(mixtures.astype(np.float64) ** 2)))
    if apart > fits and (largest > SLACK or faint):
        raise InputError(
            f"encodings up to {largest:.3g} are in none of the units {', '.join(KNOWN)}, by the "
            "like images: say which (units=, a name or (mean, std))"
        )
    return best


def _deciles(y: Floats, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(9, channels)."""
    at = np.linspace(0.1, 0.9, 9)
    return np.asarray(np.quantile(y.reshape(-1, channels_of(shape)), at, axis=0), np.float64)


def private_and_public(given: Any) -> tuple[Units, Units]:
    """The units of both parts; "released": those of InstaHide's code, which differ."""
    if isinstance(given, str) and given == "released":
        return KNOWN["cifar10"], KNOWN["imagenet"]
    unit = as_units(given)
    return unit, unit


def in_units(images: Floats, unit: Units, shape: tuple[int, ...], name: str) -> Floats:
    """Images (n, d) given as bytes, in [0, 1] or in [−1, 1], in these units."""
    pixels = as_pixels(images)
    if pixels is None:
        raise InputError(
            f"{name} images from {float(images.min()):.3g} to {float(images.max()):.3g}: with "
            "units= give them as bytes, in [0, 1] or in [-1, 1]"
        )
    return unit.mixed(pixels, shape)


def as_pixels(x: Floats) -> Floats | None:
    """Images in [−1, 1] from [−1, 1], [0, 1] or bytes; None: neither."""
    if are_bytes(x):
        return scaled(x)
    low, high = float(x.min()), float(x.max())
    if low >= 0 and high <= SLACK:
        return 2 * x - 1
    return x if max(-low, high) <= SLACK else None
