"""What a report shows rather than tells: originals, encodings and recoveries side by side, and a
piece of the overlaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.result import Pictures
from unveil.auditing.risks import NOT
from unveil.auditing.trial import Trial
from unveil.data import Dataset
from unveil.encodings import Encodings

MOST, PIXELS = 100, 1 << 20
"""Images shown, and pixels of them in all."""
SIDE = 120
"""Encodings in the picture of the overlaps."""


def draw_pictures(
    data: Dataset, encodings: Encodings, chosen: NDArray[np.int64] | None, main: Trial, n: int
) -> Pictures:
    """`chosen` (m, k): the records of each encoding, None where they are not known; `main.shown`
    (n, d): what was recovered of each."""
    overlaps = None if chosen is None else _overlaps(chosen[: encodings.m])
    shape = data.image_shape
    if shape is None or main.shown is None:
        return Pictures(overlaps=overlaps)
    count = min(MOST, n, max(1, PIXELS // data.values.shape[1]))
    # Recovered ones first, best first: what the reader wants to see.
    order = np.lexsort((-np.nan_to_num(main.correlation, nan=-1.0), main.outcome == NOT))[:count]
    # One encoding that uses each record; where that is not known, just the first ones.
    using = np.arange(len(order)) % encodings.m
    if chosen is not None:
        using = np.array([_first((chosen[: encodings.m] == i).any(axis=1)) for i in order])
    Y = encodings.magnitudes(using)
    Y = Y / max(float(Y.max(initial=0)), 1e-30)
    span = data.values.min(), data.values.max()

    def image(values: NDArray[np.float32]) -> NDArray[np.float32]:
        scaled = (values - span[0]) / max(float(span[1] - span[0]), 1e-30)
        return np.asarray(np.clip(scaled, 0, 1), np.float32).reshape(count, *shape)

    # Black stands for what did not come back: a grey square would look like a result.
    shown = main.shown[order]
    shown[~shown.any(axis=1)] = span[0]
    return Pictures(
        originals=image(data.values[order]),
        encodings=Y.astype(np.float32).reshape(count, *shape),
        recoveries=image(shown),
        names=tuple(data.names[i] for i in order),
        overlaps=overlaps,
    )


def _overlaps(chosen: NDArray[np.int64]) -> NDArray[np.float32]:
    """Shared records of encodings that use the most used records, sorted by the most used record
    they have: blocks show."""
    uses = np.bincount(chosen.ravel())
    # Sorted by use, so that encodings of one record stand together and the eye sees blocks.
    rank = np.argsort(np.argsort(-uses, kind="stable"))
    key = np.sort(rank[chosen], axis=1)
    rows = np.lexsort(key.T[::-1])[:SIDE]
    W = np.zeros((len(rows), len(uses)), np.float32)
    np.put_along_axis(W, chosen[rows], 1.0, axis=1)
    return np.asarray(W @ W.T)


def _first(rows: NDArray[np.bool_]) -> int:
    return int(rows.argmax())
