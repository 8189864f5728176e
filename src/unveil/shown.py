"""Results as people want them: a table, JSON, a file, a picture, and what a notebook shows.

A result says three things of itself, and gets the rest from here:

    _columns()   its table: names of columns, and their values, one row per item
    facts()      itself as plain facts; its table, where it is no more than that
    _sentence()  what it is, in words

Data flows one way, and nouns stand at its beginning. Still a reader wants `audit.save("page.html")`
and `Encodings("released.npy", scheme)`: such calls look the room up by name when they are made
(`room`), so that no import runs against the flow and `import unveil` stays light.
"""

from __future__ import annotations

import io
import json
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from importlib import import_module
from math import ceil, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil._version import SCHEMA

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


def room(name: str) -> Any:
    """The module `unveil.<name>`."""
    return import_module(f"unveil.{name}")


class Shown:
    """A result that people look at: as a table, as JSON, as a file, as a picture, in a notebook."""

    # Nothing of its own: records that inherit from this have their own fields, and no others.
    __slots__ = ()

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """The first field that holds records, a column for each of their fields."""
        for item in fields(self):  # type: ignore[arg-type]
            rows = getattr(self, item.name)
            if isinstance(rows, tuple) and rows and hasattr(rows[0], "__dataclass_fields__"):
                names = rows[0].__dataclass_fields__
                return {name: [getattr(row, name) for row in rows] for name in names}
        return {}

    def facts(self) -> dict[str, Any]:
        """Text, numbers, lists and objects of these."""
        return dict(self._columns())

    def _sentence(self) -> str:
        return str(getattr(self, "advice", type(self).__name__))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame, one row per item."""
        import pandas

        return pandas.DataFrame(dict(self._columns()))

    def to_dict(self) -> dict[str, Any]:
        """Plain facts, with the number of the form they are in; what is not finite is None."""
        # The number first: a program can refuse a form it does not know before it reads on.
        return {"schema": SCHEMA, **plain(self.facts())}

    def to_json(self) -> str:
        """One JSON object as text; numbers that are not finite become null."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """A matplotlib figure of it; `figure.savefig("name.png")` keeps it."""
        raise TypeError(f"a {type(self).__name__} has no picture")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write to `path`, whole or not at all; its ending says what: .csv (text that a spreadsheet
        would run as a formula gets a ' before it), .json, .html, and where they make sense .npy,
        .npz, .png, .svg, .pdf, or no ending: a new folder."""
        files, target = room("engine.files"), Path(path)
        suffix = target.suffix.lower()
        if suffix and not target.parent.is_dir():
            raise room("checks").InputError(f"no folder {target.parent}: make it first")
        if suffix == ".csv":
            # Without rows the header would be lost, and an empty file says nothing.
            rows = self.to_frame().astype(object).to_dict("records")
            files.write_csv(target, rows or [dict.fromkeys(self._columns())])
        elif suffix == ".json":
            files.write_text(target, self.to_json() + "\n")
        elif suffix == ".html":
            head = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">'
            page = f"{head}\n<title>Unveil</title>\n{self._repr_html_()}\n</html>\n"
            files.write_text(target, page)
        elif suffix in (".png", ".svg", ".pdf") and type(self).plot is not Shown.plot:
            # In memory first: a drawing that fails leaves no half file.
            made = io.BytesIO()
            self.plot().savefig(made, format=suffix[1:], dpi=150)
            files.write_bytes(target, made.getvalue())
        elif not self._save(target):
            kinds = [".csv", ".json", ".html", *([".png"] * (type(self).plot is not Shown.plot))]
            raise room("checks").InputError(
                f"{target.name}: a {type(self).__name__} is saved as {', '.join(kinds)}; vectors "
                "also as .npy, a recovery as .npz, and one of images (with image_shape) as a folder"
            )
        return target

    def _save(self, target: Path) -> bool:
        """Write a form that not every result has; False: there is none of that ending."""
        return False

    def _repr_html_(self, rows: int = 10, most: int = 10) -> str:
        """What a notebook shows: a sentence, and the first `rows` of `most` columns. All text is
        escaped: names of columns and reasons may come from anywhere."""
        import pandas

        columns = self._columns()
        count = len(next(iter(columns.values()), ()))
        shown = pandas.DataFrame({name: columns[name][:rows] for name in list(columns)[:most]})
        # What is not shown is counted: nobody should take ten rows for all.
        more = [f"{count - rows:,} more rows"] * (count > rows)
        more += [f"{len(columns) - most:,} more columns"] * (len(columns) > most)
        rest = f"<p>… {' and '.join(more)}</p>" if more else ""
        table = shown.to_html(border=0, na_rep="–", float_format="{:.4g}".format)
        return f"<div><p><b>{escape(self._sentence())}</b></p>{self._pictures()}{table}{rest}</div>"

    def _pictures(self) -> str:
        return ""


