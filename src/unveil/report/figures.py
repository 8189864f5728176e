"""Where the marks of each figure go: the leakage curve, and images side by side.

Only geometry and pixels; the template draws them, so that every text in a figure is escaped like
all others. Images larger than the page can carry are averaged in blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.result import CurvePoint, Pictures, RecordRisk
from unveil.shown import png_uri


@dataclass(frozen=True)
class Mark:
    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    """Heights of a point of the curve: y of records back, exactly of those exactly, values of all
    values."""

    x: float
    y: float
    low: float
    high: float
    exactly: float
    values: float
    text: str


@dataclass(frozen=True)
class Curve:
    """The leakage curve in the coordinates of an SVG of width × height; left, right, top, bottom
    bound its axes."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    across: tuple[Mark, ...]
    up: tuple[Mark, ...]
    dots: tuple[Dot, ...]
    release: float
    logarithmic: bool

    @property
    def line(self) -> str:
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)

    @property
    def values(self) -> str:
        return " ".join(f"{dot.x},{dot.values}" for dot in self.dots)


@dataclass(frozen=True)
class Tile:
    """One record: its name, its outcome where known, and (label, image) pairs; an image that is
    missing is ""."""

    name: str
    outcome: str
    images: tuple[tuple[str, str], ...]


def curve(
    points: Sequence[CurvePoint], m: int, width: int, height: int, log_from: float = 30
) -> Curve | None:
    """None where there are fewer than two points, which are no curve; log_from: the axis is
    logarithmic where the largest m is so many times the smallest."""
    if len(points) < 2:
        return None
    points = sorted(points, key=lambda point: point.m)
    left, right, top, bottom = 58, width - 18, 26, height - 52
    smallest, largest = max(1, min(m, points[0].m)), max(m, points[-1].m, 1)
    logarithmic = largest / smallest > log_from
    first = float(smallest) if logarithmic else 0.0
    scale: Callable[[float], float] = (
        (lambda value: log(max(value, first))) if logarithmic else float
    )

    # A tenth of a pixel is finer than any screen.
    def x(value: float) -> float:
        share = (scale(value) - scale(first)) / (scale(largest) - scale(first))
        return round(left + (right - left) * share, 1)

    def y(share: float) -> float:
        return round(bottom - (bottom - top) * min(max(share, 0.0), 1.0), 1)

    marks = _log_marks(first, largest) if logarithmic else _marks(largest, 4 if width < 500 else 7)
    dots = tuple(
        Dot(
            x(p.m),
            y(p.exact + p.approximate),
            y(p.low),
            y(p.high),
            y(p.exact),
            y(p.values),
            f"m = {p.m:,}: {percent(p.exact + p.approximate)} of records back "
            f"({percent(p.low)} to {percent(p.high)}), {percent(p.exact)} exactly; "
            f"{percent(p.values)} of values",
        )
        for p in points
    )
    across = tuple(Mark(x(value), f"{value:,}") for value in marks)
    up = tuple(Mark(y(share), percent(share)) for share in (0, 0.25, 0.5, 0.75, 1))
    bounds = width, height, left, right, top, bottom
    return Curve(*bounds, across, up, dots, x(m), logarithmic)


def tiles(
    pictures: Pictures, records: Sequence[RecordRisk], most: int = 200, budget: int = 3_500_000
) -> tuple[tuple[Tile, ...], int]:
    """The images side by side, and by how much they were shrunk (1: not at all).

    most, budget : int    Records shown, and bytes of all images as base64.
    """
    rows = [
        (label, images[:most])
        for label, images in (
            ("original", pictures.originals),
            ("encoding", pictures.encodings),
            ("recovery", pictures.recoveries),
        )
        if images is not None and len(images)
    ]
    if not rows:
        return (), 1
    # Pixels that do not compress at all take a byte each, and base64 turns three bytes into four.
    worst = sum(images.size for _, images in rows) * 4 / 3
    factor = max(1, ceil(sqrt(worst / budget)))
    # A caption tells the outcome only where it names exactly one record.
    times = Counter(record.name for record in records)
    outcomes = {record.name: record.outcome for record in records if times[record.name] == 1}
    out = []
    for i in range(max(len(images) for _, images in rows)):
        name = pictures.names[i] if i < len(pictures.names) else f"record {i}"
        images = tuple(
            (label, image(array[i], factor) if i < len(array) else "") for label, array in rows
        )
        out.append(Tile(name, outcomes.get(name, ""), images))
    return tuple(out), factor


def percent(share: float) -> str:
    """Never "100%" for what is not all."""
    text = f"{100 * share:.3g}%"
    return "over 99.9%" if share < 1 and text == "100%" else text


def image(values: NDArray[np.float32], factor: int = 1) -> str:
    """A data URI of means of factor × factor blocks; "" when there is no image, which is said by
    pixels that are no numbers."""
    if not np.isfinite(values).all():
        return ""
    pixels = np.asarray(values, dtype=np.float64)
    if factor > 1:
        pad = [(0, -size % factor) for size in pixels.shape[:2]] + [(0, 0)] * (pixels.ndim - 2)
        padded = np.pad(pixels, pad, mode="edge")
        height, width = padded.shape[:2]
        blocks = padded.reshape(
            height // factor, factor, width // factor, factor, *pixels.shape[2:]
        )
        pixels = blocks.mean(axis=(1, 3))
    return png_uri((255 * pixels.clip(0, 1)).round().astype(np.uint8))


def _marks(largest: float, most: int) -> list[int]:
    """0 and multiples of 1, 2 or 5 times a power of ten, at most `most` steps of them."""
    power = 10 ** floor(log10(max(largest / most, 1)))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit * most >= largest)
    return list(range(0, floor(largest) + 1, step))


def _log_marks(first: float, last: float) -> list[int]:
    decades = range(floor(log10(first)), ceil(log10(last)) + 1)
    # Over few decades 3 stands between 1 and 10, about half way; over many it would crowd.
    digits = (1, 3) if len(decades) < 4 else (1,)
    marks = [10**power * digit for power in decades for digit in digits]
    return [mark for mark in marks if first <= mark <= last]
