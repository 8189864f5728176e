"""Which encodings share a private image that was shifted before it was mixed, and by how much they
differ.

Whitening that is the same at every pixel (`gram.stationary`) commutes with shifts: two encodings of
the same image agree where one is moved against the other by the difference of their shifts. Their
similarity is the largest cosine over all moves, of the part in which both lie:

    s(a, b) = max over moves v of  cos(z_a[q], z_b[q + v]) · √(share of pixels in common)

A move of b against a is that of a against b turned round, so half of the moves are worked out.
O(m²·d) for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Alignment:
    """similarity (m, m), its diagonal zero; move (m, m): the best move of the second encoding
    against the first, a place in `moves` (number, 3): mirrored or not, down, across."""

    similarity: Floats
    move: NDArray[np.int16]
    moves: NDArray[np.int64]


def align(Z: Floats, reach: int, flips: bool) -> Alignment:
    """Z (m, height, width, channels) whitened; reach: the farthest move each way."""
    # 1. Moves, and the one that is each turned round. Moved back by the same way, unless mirrored:
    #    then what was to the left is to the right.
    moves = np.array(
        [
            (mirrored, down, across)
            for mirrored in range(1 + flips)
            for down in range(-reach, reach + 1)
            for across in range(-reach, reach + 1)
        ],
        np.int64,
    )
    place = {tuple(move): at for at, move in enumerate(moves.tolist())}
    m = len(Z)
    best = np.full((m, m), -np.inf, np.float32)
    which = np.zeros((m, m), np.int16)
    for at, (mirrored, down, across) in enumerate(moves.tolist()):
        back = place[mirrored, -down, across if mirrored else -across]
        if back < at:
            continue
        # 2. Cosines of the parts in common, smaller where these are small.
        found = _cosines(Z, Z[:, :, ::-1] if mirrored else Z, down, across)
        for table, name in ((found, at), (found.T, back)):
            better = table > best
            np.copyto(best, table, where=better)
            which[better] = name
            if back == at:
                break
    np.fill_diagonal(best, 0)
    return Alignment(best, which, moves)


def _cosines(Z: Floats, other: Floats, down: int, across: int) -> Floats:
    """(m, m): Z[q] against other[q + move] where both lie in the image, by √(share of pixels)."""
    m, height, width, _ = Z.shape
    y, x = max(0, -down), max(0, -across)
    h, w = height - abs(down), width - abs(across)
    a = Z[:, y : y + h, x : x + w].reshape(m, -1)
    b = other[:, y + down : y + down + h, x + across : x + across + w].reshape(m, -1)
    # 1e-9 guards the divisions: a part may be empty.
    a = a / (np.linalg.norm(a, axis=1, keepdims=True) + 1e-9)  # see above
    b = b / (np.linalg.norm(b, axis=1, keepdims=True) + 1e-9)  # see above
    return np.asarray(a @ b.T * np.float32(np.sqrt(h * w / (height * width))), np.float32)
