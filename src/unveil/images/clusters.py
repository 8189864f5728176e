"""Clusters of encodings that share a private image, grown from similar pairs.

A pair of encodings that are among the most similar and have most common neighbours starts a
cluster: the two and those neighbours. Its members' mean similarity scores all encodings; those
whose score stands out are the next members, some rounds of that. A cluster that mostly repeats an
earlier one is dropped. Every step reads a few rows of the similarity matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import Progress

ROUNDS, LEAST, SHARED = 6, 5, 0.4
EDGES, NEIGHBOURS = 0.0015, 6
"""The share of pairs taken for neighbours, and how many of them an encoding has at least on
average."""
STANDS_OUT = 4.0
"""Standard deviations above the median, by the median deviation, that make a member."""
OF_CLASS = 0.7
TRIES = 40
"""Pairs tried in a row without a new cluster before the search ends, per cluster there is: the rest
are repeats."""


def grow_clusters(
    cosines: NDArray[np.float32],
    *,
    size: int,
    most: int,
    have: list[NDArray[np.int64]] | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[NDArray[np.int64]]:
    """Up to `most` new clusters of at most `size` encodings, none a repeat of those in `have`.

    cosines: (m, m), its diagonal ignored
    """
    m = len(cosines)
    neighbours = _neighbours(cosines, max(EDGES, NEIGHBOURS / m), rng)
    i, j, common = _seeds(neighbours)
    order = np.argsort(-(common + cosines[i, j]), kind="stable")
    masks = [_mask(cluster, m) for cluster in have or []]
    sizes = [int(mask.sum()) for mask in masks]
    found: list[NDArray[np.int64]] = []
    member = np.stack(masks, axis=1) if masks else np.zeros((m, 0), bool)
    idle = 0
    for a, b in zip(i[order], j[order], strict=True):
        if len(found) >= most or idle > TRIES * (5 + len(masks)):
            break
        if (member[a] & member[b]).any():
            continue
        idle += 1
        cluster = _settle(cosines, neighbours, int(a), int(b), size)
        if cluster is None:
            continue
        shared = member[cluster].sum(axis=0)
        if masks and (shared > SHARED * np.minimum(len(cluster), sizes)).any():
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
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> list[NDArray[np.int64]]:
    """`grow_clusters` among the encodings of one class after another, where labels (m, classes)
    tell what each mixes."""
    if labels is None:
        return grow_clusters(cosines, size=size, most=most, have=have, rng=rng, progress=progress)
    found: list[NDArray[np.int64]] = []
    for column in labels.T:
        rows = np.flatnonzero(column > 0)
        if len(rows) < LEAST or len(found) >= most:
            continue
        inside = [np.flatnonzero(np.isin(rows, cluster)) for cluster in have or []]
        inside = [part for part in inside if len(part) >= LEAST]
        part = np.ascontiguousarray(cosines[np.ix_(rows, rows)])
        grown = grow_clusters(part, size=size, most=most - len(found), have=inside, rng=rng)
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
    score[cluster] -= 1
    nearest = np.argpartition(-score, len(cluster))[: len(cluster)]
    return bool((column[nearest] > 0).mean() > OF_CLASS)


def _settle(
    cosines: NDArray[np.float32], neighbours: sparse.csr_array, a: int, b: int, size: int
) -> NDArray[np.int64] | None:
    """The cluster around encodings a and b: who stands out in mean similarity, until `ROUNDS`."""
    near_a, near_b = (
        neighbours.indices[neighbours.indptr[row] : neighbours.indptr[row + 1]] for row in (a, b)
    )
    cluster = np.union1d([a, b], np.intersect1d(near_a, near_b)).astype(np.int64)
    for _ in range(ROUNDS):
        part = cosines[cluster]
        score = part.sum(axis=0)
        score[cluster] -= part[np.arange(len(cluster)), cluster]  # not its similarity with itself
        score /= len(cluster)
        centre = np.median(score)
        z = (score - centre) / (1.4826 * np.median(np.abs(score - centre)) + 1e-12)
        out = np.flatnonzero(z > STANDS_OUT)
        if len(out) < LEAST - 1:
            return None
        cluster = out[np.argsort(-z[out], kind="stable")][:size]
    return np.sort(cluster) if len(cluster) >= LEAST else None


def _neighbours(
    cosines: NDArray[np.float32], edges: float, rng: np.random.Generator
) -> sparse.csr_array:
    """The most similar pairs, a share `edges` of all, as a symmetric graph."""
    m = len(cosines)
    sample = rng.integers(0, m, size=(2, min(2_000_000, 50 * m * m)))
    apart = sample[0] != sample[1]
    threshold = (
        np.quantile(cosines[sample[0][apart], sample[1][apart]], 1 - edges)
        if apart.any()
        else np.inf
    )
    rows = []
    for start in range(0, m, 1024):
        close = cosines[start : start + 1024] > threshold
        close[np.arange(len(close)), np.arange(start, start + len(close))] = False
        rows.append(sparse.csr_array(close, dtype=np.float32))
    return sparse.csr_array(sparse.vstack(rows))


def _seeds(
    neighbours: sparse.csr_array,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Neighbours i < j with at least three neighbours in common."""
    common = sparse.triu((neighbours @ neighbours).multiply(neighbours)).tocoo()
    keep = common.data >= 3
    return common.row[keep].astype(np.int64), common.col[keep].astype(np.int64), common.data[keep]


def _mask(cluster: NDArray[np.int64], m: int) -> NDArray[np.bool_]:
    out = np.zeros(m, bool)
    out[cluster] = True
    return out
