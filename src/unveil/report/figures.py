"""Where the marks of each figure go: the leakage curve, the images, the overlap matrix.

Only geometry and pixels; the template draws them, so that every text in a figure is escaped like
all others. Images larger than the page can carry are averaged in blocks: whatever they show,
together they stay below `BUDGET` bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.result import CurvePoint, Pictures, RecordRisk
from unveil.report.png import data_uri, png

BUDGET = 3_500_000
"""Bytes of all images in the page, as base64."""
MOST_IMAGES = 200
"""Records shown as images: more of them nobody looks at."""
LARGEST_MATRIX = 512
"""Cells of a side of the overlap matrix: about the pixels it has on the page."""
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
"""Shares at which a figure has a line across."""
LOG_FROM = 30
"""The axis of m is logarithmic when the largest m is this many times the smallest."""

# Dark blue to yellow (cividis): brightness alone carries the order, so every kind of colour vision
# reads it.
CIVIDIS = (
    (0, 34, 78),
    (53, 69, 108),
    (102, 105, 112),
    (148, 142, 119),
    (200, 184, 102),
    (254, 232, 56),
)


@dataclass(frozen=True)
class Mark:
    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    low: float
    high: float
    approximate: float
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
    def band(self) -> str:
        # Along the upper ends and back along the lower ones: an SVG polygon has no inside but what
        # its path goes around.
        there = [f"{dot.x},{dot.high}" for dot in self.dots]
        back = [f"{dot.x},{dot.low}" for dot in reversed(self.dots)]
        return " ".join(there + back)

    @property
    def approximate(self) -> str:
        return " ".join(f"{dot.x},{dot.approximate}" for dot in self.dots)


@dataclass(frozen=True)
class Tile:
    """One record: its name, its outcome where known, and (label, image) pairs; an image that is
    missing is ""."""

    name: str
    outcome: str
    images: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Matrix:
    image: str
    size: int
    legend: tuple[tuple[str, str], ...]
    """(text, colour) from the smallest to the largest value."""


def curve(points: Sequence[CurvePoint], m: int, width: int, height: int) -> Curve | None:
    """None without points: there is nothing to draw."""
    if not points:
        return None
    # 1. The axis of m: from 0 where that leaves room for all, else by factors.
    points = sorted(points, key=lambda point: point.m)
    left, right, top, bottom = 58, width - 18, 26, height - 52
    smallest, largest = max(1, min(m, points[0].m)), max(m, points[-1].m, 1)
    logarithmic = largest / smallest > LOG_FROM
    first = float(smallest) if logarithmic else 0.0
    scale: Callable[[float], float] = (
        (lambda value: log(max(value, first))) if logarithmic else float
    )

    # 2. Shares and numbers as places; a tenth of a pixel is finer than any screen.
    def x(value: float) -> float:
        share = (scale(value) - scale(first)) / (scale(largest) - scale(first))
        return round(left + (right - left) * share, 1)

    def y(share: float) -> float:
        return round(bottom - (bottom - top) * min(max(share, 0.0), 1.0), 1)

    # 3. Marks that people read without reckoning.
    marks = _log_marks(first, largest) if logarithmic else _marks(largest, 4 if width < 500 else 7)
    return Curve(
        width,
        height,
        left,
        right,
        top,
        bottom,
        across=tuple(Mark(x(value), f"{value:,}") for value in marks),
        up=tuple(Mark(y(share), percent(share)) for share in QUARTERS),
        dots=tuple(
            Dot(x(p.m), y(p.exact), y(p.low), y(p.high), y(p.approximate), _told(p)) for p in points
        ),
        release=x(m),
        logarithmic=logarithmic,
    )


def tiles(pictures: Pictures, records: Sequence[RecordRisk]) -> tuple[tuple[Tile, ...], int]:
    """The images side by side, and by how much they were shrunk (1: not at all)."""
    rows = [
        (label, images[:MOST_IMAGES])
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
    factor = max(1, ceil(sqrt(worst / BUDGET)))
    count = max(len(images) for _, images in rows)
    # A caption tells the outcome only where it names exactly one record.
    times = Counter(record.name for record in records)
    outcomes = {record.name: record.outcome for record in records if times[record.name] == 1}
    out = []
    for i in range(count):
        name = pictures.names[i] if i < len(pictures.names) else f"record {i}"
        images = tuple(
            (label, _image(array[i], factor) if i < len(array) else "") for label, array in rows
        )
        out.append(Tile(name, outcomes.get(name, ""), images))
    return tuple(out), factor


def matrix(values: NDArray[np.float32] | None) -> Matrix | None:
    """The overlap matrix as a picture with a legend; whole numbers keep a colour of their own
    each."""
    if values is None or values.ndim != 2 or not values.size:
        return None
    size = len(values)
    # What is not known is drawn like nothing: colour is for what an attack has to find.
    shown = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    shown = np.maximum(_shrunk(shown, ceil(max(shown.shape) / LARGEST_MATRIX)), 0.0)
    top = float(shown.max()) or 1.0
    stops = np.linspace(0, 255, len(CIVIDIS))
    palette = np.stack(
        [np.interp(np.arange(256), stops, channel) for channel in zip(*CIVIDIS, strict=True)],
        axis=1,
    )
    palette = palette.round().astype(np.uint8)
    # Up to eight whole numbers have a colour each that can be named; more of them are a scale.
    whole = top <= 8 and bool((values == np.round(values)).all())
    steps = range(ceil(top) + 1) if whole else (0.0, top / 2, top)
    legend = tuple(
        (
            f"{step}" if whole else f"{step:.2g}",
            "#" + bytes(palette[round(255 * min(step / top, 1))]).hex(),
        )
        for step in steps
    )
    return Matrix(
        data_uri(png((255 * shown / top).round().astype(np.uint8), palette)), size, legend
    )


def percent(share: float) -> str:
    """Never "100%" for what is not all."""
    text = f"{100 * share:.3g}%"
    return "over 99.9%" if share < 1 and text == "100%" else text


def image_uris(images: NDArray[np.float32] | None) -> list[str]:
    """Every image in full size; "" for one that is missing."""
    return [] if images is None else [_image(image, 1) for image in images]


def _image(image: NDArray[np.float32], factor: int) -> str:
    """A data URI; "" when there is no image, which is said by pixels that are no numbers."""
    if not np.isfinite(image).all():
        return ""
    values = _shrunk(np.asarray(image, dtype=np.float64), factor)
    return data_uri(png((255 * values.clip(0, 1)).round().astype(np.uint8)))


def _shrunk(image: NDArray[np.float64], factor: int) -> NDArray[np.float64]:
    """Means of factor × factor blocks; the last ones repeat the edge."""
    if factor <= 1:
        return image
    pad = [(0, -size % factor) for size in image.shape[:2]] + [(0, 0)] * (image.ndim - 2)
    padded = np.pad(image, pad, mode="edge")
    height, width = padded.shape[:2]
    blocks = padded.reshape(height // factor, factor, width // factor, factor, *image.shape[2:])
    return np.asarray(blocks.mean(axis=(1, 3)))


def _marks(largest: float, most: int) -> list[int]:
    """0 and multiples of 1, 2 or 5 times a power of ten, at most `most` steps of them."""
    power = 10 ** floor(log10(max(largest / most, 1)))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit * most >= largest)
    return list(range(0, floor(largest) + 1, step))


def _log_marks(first: float, last: float) -> list[int]:
    decades = range(floor(log10(first)), ceil(log10(last)) + 1)
    # Over few decades 3 stands between 1 and 10, about half way; over many it would crowd.
    digits = (1, 3) if len(decades) < 4 else (1,)
    return [
        10**power * digit
        for power in decades
        for digit in digits
        if first <= 10**power * digit <= last
    ]


def _told(point: CurvePoint) -> str:
    runs = "1 run" if point.runs == 1 else f"{point.runs} runs"
    return (
        f"m = {point.m:,}: {percent(point.exact)} exactly ({percent(point.low)} to "
        f"{percent(point.high)}), "
        f"{percent(point.approximate)} approximately, {runs}"
    )
