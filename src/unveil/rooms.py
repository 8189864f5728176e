"""What records do for people, done by rooms further along the flow.

Data flows one way, and nouns stand at its beginning. Still a reader wants `recovery.plot()`, and
`Encodings("released.npy", scheme)`. Such calls look the room up by name when they are made, so
that no import runs against the flow and `import unveil` stays light.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def room(name: str) -> Any:
    """The module `unveil.<name>`."""
    return import_module(f"unveil.{name}")


class Shown:
    """A result that people look at: as a table, as JSON, as a file, in a notebook."""

    # Nothing of its own: records that inherit from this have their own fields, and no others.
    __slots__ = ()

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per item; `pip install pandas` where it is missing."""
        return room("present.frames").to_frame(self)

    def to_json(self) -> str:
        """One JSON object as text; numbers that are not finite become null."""
        return str(room("present.facts").to_json(self))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write to `path`, whole or not at all; its ending says what: .csv, .json, .html, and
        where they make sense .npy, .npz, .png, .svg or the name of a new folder."""
        return Path(room("present.saving").save(self, path))

    def _repr_html_(self) -> str:
        """What a notebook shows: a sentence, and the first rows of the table."""
        return str(room("present.notebook").html(self))


class Pictured(Shown):
    """A result that is easier to see than to read."""

    __slots__ = ()

    def plot(self) -> Figure:
        """A matplotlib figure of it; `figure.savefig("name.png")` keeps it."""
        figure: Figure = room("present.pictures").plot(self)
        return figure
