"""Rows that share a sign mask, and the masks: y = σ∘z, σ of a pool of a few hundred fair ±1 vectors
(TextHide: Huang, Song, Chen, Li, Arora, Findings of EMNLP 2020).

  groups   two rows of one mask correlate as z do, rows of two masks as under fair coins. What all
           z have in common makes every pair of a mask alike, and records that two rows share make
           these two alike. Rows that are more alike than coins make any pair belong together
  masks    E[yyᵀ] of a group is σσᵀ∘C, C the same for all groups. So the entries of two groups'
           product are s_i·s_j·C_ij², s = σ∘σ' their relative mask, and its leading eigenvector
           has the signs of s
  pixels   how a pixel goes with all others is the same in all groups, up to its sign there: the
           leading eigenvector again, for each pixel by itself
  overall  σ and −σ are told apart by the third powers of correlations between groups: those of
           rows that share something are positive

What is common to all masks stays open, one sign per pixel, unless vectors of the same kind are at
hand without a mask. Nothing here proves anything.

Cost: the products of all pairs of rows, m²·d; then m·d² for each round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

FALSE = 1e-3
"""Pairs of different masks that may be taken for alike, of all pairs together: one would join two
masks."""
BLOCK = 1000
"""Rows whose correlations with all others are held at a time: 80 MB for 20,000."""
FEWEST = 8
"""Rows of a group below which its second moments say nothing of its mask."""
ONE = 0.7
"""Correlation of two groups' means from which on they have one mask."""
TURNS = 40
"""Steps of the power method: the leading eigenvalue stands far above the others."""
ROUNDS = 4
"""Rounds for single pixels: the first puts nearly all right."""
AXES = 64
"""Directions that are looked at there: features of sentences have most of their size in fewer."""
MOST_VOTES = 6000
"""Rows that vote, at most."""
STEEP = 8
"""Power of the correlation with a known vector by which a row votes: most rows mix others."""
SAMPLE = 2000
"""Rows that the overall sign of a group is taken from, at most."""

Floats = NDArray[np.float64]


