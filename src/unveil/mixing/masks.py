"""Rows that share a sign mask, and the masks.

    y_i = σ_{g(i)} ∘ z_i,   σ one of a pool of fair ±1 vectors

(TextHide: Huang, Song, Chen, Li, Arora, Findings of EMNLP 2020.)

  groups    two rows of one mask correlate as z do, rows of two masks as fair coins make them. What
            all z have in common makes every pair of a mask alike, and so do records that two rows
            share. Rows more alike than coins make any pair belong together
  masks     E[yyᵀ] of a group is σσᵀ∘C with the same C for all groups. So the product of two groups'
            moments, entry by entry, is s_i·s_j·C_ij² with s = σ∘σ' their relative mask, and its
            leading eigenvector has the signs of s
  values    how one value goes with all others is the same in all groups, up to its sign there: the
            leading eigenvector again, for each value by itself
  overall   σ and −σ are told apart by third powers of correlations between groups, since those of
            rows that share a record are positive

What is common to all masks stays open: one sign per value, unless vectors of the same kind are at
hand without a mask. Cost: products of all pairs of rows, m²·d; then m·d² for each round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from unveil.mixing.model import Floats

Groups = NDArray[np.int64]


def mask_groups(
    values: NDArray[np.float32],
    *,
    false_pairs: float = 1e-3,
    fewest: int = 8,
    sigmas: float = 8.0,
    sample: int = 100,
    rare: float = 0.25,
    block: int = 1000,
) -> Groups:
    """(m,) which rows share a mask: groups by falling size, −1 for rows in none.

    false_pairs : float    Pairs of different masks expected to be taken for alike, of all together:
                           one would join two masks.
    fewest : int           Rows of a group below which its moments say nothing of its mask.
    sigmas : float         Standard deviations of chance by which groups, or a row and a group, must
                           be alike to have one mask.
    sample : int           Rows of a group that are asked for that.
    rare : float           Share of the rows of the median group below which a group is left out.
    """
    m = len(values)
    unit = values / np.maximum(np.sqrt(np.mean(values**2, axis=0)), np.float32(1e-30))
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), np.float32(1e-30))
    # 1. Who is alike, directly or by way of others. Under coins a product of two rows has the
    # variance Σ u²·v², which differs from pair to pair.
    power = unit**2
    least = np.float32(norm.isf(false_pairs / (m * m)))
    label = np.arange(m)
    for start in range(0, m, block):
        part = slice(start, start + block)
        alike = unit[part] @ unit[start:].T > least * np.sqrt(power[part] @ power[start:].T)
        i, j = (label[at + start] for at in np.nonzero(alike))
        pairs = np.unique(i * m + j)
        graph = sparse.coo_array((np.ones(len(pairs)), (pairs // m, pairs % m)), shape=(m, m))
        label = connected_components(graph, directed=False)[1][label].astype(np.int64)
    groups = _by_size(label, fewest)
    if groups.max() < 0:
        return groups
    # 2. Groups that are alike as a whole are one; rows in none go to the group they are like.
    rows = np.concatenate(
        [np.flatnonzero(groups == g)[:sample] for g in range(int(groups.max()) + 1)]
    )
    near = _alike_together(unit, power, rows, rows, groups[rows])
    pairs = np.stack([near[:, groups[rows] == g].sum(axis=1) for g in range(near.shape[-1])], 1)
    sizes = np.bincount(groups[rows])
    clear = _beyond_coins(pairs / np.sqrt(np.outer(sizes, sizes)), sigmas)
    same = connected_components(
        sparse.csr_array((clear | clear.T).astype(np.int8)), directed=False
    )[1]
    groups[groups >= 0] = same[groups[groups >= 0]]
    alone = np.flatnonzero(groups < 0)
    if len(alone):
        near = _alike_together(unit, power, alone, rows, groups[rows])
        near /= np.sqrt(np.bincount(groups[rows]))
        clear = _beyond_coins(near, sigmas)
        groups[alone] = np.where(clear.any(axis=1), near[0].argmax(axis=1), -1)
    # A mask is drawn as often as others: far fewer rows are a part of a group that was not joined.
    usual = float(np.median(np.bincount(groups[groups >= 0])))
    return _by_size(groups, max(fewest, int(rare * usual)))


def _alike_together(
    unit: NDArray[np.float32],
    power: NDArray[np.float32],
    rows: Groups,
    others: Groups,
    groups: Groups,
    *,
    coins: int = 16,
) -> Floats:
    """(1 + coins, rows, groups) Σ t³ over the others in each group, t the product of two rows in
    units of what coins leave; first as they are, then with random signs per value in between, which
    is what another mask is. Cubes, since few pairs share a record, and these are far from 0."""
    spread = np.sqrt(power[rows] @ power[others].T)
    spread[rows[:, None] == others] = np.inf
    member = (groups[:, None] == np.arange(int(groups.max()) + 1)).astype(np.float32)
    draw = np.random.default_rng(0)
    signs = [np.ones(unit.shape[1]), *draw.choice([-1.0, 1.0], (coins, unit.shape[1]))]
    return np.stack(
        [
            np.power(unit[rows] * s.astype(np.float32) @ unit[others].T / spread, 3) @ member
            for s in signs
        ]
    ).astype(np.float64)


def _beyond_coins(scores: Floats, sigmas: float) -> NDArray[np.bool_]:
    """Where the first of the scores is `sigmas` times the rms of those under coins."""
    coins = np.sqrt(np.mean(scores[1:] ** 2, axis=0).mean(axis=-1, keepdims=True))
    return np.asarray(scores[0] > sigmas * coins)


def _by_size(label: Groups, fewest: int) -> Groups:
    """Labels as groups by falling size; −1 for small ones, and for those that were −1."""
    names, sizes = np.unique(label[label >= 0], return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    large = names[order][sizes[order] >= fewest]
    place = np.full(int(label.max()) + 2, -1, np.int64)  # the last one is that of −1
    place[large] = np.arange(len(large))
    return np.asarray(place[label])


def relative_masks(
    values: NDArray[np.float32],
    groups: Groups,
    like: NDArray[np.float32] | None = None,
    *,
    rounds: int = 4,
    sample: int = 2000,
) -> NDArray[np.int8]:
    """(groups, d) the mask of every group, up to one sign per value common to all.

    like             Vectors of the kind that was mixed; with them masks are those themselves.
    rounds : int     For single values: the first puts nearly all right.
    sample : int     Rows from which the overall sign of a group is taken, at most.
    """
    count, d = int(groups.max()) + 1, values.shape[1]
    unit = np.maximum(np.sqrt(np.mean(values**2, axis=0)), np.float32(1e-30))
    rows = [np.asarray(values[groups == g] / unit, np.float64) for g in range(count)]
    masks, whole = np.ones((count, d)), np.zeros((d, d))
    # 1. One group after the other against those before, and once more against all others.
    for again in (False, True):
        for g, y in enumerate(rows):
            own = _moments(y)
            if again:
                whole -= masks[g][:, None] * own * masks[g]
            masks[g] = _leading_signs(own * whole) if whole.any() else masks[g]
            whole += masks[g][:, None] * own * masks[g]
    # 2. Value by value, by how it goes with all others.
    for _ in range(rounds if count > 1 else 0):
        signs = _signs_per_value([y * s for y, s in zip(rows, masks, strict=True)], whole)
        if (signs > 0).all():
            break
        masks *= signs
        whole = sum((_moments(y * s) for y, s in zip(rows, masks, strict=True)), np.zeros((d, d)))
    # 3. The sign of every value in all groups, by vectors without a mask.
    reference = rows[0] * masks[0]
    if like is not None:
        reference = np.asarray(like / unit, np.float64)
        masks *= _leading_signs(whole * _moments(reference))
    # 4. The overall sign of every group.
    for g, y in enumerate(rows):
        some = y[:sample] * masks[g]
        if ((some @ reference[:sample].T) ** 3).sum() < 0:
            masks[g] *= -1
            some = -some
        reference = np.concatenate([reference, some]) if len(reference) < sample else reference
    return masks.astype(np.int8)


def _signs_per_value(
    rows: list[Floats], whole: Floats, *, directions: int = 64, turns: int = 40
) -> Floats:
    """(groups, d) the signs by which every value goes with all others in the same way in all
    groups, looked at in the `directions` that hold most. A power method for all values at once."""
    sizes, axes = np.linalg.eigh(whole)
    axes = axes[:, -directions:] / np.sqrt(np.maximum(sizes[-directions:], 1e-12 * sizes[-1]))
    parts = []
    for z in rows:
        scaled = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-30)
        own = np.einsum("ij,ij->j", scaled, scaled)
        parts.append(scaled.T @ (scaled @ axes) - own[:, None] * axes)
    B = np.stack(parts)
    own = np.einsum("gdr,gdr->gd", B, B)  # a group does not speak for itself
    signs = np.ones(own.shape)
    for _ in range(turns):
        signs = np.einsum("gdr,dr->gd", B, np.einsum("gdr,gd->dr", B, signs)) - own * signs
        signs /= np.maximum(np.linalg.norm(signs, axis=0), 1e-300)
    # What most groups agree on stays.
    signs *= np.where(np.sign(signs).sum(axis=0) < 0, -1.0, 1.0)
    return np.where(signs < 0, -1.0, 1.0)


def _moments(y: Floats) -> Floats:
    """Of rows of length 1: long ones would speak for all."""
    scaled = y / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-30)
    return np.asarray(scaled.T @ scaled)


def _leading_signs(product: Floats, *, turns: int = 40) -> Floats:
    """Those of the leading eigenvector."""
    vector = product[int(np.argmax(np.abs(product).sum(axis=1)))].copy()
    for _ in range(turns):
        vector = product @ vector
        vector /= max(float(np.linalg.norm(vector)), 1e-300)
    return np.where(vector < 0, -1.0, 1.0)
