"""Private records as an audit takes them: numbers ready to be encoded, names, and the way back to
the user's own units.

.npy, .npz, .pt  as they are; unsigned bytes are images, scaled like those; tensors of PyTorch too
folder of images from 0..255 to −1..1, as InstaHide does
table, frame     columns have wild scales: each is standardised before it is encoded, x = (value −
                 mean)/sd, and what is recovered can be turned back (`restore`). Columns then sum to
                 zero, so that every record is a combination of the others: the certificate does
                 not hold, the truth tells
a name           "gaussian" or "fashion-mnist": what comes with the package

The truth behind encodings that somebody else made is taken as it is (`as_they_are`): what was done
to it before it was encoded is not ours to repeat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.checks import (
    TABLES,
    DataLike,
    InputError,
    as_array,
    as_shape,
    as_vectors,
    flat,
    is_frame,
    listed,
)
from unveil.data.arrays import as_items, is_image, read_any_array
from unveil.data.bundled import fashion_mnist, gaussian_vectors
from unveil.data.images import HALF_RANGE, read_image_folder, scaled
from unveil.data.tables import chosen_rows, read_table, record_names
from unveil.engine.blocks import must_fit
from unveil.engine.files import must_fit_as_vectors

Kind = Literal["gaussian", "images", "features", "array"]
BUNDLED = ("gaussian", "fashion-mnist")
BUNDLED_SOURCE = "Fashion-MNIST test images (MIT licence, Zalando SE), bundled subset"


@dataclass(frozen=True, eq=False)
class Dataset:
    """values (n, d) as they are encoded; value = mean + scale·x in the user's units; image_shape:
    (height, width[, 3]); columns: what a table calls its columns, () where it has no header; notes:
    what was done to a table before it was numbers."""

    values: NDArray[np.float32]
    names: tuple[str, ...]
    kind: Kind
    source: str
    image_shape: tuple[int, ...] | None = None
    mean: NDArray[np.float64] | float = 0.0
    scale: NDArray[np.float64] | float = 1.0
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """What a record is made of, in the words of those who have it."""
        if self.kind == "features":
            return "column"
        return "pixel" if self.image_shape is not None else "value"

    def restore(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Encoded units back to the user's."""
        return np.asarray(self.mean + self.scale * vectors.astype(np.float64))

    def facts(self) -> dict[str, Any]:
        """What is audited, for reports."""
        raw = self.kind == "array" or (self.kind == "features" and np.ndim(self.scale) == 0)
        how = {
            "gaussian": "independent standard normal values",
            "images": "pixels from -1 to 1",
            "features": "every column standardised, constant ones zero",
        }
        said = "values as they are" if raw else how[self.kind]
        n, d = self.values.shape
        facts = {"source": self.source, "kind": self.kind, "records": n, "pixels": d}
        return {**facts, "encoded as": "; ".join([said, *self.notes])}


def load_dataset(
    source: DataLike | Dataset | None,
    *,
    n: int | None = None,
    d: int | None = None,
    sample: int | None = None,
    most: int = 5000,
    limit: int | None = None,
    shape: tuple[int, ...] | None = None,
    as_they_are: bool = False,
    rng: np.random.Generator,
) -> Dataset:
    """Records from a path, a name, an array, a frame or None (Gaussian).

    n, d         size of what is drawn here
    sample       a random part of so many records
    most         records audited at once: attacks compare encodings in pairs, of which these already
                 give hundreds of millions
    limit        bytes of memory; None: memory_limit
    shape        (height, width[, channels]) of records that are images; None: what the data say
    as_they_are  nothing is standardised; bytes of images become −1 to 1 all the same
    """
    # 1. What cannot be: refused before any file is opened.
    if sample is not None and sample < 2:
        raise InputError(f"sample={sample}: take at least two records")
    if isinstance(source, Dataset):
        return source
    # 2. What comes with the package has sizes to choose; the user's own data have theirs.
    name = "gaussian" if source is None else source if isinstance(source, str) else ""
    if d is not None and name != "gaussian":
        raise InputError(
            f"d={d} is for Gaussian vectors: the data given have their own, leave it out"
        )
    if name in BUNDLED:
        if shape is not None:
            raise InputError(f"shape={shape} is for your own data: leave it out for {name}")
        if name == "gaussian":
            return _gaussian(n, d, rng)
        return _fashion_mnist(sample if n is None else n, rng)
    if n is not None:
        raise InputError(
            f"n_private={n} contradicts data of their own size: leave it out, or use sample={n}"
        )
    # 3. The user's own, as a table, a folder, a file or an array.
    path = Path(source) if isinstance(source, (str, Path)) else None
    part: dict[str, Any] = {"sample": sample, "most": most, "rng": rng}
    if is_frame(source) or (path is not None and path.suffix.lower() in TABLES):
        frame = read_table(source, limit=limit, **part)
        return _of_table(frame, "a frame" if path is None else path.name, as_they_are)
    if path is not None and path.is_dir():
        pixels, names, sizes = read_image_folder(path, limit=limit, **part)
        found = image_dataset(pixels.reshape(len(pixels), *sizes), names, path.name)
    else:
        title = "array" if path is None else path.name
        array = as_array(source, title) if path is None else read_any_array(path, limit=limit)
        found = _of_array(array, title, limit, part)
    if shape is None:
        return found
    return replace(found, image_shape=as_shape(shape, found.values.shape[1]))


