"""Private records as an audit takes them: numbers ready to be encoded, names, and the way back to
the user's own units.

.npy, .npz, .pt  as they are; unsigned bytes are images, scaled like those; tensors of PyTorch too
a frame          of pandas or Polars: as a .csv
folder of images from 0..255 to −1..1, as InstaHide does
.csv             features have wild scales: every column is standardised before it is encoded, x =
                 (value − mean)/sd, and what is recovered can be turned back (`restore`). Columns
                 then sum to zero, so that
                 every record is a combination of the others: the attack's certificate does not
                 hold, the truth tells
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
    DataLike,
    InputError,
    as_array,
    as_shape,
    as_vectors,
    column_names,
    is_frame,
)
from unveil.data.bundled import fashion_mnist
from unveil.data.features import SUFFIXES, read_features
from unveil.data.gaussian import gaussian_vectors
from unveil.data.images import HALF_RANGE, read_image_folder, scaled
from unveil.data.tensors import read_any_array
from unveil.npy import must_fit_as_vectors
from unveil.parallel import must_fit

Kind = Literal["gaussian", "images", "features", "array"]
BUNDLED = ("gaussian", "fashion-mnist")
BUNDLED_SOURCE = "Fashion-MNIST test images (MIT licence, Zalando SE), bundled subset"
MOST = 5000
"""Records audited at once: the attacks compare encodings in pairs, of which these already give
hundreds of millions."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """values (n, d) as they are encoded; value = mean + scale·x in the user's units; image_shape:
    (height, width[, 3]); columns: what a table calls its columns, () where it has no header."""

    values: NDArray[np.float32]
    names: tuple[str, ...]
    kind: Kind
    source: str
    image_shape: tuple[int, ...] | None = None
    mean: NDArray[np.float64] | float = 0.0
    scale: NDArray[np.float64] | float = 1.0
    columns: tuple[str, ...] = ()

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
        how = {
            "gaussian": "independent standard normal values",
            "images": "pixels from -1 to 1",
            "features": "every column standardised, constant ones zero",
            "array": "values as they are",
        }
        if self.kind == "features" and np.ndim(self.scale) == 0:
            how["features"] = "values as they are"
        n, d = self.values.shape
        return {
            "source": self.source,
            "kind": self.kind,
            "records": n,
            "pixels": d,
            "encoded as": how[self.kind],
        }


def load_dataset(
    source: DataLike | Dataset | None,
    *,
    n: int | None = None,
    d: int | None = None,
    sample: int | None = None,
    most: int = MOST,
    limit: int | None = None,
    shape: tuple[int, ...] | None = None,
    as_they_are: bool = False,
    rng: np.random.Generator,
) -> Dataset:
    """From a path, a name, an array or None (Gaussian). `n`, `d`: size of what is drawn here;
    `sample`: a random part.

    shape: (height, width[, channels]) of records that are images; None: what the data say
    as_they_are: nothing is standardised; bytes of images become −1 to 1 all the same
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
        return (
            _gaussian(n, d, rng)
            if name == "gaussian"
            else _fashion_mnist(sample if n is None else n, rng)
        )
    if n is not None:
        raise InputError(
            f"n_private={n} contradicts data of their own size: leave it out, or use sample={n}"
        )
    # 3. The user's own, as a file, a folder or an array.
    found = _users_own(source, sample, most, limit, as_they_are, rng)
    if shape is None:
        return found
    return replace(found, image_shape=as_shape(shape, found.values.shape[1]))


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


def _users_own(
    source: Any,
    sample: int | None,
    most: int,
    limit: int | None,
    as_they_are: bool,
    rng: np.random.Generator,
) -> Dataset:
    if is_frame(source):
        return _frame(source, sample, most, as_they_are, rng)
    if not isinstance(source, (str, Path)):
        return _array(as_array(source, "array"), "array", sample, most, limit, rng)
    path = Path(source)
    if path.is_dir():
        pixels, names, shape = read_image_folder(
            path, sample=sample, most=most, limit=limit, rng=rng
        )
        return image_dataset(pixels.reshape(len(pixels), *shape), names, path.name)
    if path.suffix.lower() in SUFFIXES:
        table = read_features(path, sample=sample, most=most, limit=limit, rng=rng)
        if as_they_are:
            return Dataset(table.values, table.names, "features", path.name, columns=table.columns)
        return _standardised(table.values, table.names, path.name, table.columns)
    return _array(read_any_array(path, limit=limit), path.name, sample, most, limit, rng)