def mask_groups(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """(m,) which rows share a mask: groups by falling size, −1 for rows in none."""
    m = len(values)
    unit = values / np.maximum(np.sqrt(np.mean(values**2, axis=0)), np.float32(1e-30))
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), np.float32(1e-30))
    # 1. Who is alike, directly or by way of others. Under coins a product of two rows has the
    # variance Σ u²·v², which differs from pair to pair: one false pair joins two masks.
    power = unit**2
    least = np.float32(norm.isf(FALSE / (m * m)))
    label = np.arange(m)
    for start in range(0, m, BLOCK):
        part = slice(start, start + BLOCK)
        alike = unit[part] @ unit[start:].T > least * np.sqrt(power[part] @ power[start:].T)
        i, j = (label[at + start] for at in np.nonzero(alike))
        pairs = np.unique(i * m + j)
        graph = sparse.coo_array((np.ones(len(pairs)), (pairs // m, pairs % m)), shape=(m, m))
        label = connected_components(graph, directed=False)[1][label].astype(np.int64)
    # 2. Groups whose means are alike are one; rows in none are put to the mean they are like.
    groups = _by_size(label)
    if groups.max() < 0:
        return groups
    means = _means(unit, groups)
    same = sparse.csr_array((means @ means.T > ONE).astype(np.int8))
    groups[groups >= 0] = connected_components(same, directed=False)[1][groups[groups >= 0]]
    means = _means(unit, groups)
    alone = np.flatnonzero(groups < 0)
    # An encoding of zeros is like none.
    size = np.sqrt(power[alone] @ (means**2).T)
    near = unit[alone] @ means.T / np.maximum(size, np.float32(1e-30))
    found = near.max(axis=1) > np.float32(norm.isf(FALSE / (m * len(means))))
    groups[alone[found]] = near[found].argmax(axis=1)
    return _by_size(groups)


def _by_size(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels as groups by falling size; −1 for small ones, and for those that were −1."""
    names, sizes = np.unique(label[label >= 0], return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    large = names[order][sizes[order] >= FEWEST]
    # One place more than there are labels, so that −1 has one too.
    rank = np.full(int(label.max()) + 2, -1, np.int64)
    rank[large] = np.arange(len(large))
    return np.asarray(rank[label])


def _means(unit: NDArray[np.float32], groups: NDArray[np.int64]) -> NDArray[np.float32]:
    """(groups, d) of length 1."""
    means = np.stack([unit[groups == g].mean(axis=0) for g in range(int(groups.max()) + 1)])
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-30))


def relative_masks(
    values: NDArray[np.float32],
    groups: NDArray[np.int64],
    like: NDArray[np.float32] | None = None,
) -> NDArray[np.int8]:
    """(groups, d) the mask of every group, up to one sign per pixel common to all.

    like: vectors of the kind that was mixed; with them the masks are those themselves
    """
    count, d = int(groups.max()) + 1, values.shape[1]
    unit = np.maximum(np.sqrt(np.mean(values**2, axis=0)), np.float32(1e-30))
    rows = [np.asarray(values[groups == g] / unit, np.float64) for g in range(count)]
    masks = np.ones((count, d))
    # 1. One group after the other against those before, and once more against all others.
    whole = np.zeros((d, d))
    for again in (False, True):
        for g, y in enumerate(rows):
            own = _moments(y)
            if again:
                whole -= masks[g][:, None] * own * masks[g]
            masks[g] = _signs(own * whole) if whole.any() else masks[g]
            whole += masks[g][:, None] * own * masks[g]
    # 2. Pixel by pixel, by how it goes with all others.
    for _ in range(ROUNDS if count > 1 else 0):
        signs = _together([y * s for y, s in zip(rows, masks, strict=True)], whole)
        if (signs > 0).all():
            break
        masks *= signs
        whole = sum((_moments(y * s) for y, s in zip(rows, masks, strict=True)), np.zeros((d, d)))
    # 3. The sign of every pixel in all groups, by vectors without a mask.
    known = rows[0] * masks[0]
    if like is not None:
        known = np.asarray(like / unit, np.float64)
        masks *= _signs(whole * _moments(known))
        for _ in range(ROUNDS):
            step = -(-len(values) // MOST_VOTES)
            z = np.concatenate([y[::step] * s for y, s in zip(rows, masks, strict=True)])
            signs = _like_those_mixed(z, known)
            masks *= signs
            if (signs > 0).all():
                break
    # 4. The overall sign of every group.
    for g, y in enumerate(rows):
        some = y[:SAMPLE] * masks[g]
        if ((some @ known[:SAMPLE].T) ** 3).sum() < 0:
            masks[g] *= -1
            some = -some
        known = np.concatenate([known, some]) if len(known) < SAMPLE else known
    return masks.astype(np.int8)


def _like_those_mixed(z: Floats, known: Floats) -> Floats:
    """(d,) the sign of every pixel by which rows are like the known vector that they are most
    like: the one they mix, or one of its kind."""
    z, known = z - z.mean(axis=0), known - known.mean(axis=0)
    sizes, axes = np.linalg.eigh(z.T @ z / len(z))
    # Directions that hold little are made no longer: a wrong pixel is one of them.
    axes = axes / np.sqrt(sizes + sizes.mean())
    ours, theirs = (
        (part @ axes / np.maximum(np.linalg.norm(part @ axes, axis=1, keepdims=True), 1e-30))
        for part in (z, known)
    )
    votes = np.zeros(z.shape[1])
    for start in range(0, len(z), BLOCK):
        part = slice(start, start + BLOCK)
        alike = (ours[part].astype(np.float32) @ theirs.T.astype(np.float32)).astype(np.float64)
        best = alike.argmax(axis=1)
        votes += np.einsum("i,ij,ij->j", alike.max(axis=1) ** STEEP, z[part], known[best])
    return np.where(votes < 0, -1.0, 1.0)


def _together(rows: list[Floats], whole: Floats) -> Floats:
    """(groups, d) the signs by which every pixel goes with all others in the same way in all
    groups: those of the leading eigenvector of its products between groups. In the directions that
    hold most, each in units of its own size."""
    sizes, axes = np.linalg.eigh(whole)
    axes = axes[:, -AXES:] / np.sqrt(np.maximum(sizes[-AXES:], 1e-12 * sizes[-1]))
    # 1. (groups, d, axes) how a pixel goes with the others, itself left out.
    parts = []
    for z in rows:
        scaled = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-30)
        own = np.einsum("ij,ij->j", scaled, scaled)
        parts.append(scaled.T @ (scaled @ axes) - own[:, None] * axes)
    B = np.stack(parts)
    # 2. The power method, for all pixels at once; a group does not speak for itself.
    own = np.einsum("gdr,gdr->gd", B, B)
    signs = np.ones(own.shape)
    for _ in range(TURNS):
        signs = np.einsum("gdr,dr->gd", B, np.einsum("gdr,gd->dr", B, signs)) - own * signs
        signs /= np.maximum(np.linalg.norm(signs, axis=0), 1e-300)
    # What most groups agree on stays.
    signs *= np.where(np.sign(signs).sum(axis=0) < 0, -1.0, 1.0)
    return np.where(signs < 0, -1.0, 1.0)


def _moments(y: Floats) -> Floats:
    """Of rows of length 1: long ones would speak for all."""
    scaled = y / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-30)
    return np.asarray(scaled.T @ scaled)


def _signs(product: Floats) -> Floats:
    """Those of the leading eigenvector."""
    vector = product[int(np.argmax(np.abs(product).sum(axis=1)))].copy()
    for _ in range(TURNS):
        vector = product @ vector
        vector /= max(float(np.linalg.norm(vector)), 1e-300)
    return np.where(vector < 0, -1.0, 1.0)
