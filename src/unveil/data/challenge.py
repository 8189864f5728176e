"""The files of the InstaHide challenge (github.com/Hazelsuko07/InstaHide_Challenge).

  encryption.npy  (m, height, width, channels): one encoding per row; there 5000 of 32×32×3
  label.npy       (m, classes): Σ λ·onehot over the private images of each encoding; may be missing
  decryption.npy  (m, height, width, channels), out: for every encoding the image found in it

The challenge mixes 2 private and 4 public images; the scheme assumed is that of InstaHide's own
code: weights "released", pairs by "epochs". That the challenge's own set was made with just these
is not documented. An encoding has two private images and one row of decryption.npy: it gets the one
to which the attack gives the larger weight, and grey, zero, where the attack has none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, as_shape, as_vectors, flat
from unveil.data.arrays import is_image
from unveil.encodings import Encodings
from unveil.engine.files import must_fit_as_vectors, read_array, write_array
from unveil.records import Recovery
from unveil.scheme import Scheme

ENCRYPTION, LABEL, DECRYPTION = "encryption.npy", "label.npy", "decryption.npy"


def is_challenge(folder: Path) -> bool:
    return (folder / ENCRYPTION).is_file()


def read_challenge(folder: str | Path, scheme: Scheme | None = None) -> Encodings:
    """The encodings of a folder of the InstaHide challenge, with their labels where there are any.

    Parameters
    ----------
    folder : path
        Holds `encryption.npy` (m, height, width[, channels]) and perhaps `label.npy` (m, classes).
    scheme : Scheme or None
        How they were made; None: as in the challenge, with random signs where there are negative
        numbers.

    Returns
    -------
    Encodings
        With `image_shape`, and `labels` where there are any.

    Raises
    ------
    InputError
        Where a file is missing, damaged or of another shape.

    References
    ----------
    github.com/Hazelsuko07/InstaHide_Challenge; docs/challenge.md.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, unveil
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder) / "encryption.npy", np.ones((5, 8, 8, 3), "float32"))
    ...     encodings = unveil.read_challenge(folder)
    >>> encodings.m, encodings.image_shape, encodings.scheme.k_public
    (5, (8, 8, 3), 4)
    """
    folder = Path(folder)
    # 1. The encodings, which must be there.
    values, shape = read_decryption(folder / ENCRYPTION)
    # 2. How they were made: absolute values have no negative number, so signs show in the values.
    if scheme is None:
        scheme = Scheme(2, 4, "released", "random" if values.min() < 0 else "absolute", "epochs")
    # 3. Labels say which classes were mixed with what weight; the attack does without them.
    labels = read_array(folder / LABEL) if (folder / LABEL).exists() else None
    if labels is not None and labels.ndim != 2:
        raise InputError(f"{LABEL} of shape {labels.shape}: give the weight of every class")
    return Encodings(values, scheme, None, shape, labels)


def write_decryption(path: Path, recovery: Recovery, shape: tuple[int, ...]) -> None:
    """One image per encoding, as the rules ask for it."""
    shape = as_shape(shape, recovery.vectors.shape[1])
    shares = recovery.members if recovery.weights is None else recovery.weights
    images = np.zeros((shares.shape[0], recovery.vectors.shape[1]), dtype=np.float32)
    if len(recovery):
        # Of two private images the rules leave room for one: the one that weighs more.
        first = np.asarray(shares.tocsr().astype(np.float64).argmax(axis=1)).ravel()
        found = np.diff(shares.tocsr().indptr) > 0
        images[found] = recovery.vectors[first[found]]
    write_array(path, images.reshape(-1, *shape))


def read_decryption(path: str | Path) -> tuple[NDArray[np.float32], tuple[int, ...]]:
    """Images (rows, d) in the units of the private ones, and their shape; any number of rows, one
    per encoding or one per image."""
    path = Path(path)
    array = read_array(path)
    cure = ""
    if array.ndim not in (3, 4):
        cure = "give (m, height, width, channels), or (m, height, width) if grey"
    elif not is_image(array.shape[1:]):
        cure = "put channels last, as array.transpose(0, 2, 3, 1) does"
    # Bytes would have been scaled by somebody: nobody knows to which units.
    elif array.dtype.kind != "f":
        cure = "give floating point numbers in the units of the private images"
    if cure:
        raise InputError(f"{path.name} of shape {array.shape} and dtype {array.dtype}: {cure}")
    must_fit_as_vectors(array, path.name)
    return as_vectors(flat(array), path.name), array.shape[1:]


def distinct_images(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each image once; grey ones stand for none."""
    found = np.unique(rows, axis=0)
    return found[found.any(axis=1)]
