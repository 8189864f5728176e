"""Results as figures. No window is opened and nothing is kept by pyplot: the figure is returned."""

from __future__ import annotations

import sys
from functools import singledispatch
from math import ceil
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from unveil.auditing.result import Audit
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.present.pixels import as_bytes
from unveil.records import STATUSES, Floral, Overlaps, Recovery

COLOURS = {"verified": "#009E73", "ambiguous": "#E69F00", "unresolved": "#D55E00"}
"""Of Okabe and Ito's palette, which readers who do not see red and green can tell apart."""
ACROSS, MOST = 8, 32
"""Images in a row, and in a figure: more would be too small to see."""
WIDE, SQUARE, CELL = (8, 4), (5, 4), 1.5
"""Inches: of a chart, of a matrix with its legend, of one image with its title."""
SHARES = (-0.02, 1.02)
"""From none to all, with room for a mark at either end."""
PALE = 0.2
"""Opacity of a band behind a line."""
LARGEST = 600
"""Rows and columns of a matrix that are drawn: more than there are pixels in the figure."""


def plot(result: Any) -> Figure:
    """A figure of a result."""
    if "ipykernel" in sys.modules:
        # A notebook learns to show figures when pyplot loads its backend, and not before.
        import matplotlib
        from matplotlib import pyplot

        pyplot.switch_backend(matplotlib.get_backend())
    return _draw(result)


@singledispatch
def _draw(result: Any) -> Figure:
    raise TypeError(f"a {type(result).__name__} has no picture")


@_draw.register
def _(result: Recovery) -> Figure:
    """Images where the vectors are images; else how well each is supported."""
    if not len(result):
        raise InputError(f"nothing to draw: {result.explanation}")
    if result.image_shape is not None:
        titles = [f"{i}: {status}" for i, status in enumerate(result.status)]
        return _images(result.vectors, result.image_shape, titles, result.explanation)
    # The best supported first, status by status: bars of one colour stand together.
    uses = np.diff(result.members.tocsc().indptr)
    ranks = np.array([STATUSES.index(status) for status in result.status])
    order = np.lexsort((-uses, ranks))
    figure = Figure(figsize=WIDE, layout="constrained")
    axis = figure.add_subplot()
    axis.bar(range(len(order)), uses[order], color=[COLOURS[result.status[i]] for i in order])
    # Bars of no height, for the legend: it names a status that did not occur as well.
    for status, colour in COLOURS.items():
        axis.bar(0, 0, color=colour, label=f"{int((result.status == status).sum())} {status}")
    axis.set(xlabel="recovered vector", ylabel="encodings that mix it")
    axis.set_title(result.explanation, wrap=True, fontsize=10)
    axis.legend()
    return figure


@_draw.register
def _(result: Encodings) -> Figure:
    if result.image_shape is not None:
        # What an attack sees: signs are random, and would hide every likeness.
        magnitudes = np.abs(result.values[:MOST])
        titles = [f"encoding {i}" for i in range(len(magnitudes))]
        return _images(magnitudes, result.image_shape, titles, f"{result.m} encodings")
    return _matrix(result.magnitudes()[:LARGEST], "value", "encoding", f"{result.m} encodings: |y|")


@_draw.register
def _(result: Overlaps) -> Figure:
    shown = result.matrix[:LARGEST, :LARGEST].toarray()
    title = f"private vectors that two of {result.m} encodings share"
    return _matrix(shown, "encoding", "encoding", title)


@_draw.register
def _(result: Floral) -> Figure:
    """Which encoding mixes which of the k+2 vectors."""
    names = [chr(ord("a") + i) for i in range(result.incidence.shape[1])]
    figure = _matrix(result.incidence, "private vector", "encoding", "who mixes whom")
    axis = figure.axes[0]
    axis.set_xticks(range(len(names)), names)
    axis.set_yticks(range(len(result.rows)), [str(row) for row in result.rows])
    return figure


@_draw.register
def _(result: Audit) -> Figure:
    """The leakage curve: the share of records that come back, as encodings become more."""
    if not result.curve:
        raise InputError("no leakage curve in this audit: nothing came back, or time ran out")
    # The curve was measured by bisection, in no order.
    points = sorted(result.curve, key=lambda point: point.m)
    m = [point.m for point in points]
    figure = Figure(figsize=WIDE, layout="constrained")
    axis = figure.add_subplot()
    band = [point.low for point in points], [point.high for point in points]
    axis.fill_between(m, *band, alpha=PALE, color="#D55E00", label="95% interval")
    back = [point.exact + point.approximate for point in points]
    axis.plot(m, back, "o-", color="#D55E00", label="records")
    axis.plot(m, [point.values for point in points], "s:", color="#0072B2", label="values")
    axis.axvline(result.m, color="black", linestyle="--", linewidth=1, label="this release")
    axis.set(xlabel="encodings released", ylabel="share that comes back", ylim=SHARES)
    axis.set_title(result.verdict.headline, wrap=True, fontsize=10)
    axis.legend()
    return figure


def _images(vectors: NDArray[Any], shape: tuple[int, ...], titles: list[str], text: str) -> Figure:
    count = min(len(vectors), MOST)
    across, down = min(ACROSS, count), ceil(count / ACROSS)
    # `Figure` and not pyplot, which would keep every figure alive until it is closed.
    figure = Figure(figsize=(CELL * across + 1, CELL * down + 1), layout="constrained")
    pixels = as_bytes(vectors[:count]).reshape(count, *shape)
    for place, (image, title) in enumerate(zip(pixels, titles, strict=False)):
        axis = figure.add_subplot(down, across, place + 1)
        grey = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        # A fixed range: else matplotlib would stretch each image by itself.
        axis.imshow(grey, cmap="gray", vmin=0, vmax=255)
        axis.set_axis_off()
        axis.set_title(title, fontsize=7)
    more = f"; {len(vectors) - count} more" if len(vectors) > count else ""
    figure.suptitle(text + more, fontsize=10, wrap=True)
    return figure


def _matrix(values: NDArray[Any], across: str, down: str, title: str) -> Figure:
    figure = Figure(figsize=SQUARE, layout="constrained")
    axis = figure.add_subplot()
    shown = axis.imshow(values, cmap="Blues", interpolation="nearest", aspect="auto")
    axis.set(xlabel=across, ylabel=down)
    axis.set_title(title, fontsize=10)
    # Overlaps are counts: a legend with halves would puzzle.
    whole = np.issubdtype(np.asarray(values).dtype, np.integer)
    ticks = range(int(values.max(initial=0)) + 1) if whole else None
    figure.colorbar(shown, ax=axis, ticks=ticks)
    return figure
