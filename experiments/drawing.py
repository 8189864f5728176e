"""How figures look: Okabe and Ito's colours, which colour-blind readers tell apart, and a marker or
dash per series."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unveil.engine.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Figures = dict[str, Any]
"""Figures by the suffix of their name."""
# Okabe, Ito, "Color Universal Design", 2008; grey is ours.
COLOURS = {
    "black": "#000000",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "grey": "#777777",
}
SERIES = ("blue", "vermilion", "green", "orange", "purple", "sky")
# Sizes in points: readable where a page shows figures at their own width.
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "lines.markersize": 5,
}
MARKERS = ("o", "s", "^", "D", "v", "P")


@contextmanager
def style() -> Iterator[None]:
    """Inside, figures are drawn in the house's sizes, and the same figure is saved as the same
    bytes."""
    import matplotlib  # here, since it takes longer to load than most commands to run

    with matplotlib.rc_context({"svg.hashsalt": "unveil", **STYLE}):
        yield


def panels(rows: int, columns: int, size: tuple[float, float], **how: Any) -> tuple[Figure, Any]:
    """A figure and its axes, (columns,) for one row and (rows, columns) otherwise; drawn without a
    screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(rows, columns, **how))
    for axis in axes.flat:
        # Lines of the grid are there to read values off, and step back behind the data.
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def band(axis: Any, x: ArrayLike, values: Any, colour: str, *style: str, **look: Any) -> None:
    """A line through values (value, low, high), and what lies between low and high, faint: lines
    matter."""
    value, low, high = values
    axis.fill_between(x, low, high, color=COLOURS[colour], alpha=0.15, linewidth=0)
    axis.plot(x, value, *style, color=COLOURS[colour], **look)


def ticks(axis: Any, places: Sequence[int]) -> None:
    """Ticks of a logarithmic axis at these places only."""
    axis.set_xticks(places, labels=[str(place) for place in places])
    axis.minorticks_off()


def save(figure: Figure, path: Path) -> None:
    """PATH.svg and PATH.png."""
    # Without dates and versions, so that the same numbers give the same bytes.
    for suffix, how in (
        (".svg", {"metadata": {"Date": None}}),
        (".png", {"dpi": 150, "metadata": {"Software": None}}),
    ):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix[1:], **how)
        write_bytes(path.with_suffix(suffix), drawn.getvalue())
