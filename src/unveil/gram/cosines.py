"""How alike encodings are, pair by pair, in two bytes a pair.

    gram_ij = lengths_i·lengths_j·cosines_ij/UNIT

Cosines are whole numbers of 16 bits: that rounds them by 0.00001, where those of pairs that share
nothing spread by 0.004. Of 20,000 encodings they take 0.75 GiB, and all that reads them is bound by
memory. Numbers of single precision are made block by block, for products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.gram.sparse_rows import gather_rows
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
Cosines = NDArray[np.int16]
UNIT = 32767
"""The whole number that stands for a cosine of one."""
ROWS = 512
"""Rows and columns of a tile: it stays in the processor's cache while it is made."""
EMPTY = 1e-12
"""Least square of a length: an encoding may have nothing of its own."""


@dataclass(frozen=True, eq=False)
class Alike:
    """cosines (m, m) and lengths (m,): products of features of encodings; level (m,): that of each
    with what all have in common, whose own with itself is `level_norm`."""

    cosines: Cosines
    lengths: Floats
    level: Floats
    level_norm: float

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, gram: Floats, level: Floats | None = None, level_norm: float = 0.0) -> Alike:
        """Of a matrix (m, m); level None: nothing is in common."""
        cosines, lengths = in_tiles(np.diag(gram), lambda down, across: gram[down, across].copy())
        none = np.zeros(len(gram), np.float32)
        return cls(cosines, lengths, none if level is None else level, level_norm)

    def times(self, A: NDArray[np.floating]) -> Floats:
        """gram·A (m, c). A may be mostly zero: only what is not is looked at."""
        scaled = sparse.csr_array(A * (self.lengths / UNIT)[:, None])
        return np.asarray(gather_rows(scaled, self.cosines).T * self.lengths[:, None])

    def tile(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Some rows and columns of gram."""
        part = self.cosines[rows[:, None], columns].astype(np.float32)
        part *= self.lengths[columns]
        part *= (self.lengths[rows] / UNIT)[:, None]
        return part


def in_tiles(
    squares: NDArray[np.floating], tile: Callable[[slice, slice], Floats]
) -> tuple[Cosines, Floats]:
    """Cosines and lengths of a symmetric matrix with this diagonal (m,), from its tiles: half of
    them suffice. tile(rows, columns) may be overwritten."""
    m = len(squares)
    lengths = np.sqrt(np.maximum(squares, EMPTY)).astype(np.float32)
    scale = np.float32(np.sqrt(UNIT)) / lengths
    out = np.empty((m, m), np.int16)

    def task(corner: tuple[int, int]) -> None:
        down, across = (slice(start, start + ROWS) for start in corner)
        part = tile(down, across)
        part *= np.multiply.outer(scale[down], scale[across])
        whole = np.clip(np.rint(part, out=part), -UNIT, UNIT, out=part).astype(np.int16)
        out[down, across] = whole
        out[across, down] = whole.T

    starts = range(0, m, ROWS)
    corners = [(top, left) for top in starts for left in starts if left >= top]
    run_blocks(task, corners, worker_count(where().workers))
    return out, lengths
