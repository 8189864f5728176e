"""Encodings that are equal: they say nothing new, and relations are looked for among one of each
kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.relations.sketch import ROUNDING, Index

PIXELS = 64
"""Pixels whose random combination orders the encodings: with 64 of 8 bits each, hardly two
different ones fall together."""


def distinct(y: NDArray[np.floating], c: NDArray[np.floating] | None) -> tuple[Index, Index]:
    """(one encoding of each kind, for every encoding the position of its like among these). Equal
    encodings agree within rounding, not to the last bit; so do their public parts c."""
    m, d = y.shape
    rng = np.random.default_rng(0)
    some = rng.permutation(d)[:PIXELS]
    weights = rng.random(len(some)) + 0.5
    values = (
        y[:, some].astype(np.float64)
        if c is None
        else np.hstack([y[:, some], c[:, some]]).astype(np.float64)
    )
    weights = weights if c is None else np.concatenate([weights, rng.random(len(some)) + 0.5])
    # 1. Neighbours in the order of a random combination, as far as rounding lets equal ones be
    # apart.
    key = values @ weights
    apart = 2 * ROUNDING * float(np.abs(values).max(axis=0) @ weights)
    order = np.argsort(key, kind="stable")
    spread = _spread(y)
    other = None if c is None else _spread(c)
    group = np.arange(m)
    near = np.diff(key[order]) <= apart
    for place in np.flatnonzero(near):
        i = order[place]
        for at in range(place + 1, m):
            j = order[at]
            if key[j] - key[i] > apart:
                break
            # 2. Compared at every pixel.
            alike = group[j] == j and (np.abs(y[i] - y[j]) <= spread).all()
            if alike and (c is None or other is None or (np.abs(c[i] - c[j]) <= other).all()):
                group[j] = group[i]
    once, copies = np.unique(group, return_inverse=True)
    return once.astype(np.int64), copies.astype(np.int64)


def _spread(values: NDArray[np.floating]) -> NDArray[np.float64]:
    top = np.maximum(values.max(axis=0), -values.min(axis=0)).astype(np.float64)
    return np.asarray(2 * ROUNDING * np.maximum(top, 1e-30))
