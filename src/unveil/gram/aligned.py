"""Which encodings share a private image that was shifted before it was mixed, and by how much they
differ.

Two encodings of the same image agree where one is moved against the other by the difference of
their shifts. In a small window an encoding mostly has one sign, and the square of a product does
not ask which (`gram.windows`). Over windows a(q) and b(q) that are whitened in the same way
wherever they lie (`gram.moved_windows`):

    s(a, b) = max over moves v of  Σ_q [(a(q)·b(q + v))² − what is to be expected] / √(windows)

A move of b against a is that of a against b turned round, so half of the moves are worked out.
O(m²·r) for each window and move. Squares of pixels, whitened by the spectrum, did the same before:
of the 1% most similar pairs 70% shared a photograph, cropped by ±4 and mirrored, of windows 77%;
but once moves are asked to agree (`images.votes`) clusters of 20 of 30 images were found in these,
and in windows of all 30.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.gram.moved_windows import MovedWindows
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
STEP = 6
"""Pixels from one window to the next: with 4 it takes twice as long and as many images are found,
with 8 a third less, and fewer are found before epochs are known."""
ROWS = 512
"""Rows and columns of a tile: it stays in the processor's cache while windows are added up."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """similarity (m, m), its diagonal zero; move (m, m): the best move of the second encoding
    against the first, a place in `moves` (number, 3): mirrored or not, down, across."""

    similarity: Floats
    move: NDArray[np.int16]
    moves: NDArray[np.int64]


def moves_of(reach: int, flips: bool) -> NDArray[np.int64]:
    """(number, 3): all moves up to so many pixels each way, first those that do not mirror."""
    side = np.arange(-reach, reach + 1)
    grid = np.meshgrid(np.arange(1 + flips), side, side, indexing="ij")
    return np.stack([part.ravel() for part in grid], axis=1)


def align(windows: MovedWindows, reach: int, flips: bool) -> Alignment:
    """reach: the farthest move each way."""
    # 1. Moves, and the one that is each turned round. Moved back by the same way, unless mirrored:
    #    then what was to the left is to the right.
    moves, m = moves_of(reach, flips), len(windows)
    place = {tuple(move): at for at, move in enumerate(moves.tolist())}
    best = np.full((m, m), -np.inf, np.float32)
    which = np.zeros((m, m), np.int16)
    total = np.empty((m, m), np.float32)
    level, norm = _level(windows)
    full = len(_starts(windows.places[0])) * len(_starts(windows.places[1]))
    for at, (mirrored, down, across) in enumerate(moves.tolist()):
        back = place[mirrored, -down, across if mirrored else -across]
        pairs = _pairs(windows.places, down, across)
        if back < at or not pairs:
            continue
        # 2. Windows in common, and what is to be expected of the squares of their products.
        parts = [(windows.at(*a, False), windows.at(*b, bool(mirrored))) for a, b in pairs]
        seen = level[:, ::-1] if mirrored else level
        own = np.sum([level[a] for a, _ in pairs], axis=0) - np.float32(len(pairs) * norm)
        other = np.sum([seen[b] for _, b in pairs], axis=0)
        # 3. Squares less that, smaller where little is in common; the best move so far.
        _squares(parts, own, other, np.float32(1 / np.sqrt(len(pairs) * full)), total)
        _keep(total, at, back, best, which)
    best[~np.isfinite(best)] = 0
    np.fill_diagonal(best, 0)
    return Alignment(best, which, moves)


def _level(windows: MovedWindows) -> tuple[Floats, float]:
    """(down, across, m): what is to be expected of the square of a window's product with one of
    another encoding, whichever that is; and the mean of that."""
    u = windows.values
    count = u.shape[0] * u.shape[1] * u.shape[2]
    mean = np.zeros((u.shape[3], u.shape[3]), np.float32)
    for line in u:
        flat = line.reshape(-1, u.shape[3])
        mean += flat.T @ flat / np.float32(count)
    level = np.stack([np.einsum("xmr,xmr->xm", line @ mean, line) for line in u])
    return level.astype(np.float32), float(np.sum(mean * mean))


def _starts(length: int) -> list[int]:
    """Where windows of the first encoding lie, about `STEP` apart, the last at the end."""
    last = length - 1
    places = np.linspace(0, last, -(-last // STEP) + 1).round()
    return [int(place) for place in np.unique(places)]


def _pairs(
    places: tuple[int, int], down: int, across: int
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Places of windows in the first encoding, and where a move has them in the second."""
    return [
        ((y, x), (y + down, x + across))
        for y in _starts(places[0])
        for x in _starts(places[1])
        if 0 <= y + down < places[0] and 0 <= x + across < places[1]
    ]


def _squares(
    parts: list[tuple[Floats, Floats]], own: Floats, other: Floats, scale: np.float32, out: Floats
) -> None:
    """Into `out` (m, m): (Σ (a·b)² − own − other)·scale."""

    def task(rows: slice) -> None:
        for left in range(0, len(out), ROWS):
            columns = slice(left, left + ROWS)
            total = -np.add.outer(own[rows], other[columns])
            product = np.empty_like(total)  # once: new memory takes longer than the product
            for a, b in parts:
                np.matmul(a[rows], b[columns].T, out=product)
                product *= product
                total += product
            total *= scale
            out[rows, columns] = total

    blocks = [slice(start, start + ROWS) for start in range(0, len(out), ROWS)]
    run_blocks(task, blocks, worker_count(where().workers))


@njit(cache=True, nogil=True)
def _keep(total, at, back, best, which):  # type: ignore[no-untyped-def]
    """A move and the one turned round, where they are better than the best so far."""
    m = len(total)
    for i in range(m):
        for j in range(m):
            if total[i, j] > best[i, j]:
                best[i, j] = total[i, j]
                which[i, j] = at
    if back == at:
        return
    for i in range(m):
        for j in range(m):
            if total[i, j] > best[j, i]:
                best[j, i] = total[i, j]
                which[j, i] = back