def image_dataset(pixels: NDArray[Any], names: tuple[str, ...], source: str) -> Dataset:
    """Bytes (n, height, width[, 3]) as values from −1 to 1."""
    shape = pixels.shape[1:] if is_image(pixels.shape[1:], 3) else None
    values = as_vectors(scaled(flat(pixels)), source)
    return Dataset(values, names, "images", source, shape, HALF_RANGE, HALF_RANGE)


def _gaussian(n: int | None, d: int | None, rng: np.random.Generator) -> Dataset:
    n, d = (60 if n is None else n), (784 if d is None else d)
    if n < 1 or d < 1:
        raise InputError(f"n_private={n}, d={d}: give positive numbers")
    names = tuple(f"vector {i}" for i in range(n))
    return Dataset(gaussian_vectors(n, d, rng), names, "gaussian", "Gaussian vectors, simulated")


def _fashion_mnist(n: int | None, rng: np.random.Generator) -> Dataset:
    images, labels = fashion_mnist()
    count = len(images) if n is None else n
    if not 1 <= count <= len(images):
        raise InputError(f"n_private={count}: the bundled set has {len(images)} images")
    pick = np.sort(rng.choice(len(images), count, replace=False))
    names = tuple(f"{i} {labels[i]}" for i in pick)
    return image_dataset(images[pick], names, BUNDLED_SOURCE)


def _of_table(frame: Any, source: str, as_they_are: bool) -> Dataset:
    names, columns = record_names(frame), tuple(frame.columns) * frame.attrs["header"]
    about: dict[str, Any] = {"columns": columns, "notes": frame.attrs["notes"]}
    wide = frame.to_numpy()
    if as_they_are:
        return Dataset(as_vectors(wide, source), names, "features", source, **about)
    if len(wide) == 1:
        raise InputError(f"{source} has one record only: an audit mixes records, give two or more")
    # In double precision: the variance of a column of large numbers would drown in single.
    mean, scale = wide.mean(axis=0), wide.std(axis=0)
    # float32 cannot tell a column that varies so little from a constant one.
    scale[scale <= 1e-6 * np.abs(mean)] = 0.0
    if not scale.any():
        raise InputError(f"{source}: every column is constant; there is nothing to encode")
    x = np.divide(wide - mean, scale, out=np.zeros_like(wide), where=scale > 0)
    values = as_vectors(x, source)
    # Beside one value of 10⁹ single precision makes all others the same.
    merged = 2 * _levels(values) < _levels(wide)
    if (merged & (scale > 0)).any():
        lost = listed([str(name) for name in frame.columns[merged & (scale > 0)]], 6)
        note = f"values that merge beside far larger ones, repair or clip these: {lost}"
        about["notes"] = (*about["notes"], note)
    return Dataset(values, names, "features", source, None, mean, scale, **about)


def _levels(table: NDArray[Any]) -> NDArray[np.int64]:
    """How many different values each column has."""
    return np.asarray((np.diff(np.sort(table, axis=0), axis=0) > 0).sum(axis=0) + 1)


def _of_array(array: NDArray[Any], source: str, limit: int | None, part: dict[str, Any]) -> Dataset:
    """part: `sample`, `most` and `rng` of `load_dataset`."""
    if array.ndim < 2 or not array.size:
        raise InputError(
            f"{source} of shape {array.shape} holds no values: give at least two records, (items, "
            "pixels)"
        )
    # Rows are picked before they are copied: the array may be a file larger than memory.
    rows = chosen_rows(len(array), source, **part)
    if not isinstance(rows, slice):
        what = f"{source}, a sample of {len(rows):,} rows,"
        must_fit(len(rows) * array[:1].nbytes, what, limit, "take a smaller one")
    names = tuple(f"row {i}" for i in np.arange(len(array))[rows])
    array = array[rows]
    must_fit_as_vectors(array, source, limit)
    # Bytes are pixels: nobody stores features so, and features would not fit into 256 values.
    if array.dtype == np.uint8:
        return image_dataset(array, names, source)
    values, shape = as_items(array, source, channels=3)
    return Dataset(values, names, "array", source, shape)
