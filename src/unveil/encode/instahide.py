"""Synthetic images (`eq:instahide_def`): y = |Xw|, or Xw with random signs, or, for MixUp, Xw as it
is; or, for TextHide, Xw through one of a pool of masks (Huang, Song, Chen, Li, Arora, Findings of
EMNLP 2020; github.com/Hazelsuko07/TextHide, `modeling_bert.py`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, row_blocks
from unveil.encodings import Selection
from unveil.scheme import Scheme


def mix(
    vectors: NDArray[np.float32], chosen: NDArray[np.int64], weight: float | NDArray[np.float64]
) -> NDArray[np.float32]:
    """weight·Σ of the chosen vectors, one row per row of `chosen` (rows, k), k ≥ 1; weights may be
    (rows, k) as well."""
    # In double precision where every entry has a weight of its own; else one scale at the end.
    if isinstance(weight, np.ndarray):
        total = np.zeros((len(chosen), vectors.shape[1]))
        for column in range(chosen.shape[1]):
            total += weight[:, column, None] * vectors[chosen[:, column]]
        return total.astype(np.float32)
    out = vectors[chosen[:, 0]]
    for column in range(1, chosen.shape[1]):
        out += vectors[chosen[:, column]]
    out *= np.float32(weight)
    return out


def encode(
    private: NDArray[np.float32],
    public: NDArray[np.float32] | None,
    selection: Selection,
    scheme: Scheme,
    *,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> NDArray[np.float32]:
    """The (m, d) encodings of the selected vectors; `noise` is the standard deviation added before
    signs are hidden."""
    if not noise >= 0:
        raise InputError(f"noise={noise!r}: give a standard deviation, 0 or more")
    if rng is None and (noise or scheme.signs in ("random", "masked")):
        raise InputError("random signs, masks and noise need rng=")
    if scheme.signs == "masked" and not scheme.masks:
        raise InputError("signs='masked' of a pool of unknown size: say masks=")
    m = len(selection.private) if scheme.k_private else len(selection.public)
    d = private.shape[1] if scheme.k_private or public is None else public.shape[1]
    own = scheme.private_weight if selection.weights is None else selection.weights
    others = scheme.public_weight if selection.public_weights is None else selection.public_weights
    out = np.empty((m, d), dtype=np.float32)
    pool = np.empty((0, d), np.int8)
    if scheme.signs == "masked":
        assert rng is not None
        pool = 1 - 2 * rng.integers(0, 2, size=(scheme.masks, d), dtype=np.int8)
    for start, block in row_blocks(out):
        rows = slice(start, start + len(block))
        block[:] = 0
        # Private and public part, whichever there are.
        for vectors, chosen, weight in (
            (private, selection.private, own),
            (public, selection.public, others),
        ):
            if vectors is not None and chosen.shape[1]:
                # Encodings says which value is beyond float32, with its place.
                with np.errstate(over="ignore", invalid="ignore"):
                    block += mix(
                        vectors,
                        chosen[rows],
                        weight[rows] if isinstance(weight, np.ndarray) else weight,
                    )
        # Noise before signs: that is what makes |y| folded.
        if noise:
            assert rng is not None
            block += np.float32(noise) * rng.standard_normal(block.shape, dtype=np.float32)
        if scheme.signs == "absolute":
            np.abs(block, out=block)
        elif scheme.signs == "random":
            assert rng is not None
            block *= 1 - 2 * rng.integers(0, 2, size=block.shape, dtype=np.int8)
        elif scheme.signs == "masked":
            assert rng is not None
            block *= pool[rng.integers(0, scheme.masks, size=len(block))]
    return out
