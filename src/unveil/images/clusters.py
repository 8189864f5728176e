"""Clusters of encodings that share a private image, grown from similar pairs.

A cluster starts from two encodings that are among the most similar and have most neighbours in
common: these two and those neighbours. The members' mean similarity scores all encodings. Those
whose score stands out are the next members, for some rounds. A cluster that mostly repeats an
earlier one is dropped. Every step reads a few rows of the similarity matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.epochs import Epochs
from unveil.records import Progress

ROUNDS = 6
"""Times a cluster is scored and chosen again: it stops changing before."""
LEAST = 5
"""Encodings of a cluster at least: fewer may be alike by chance."""
SHARED = 0.4
"""A cluster that shares more than this with another one, of the smaller of the two, repeats it: two
images meet in few encodings."""
EDGES, NEIGHBOURS = 0.0015, 6
"""The share of pairs taken for neighbours, and how many an encoding has at least on average. Of the
most similar pairs nine in ten share an image (docs/natural_images.md); of many more, few do."""
STANDS_OUT = 4.0
"""Standard deviations above the median, by the median deviation, that make a member."""
DEVIATION = 1.4826
"""Standard deviations in one median deviation of a Gaussian."""
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
SPREAD = 2000
"""Scores from which their median and spread are read: sure to a few percent."""


def cluster_size(k: int, m: int, n: int) -> int:
    """Encodings in a cluster: the surest of those that mix one of n images."""
    return max(SMALLEST, int(CORE * k * m / n))


def grow_clusters(
    cosines: NDArray[np.float32],
    *,
    size: int,
    most: int,
    have: list[NDArray[np.int64]] | None = None,
    epochs: Epochs | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[NDArray[np.int64]]:
    """Up to `most` new clusters of at most `size` encodings, none a repeat of those in `have`.

    cosines: (m, m), its diagonal ignored
    """
    # 1. Pairs to start from: those with most common neighbours first, ties by similarity.
    m = len(cosines)
    neighbours = _neighbours(cosines, min(1.0, max(EDGES, NEIGHBOURS / m)), rng)
    i, j, common = _seeds(neighbours)
    order = np.argsort(-(common + cosines[i, j]), kind="stable")
    # 2. Who is in which cluster, of those there are already.
    masks = [_mask(cluster, m) for cluster in have or []]
    # Encodings that have all their images may have been left out, so that few are left of a
    # cluster: one that has these few is no repeat.
    sizes = [max(int(mask.sum()), size // 2) for mask in masks]
    found: list[NDArray[np.int64]] = []
    member = np.stack(masks, axis=1) if masks else np.zeros((m, 0), bool)

    def repeats(cluster: NDArray[np.int64]) -> bool:
        shared = member[cluster].sum(axis=0)
        return bool((shared > SHARED * np.minimum(len(cluster), sizes)).any())

    # 3. A cluster around each pair that no cluster holds yet, unless it repeats one.
    idle = 0
    for a, b in zip(i[order], j[order], strict=True):
        if len(found) >= most or idle > TRIES * (5 + len(masks)):
            break
        if (member[a] & member[b]).any():
            continue
        idle += 1
        cluster = _settle(cosines, neighbours, int(a), int(b), size, repeats, epochs)
        if cluster is None:
            continue
        found.append(cluster)
        masks.append(_mask(cluster, m))
        sizes.append(len(cluster))
        member = np.concatenate([member, masks[-1][:, None]], axis=1)
        idle = 0
        if progress:
            progress("clusters", len(found), most)
    return found


def grow_by_class(
    cosines: NDArray[np.float32],
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
    cosines: NDArray[np.float32], cluster: NDArray[np.int64], column: NDArray[np.float32]
) -> bool:
    """Whether the encodings most like the cluster have its class: it may be that of an image of
    another class, seen in part."""
    score = cosines[cluster].sum(axis=0)
    score[cluster] -= 1  # not its similarity with itself
    nearest = np.argpartition(-score, len(cluster))[: len(cluster)]
    return bool((column[nearest] > 0).mean() > OF_CLASS)


def _settle(
    cosines: NDArray[np.float32],
    neighbours: sparse.csr_array,
    a: int,
    b: int,
    size: int,
    repeats: Callable[[NDArray[np.int64]], bool],
    epochs: Epochs | None = None,
) -> NDArray[np.int64] | None:
    """The cluster around encodings a and b: who stands out in mean similarity, until `ROUNDS`. None
    where it becomes one that there is: most do, and at once."""
    some = slice(None, None, -(-len(cosines) // SPREAD))
    near_a, near_b = (
        neighbours.indices[neighbours.indptr[row] : neighbours.indptr[row + 1]] for row in (a, b)
    )
    cluster = np.union1d([a, b], np.intersect1d(near_a, near_b)).astype(np.int64)
    for _ in range(ROUNDS):
        part = cosines[cluster]
        score = part.sum(axis=0)
        score[cluster] -= part[np.arange(len(cluster)), cluster]  # not its similarity with itself
        score /= len(cluster)
        centre = np.median(score[some])
        z = (score - centre) / (DEVIATION * np.median(np.abs(score[some] - centre)) + 1e-12)
        out = np.flatnonzero(z > STANDS_OUT)
        if len(out) < LEAST - 1:
            return None
        cluster = out[np.argsort(-z[out], kind="stable")]
        if epochs is not None:
            cluster = epochs.most(cluster)
        cluster = cluster[:size]
        if repeats(cluster):
            return None
    return np.sort(cluster) if len(cluster) >= LEAST else None


def _neighbours(
    cosines: NDArray[np.float32], edges: float, rng: np.random.Generator
) -> sparse.csr_array:
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
    common = sparse.triu((neighbours @ neighbours).multiply(neighbours)).tocoo()
    keep = common.data >= COMMON
    return common.row[keep].astype(np.int64), common.col[keep].astype(np.int64), common.data[keep]


def _mask(cluster: NDArray[np.int64], m: int) -> NDArray[np.bool_]:
    out = np.zeros(m, bool)
    out[cluster] = True
    return out
