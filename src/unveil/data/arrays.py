"""The user's own vectors from a file: .npy, .npz, .pt, .csv or a folder of images, told apart by
what is there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, as_vectors
from unveil.data.challenge import CHANNELS
from unveil.data.features import SUFFIXES, read_features
from unveil.data.images import read_image_folder, scaled
from unveil.data.tensors import read_any_array
from unveil.npy import must_fit_as_vectors

BYTES_FROM, OTHERS_TO = 16.0, 4.0
"""Whole numbers from 0 to 255 of which one is above the first are bytes of images; encodings that
stay below the second are of pixels from −1 to 1, or from 0 to 1, and not of such bytes."""


def load_vectors(
    path: str | Path, name: str = "vectors", *, limit: int | None = None
) -> NDArray[np.float32]:
    """(items, pixels) from `path`; arrays of images (n, h, w) or (n, h, w, c) are flattened,
    integers stay as they are.

    limit: bytes of memory they may take; None: memory_limit.
    """
    return load_shaped(path, name, limit=limit)[0]


def in_units_of(
    encodings: NDArray[np.float32], vectors: NDArray[np.float32], name: str
) -> tuple[NDArray[np.float32], str]:
    """`vectors` in the units of `encodings`, and a sentence where that was not so before: bytes of
    images beside encodings of pixels from −1 to 1 are brought to these."""
    # Only whole numbers that no pixel from −1 to 1 could be are taken for bytes: a wrong guess
    # would change the data of someone who had them right.
    largest = float(vectors.max())
    if (
        largest <= BYTES_FROM
        or largest > 255
        or float(np.abs(encodings).max()) > OTHERS_TO
        or vectors.min() < 0
        or not np.array_equal(vectors, np.round(vectors))
    ):
        return vectors, ""
    word = (
        f"{name} holds bytes from 0 to 255, the encodings numbers below {OTHERS_TO:g}: taken as "
        "pixels from -1 to 1, as InstaHide does; give them in the units of the encodings if not so"
    )
    return scaled(vectors), word


def load_shaped(
    path: str | Path, name: str = "vectors", *, limit: int | None = None
) -> tuple[NDArray[np.float32], tuple[int, ...] | None]:
    """The same as `load_vectors`, and the shape of an item where a file says that they are images,
    or a folder has them."""
    path = Path(path)
    # A suffix decides, not the content: what a file is called is what its owner takes it for.
    if path.is_dir():
        pixels, _, sizes = read_image_folder(path, limit=limit)
        return as_vectors(scaled(pixels), "images"), sizes
    if path.suffix.lower() in SUFFIXES:
        return read_features(path, limit=limit).values, None
    array = read_any_array(path, limit=limit)
    if array.ndim < 2:
        raise InputError(
            f"{path.name} holds an array of shape {array.shape}: {name} need (items, pixels)"
        )
    must_fit_as_vectors(array, path.name, limit)
    # A last axis of more than four is no colour: such an array has some other meaning, and is
    # flattened without being called images.
    images = array.ndim == 3 or (array.ndim == 4 and array.shape[3] <= CHANNELS)
    shape = array.shape[1:] if images else None
    if array.ndim > 2:
        array = array.reshape(len(array), math.prod(array.shape[1:]))
    return as_vectors(array, name), shape
