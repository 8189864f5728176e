"""Streaming passes over the public vectors: the largest products of every encoding with all of
them.

A pass is one matrix product over blocks of public vectors, which may be a memory-mapped file, with
the best few of every row kept as the blocks go by. The screen of the paper's experiments, Σ y²p²,
becomes

    Σ_j (min(y_j²/mean y², 6) − mean)·min(p_j², 6).

Centring y² takes out what all pixels share and lifts every true vector by √(3/2) standard
deviations; it is then the likelihood ratio of one vector up to noise. Clipping keeps a bright pixel
from lifting many wrong vectors together.
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit

from unveil.supports.folded.likelihood import Floats, Indices
from unveil.supports.folded.sieve import SIEVED, scored
from unveil.supports.folded.survey import Public

CLIP = 6.0
"""Squares are cut here, in units of their mean: of normal numbers one in seventy is larger, and it
would speak for many wrong vectors at once."""
ROWS = 512
"""Rows of one product: more gain nothing once a block of public vectors is in the cache."""
SHORT = 128
"""Lists up to this long are kept by insertion, longer ones by partition."""


def pixel_weights(magnitudes: Floats) -> Floats:
    """Centred, clipped squares of every encoding; all zeros for an encoding of zeros, which says
    nothing."""
    square = magnitudes * magnitudes
    mean = square.mean(axis=1, keepdims=True)
    weights = np.minimum(square / np.where(mean > 0, mean, 1), np.float32(CLIP))
    weights -= weights.mean(axis=1, keepdims=True)
    return weights


def screen(magnitudes: Floats, public: Public, kept: int, *, step: int = 1) -> Indices:
    """The `kept` public vectors (m, kept) of the largest centred, clipped Σ y²p², best first; over
    every step-th pixel."""
    values, indices = top_products(
        pixel_weights(magnitudes[:, ::step]),
        public,
        min(kept, public.count),
        squares=True,
        step=step,
    )
    return np.take_along_axis(indices, np.argsort(-values, axis=1, kind="stable"), axis=1)


def top_products(
    rows: Floats, public: Public, kept: int, *, squares: bool = False, step: int = 1
) -> tuple[Floats, Indices]:
    """The `kept` largest ⟨row, p⟩ (or ⟨row, min(p², 6)⟩) over all public vectors: values and
    indices, in no order. Rows have every step-th pixel.

    Where there are fewer usable vectors, values are −inf and indices −1.
    """
    # 1. A long list is sieved: part of the pixels, and more kept than asked for.
    sieved = public.sieve > 0 and step == 1 and kept <= SIEVED
    pixels, most = (public.sieve, SIEVED) if sieved else (rows.shape[1], kept)
    clip = CLIP * public.power if squares else 0.0
    values = np.full((len(rows), most), -np.inf, np.float32)
    indices = np.full((len(rows), most), -1, np.int64)
    room = np.empty((min(public.columns, len(public.vectors)), pixels), np.float32)
    # 2. Block by block, the best so far are kept.
    for first, vectors in public.blocks():
        unusable = ~public.usable[first : first + len(vectors)]
        block = vectors[:, ::step][:, :pixels]
        # Bright pixels are cut in the public vectors as they are in the encodings.
        if squares:
            _clip_squares(block, np.float32(clip), room)
            block = room[: len(block)]
        for start in range(0, len(rows), ROWS):
            product = rows[start : start + ROWS, :pixels] @ block.T
            if unusable.any():
                product[:, unusable] = -np.inf
            value, index = values[start : start + ROWS], indices[start : start + ROWS]
            # Most products are below the smallest kept one: one comparison each.
            if sieved or kept <= SHORT:
                _insert(product, first, value, index)
            else:
                _partition(product, first, value, index)
    indices[values == -np.inf] = -1
    # 3. What the sieve holds, on all pixels.
    if sieved:
        values = scored(rows, public.vectors, indices, clip)
        top = np.argpartition(-values, kept - 1, axis=1)[:, :kept]
        values = np.take_along_axis(values, top, axis=1)
        indices = np.take_along_axis(indices, top, axis=1)
    return values, indices


def top_others(rows: Floats, public: Public, members: Indices, kept: int) -> tuple[Floats, Indices]:
    """The `kept` largest ⟨row, p⟩ over all public vectors but the members (N, k) of each row, best
    first; −inf where there are fewer."""
    values, indices = top_products(rows, public, kept + members.shape[1])
    values[(indices[:, :, None] == members[:, None, :]).any(axis=2)] = -np.inf
    order = np.argsort(-values, axis=1, kind="stable")[:, :kept]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(indices, order, axis=1)


def _partition(product: Floats, first: int, values: Floats, indices: Indices) -> None:
    kept = values.shape[1]
    here = np.broadcast_to(np.arange(first, first + product.shape[1]), product.shape)
    value, index = (
        np.concatenate([values, product], axis=1),
        np.concatenate([indices, here], axis=1),
    )
    top = np.argpartition(-value, kept - 1, axis=1)[:, :kept]
    values[:], indices[:] = (
        np.take_along_axis(value, top, axis=1),
        np.take_along_axis(index, top, axis=1),
    )


@njit(cache=True, nogil=True)
def _insert(product, first, values, indices):  # type: ignore[no-untyped-def]
    """Entries of `product` that beat the smallest kept one take its place."""
    kept = values.shape[1]
    for t in range(values.shape[0]):
        value, index, row = values[t], indices[t], product[t]
        low = value.argmin()
        for j in range(len(row)):
            if row[j] > value[low]:
                value[low] = row[j]
                index[low] = first + j
                low = 0
                for c in range(1, kept):
                    if value[c] < value[low]:
                        low = c


@njit(fastmath=True, cache=True, nogil=True)
def _clip_squares(block, most, out):  # type: ignore[no-untyped-def]
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = min(block[i, j] * block[i, j], float32(most))
