"""Data augmentation before mixing: images mirrored, or cropped after padding, at random.

Every copy that is mixed becomes a vector of its own, and the selection names copies; both are used
for encoding alone. A training run draws a copy anew each time an image is mixed, or once per epoch,
so that all slots of an epoch share it (Huang et al., `train_cross.py`). Mirroring comes first here
and second there, which draws the same copies as often. That code leaves public images as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.encode.copies import Copies
from unveil.encodings import Selection

Floats = NDArray[np.float32]


def with_flips(
    private: NDArray[np.float32],
    public: NDArray[np.float32] | None,
    selection: Selection,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    epoch: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, Selection]:
    """Every image with its mirror image, and a selection that takes one of the two.

    epoch: rows that share one coin per image, public ones are not mirrored then; 0: every use has
    its own
    """

    def both(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        mirrored = vectors.reshape(len(vectors), *shape)[:, :, ::-1]
        return np.concatenate([vectors, mirrored.reshape(vectors.shape)])

    def either(chosen: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        if not epoch:
            return chosen + n * rng.integers(0, 2, size=chosen.shape)
        coins = rng.integers(0, 2, size=(-(-len(chosen) // epoch), n))
        return chosen + n * coins[np.arange(len(chosen))[:, None] // epoch, chosen]

    chosen = replace(selection, private=either(selection.private, len(private)))
    if epoch or public is None:
        return both(private), public, chosen
    chosen = replace(chosen, public=either(selection.public, len(public)))
    return both(private), both(public), chosen


def with_crops(
    private: Floats,
    selection: Selection,
    copies: Copies,
    n: int,
    rng: np.random.Generator,
    epoch: int = 0,
    black: Floats | None = None,
) -> tuple[Floats, Selection]:
    """The crops that are used, and a selection of them; public images are left as they are.

    private: the n images, and after them their mirror images, where there are any; epoch: rows that
    share one crop per image; 0: every use has its own; black: its value in each channel, None: the
    least there is
    """
    # 1. A crop for every use.
    chosen = selection.private
    if epoch:
        drawn = rng.integers(0, copies.count, size=(-(-len(chosen) // epoch), n))
        crop = drawn[np.arange(len(chosen))[:, None] // epoch, chosen % n]
    else:
        crop = rng.integers(0, copies.count, size=chosen.shape)
    used, names = np.unique(chosen * copies.count + crop, return_inverse=True)
    # 2. These crops; black beyond the edge.
    height, width, channels = copies.sides
    fill = private.reshape(-1, channels).min(axis=0) if black is None else black
    wide = copies.padded(private, fill)
    out = np.empty((len(used), height, width, channels), np.float32)
    for at, name in enumerate(used):
        image, (_, down, across) = name // copies.count, copies.steps[name % copies.count]
        out[at] = wide[image, down : down + height, across : across + width]
    new = replace(selection, private=names.reshape(chosen.shape))
    return out.reshape(len(used), -1), new
