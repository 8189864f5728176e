"""Clusters of encodings that share an image no column stands for, in what the known images leave of
similarity.

Each image adds the square of its weight times features of its own to the features of an encoding
(`gram.windows`). What is not in the span of these squares is left, and encodings that have all
their images already are left out: they only add noise. Half of the others at random would save
memory, but 400 images then had an SSIM of 0.82 for 0.88. Clusters are grown there
(`images.clusters`). Chance makes clusters too. Their encodings are alike in few pairs, those of an
image in nearly all: the median cosine of pairs, by the root of how many they are, is held against
that of the known images.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.gram.cosines import UNIT, Alike, Cosines, in_tiles
from unveil.images.clusters import grow_by_class
from unveil.images.epochs import Epochs
from unveil.images.settling import LEAST

Floats = NDArray[np.float32]
CLEAR = 0.6
"""Least strength of a new cluster, by the median of the known ones: of photographs and faces those
of images had 0.58 to 1.5, those by chance at most 0.58."""
SMALL = 0.2
"""Least share of the encodings that a cluster may have: of a handful chance makes strong ones."""
FAINT = 0.25
"""Least strength where clusters by chance are dropped later, since they are uneven over epochs
(`images.epochs`): faint images had 0.28 to 0.56."""
MORE = 4
"""Clusters grown beyond those that are needed, so that those by chance do not take their places."""
RIDGE = 1e-6
"""Ridge of the projection, by the mean of the normal equations: a column may repeat another."""
EMPTY = 1e-12
"""Guards divisions: an encoding may be explained completely."""


def leftover_clusters(
    alike: Alike,
    squares: NDArray[np.floating],
    products: Floats,
    settled: NDArray[np.bool_],
    members: NDArray[np.bool_],
    *,
    size: int,
    most: int,
    labels: Floats | None,
    epochs: Epochs | None = None,
    rng: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """Up to `most` clusters of at most `size` encodings, the strongest first.

    squares (m, c): those of the weights of known images; products: gram·squares (m, c); settled
    (m,): encodings that have all their images; members (m, c): who is in which
    """
    rows = np.flatnonzero(~settled)
    if most < 1 or len(rows) < LEAST:
        return []
    # 1. What is left of the others, in cosines.
    residual = without(alike, squares, products, rows)
    # 2. Clusters there.
    clusters = grow_by_class(
        residual,
        None if labels is None else labels[rows],
        size=size,
        most=most + MORE,
        have=[np.flatnonzero(column) for column in members[rows].T],
        epochs=None if epochs is None else epochs.at(rows),
        rng=rng,
    )
    # 3. Those as strong as the known images, each by the encodings in which it weighs most.
    known = [
        strength(alike.cosines, top[squares[top, c] > 0])
        for c, top in enumerate(np.argsort(-squares, axis=0, kind="stable")[:size].T)
    ]
    least = (CLEAR if epochs is None else FAINT) * float(np.median(known)) if known else 0.0
    found = [(strength(residual, cluster), rows[cluster]) for cluster in clusters]
    found.sort(key=lambda pair: -pair[0])
    return [cluster for value, cluster in found if value > least and len(cluster) >= SMALL * size][
        :most
    ]


def strength(cosines: Cosines, cluster: NDArray[np.int64]) -> float:
    """How much encodings are alike, by how many they are."""
    if len(cluster) < 2:
        return 0.0
    pairs = cosines[np.ix_(cluster, cluster)][np.triu_indices(len(cluster), 1)]
    return float(np.median(pairs) / UNIT * np.sqrt(len(cluster)))


def without(
    alike: Alike, A: NDArray[np.floating], products: Floats, rows: NDArray[np.int64]
) -> Cosines:
    """Cosines of (I − P)·gram·(I − P) at some rows and columns; P: the projection on A (m, c);
    products: gram·A."""
    normal = A.T.astype(np.float64) @ A
    normal[np.diag_indices(len(normal))] += RIDGE * np.trace(normal) / max(len(normal), 1) + EMPTY
    inverse = np.linalg.inv(normal)
    seen = products @ inverse
    seen -= 0.5 * A @ (inverse @ (A.T @ seen))
    of_rows, seen = sparse.csr_array(A[rows].astype(np.float32)), seen[rows].astype(np.float32)

    # What is taken off is seen·Aᵀ and its transpose. Few images are in an encoding: A is sparse.
    def tile(down: slice, across: slice) -> Floats:
        part = alike.tile(rows[down], rows[across])
        part -= np.asarray(of_rows[down] @ seen[across].T)
        part -= np.asarray(of_rows[across] @ seen[down].T).T
        return part

    own = (A[rows] * seen).sum(axis=1)
    return in_tiles(alike.lengths[rows] ** 2 - 2 * own, tile)[0]
