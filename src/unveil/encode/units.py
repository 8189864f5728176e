"""Units in which pixels are mixed: [−1, 1], [0, 1], bytes, or with a mean and a standard deviation
per channel, as training code has them.

InstaHide's own code mixes private images in CIFAR-10's mean and standard deviation and public ones
in ImageNet's (Huang et al., `train_cross.py`), which is about ±2.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError

Floats = NDArray[np.float32]
SLACK = 1.01
"""How far beyond its range a value may lie: rounding, and images resized with overshoot."""
BYTE = 255.0
"""The largest byte."""
WHOLE = 16.0
"""Whole numbers from 0 to 255 of which one is above this are bytes."""


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

    def of_pixels(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Images (n, d) in [−1, 1] as the attack reckons with them."""
        if not self.about_zero:
            return x
        mean, std = self._per_pixel(shape)
        size = np.float32(2 * np.mean(self.std))
        return np.asarray(((x + 1) / 2 - mean) / std * size, np.float32)

    def of_encodings(self, y: Floats) -> Floats:
        """Magnitudes (m, d) as the attack reckons with them."""
        if not self.about_zero:
            return np.asarray(np.abs(2 * np.float32(self.std[0]) * y - 1), np.float32)
        return np.asarray(y * np.float32(2 * np.mean(self.std)), np.float32)

    def to_pixels(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Back to [−1, 1]."""
        if not self.about_zero:
            return x
        mean, std = self._per_pixel(shape)
        size = np.float32(2 * np.mean(self.std))
        return np.asarray(2 * (x / size * std + mean) - 1, np.float32)

    def mixed(self, x: Floats, shape: tuple[int, ...]) -> Floats:
        """Images in [−1, 1] in these units."""
        mean, std = self._per_pixel(shape)
        return np.asarray(((x + 1) / 2 - mean) / std, np.float32)

    def black(self, shape: tuple[int, ...]) -> Floats:
        """(channels,): a pixel of 0."""
        channels = shape[2] if len(shape) == 3 else 1
        mean, std = (part[:channels] for part in self._per_pixel(shape))
        return np.asarray(-mean / std, np.float32)

    def _per_pixel(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        channels = shape[2] if len(shape) == 3 else 1
        d = int(np.prod(shape))
        out = []
        for values in (self.mean, self.std):
            one = values if len(values) == channels else (float(np.mean(values)),) * channels
            out.append(np.tile(np.asarray(one, np.float32), d // channels))
        return out[0], out[1]


PLAIN = Units("[-1,1]", (0.5,), (0.5,))
"""What the attack reckons with."""
KNOWN = {
    unit.name: unit
    for unit in (
        PLAIN,
        Units("[0,1]", (0.0,), (1.0,)),
        Units("bytes", (0.0,), (1 / BYTE,)),
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
    low, high = float(x.min()), float(x.max())
    if low >= 0 and WHOLE < high <= BYTE and np.array_equal(x, np.round(x)):
        return x / np.float32(BYTE / 2) - 1
    if low >= 0 and high <= SLACK:
        return 2 * x - 1
    return x if max(-low, high) <= SLACK else None
