"""The user's own vectors from a file: .npy, .npz, .csv or a folder of images, told apart by what is
there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.data.features import SUFFIXES, read_features
from unveil.data.images import load_image_folder
from unveil.npy import must_fit_as_vectors, read_array
from unveil.records import InputError, as_vectors


def load_vectors(
    path: str | Path, name: str = "vectors", *, limit: int | None = None
) -> NDArray[np.float32]:
    """(items, pixels) from `path`; arrays of images (n, h, w) or (n, h, w, c) are flattened,
    integers stay as they are.

    limit: bytes of memory they may take; None: memory_limit.
    """
    path = Path(path)
    if path.is_dir():
        return load_image_folder(path, limit=limit)
    if path.suffix.lower() in SUFFIXES:
        return read_features(path, limit=limit).values
    array = read_array(path, limit=limit)
    if array.ndim < 2:
        raise InputError(
            f"{path.name} holds an array of shape {array.shape}: {name} need (items, pixels)"
        )
    must_fit_as_vectors(array, path.name, limit)
    if array.ndim > 2:
        array = array.reshape(len(array), math.prod(array.shape[1:]))
    return as_vectors(array, name)
