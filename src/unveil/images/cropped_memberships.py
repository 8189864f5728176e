"""How likely each encoding mixes each private image, and which copy of it, where images were
cropped or mirrored at random.

Clusters are grown from pairs whose moves agree (`images.moved_clusters`), which tells the copies
that their encodings show. Then templates and memberships take turns as in `images.memberships`:
every encoding is held against all copies of every template (`images.moved_templates`); the best
copy's score becomes a probability and an expected weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.gram.aligned import Alignment
from unveil.gram.moved_windows import MovedWindows
from unveil.images.clusters import cluster_size
from unveil.images.epochs import SAME, Epochs, epochs_of, forget_within
from unveil.images.labels import ImageMemberships, vote, with_labels
from unveil.images.memberships import MORE, posterior, who
from unveil.images.moved_clusters import grow_moved
from unveil.images.moved_templates import score_copies
from unveil.images.settling import DEVIATION
from unveil.records import Progress

ROUNDS = 2
"""Times templates and probabilities are found from each other. Before the second, clusters that
were missed are looked for: images of much contrast hide the others at first. Templates of clusters
are the purest: in five rounds the best encodings of faint images became fewer right ones, and what
was dropped as uneven over epochs was as often an image as chance."""
SURE = 0.3
"""Probability from which on an encoding takes part in templates: with 0.02 they are as good, and
take longer."""
STANDS = 4.7
"""Spreads by which the best scores of an image stand out on average. Clusters by chance have 2.4 to
5.1, faint images 4.6, most from 7 to 20; those that are lost are looked for again."""
SMALL = 0.4
"""Of an unknown number of images: clusters with less than this share of the median are by chance.
Those of most images had 0.7 at least, those by chance 0.3 at most; faint ones may go as well."""
EMPTY = 1e-12
"""Guards a division: a template may tell nothing."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class CopyMemberships:
    """`ImageMemberships`, and of every encoding and image the copy it would be, (m, n)."""

    found: ImageMemberships
    copy: NDArray[np.int64]


def copy_memberships(
    windows: MovedWindows,
    alignment: Alignment,
    copies: Copies,
    k: int,
    n: int | None,
    law: NDArray[np.float64],
    *,
    labels: Floats | None = None,
    progress: Progress | None = None,
) -> CopyMemberships | None:
    """law: a sample of private weights; n: how many images, None: as many as there are clusters.
    None: no cluster at all. The similarity of rows of one epoch is forgotten."""
    # 1. Clusters, and the copies that their encodings show.
    m = len(windows)
    most = n or m
    size = cluster_size(k, m, n) if n else m // 4
    clusters = grow_moved(alignment, copies, size=size, most=most, progress=progress)
    if n is None and clusters:
        usual = np.median([len(rows) for rows, _ in clusters])
        clusters = [cluster for cluster in clusters if len(cluster[0]) >= SMALL * usual]
        most, size = len(clusters), cluster_size(k, m, len(clusters))
    #    Where rows come epoch by epoch, as in `images.memberships`: clusters again.
    epochs = None
    if n is not None and clusters:
        epochs = epochs_of(who([rows for rows, _ in clusters], m), n, k)
    room = most + (0 if n is None else MORE)
    if epochs is not None:
        forget_within(alignment.similarity, epochs)
        clusters = grow_moved(
            alignment, copies, size=size, most=room, epochs=epochs, progress=progress
        )
    expected, copy = np.zeros((m, 0), np.float32), np.zeros((m, 0), np.int64)
    found = ImageMemberships(expected, expected)
    for turn in range(ROUNDS):
        # 2. Clusters that were missed join, with the mean of λ² in their encodings.
        have = expected.shape[1]
        if turn and have < room:
            clusters = missed_clusters(
                alignment, copies, found.probability, expected, most=room - have,
                size=size, epochs=epochs,
            )  # fmt: skip
        expected, copy = _joined(expected, copy, clusters, float(np.mean(law**2)))
        clusters = []
        if not expected.shape[1]:
            return None
        # 3. Scores of all copies, the images that stand out, their probabilities and weights.
        scores, copy = score_copies(windows, copies, expected, copy)
        keep = _standing(scores, k, n or scores.shape[1])
        scores, copy, expected = scores[:, keep], copy[:, keep], expected[:, keep]
        found, _ = posterior(scores, k, n or scores.shape[1], law, epochs)
        if labels is not None:
            found = with_labels(found, labels, vote(expected, labels), k)
        probability = np.where(found.probability > SURE, found.probability, 0)
        expected = np.asarray(probability * found.weight**2, np.float32)
    return CopyMemberships(found, copy)


def missed_clusters(
    alignment: Alignment,
    copies: Copies,
    probability: Floats,
    weights: Floats,
    *,
    most: int,
    size: int,
    epochs: Epochs | None = None,
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Clusters among pairs that share none of the images there are, of which `probability` (m,
    columns) says who mixes them; weights (m, columns): who does most."""
    left = alignment.similarity * np.maximum(1 - probability @ probability.T, 0)
    have = [np.argsort(-column, kind="stable")[:size] for column in weights.T]
    have = [rows[weights[rows, j] > 0] for j, rows in enumerate(have)]
    return grow_moved(
        replace(alignment, similarity=left), copies, size=size, most=most, have=have,
        epochs=epochs,
    )  # fmt: skip


def _standing(scores: NDArray[np.float64], k: int, n: int) -> NDArray[np.int64]:
    """The n columns at most whose best scores (m, columns) stand out from the others; of two that
    score alike, one. All where none does."""
    x = scores - np.median(scores, axis=0)
    spread = DEVIATION * np.median(np.abs(x), axis=0) + EMPTY
    top = np.sort(x, axis=0)[-max(1, k * len(x) // n) :]
    strength = top.mean(axis=0) / spread
    centred = scores - scores.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=0) + EMPTY  # a template may score all alike
    same = centred.T @ centred > SAME
    repeat = (same & (strength[None] > strength[:, None])).any(axis=1)
    order = np.argsort(np.where(repeat, 0, -strength), kind="stable")[:n]
    keep = order[(strength[order] > STANDS) & ~repeat[order]]
    return np.sort(keep if len(keep) else order)


def _joined(
    expected: Floats,
    copy: NDArray[np.int64],
    clusters: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    square: float,
) -> tuple[Floats, NDArray[np.int64]]:
    """With a column for each cluster."""
    more, place = np.zeros((2, len(expected), len(clusters)))
    for j, (rows, at) in enumerate(clusters):
        more[rows, j], place[rows, j] = square, at
    return (
        np.hstack([expected, more.astype(np.float32)]),
        np.hstack([copy, place.astype(np.int64)]),
    )


def copy_columns(values: Floats, copy: NDArray[np.int64], copies: Copies) -> sparse.csr_array:
    """(m, n·count): values (m, n), each at its copy."""
    rows, images = np.nonzero(values)
    return sparse.csr_array(
        (values[rows, images], (rows, images * copies.count + copy[rows, images])),
        shape=(len(values), values.shape[1] * copies.count),
    )
