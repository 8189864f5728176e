"""Images the first clusters missed, found in what signed encodings leave unexplained.

Columns whose encodings fit badly are given up, and what the good ones explain is taken out of the
similarity of encodings (`gram.windows`), which knows no signs: those of an encoding that has an
unknown image come out wrong, and hide it. Clusters are grown in what is left (`images.clusters`):
each takes a column over, with a weight of the law's mean in its encodings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.gram.cosines import Alike
from unveil.images.clusters import cluster_size
from unveil.images.epochs import Epochs
from unveil.images.leftover import leftover_clusters
from unveil.images.prior import ImagePrior
from unveil.images.reweigh import whiten

Floats = NDArray[np.float32]
SAME = 0.6
"""Whitened correlation above which two columns are one image: different images have none."""
POOR = 2.0
"""Encodings that fit so much worse than the median are not explained, whatever weights they were
given."""
HALF = 0.5
"""A weight of this share of the mean makes a member for sure."""
HARDLY = 0.25
"""Weights below this share of the mean do not make a member: reweighing leaves some everywhere."""
KNOWN = 0.4
"""A column that has so much of a cluster's encodings stands for it already."""


def regrow(
    alike: Alike,
    weights: sparse.csr_array,
    bad: NDArray[np.bool_],
    misfit: NDArray[np.float64],
    of_rows: Floats,
    k: int,
    weight: float,
    labels: Floats | None,
    rng: np.random.Generator,
    epochs: Epochs | None = None,
) -> list[tuple[int, NDArray[np.int64]]]:
    """(column, encodings) for every column taken over, at most one for each that is `bad`.

    misfit (n,), of_rows (m,): how badly the encodings of each column fit, and each encoding;
    weight: the mean of the law
    """
    m, n = weights.shape
    kept = weights[:, np.flatnonzero(~bad)].toarray()
    # Encodings that fit badly may have been given wrong images.
    poor = of_rows > POOR * np.median(of_rows)
    clusters = leftover_clusters(
        alike,
        kept**2,
        alike.times(kept**2),
        ((kept > HALF * weight).sum(axis=1) >= k) & ~poor,
        kept > HARDLY * weight,
        size=cluster_size(k, m, n),
        most=int(bad.sum()),
        labels=labels,
        epochs=epochs,
        rng=rng,
    )
    return _taken_over(clusters, weights > HARDLY * weight, np.flatnonzero(bad), misfit)


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
    uses: sparse.csr_array,
    bad: NDArray[np.int64],
    misfit: NDArray[np.float64],
) -> list[tuple[int, NDArray[np.int64]]]:
    """A cluster that a bad column has already is that column's; the others take the columns over
    that no cluster speaks for."""
    has = uses[:, bad].toarray()
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
