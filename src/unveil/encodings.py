"""What is released, and what it was made of: encodings, the selection behind them, a simulation.

Arrays are (items, pixels) in C order; the paper's image matrix X ∈ R^{d×n} is the transpose
(docs/notation.md).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import DataLike, InputError, as_shape, as_table, as_vectors, column_names
from unveil.scheme import Scheme
from unveil.shown import Shown, draw_images, draw_matrix, room, value_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, init=False)
class Encodings(Shown):
    """m released encodings with the scheme that made them.

    Parameters
    ----------
    values : array of shape (m, d), tensor, frame or path
        The encodings, with or without signs; kept as float32.
    scheme : Scheme
        How they were made.
    pixel_rms : float or None
        Root mean square of a private pixel, where pixels are independent and Gaussian: 1 in the
        paper's model. None where nothing is known of them, as of anybody's own records. It tells a
        vector of few encodings from its other readings, and a wrong weighting from a right one.
    image_shape : tuple of int or None
        (height, width) or (height, width, channels), where a vector is an image.
    labels : array of shape (m, classes) or None
        What was released of the classes: Σ λ·onehot over the private vectors of each encoding.
    columns : tuple of str
        What the values of a row are called; those of a frame or of a CSV file are taken from it.

    Raises
    ------
    InputError
        Where an array is empty, not finite or not two-dimensional, or where the sizes of two of
        them contradict each other.

    Examples
    --------
    >>> import numpy as np, unveil
    >>> encodings = unveil.Encodings(np.ones((5, 12)), unveil.Scheme(2), image_shape=(3, 4))
    >>> encodings.m, encodings.d, encodings.image_shape
    (5, 12, (3, 4))
    """

    values: NDArray[np.float32]
    scheme: Scheme
    pixel_rms: float | None = 1.0
    image_shape: tuple[int, ...] | None = None
    labels: NDArray[np.float32] | None = None
    columns: tuple[str, ...] = ()

    def __init__(
        self,
        values: DataLike,
        scheme: Scheme,
        pixel_rms: float | None = 1.0,
        image_shape: tuple[int, ...] | None = None,
        labels: DataLike | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        # 1. The encodings, and how they were made.
        values = as_table(values)
        vectors = as_vectors(values, "encodings")
        m, d = vectors.shape
        if not isinstance(scheme, Scheme):
            raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
        # 2. What is known of the private vectors.
        number = isinstance(pixel_rms, Real) and not isinstance(pixel_rms, bool)
        if pixel_rms is not None and not (number and 0 < pixel_rms <= sys.float_info.max):
            raise InputError(
                f"pixel_rms={pixel_rms!r}: give a positive number, or None when unknown"
            )
        names = tuple(map(str, columns)) or column_names(values)
        if names and len(names) != d:
            raise InputError(f"{len(names)} columns of {d} values: give one name for each")
        # 3. Frozen from here on.
        vars(self).update(
            values=vectors,
            scheme=scheme,
            pixel_rms=pixel_rms,
            image_shape=None if image_shape is None else as_shape(image_shape, d),
            labels=None if labels is None else _as_labels(labels, m),
            columns=names,
        )

    @property
    def m(self) -> int:
        """How many encodings there are."""
        return int(self.values.shape[0])

    @property
    def d(self) -> int:
        """Pixels of each."""
        return int(self.values.shape[1])

    def magnitudes(self, rows: slice | NDArray[np.intp] = slice(None)) -> NDArray[np.float32]:
        """|y| of the given rows: what every attack starts from, whether signs were hidden or
        randomised."""
        return np.abs(self.values[rows])

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return value_columns(self.values, self.columns)

    def facts(self) -> dict[str, Any]:
        """All but the values: `save("….npy")` keeps those."""
        names = ("m", "d", "pixel_rms", "image_shape", "columns")
        return {"scheme": asdict(self.scheme), **{name: getattr(self, name) for name in names}}

    def _sentence(self) -> str:
        return f"{self.m} encodings of {self.d} values, {self.scheme}"

    def plot(self) -> Figure:
        """Magnitudes: what an attack sees. Signs are random, and would hide every likeness."""
        shown = self.magnitudes(slice(600))
        if self.image_shape is None:
            return draw_matrix(shown, "value", "encoding", f"{self.m} encodings: |y|")
        titles = [f"encoding {i}" for i in range(len(shown))]
        return draw_images(shown, self.image_shape, titles, f"{self.m} encodings")

    def _save(self, target: Path) -> bool:
        if target.suffix == ".npy":
            room("engine.files").write_array(target, self.values)
        return target.suffix == ".npy"


@dataclass(frozen=True, eq=False)
class Selection:
    """Which vectors each encoding mixes.

    Attributes
    ----------
    private, public : array of shape (m, k_private) and (m, k_public)
        Indices, sorted in each row.
    weights, public_weights : array of the same shapes, or None
        In the same order; None when the scheme's are meant.
    """

    private: NDArray[np.int64]
    public: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    public_weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Simulation(Shown):
    """Encodings together with the truth behind them, as `simulate` makes them.

    Attributes
    ----------
    encodings : Encodings
        What an attacker sees.
    private : array of shape (n_private, d)
        What is to be recovered.
    public : array of shape (n_public, d) or None
        What everybody knows.
    selection : Selection
        Which of them each encoding mixes.
    """

    encodings: Encodings
    private: NDArray[np.float32]
    public: NDArray[np.float32] | None
    selection: Selection

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """What each encoding mixes: the truth behind it."""
        return {
            f"{kind} {place + 1}": column
            for kind in ("private", "public")
            for place, column in enumerate(getattr(self.selection, kind).T)
        }

    def facts(self) -> dict[str, Any]:
        """Counts alone: who prints a simulation does not want to publish its records."""
        n_public = 0 if self.public is None else len(self.public)
        counts = {"n_private": len(self.private), "n_public": n_public}
        return {**self.encodings.facts(), **counts, **self._columns()}

    def _sentence(self) -> str:
        return f"{self.encodings._sentence()}, of {len(self.private)} private vectors"

    def _save(self, target: Path) -> bool:
        """A run directory, which `unveil attack` takes."""
        if not target.suffix:
            runs = room("engine.runs")
            runs.write_simulation(target, self, {"simulate": runs.manifest("simulate")})
        return not target.suffix


def as_public(public: DataLike | None, encodings: Encodings) -> NDArray[np.float32] | None:
    """The public vectors, checked against the scheme and the pixels of the encodings."""
    k_public = encodings.scheme.k_public
    if public is None:
        if k_public:
            raise InputError(
                f"k_public={k_public} but no public vectors: pass public=, or use k_public=0"
            )
        return None
    vectors = as_vectors(public, "public")
    n, d = vectors.shape
    if d != encodings.d:
        raise InputError(
            f"public vectors have {d} pixels, encodings {encodings.d}: they must come from the "
            "same space"
        )
    # Each encoding uses k_public different ones.
    if k_public > n:
        raise InputError(f"k_public={k_public} of only {n} public vectors: lower it or add vectors")
    return vectors


def _as_labels(labels: DataLike, m: int) -> NDArray[np.float32]:
    weights = as_vectors(labels, "labels")
    if len(weights) != m:
        raise InputError(
            f"{len(weights)} labels of {m} encodings: give one row of class weights per encoding"
        )
    if weights.min() < 0:
        raise InputError("labels below zero: give the weight of each class, 0 or more")
    return weights
