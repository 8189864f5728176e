"""Clusters of encodings that share a private image which was moved, and the copies they show.

Pairs whose move is supported by many others start a cluster each, those with most support first;
members then vote for each other's poses (`images.votes`). A cluster that falls into two parts has
two images, of which one is kept; one that mostly repeats an earlier cluster is dropped. Without
votes, from the same similarities, `images.clusters` finds 21 of 30 images cropped by ±4 and
mirrored, with votes it is all. O(m·NEAREST²) for the support, and a few rows of the similarity for
each pair that is tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.encode.copies import Copies
from unveil.gram.aligned import Alignment
from unveil.images.clusters import TRIES
from unveil.images.epochs import Epochs
from unveil.images.settling import LEAST, repeats
from unveil.images.votes import agree, settle_moved, ties
from unveil.records import Progress

Floats = NDArray[np.float32]
NEAREST = 50
"""Encodings most like one that support its moves: with 30 or 100 the same images are found."""
APART = 0.8
"""Second eigenvalue of ties, as a random walk has it, from which on a cluster falls into two: of
one image it was 0.28 to 0.62, of two 0.96."""
EMPTY = 1e-9
"""Guards a division: a member may have no tie."""
ROWS = 512
"""Rows of the similarity that are sorted at a time, to bound memory."""


def grow_moved(
    alignment: Alignment,
    copies: Copies,
    *,
    size: int,
    most: int,
    have: list[NDArray[np.int64]] | None = None,
    epochs: Epochs | None = None,
    progress: Progress | None = None,
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(encodings, copies) of up to `most` new clusters of at most `size` encodings, none a repeat
    of those in `have`."""
    # 1. How much pairs are alike beyond the median, and how much others support their moves.
    s, move, moves = alignment.similarity, alignment.move, alignment.moves
    m, reach = len(s), int(moves[:, 1].max())
    gain = np.maximum(s - np.median(s), 0).astype(np.float32)
    near = _nearest(gain, min(NEAREST, m - 1))
    support = np.zeros((m, m), np.float32)
    agree(near, gain, move, moves, support)
    i, j = np.nonzero(support)
    order = np.argsort(-support[i, j], kind="stable")
    del support
    # 2. A cluster around each pair that no cluster holds yet, unless it repeats one.
    block, k = (np.zeros(m, np.int64), m) if epochs is None else (epochs.block, epochs.k)
    have = have or []
    member = np.zeros((m, len(have)), bool)
    for c, cluster in enumerate(have):
        member[cluster, c] = True
    sizes = [max(len(cluster), size // 2) for cluster in have]
    rows, pose = np.zeros(size, np.int64), np.zeros(size, np.int64)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    idle = 0
    for a, b in zip(i[order], j[order], strict=True):
        if len(found) >= most or idle > TRIES * (5 + len(sizes)):
            break
        if (member[a] & member[b]).any():
            continue
        idle += 1
        number = settle_moved(
            gain, move, moves, reach, near, a, b, member, np.array(sizes, np.int64), block, k,
            rows, pose,
        )  # fmt: skip
        part = _undivided(ties(gain, move, moves, rows[:number], pose[:number]))
        if len(part) < LEAST or repeats(rows[part], member, np.array(sizes, np.int64)):
            continue
        # 3. The copies they show.
        at = placed(moves[pose[part]], copies)
        part, at = part[at >= 0], at[at >= 0]
        if len(part) < LEAST:
            continue
        found.append((rows[part], at))
        sizes.append(len(part))
        member = np.concatenate([member, np.zeros((m, 1), bool)], axis=1)
        member[rows[part], -1] = True
        idle = 0
        if progress:
            progress("clusters", len(found), most)
    return found


def _undivided(ties: NDArray[np.float64]) -> NDArray[np.int64]:
    """The members of a cluster, or of its larger part where it falls into two with hardly a tie
    between them: two images."""
    ties = ties + ties.T
    degree = np.sqrt(ties.sum(axis=1)) + EMPTY
    if len(ties) < LEAST:
        return np.zeros(0, np.int64)
    values, vectors = np.linalg.eigh(ties / np.outer(degree, degree))
    if values[-2] < APART:
        return np.arange(len(ties))
    side = vectors[:, -2] > 0
    return np.flatnonzero(side if side.mean() >= 0.5 else ~side)


def _nearest(gain: Floats, count: int) -> NDArray[np.int64]:
    """(m, count): the encodings most like each."""
    parts = [gain[start : start + ROWS] for start in range(0, len(gain), ROWS)]
    return np.concatenate([np.argpartition(-part, count, axis=1)[:, :count] for part in parts])


def placed(moves: NDArray[np.int64], copies: Copies) -> NDArray[np.int64]:
    """Which copy an encoding shows that is moved so (·, 3) against another one: the image lies
    where most moves are within its reach; −1 where one is not."""
    far, side = int(np.abs(moves[:, 1:]).max(initial=0)), 2 * copies.reach + 1
    down, across = (_within(far - part, copies.reach, far) for part in moves[:, 1:].T)
    inside = (down >= 0) & (down < side) & (across >= 0) & (across < side)
    return np.where(inside, (moves[:, 0] * side + down) * side + across, -1)


def _within(place: NDArray[np.int64], reach: int, far: int) -> NDArray[np.int64]:
    """Places along one axis, counted from the window of 2·reach + 1 that has most of them; of
    several such windows the middle one."""
    counts = np.bincount(place, minlength=2 * max(far, reach) + 1)
    inside = np.convolve(counts, np.ones(2 * reach + 1), mode="valid")
    best = np.flatnonzero(inside == inside.max())
    return np.asarray(place - best[len(best) // 2])
