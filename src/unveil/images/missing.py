"""Images the first clusters missed, found in what signed encodings leave unexplained.

Squares show similarity faintly; signed encodings show it plainly. Columns whose encodings fit badly
are given up, and clusters are grown in the whitened residual of all encodings (`images.clusters`):
each new cluster takes a column over, with a weight of the law's mean in its encodings, and an image
fitted to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.clusters import cluster_size, grow_by_class
from unveil.images.prior import ImagePrior
from unveil.images.reweigh import whiten

Floats = NDArray[np.float32]
SAME = 0.6
"""Whitened correlation above which two columns are one image: different images have none."""
POOR = 2.0
"""Encodings that fit so much worse than the median are not explained, whatever weights they were
given."""
ROWS = 1024
"""Encodings whitened at a time, to bound memory."""
KNOWN = 0.4
"""A column that has so much of a cluster's encodings stands for it already."""


def regrow(
    E: Floats,
    weights: sparse.csr_array,
    images: Floats,
    bad: NDArray[np.bool_],
    misfit: NDArray[np.float64],
    of_rows: Floats,
    prior: ImagePrior,
    k: int,
    weight: float,
    labels: Floats | None,
    rng: np.random.Generator,
    centre: Floats | None = None,
) -> list[tuple[int, NDArray[np.int64]]]:
    """(column, encodings) for every column taken over, at most one for each that is `bad`.

    misfit (n,), of_rows (m,): how badly the encodings of each column fit, and each encoding;
    weight: the mean of the law; centre (d,): the mean of private images, which all residuals share
    """
    # 1. Good images, and how much of them is in each encoding.
    m, n = weights.shape
    good = np.flatnonzero(~bad)
    W = whiten(prior)
    residual = np.empty((m, W.shape[1]), np.float32)
    x = (images[good] - prior.mean) @ W
    kept = sparse.csr_array(weights[:, good])
    # 2. An encoding that is explained already can share nothing more. One that fits badly may have
    #    been given wrong images: it stays whole.
    poor = of_rows > POOR * np.median(of_rows)
    full = (np.asarray((kept > 0.5 * weight).sum(axis=1)).ravel() >= k) & ~poor
    kept = sparse.csr_array(sparse.diags_array((~poor).astype(np.float32)) @ kept)
    # 3. What good images leave of each encoding, and how alike any two of these residuals are.
    for start in range(0, m, ROWS):
        rows = slice(start, start + ROWS)
        residual[rows] = (E[rows] - prior.mean) @ W - kept[rows] @ x
    if centre is not None:
        common = (centre - prior.mean) @ W
        common /= np.linalg.norm(common) + 1e-9  # guards the division: the means may be the same
        residual -= np.outer(residual @ common, common)
    residual /= np.linalg.norm(residual, axis=1, keepdims=True) + 1e-9  # guards the division
    cosines = residual @ residual.T
    cosines[full] = cosines[:, full] = 0
    # 4. New clusters there, and the columns that they take over.
    size = cluster_size(k, m, n)
    have = [weights[:, [j]].nonzero()[0].astype(np.int64) for j in good]
    clusters = grow_by_class(cosines, labels, size=size, most=int(bad.sum()), have=have, rng=rng)
    return _taken_over(clusters, weights, np.flatnonzero(bad), misfit)


def repeated_images(
    images: Floats, weights: sparse.csr_array, prior: ImagePrior, centre: Floats | None = None
) -> NDArray[np.bool_]:
    """Columns that repeat another one with more weight. centre (d,): the mean of private images,
    which makes no two of them the same."""
    x = (images - (prior.mean if centre is None else centre)) @ whiten(prior)
    x /= np.linalg.norm(x, axis=1, keepdims=True) + 1e-9  # guards the division
    total = np.asarray(weights.sum(axis=0)).ravel()
    same = x @ x.T > SAME
    # Of two columns of the same weight the later one is the repeat.
    heavier = (total[None] > total[:, None]) | (
        (total[None] == total[:, None]) & np.tri(len(x), k=-1, dtype=bool)
    )
    return np.asarray((same & heavier).any(axis=1))


def _taken_over(
    clusters: list[NDArray[np.int64]],
    weights: sparse.csr_array,
    bad: NDArray[np.int64],
    misfit: NDArray[np.float64],
) -> list[tuple[int, NDArray[np.int64]]]:
    """A cluster that a bad column has already is that column's; the others take the columns over
    that no cluster speaks for."""
    has = (weights[:, bad] > 0).toarray()
    claimed: set[int] = set()
    new = []
    for cluster in clusters:
        share = has[cluster].mean(axis=0)
        if share.max(initial=0) > KNOWN:
            claimed.add(int(share.argmax()))
        else:
            new.append(cluster)
    free = [c for c in np.argsort(-misfit[bad], kind="stable") if int(c) not in claimed]
    return [(int(bad[c]), cluster) for c, cluster in zip(free, new, strict=False)]
