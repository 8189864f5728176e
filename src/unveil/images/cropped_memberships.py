"""How likely each encoding mixes each private image, and which copy of it, where images were
cropped or mirrored at random.

Clusters of encodings that share an image are grown as ever (`images.clusters`), in similarities at
the best move (`gram.aligned`). Within a cluster every encoding is moved against the one most like
all others, and the moves are corrected against the cluster's template, a picture as wide as all
moves reach. Then templates and memberships take turns as in `images.memberships`: every encoding,
less what the other images explain of it, is held against all copies of every template; the best
copy's score becomes a probability and an expected weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.gram.aligned import Alignment
from unveil.images.clusters import cluster_size, grow_by_class
from unveil.images.epochs import Epochs, epochs_of, even_columns, forget_within
from unveil.images.labels import ImageMemberships, vote, with_labels
from unveil.images.memberships import DROPS, FAINT, MORE, posterior, who
from unveil.images.settling import LEAST
from unveil.records import Progress

ROUNDS = 7
"""Times templates and probabilities are found from each other."""
GROWTH = (1, 2, 3, 4)
"""Rounds before which clusters that were missed are looked for: images of much contrast hide the
others at first."""
SETTLING = 2
"""Times the moves of a cluster are corrected against its template: they stop changing before."""
FEW, MANY = 0.3, 0.05
"""Ridge of templates, by the largest count of encodings that show a pixel: while a template has
only its cluster, and later. Few encodings show the rim."""
WEAK = 0.1
"""Ridge of scores, by the mean product of a template with itself: faint templates are noise."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class CopyMemberships:
    """`ImageMemberships`, and of every encoding and image the copy it would be, (m, n)."""

    found: ImageMemberships
    copy: NDArray[np.int64]


