"""Clusters of encodings that share a private image, grown from similar pairs.

A cluster starts from two encodings that are among the most similar and have most neighbours in
common: these two and those neighbours. The members' mean similarity scores all encodings. Those
whose score stands out are the next members, for some rounds. A cluster that mostly repeats an
earlier one is dropped. Every step reads a few rows of the similarity matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.epochs import Epochs
from unveil.images.settling import HELD, LEAST, repeats, settle
from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress

Similarities = NDArray[Any]
EDGES, NEIGHBOURS = 0.0015, 6
"""The share of pairs taken for neighbours, and how many an encoding has at least on average. Of the
most similar pairs nine in ten share an image (docs/natural_images.md); of many more, few do."""
OF_CLASS = 0.7
"""Share of the encodings most like a cluster that must have its class."""
TRIES = 40
"""Pairs tried in a row without a new cluster before the search ends, per cluster there is: the rest
are repeats."""
SAMPLED = 2_000_000
"""Pairs from which the similarity of neighbours is read: its quantile is sure to a few percent."""
COMMON = 3
"""Neighbours that a pair must have in common to start a cluster."""
CORE, SMALLEST = 0.6, 6
"""A cluster holds little more than half of an image's encodings, the surest; and so many at
least."""
ROWS = 1024
"""Rows of the similarity compared at a time, to bound memory."""
AT_ONCE, TOGETHER = 32, 1024
"""Pairs tried at once, by all cores: so many for one core, and in all at most. After a new cluster
it is one pair, since the next ones mostly lead to the same; then twice as many each time."""


def cluster_size(k: int, m: int, n: int) -> int:
    """Encodings in a cluster: the surest of those that mix one of n images."""
    return max(SMALLEST, int(CORE * k * m / n))


def grow_clusters(
    cosines: Similarities,
    *,
    size: int,
    most: int,
    have: list[NDArray[np.int64]] | None = None,
    epochs: Epochs | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[NDArray[np.int64]]:
    """Up to `most` new clusters of at most `size` encodings, none a repeat of those in `have`.

    cosines: (m, m), in any unit, its diagonal ignored
    """
    # 1. Pairs to start from: those with most common neighbours first, ties by similarity.
    m = len(cosines)
    neighbours = _neighbours(cosines, min(1.0, max(EDGES, NEIGHBOURS / m)), rng)
    i, j, common = _seeds(neighbours)
    order = np.lexsort((-cosines[i, j].astype(np.float32), -common))
    pairs = np.stack([i, j], axis=1)[order]
    # 2. Who is in which cluster, of those there are already. Encodings that have all their images
    #    may have been left out, so that few are left of a cluster: one that has these few is no
    #    repeat.
    masks = [_mask(cluster, m) for cluster in have or []]
    sizes = [max(int(mask.sum()), size // 2) for mask in masks]
    found: list[NDArray[np.int64]] = []
    member = np.stack(masks, axis=1) if masks else np.zeros((m, 0), bool)
    block, k = (np.zeros(m, np.int64), m) if epochs is None else (epochs.block, epochs.k)
    # 3. A cluster around each pair that no cluster holds yet, unless it repeats one.
    idle, start, together = 0, 0, 1
    while start < len(pairs):
        batch = pairs[start : start + together]
        start += together
        together = min(2 * together, TOGETHER)
        clusters, held = _settled(
            cosines, neighbours, batch, member, np.array(sizes, np.int64), block, k, size
        )
        for t, cluster in enumerate(clusters):
            if len(found) >= most or idle > TRIES * (5 + len(sizes)):
                return found
            if held[t]:
                continue
            idle += 1
            # Another pair of the batch may have led to the same one.
            if not len(cluster) or repeats(cluster, member, np.array(sizes, np.int64)):
                continue
            found.append(np.sort(cluster))
            sizes.append(len(cluster))
            mask = _mask(cluster, m)
            held |= mask[batch].all(axis=1)
            member = np.concatenate([member, mask[:, None]], axis=1)
            idle, together = 0, 1
            if progress:
                progress("clusters", len(found), most)
    return found


def _settled(
    cosines: Similarities,
    neighbours: sparse.csr_array,
    pairs: NDArray[np.int64],
    member: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    block: NDArray[np.int64],
    k: int,
    size: int,
) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
    """The cluster of each pair (·, 2), empty where it has none of its own; and whether one
    that there is holds the pair."""
    found, counts = np.zeros((len(pairs), size), np.int64), np.zeros(len(pairs), np.int64)

    def task(some: slice) -> None:
        settle(
            cosines, neighbours.indptr, neighbours.indices, pairs[some], member, sizes, block, k,
            found[some], counts[some],
        )  # fmt: skip

    parts = [slice(start, start + AT_ONCE) for start in range(0, len(pairs), AT_ONCE)]
    # One part on its own is not worth threads.
    run_blocks(task, parts, worker_count(where().workers)) if len(parts) > 1 else task(parts[0])
    return [found[t, :count] for t, count in enumerate(np.maximum(counts, 0))], counts == HELD


def grow_by_class(
    cosines: Similarities,
    labels: NDArray[np.float32] | None,
    *,
    size: int,
    most: int,
    have: list[NDArray[np.int64]] | None = None,
    epochs: Epochs | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[NDArray[np.int64]]:
    """`grow_clusters` among the encodings of one class after another, where labels (m, classes)
    tell what each mixes."""
    if labels is None:
        return grow_clusters(
            cosines, size=size, most=most, have=have, epochs=epochs, rng=rng, progress=progress
        )
    found: list[NDArray[np.int64]] = []
    for column in labels.T:
        rows = np.flatnonzero(column > 0)
        if len(rows) < LEAST or len(found) >= most:
            continue
        inside = [np.flatnonzero(np.isin(rows, cluster)) for cluster in have or []]
        inside = [part for part in inside if len(part) >= LEAST]
        part = np.ascontiguousarray(cosines[np.ix_(rows, rows)])
        grown = grow_clusters(
            part,
            size=size,
            most=most - len(found),
            have=inside,
            epochs=None if epochs is None else epochs.at(rows),
            rng=rng,
        )
        found += [rows[cluster] for cluster in grown if _of_class(cosines, rows[cluster], column)]
        if progress:
            progress("clusters", len(found), most)
    return found


def _of_class(
    cosines: Similarities, cluster: NDArray[np.int64], column: NDArray[np.float32]
) -> bool:
    """Whether the encodings most like the cluster have its class: it may be that of an image of
    another class, seen in part."""
    score = cosines[cluster].sum(axis=0, dtype=np.float32)
    score[cluster] -= cosines[cluster, cluster]  # not its similarity with itself
    nearest = np.argpartition(-score, len(cluster))[: len(cluster)]
    return bool((column[nearest] > 0).mean() > OF_CLASS)


def _neighbours(cosines: Similarities, edges: float, rng: np.random.Generator) -> sparse.csr_array:
    """The most similar pairs, a share `edges` of all, as a symmetric graph."""
    m = len(cosines)
    sample = rng.integers(0, m, size=(2, min(SAMPLED, 50 * m * m)))
    apart = sample[0] != sample[1]
    threshold = (
        np.quantile(cosines[sample[0][apart], sample[1][apart]], 1 - edges)
        if apart.any()
        else np.inf
    )
    rows = []
    for start in range(0, m, ROWS):
        close = cosines[start : start + ROWS] > threshold
        close[np.arange(len(close)), np.arange(start, start + len(close))] = False
        rows.append(sparse.csr_array(close, dtype=np.float32))
    return sparse.csr_array(sparse.vstack(rows))


def _seeds(
    neighbours: sparse.csr_array,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Neighbours i < j with at least `COMMON` neighbours in common."""
    # Some rows at a time: most pairs with a common neighbour are no neighbours themselves.
    parts = [neighbours[start : start + ROWS] for start in range(0, neighbours.shape[0], ROWS)]
    both = sparse.vstack([(part @ neighbours).multiply(part) for part in parts])
    common = sparse.triu(both).tocoo()
    keep = common.data >= COMMON
    return common.row[keep].astype(np.int64), common.col[keep].astype(np.int64), common.data[keep]


def _mask(cluster: NDArray[np.int64], m: int) -> NDArray[np.bool_]:
    out = np.zeros(m, bool)
    out[cluster] = True
    return out