def _frame(
    frame: Any, sample: int | None, most: int, as_they_are: bool, rng: np.random.Generator
) -> Dataset:
    """A frame of pandas or Polars, taken as the CSV file that it would be."""
    rows = _pick(len(frame), sample, most, "the frame", rng)
    values = as_vectors(as_array(frame, "the frame"), "the frame")[rows]
    # Polars has no index; that of pandas is the record's name where it is more than a number.
    index = list(getattr(frame, "index", ()))
    named = any(isinstance(name, str) for name in index)
    names = tuple(str(index[row]) if named else f"row {row + 1}" for row in rows)
    columns = column_names(frame)
    if as_they_are:
        return Dataset(values, names, "features", "a frame", columns=columns)
    return _standardised(values, names, "a frame", columns)


def _array(
    array: NDArray[Any],
    source: str,
    sample: int | None,
    most: int,
    limit: int | None,
    rng: np.random.Generator,
) -> Dataset:
    if array.ndim < 2:
        raise InputError(
            f"{source} holds an array of shape {array.shape}: private records need (items, pixels)"
        )
    if 0 in array.shape:
        raise InputError(
            f"{source} of shape {array.shape} holds no values: give at least two records"
        )
    # Rows are picked before they are copied: the array may be a file larger than memory.
    rows = _pick(len(array), sample, most, source, rng)
    if len(rows) < len(array):
        must_fit(
            len(rows) * array[:1].nbytes,
            f"{source}, a sample of {len(rows):,} rows,",
            limit,
            "take a smaller one",
        )
        array = array[rows]
    must_fit_as_vectors(array, source, limit)
    names = tuple(f"row {i}" for i in rows)
    # Bytes are pixels: nobody stores features so, and features would not fit into 256 values.
    if array.dtype == np.uint8:
        return image_dataset(array, names, source)
    shape = array.shape[1:] if _is_image(array.shape[1:]) else None
    values = as_vectors(array.reshape(len(array), -1), source)
    return Dataset(values, names, "array", source, shape)


def image_dataset(pixels: NDArray[Any], names: tuple[str, ...], source: str) -> Dataset:
    """Bytes (n, height, width[, 3]) as values from −1 to 1."""
    shape = pixels.shape[1:] if _is_image(pixels.shape[1:]) else None
    values = scaled(pixels.reshape(len(pixels), -1))
    return Dataset(
        as_vectors(values, source), names, "images", source, shape, HALF_RANGE, HALF_RANGE
    )


def _standardised(
    values: NDArray[np.float32], names: tuple[str, ...], source: str, columns: tuple[str, ...]
) -> Dataset:
    if len(values) == 1:
        raise InputError(f"{source} has one record only: an audit mixes records, give two or more")
    wide = values.astype(np.float64)
    # In double precision: the variance of a column of large numbers would drown in single.
    mean, scale = wide.mean(axis=0), wide.std(axis=0)
    # float32 cannot tell a column that varies so little from a constant one.
    scale[scale <= 1e-6 * np.abs(mean)] = 0.0
    x = np.divide(wide - mean, scale, out=np.zeros_like(wide), where=scale > 0)
    if not scale.any():
        raise InputError(f"{source}: every column is constant; there is nothing to encode")
    return Dataset(as_vectors(x, source), names, "features", source, None, mean, scale, columns)


def _pick(
    count: int, sample: int | None, most: int, source: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    if sample is not None and sample < count:
        return np.sort(rng.choice(count, sample, replace=False))
    # Refused, not cut: an audit of an unnamed part would speak for the whole.
    if count > most:
        raise InputError(
            f"{source} has {count:,} records, {most:,} are the most that can be audited at once: "
            "audit a random part with sample="
        )
    return np.arange(count)


def _is_image(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)
