"""Where the marks of “what if” go: for noise, k and m the share of records that comes back and what
the encodings are then worth, on one axis from 0 to 100%.

Values that were tried stand at equal distances. A mark is drawn where something was measured, and
nothing where it was not. Under noise the ε of the Gaussian mechanism stands below each value, and a
line shows where it falls to `PROMISE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from unveil.auditing.result import WhatIf
from unveil.report.figures import QUARTERS

LEFT, RIGHT, TOP, BOTTOM = 50, 426, 30, 232
"""The axes in a drawing of 440 × 310, about as wide as a phone; the template knows the same."""
PROMISE = 10.0
"""The ε of the line: beyond it what a record changes may be e¹⁰, twenty thousand times as likely,
and differential privacy promises nothing that counts."""
TITLES = {
    "noise": "More noise",
    "k": "More records in each encoding",
    "m": "Fewer or more encodings",
}
AXES = {
    "noise": "noise, relative to the size of the data",
    "k": "records mixed into each encoding, k",
    "m": "encodings released, m",
}
"""Above and below the figure of each axis."""


@dataclass(frozen=True)
class Spot:
    """One value that was tried; worth: height of its utility, None where it was not measured."""

    x: float
    y: float
    low: float
    high: float
    worth: float | None
    label: str
    epsilon: str
    now: bool
    text: str


@dataclass(frozen=True)
class Panel:
    """One axis of “what if”; promise: where ε falls to `PROMISE`, None where it never does."""

    axis: str
    title: str
    label: str
    spots: tuple[Spot, ...]
    up: tuple[tuple[float, str], ...]
    promise: float | None
    points: tuple[WhatIf, ...]

    @property
    def back(self) -> str:
        """The dotted guide through what was measured of records that came back."""
        return " ".join(f"{spot.x},{spot.y}" for spot in self.spots)

    @property
    def worths(self) -> list[str]:
        """Dotted guides of utility, one for every run of neighbours that were measured."""
        # A line across a gap would claim what was not measured.
        runs: list[list[str]] = [[]]
        for spot in self.spots:
            if spot.worth is None:
                runs.append([])
            else:
                runs[-1].append(f"{spot.x},{spot.worth}")
        return [" ".join(run) for run in runs if len(run) > 1]


def panels(points: Sequence[WhatIf], now: Mapping[str, float]) -> tuple[Panel, ...]:
    """One per axis, in the order of the points; `now`: the values of the release as audited."""
    axes = dict.fromkeys(point.axis for point in points)
    return tuple(
        _panel(axis, [point for point in points if point.axis == axis], now.get(axis))
        for axis in axes
    )


def _panel(axis: str, points: list[WhatIf], now: float | None) -> Panel:
    points = sorted(points, key=lambda point: point.value)
    # Equal distances: values are chosen by factors, and numbers stand below.
    step = (RIGHT - LEFT) / len(points)
    at = [round(LEFT + step * (i + 0.5), 1) for i in range(len(points))]
    spots = tuple(
        Spot(
            x,
            _height(p.recovered),
            _height(p.low),
            _height(p.high),
            None if p.utility is None else _height(p.utility),
            f"{p.value:,.0f}" if p.value == round(p.value) else f"{p.value:.4g}",
            "" if p.epsilon is None else _short(p.epsilon),
            now is not None and p.value == now,
            _told(p),
        )
        for x, p in zip(at, points, strict=True)
    )
    return Panel(
        axis,
        TITLES.get(axis, axis),
        AXES.get(axis, axis),
        spots,
        tuple((_height(share), f"{share:.0%}") for share in QUARTERS),
        _promise(at, points),
        tuple(points),
    )


def _height(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * min(max(share, 0.0), 1.0), 1)


def _promise(at: Sequence[float], points: Sequence[WhatIf]) -> float | None:
    """Between the two values that have ε on either side of the promise, by its logarithm."""
    # Linear between the logarithms: ε falls by factors as noise grows by factors.
    known = [(x, p.epsilon) for x, p in zip(at, points, strict=True) if p.epsilon]
    for (x, above), (right, below) in pairwise(known):
        if above >= PROMISE >= below:
            part = log(above / PROMISE) / log(above / below) if above > below else 0.0
            return round(x + part * (right - x), 1)
    return None


def _short(epsilon: float) -> str:
    return f"{epsilon:.3g}" if epsilon < 1000 else f"{epsilon:.0e}".replace("e+0", "e")


def _told(point: WhatIf) -> str:
    text = (
        f"{point.axis} = {point.value:g}: {point.recovered:.0%} of records come back "
        f"({point.low:.0%} to {point.high:.0%})"
    )
    if point.utility is not None:
        text += f", utility {point.utility:.0%}"
    return text + (f", epsilon {point.epsilon:.3g}" if point.epsilon is not None else "")