def plain(value: Any) -> Any:
    """As JSON has it: arrays are lists, and what is not a finite number is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return plain(value.tolist())
    return None if isinstance(value, float) and not isfinite(value) else value


def value_columns(values: NDArray[Any], names: Sequence[str]) -> dict[str, Any]:
    """A column of a table per value, under its own name or "value 1", "value 2", …, numbered as
    `--sensitive` does. A name that is taken, by evidence or by another column, gets its place
    behind it: two of one name would lose one in a frame."""
    taken = {"status", "encodings", "residual", "reason"}
    out: dict[str, Any] = {}
    for place, column in enumerate(values.T):
        name = names[place] if names else f"value {place + 1}"
        name = f"{name} ({place + 1})" if name in taken else name
        taken.add(name)
        out[name] = column
    return out


def as_bytes(images: NDArray[Any], beyond: float = 1.5) -> NDArray[Any]:
    """Pixels as bytes. −1 … 1 is the range of InstaHide's images, and one that sticks out, up to
    `beyond`, is clipped; else the darkest is black and the brightest white."""
    low, high = float(images.min(initial=0.0)), float(images.max(initial=0.0))
    # All images together: one by one each would have a contrast of its own.
    if low >= -beyond and high <= beyond:
        low, high = (-1.0 if low < 0 else 0.0), 1.0
    scaled = (images.astype("f8") - low) / (high - low)
    return (255 * scaled.clip(0, 1)).round().astype("u1")


def png_of(pixels: NDArray[Any]) -> bytes:
    """Bytes (height, width) or (height, width, 1 or 3) as a PNG file."""
    from PIL import Image

    made = io.BytesIO()
    Image.fromarray(_drawable(pixels)).save(made, "PNG", optimize=True)
    return made.getvalue()


def _drawable(pixels: NDArray[Any]) -> NDArray[Any]:
    """Grey images without their one channel, as Pillow and matplotlib want them."""
    return pixels[..., 0] if pixels.shape[2:] == (1,) else pixels


def png_uri(pixels: NDArray[Any]) -> str:
    """The same as an address that holds the image itself, for pages."""
    return "data:image/png;base64," + b64encode(png_of(pixels)).decode()


def png_tag(pixels: NDArray[Any], text: str) -> str:
    """An image inside a page, enlarged so that a small one can be seen."""
    return f'<img src="{png_uri(pixels)}" alt="{escape(text)}" width="64"> '


def new_figure(width: float, height: float) -> Figure:
    """A figure that pyplot does not keep; a notebook learns to show figures when pyplot loads its
    backend, and not before."""
    import matplotlib
    from matplotlib.figure import Figure

    if "ipykernel" in sys.modules:
        from matplotlib import pyplot

        pyplot.switch_backend(matplotlib.get_backend())
    return Figure(figsize=(width, height), layout="constrained")


def draw_images(
    vectors: NDArray[Any], shape: tuple[int, ...], titles: Sequence[str], text: str, most: int = 32
) -> Figure:
    """The first `most` vectors as images, eight in a row."""
    count = min(len(vectors), most)
    across, down = min(8, count), ceil(count / 8)
    figure = new_figure(1.5 * across + 1, 1.5 * down + 1)
    pixels = as_bytes(vectors[:count]).reshape(count, *shape)
    for place, image in enumerate(pixels):
        axis = figure.add_subplot(down, across, place + 1)
        # A fixed range: else matplotlib would stretch each image by itself.
        axis.imshow(_drawable(image), cmap="gray", vmin=0, vmax=255)
        axis.set_axis_off()
        axis.set_title(titles[place], fontsize=7)
    more = f"; {len(vectors) - count} more" if len(vectors) > count else ""
    figure.suptitle(text + more, fontsize=10, wrap=True)
    return figure


def draw_matrix(values: NDArray[Any], across: str, down: str, title: str) -> Figure:
    """A matrix with its legend."""
    figure = new_figure(5, 4)
    axis = figure.add_subplot()
    shown = axis.imshow(values, cmap="Blues", interpolation="nearest", aspect="auto")
    axis.set(xlabel=across, ylabel=down)
    axis.set_title(title, fontsize=10)
    # Overlaps are counts: a legend with halves would puzzle.
    ticks = range(int(values.max(initial=0)) + 1) if values.dtype.kind in "iu" else None
    figure.colorbar(shown, ax=axis, ticks=ticks)
    return figure