def copy_memberships(
    Z: Floats,
    alignment: Alignment,
    copies: Copies,
    k: int,
    n: int | None,
    law: NDArray[np.float64],
    *,
    labels: Floats | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> CopyMemberships | None:
    """Z (m, height, width, channels): whitened squares; law: a sample of private weights; n: how
    many images, None: as many as there are clusters. None: no cluster at all."""
    # 1. Clusters, and the copies that their encodings show. λ² at first: its mean.
    m = len(Z)
    most = n or m
    size = cluster_size(k, m, n) if n else m // 4
    clusters = grow_by_class(
        alignment.similarity, labels, size=size, most=most, rng=rng, progress=progress
    )
    #    Where rows come epoch by epoch, as in `images.memberships`: clusters again.
    epochs = None
    if n is not None and clusters and labels is None:
        epochs = epochs_of(who(clusters, m), n, k)
    if epochs is not None:
        forget_within(alignment.similarity, epochs)
        clusters = grow_by_class(
            alignment.similarity, labels, size=size, most=most, epochs=epochs, rng=rng,
            progress=progress,
        )  # fmt: skip
    room = most + (0 if epochs is None else MORE)
    expected, copy = np.zeros((m, 0), np.float32), np.zeros((m, 0), np.int64)
    T = np.zeros((0, *copies.wide), np.float32)
    found = ImageMemberships(expected, expected)
    for turn in range(ROUNDS):
        # 2. Clusters that were missed join.
        if turn in GROWTH and len(T) < room:
            have = [np.argsort(-column, kind="stable")[:size] for column in expected.T]
            clusters = missed_clusters(
                alignment, found.probability, labels, have, most=room - len(T), size=size,
                rng=rng, epochs=epochs,
            )  # fmt: skip
        for rows in clusters:
            at = place_cluster(Z, rows, alignment, copies)
            if (at >= 0).sum() < LEAST:
                continue
            first, place = np.zeros((m, 1), np.float32), np.zeros((m, 1), np.int64)
            first[rows[at >= 0]] = np.mean(law**2)
            place[rows, 0] = np.maximum(at, 0)
            expected, copy = np.hstack([expected, first]), np.hstack([copy, place])
            T = np.concatenate([T, np.zeros((1, *copies.wide), np.float32)])
        clusters = []
        if not len(T):
            return None
        # 3. Templates, from what the others leave; scores of all copies; probabilities and weights.
        T = _templates(Z, T, copy_columns(expected, copy, copies), copies)
        scores, copy = _best_copies(Z, T, expected, copy, copies)
        found, unit = posterior(scores, k, n or len(T), law)
        if epochs is not None:
            if turn >= DROPS:
                full = epochs.n if turn > max(GROWTH) else len(T)
                keep = even_columns(found.probability, epochs, full)
                scores, copy, T = scores[:, keep], copy[:, keep], T[keep]
            found, unit = posterior(scores, k, epochs.n, law, epochs)
        if labels is not None:
            found = with_labels(found, labels, vote(expected, labels), k)
        T *= unit.astype(np.float32)[:, None, None, None]
        probability = np.where(found.probability > FAINT, found.probability, 0)
        expected = np.asarray(probability * found.weight**2, np.float32)
    return CopyMemberships(found, copy)


def missed_clusters(
    alignment: Alignment,
    probability: Floats,
    labels: Floats | None,
    have: list[NDArray[np.int64]],
    *,
    most: int,
    size: int,
    rng: np.random.Generator,
    epochs: Epochs | None = None,
) -> list[NDArray[np.int64]]:
    """Clusters among pairs that share none of the images there are, of which `probability` (m,
    columns) says who mixes them."""
    left = alignment.similarity * np.maximum(1 - probability @ probability.T, 0)
    return grow_by_class(left, labels, size=size, most=most, have=have, epochs=epochs, rng=rng)


def place_cluster(
    Z: Floats, rows: NDArray[np.int64], alignment: Alignment, copies: Copies
) -> NDArray[np.int64]:
    """Which copy each encoding of a cluster shows; −1 where it is moved too far to be one."""
    # 1. Moves against the encoding most like all others. A template moved by all of them is as wide
    #    as twice the reach of one.
    far = replace(copies, reach=2 * copies.reach)
    inside = alignment.similarity[np.ix_(rows, rows)]
    centre = int(inside.sum(axis=1).argmax())
    mirrored, down, across = alignment.moves[alignment.move[rows[centre], rows]].T
    side = 2 * far.reach + 1
    at = (mirrored * side + far.reach - down) * side + far.reach - across
    at[centre] = far.itself
    # 2. Corrected against their template, each encoding's own share taken out.
    z = Z[rows].reshape(len(rows), -1)
    z = z / (np.linalg.norm(z, axis=1, keepdims=True) + 1e-9)  # guards the division
    ones = np.ones((len(rows), 1), np.float32)
    for _ in range(SETTLING):
        columns = copy_columns(ones, at[:, None], far)
        count = far.gather(columns, np.ones_like(z))
        inverse = 1 / (count + FEW * count.max())
        T = far.all_of(far.gather(columns, z) * inverse)[0]
        own = np.einsum("id,id->i", z**2, far.all_of(inverse)[0][at])
        products = z @ T.T
        products[np.arange(len(rows)), at] -= own
        at = (products / (np.linalg.norm(T, axis=1) + 1e-9)).argmax(axis=1)  # guards the division
    # 3. The place of the image among all moves: where most of them are within its reach.
    mirrored, down, across = far.steps[at].T
    down, across = (_within(part, copies.reach, far.reach) for part in (down, across))
    side = 2 * copies.reach + 1
    inside_reach = (down >= 0) & (down < side) & (across >= 0) & (across < side)
    return np.where(inside_reach, (mirrored * side + down) * side + across, -1)


def _within(place: NDArray[np.int64], reach: int, far: int) -> NDArray[np.int64]:
    """Places along one axis, counted from the window of 2·reach + 1 that has most of them; of
    several such windows the middle one."""
    counts = np.bincount(place, minlength=2 * far + 1)
    inside = np.convolve(counts, np.ones(2 * reach + 1), mode="valid")
    best = np.flatnonzero(inside == inside.max())
    return np.asarray(place - best[len(best) // 2])


def copy_columns(values: Floats, copy: NDArray[np.int64], copies: Copies) -> sparse.csr_array:
    """(m, n·count): values (m, n), each at its copy."""
    rows, images = np.nonzero(values)
    return sparse.csr_array(
        (values[rows, images], (rows, images * copies.count + copy[rows, images])),
        shape=(len(values), values.shape[1] * copies.count),
    )


def _templates(Z: Floats, T: Floats, expected: sparse.csr_array, copies: Copies) -> Floats:
    """Templates once more: least squares of what the others leave, pixel by pixel of the padded
    image."""
    flat = Z.reshape(len(Z), -1)
    left = flat - copies.mix(expected, T)
    count = copies.gather(expected.multiply(expected).tocsr(), np.ones_like(flat))
    ridge = MANY * count.max(axis=(1, 2, 3), keepdims=True) + 1e-12  # a template may have nobody
    return np.asarray((copies.gather(expected, left) + count * T) / (count + ridge), np.float32)


def _best_copies(
    Z: Floats, T: Floats, expected: Floats, copy: NDArray[np.int64], copies: Copies
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores (m, n) of the best copy of every template, and which it is: the coefficient of the
    template in what the others leave of an encoding, its own share in the template taken out."""
    m, n = expected.shape
    flat = Z.reshape(m, -1)
    columns = copy_columns(expected, copy, copies)
    left = flat - copies.mix(columns, T)
    count = copies.gather(columns.multiply(columns).tocsr(), np.ones_like(flat))
    inverse = 1 / (count + MANY * count.max(axis=(1, 2, 3), keepdims=True) + 1e-12)
    scores, best = np.empty((m, n)), np.empty((m, n), np.int64)
    for j in range(n):
        # 1. All copies of one template, and their products with each other.
        every = copies.all_of(T[j : j + 1])[0]
        gram = every @ every.T
        norms = np.diag(gram)
        rows = np.flatnonzero(expected[:, j])
        at, weight = copy[rows, j], expected[rows, j]
        # 2. What an encoding adds to the template it has itself put there.
        mine = left[rows] + weight[:, None] * every[at]
        share = weight * np.einsum("id,id->i", mine**2, copies.all_of(inverse[j : j + 1])[0][at])
        # 3. Products with all copies: with what the others leave, and that is all but this image.
        products = left @ every.T
        products[rows] += weight[:, None] * gram[at]
        products[rows, at] -= share
        products /= norms + WEAK * norms.mean() + 1e-12  # guards the division
        best[:, j] = products.argmax(axis=1)
        scores[:, j] = products.max(axis=1)
    return scores, best
