"""What there is to know of the public vectors before any encoding is looked at, in one pass over
blocks of them.

Equal vectors cannot be told apart, so the first of each group stands for all; a vector of zeros
leaves no trace, so it is never selected. Rows are compared by a 64-bit hash first and exactly where
hashes agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from unveil.checks import BLOCK, row_blocks
from unveil.supports.folded.likelihood import Floats


@dataclass(frozen=True, eq=False)
class Public:
    """The public vectors (n, d), which of them may be selected (n,), groups of equal ones, the mean
    square of a pixel.

    `columns`: how many of them a product takes at a time; `sieve`: the pixels on which a long list
    is sieved, 0 for none (`supports.folded.sieve`).
    """

    vectors: Floats
    usable: NDArray[np.bool_]
    interchangeable: tuple[tuple[int, ...], ...]
    power: float
    columns: int
    sieve: int = 0

    @property
    def count(self) -> int:
        """How many may be selected."""
        return int(self.usable.sum())

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """(first, vectors), as many at a time as a product takes."""
        return row_blocks(self.vectors, self.columns * self.vectors.shape[1])


def mean_square(vectors: Floats, numbers: int = BLOCK) -> float:
    """Of all numbers, in double precision, in blocks of about `numbers`."""
    total = sum(
        float(np.einsum("ij,ij->", block, block, dtype=np.float64))
        for _, block in row_blocks(vectors, numbers)
    )
    return total / vectors.size


def survey_public(vectors: Floats, columns: int) -> Public:
    """Groups of equal vectors, zeros, and the mean square of the rest. Cost n·d."""
    plain = np.asarray(vectors)
    n, d = plain.shape
    hashes, squares = np.empty(n, np.uint64), np.empty(n)
    for start, block in row_blocks(plain, 1 << 22):
        _hash_rows(block, hashes[start : start + len(block)], squares[start : start + len(block)])
    usable = squares > 0
    # Equal hashes are neighbours once sorted; equal hashes of different rows are possible, so rows
    # are compared.
    groups = []
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    for value in np.unique(hashes[order[same]]):
        left = order[
            np.searchsorted(hashes, value, sorter=order) : np.searchsorted(
                hashes, value, "right", sorter=order
            )
        ]
        left = left[usable[left]]
        while len(left) > 1:
            equal = np.array([np.array_equal(plain[left[0]], plain[i]) for i in left])
            if equal.sum() > 1:
                groups.append(tuple(left[equal].tolist()))
                usable[left[equal][1:]] = False
            left = left[~equal]
    power = float(squares[usable].mean() / d) if usable.any() else 1.0
    return Public(plain, usable, tuple(sorted(groups)), power, columns)


@njit(cache=True, nogil=True)
def _hash_rows(rows, hashes, squares):  # type: ignore[no-untyped-def]
    """A hash of the numbers of each row, equal for 0 and −0, and the row's sum of squares."""
    for i in range(rows.shape[0]):
        bits = (rows[i] + np.float32(0)).view(np.uint32)
        h = uint64(0)
        s = 0.0
        for j in range(rows.shape[1]):
            # A multiplier of its own for every pixel: the sum vectorises, which a chain of hashes
            # does not.
            h += uint64(bits[j]) * (
                uint64(j) * uint64(0x9E3779B97F4A7C15) + uint64(0xD1B54A32D192ED03)
            )
            s += rows[i, j] * rows[i, j]
        hashes[i] = h
        squares[i] = s
