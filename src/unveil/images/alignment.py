"""Which encodings share an image that was shifted before it was mixed, and by how much they differ.

Two encodings of an image agree where one is moved against the other by the difference of their
shifts. A window of one is held against another window of the other, so all windows are whitened by
one covariance C, that of windows anywhere, and then what all encodings have at a place counts less
(crops have black rims, whose edges lie in the same place in many encodings):

    v = C^-½ y,     u ∝ (E_q[v vᵀ] + s·I)⁻¹ v,  |u| = 1      at every place q of a window
    s(a, b) = max over moves t of  Σ_q [⟨u_a(q), u_b(q + t)⟩² − what is to be expected] / √windows

With C the same for mirror images, each component of a window keeps its value in the mirror image or
changes its sign. A move of b against a is that of a against b turned round: half of the moves are
worked out. O(m²) products of windows for each move and window; all windows take m·d numbers times
the components of a window over its channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.engine.blocks import run_blocks, where, worker_count
from unveil.images.fields import row_blocks
from unveil.images.model import Floats


@dataclass(frozen=True, eq=False)
class Alignment:
    """similarity (m, m), its diagonal zero; move (m, m): the best move of the second encoding
    against the first, a row of `moves` (number, 3): mirrored or not, down, across."""

    similarity: Floats
    move: NDArray[np.int16]
    moves: NDArray[np.int64]


def align(
    Y: Floats, shape: tuple[int, ...], reach: int, flips: bool, *, step: int = 6
) -> Alignment:
    """Of magnitudes Y (m, d) of images of a shape.

    reach: the farthest move each way; flips: an image may be mirrored in one of two encodings.
    step: pixels from one window of the first encoding to the next. With 4 it takes twice as long
        and as many images are found, with 8 fewer.
    """
    # 1. Moves, and the one that is each turned round. Moved back by the same way, unless mirrored:
    #    then what was to the left is to the right.
    windows, parity = _windows(Y, shape)
    down_places, across_places, m = windows.shape[:3]
    span = np.arange(-reach, reach + 1)
    grid = np.meshgrid(np.arange(1 + flips), span, span, indexing="ij")
    moves = np.stack([part.ravel() for part in grid], axis=1)
    index = {tuple(move): at for at, move in enumerate(moves.tolist())}
    # 2. What is to be expected of the square of a window's product with that of another encoding.
    flat = windows.reshape(-1, windows.shape[3])
    mean = flat.T @ flat / np.float32(len(flat))
    level = np.stack([np.einsum("xmr,xmr->xm", line @ mean, line) for line in windows])
    places = [(y, x) for y in _starts(down_places, step) for x in _starts(across_places, step)]
    best = np.full((m, m), -np.inf, np.float32)
    which = np.zeros((m, m), np.int16)
    total = np.empty((m, m), np.float32)
    for at, (mirrored, down, across) in enumerate(moves.tolist()):
        back = index[mirrored, -down, across if mirrored else -across]
        pairs = [
            (y, x, y + down, x + across)
            for y, x in places
            if 0 <= y + down < down_places and 0 <= x + across < across_places
        ]
        if back < at or not pairs:
            continue
        # 3. Windows in common, in the first encoding and in the second or its mirror image.
        parts, own, other = [], np.zeros(m, np.float32), np.zeros(m, np.float32)
        for y, x, v, w in pairs:
            u = across_places - 1 - w if mirrored else w
            second = windows[v, u] * parity if mirrored else windows[v, u]
            parts.append((windows[y, x], second))
            own += level[y, x] - np.sum(mean * mean)
            other += level[v, u]
        scale = np.float32(1 / np.sqrt(len(pairs) * len(places)))
        _squares(parts, own, other, scale, total)
        # 4. Of the move and the one turned round, what is better than the best so far.
        for product, move in ((total, at), (total.T, back))[: 1 + (back != at)]:
            better = product > best
            np.copyto(best, product, where=better)
            np.copyto(which, np.int16(move), where=better)
    best[~np.isfinite(best)] = 0
    np.fill_diagonal(best, 0)
    return Alignment(best, which, moves)


def window_numbers(shape: tuple[int, ...]) -> int:
    """Numbers that all windows of one encoding of a shape take."""
    height, width, _, side = _sides(shape)
    return (height - side + 1) * (width - side + 1) * 96


def _windows(
    Y: Floats,
    shape: tuple[int, ...],
    *,
    components: int = 96,
    shrink: float = 0.003,
    common: float = 0.3,
) -> tuple[Floats, Floats]:
    """(down, across, m, r): the window of each encoding that begins at each pixel; (r,): the sign
    by which each component changes in a mirror image.

    components: r, of 192 in colour; shrink: added to variances, by their mean; common: s above.
    """
    # 1. The covariance of windows anywhere, and its components that tell most.
    m = len(Y)
    height, width, channels, side = _sides(shape)
    pixels = side * side * channels
    images = Y.reshape(m, height, width, channels)
    every = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
    down, across = every.shape[1:3]
    C = np.zeros((pixels, pixels))
    for line in range(down):
        part = np.ascontiguousarray(every[:, line]).reshape(-1, pixels)
        C += part.T @ part
    turned = np.arange(pixels).reshape(channels, side, side)[:, :, ::-1].ravel()
    C = C + C[np.ix_(turned, turned)]
    values, vectors = np.linalg.eigh(C / (2 * m * down * across))
    values = np.maximum(values, 0)
    gain = np.sqrt(values) / (values + shrink * values.mean() + 1e-12)
    keep = np.argsort(-gain * np.sqrt(values), kind="stable")[:components]
    parity = np.sign(np.einsum("ij,ij->j", vectors[:, keep], vectors[turned][:, keep]))
    whiten, parity = (vectors * gain)[:, keep].astype(np.float32), parity.astype(np.float32)
    # 2. Whitened windows; what a place has in common, left and right alike, counts less.
    out = np.empty((down, across, m, len(keep)), np.float32)
    for line in range(down):
        for x in range(across):
            out[line, x] = np.ascontiguousarray(every[:, line, x]).reshape(m, pixels) @ whiten
        here = np.matmul(out[line].transpose(0, 2, 1), out[line]) / np.float32(m)
        here = (here + here[::-1] * np.outer(parity, parity)) / 2
        here += np.float32(common) * np.eye(len(keep), dtype=np.float32)
        u = np.matmul(out[line], np.linalg.inv(here))
        out[line] = u / (np.linalg.norm(u, axis=-1, keepdims=True) + np.float32(1e-12))
    return out, parity


def _sides(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Height, width, channels, and the side of a window: eight pixels, or that of a small image."""
    height, width = shape[:2]
    return height, width, shape[2] if len(shape) == 3 else 1, min(8, height, width)


def _starts(length: int, step: int) -> list[int]:
    """Where windows of the first encoding lie, about `step` apart, the last at the end."""
    places = np.linspace(0, length - 1, -(-(length - 1) // step) + 1).round()
    return [int(place) for place in np.unique(places)]


def _squares(
    parts: list[tuple[Floats, Floats]], own: Floats, other: Floats, scale: np.float32, out: Floats
) -> None:
    """Into `out` (m, m): (Σ ⟨a, b⟩² − own − other)·scale, tile by tile."""
    blocks = row_blocks(len(out), 512)

    def task(rows: slice) -> None:
        for columns in blocks:
            total = -np.add.outer(own[rows], other[columns])
            product = np.empty_like(total)
            for a, b in parts:
                np.matmul(a[rows], b[columns].T, out=product)
                total += np.square(product, out=product)
            out[rows, columns] = total * scale

    run_blocks(task, blocks, worker_count(where().workers))
