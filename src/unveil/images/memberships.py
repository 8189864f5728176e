"""Who mixes whom: soft memberships from how alike encodings are, the order of rows, and labels.

    Q ← independent components of K                     (`similarity`), then in turn
    S = l·K Q (QᵀQ + ridge)⁻¹ ∝ λ²  plus noise ∝ l      every row against all columns together
    log odds, E[λ] ← S, by the law of λ                 a score with the image, and without
    p ← matched to k images a row, and to epochs        below
    Q ← p·λ²/l

Columns that have the rows of another, or stand for chance, go, and what Q does not span is searched
again. With labels, a row mixes one image of each of its classes, and a row of k classes shows its
weights.

Epochs. The rows of a training run come epoch by epoch, and every epoch uses each private image k
times: a block of n rows is one epoch, and image j is in k of them. Log odds are shifted by a
potential μ of block and image and a level ν of the row, so that

    Σ_j p_ij = k,     Σ_{i in block b} p_ij = k,     p_ij = logistic(odds_ij + ν_i + μ_bj)

which is the likeliest matching, softly (Sinkhorn 1964): a faint member, which alone is not told
from noise, is told by who has no place elsewhere. Whether rows come so is seen: the number of an
image's rows in a block then varies less than chance has it, and less than in blocks of n ± 1.

Poses. Where images were cropped, the rows of an image vote: row a with pose g says of row b the
pose g∘move(a, b), by as much as the two are alike; each row takes the pose with most votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from unveil.images.alignment import Alignment
from unveil.images.model import Copies, Floats
from unveil.images.similarity import Similarity

EMPTY = 1e-9
"""Guards logarithms and divisions."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """m rows in blocks of n, in which each image is k times; the last block may be cut."""

    m: int
    n: int
    k: int

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """(m,): the epoch of each row."""
        return np.arange(self.m) // self.n

    def slices(self) -> list[slice]:
        return [slice(s, min(s + self.n, self.m)) for s in range(0, self.m, self.n)]

    def due(self) -> NDArray[np.float64]:
        """(blocks, 1): uses of an image in each."""
        return self.k * np.bincount(self.block)[:, None] / self.n

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """(blocks, …): sums of values (m, …) over each block."""
        return np.asarray(np.add.reduceat(values, np.arange(0, self.m, self.n), axis=0))

    def dispersion(self, members: NDArray[Any]) -> NDArray[np.float64]:
        """(c,): variance over mean of the number of rows of a whole block that mix each image: zero
        where members (m, c) are right, one by chance."""
        counts = self.totals(members.astype(np.float64))[: self.m // self.n]
        return np.asarray(counts.var(axis=0) / (counts.mean(axis=0) + EMPTY))


def find_epochs(
    members: NDArray[np.bool_],
    sizes: Sequence[int],
    k: int,
    *,
    sigmas: float = 5.0,
    fewest: int = 4,
) -> Epochs | None:
    """The size of an epoch, of those that may be; None: rows are in no order, or too few to tell.

    members: (m, c), who is surely in which row; c images suffice.
    sigmas: standard deviations by which dispersion must be below that of chance.
    fewest: epochs that there must be.
    """
    m, c = members.shape
    possible = [size for size in sizes if 2 < size <= m // fewest]
    if not possible:
        return None
    near = {size + off for size in possible for off in (-1, 0, 1)}
    spread = {size: float(np.median(Epochs(m, size, k).dispersion(members))) for size in near}
    # Of several sizes, the one that stands out most from those next to it.
    n = min(possible, key=lambda size: spread[size] / (spread[size - 1] + spread[size + 1] + EMPTY))
    chance = 1 - sigmas * np.sqrt(2 / (m // n * c))
    return Epochs(m, n, k) if spread[n] < min(spread[n - 1], spread[n + 1], chance) else None


def match(
    odds: NDArray[Any],
    k: int,
    columns: int = 1,
    epochs: Epochs | None = None,
    classes: tuple[NDArray[Any], NDArray[Any]] | None = None,
    *,
    sweeps: int = 25,
    step: float = 0.7,
    strongest: float = 6.0,
) -> Floats:
    """Probabilities (m, columns·n) of log odds, matched to rows and, if there are any, to epochs.

    classes: of images (n, classes), and the number of images of each class in a row (m, classes).
    step: part of each correction that is taken; strongest: the largest potential, since an epoch
        may lack an image that was not found.
    """
    m, n = len(odds), odds.shape[1] // columns
    half = odds.astype(np.float32) / 2
    of, due = classes or (np.ones((n, 1)), np.full((m, 1), float(k)))
    of = np.tile(of, (columns, 1)).astype(np.float32)
    block = np.zeros(m, np.int64) if epochs is None else epochs.block
    level = np.zeros(due.shape, np.float32)
    potential = np.zeros((int(block[-1]) + 1, n), np.float32)
    # Where images are missing, rows that mix them must not be filled up with others.
    highest = 60.0 if epochs is None or n >= epochs.n else 0.0

    def probability() -> Floats:  # the logistic function, by a tanh that takes a fifth of its time
        shift = level @ of.T + np.tile(potential, columns)[block]
        return np.asarray(0.5 + 0.5 * np.tanh(half + shift / 2))

    for _ in range(sweeps):
        level += step * np.log((due + EMPTY) / (probability() @ of + EMPTY))
        np.clip(level, -60, highest, out=level)
        if epochs is not None:
            used = epochs.totals(probability()).reshape(-1, columns, n).sum(axis=1)
            potential += step * np.log(epochs.due() / (used + EMPTY))
            np.clip(potential, -strongest, strongest, out=potential)
    return probability()


def match_subsets(
    odds: NDArray[Any],
    chosen: NDArray[np.int64],
    subsets: list[tuple[int, ...]],
    n: int,
    epochs: Epochs,
    *,
    sweeps: int = 25,
    step: float = 0.7,
    strongest: float = 6.0,
) -> NDArray[Any]:
    """The same of log odds (m, s) of k-subsets of each row's candidates, chosen (m, c) of n images:
    log odds that are matched to epochs."""
    holds = np.zeros((len(subsets), chosen.shape[1]))
    for s, subset in enumerate(subsets):
        holds[s, list(subset)] = 1
    place = epochs.block[:, None] * n + chosen
    due = np.repeat(epochs.due(), n)
    potential = np.zeros(len(due))
    for _ in range(sweeps):
        p = softmax(odds + potential[place] @ holds.T, axis=1)
        used = np.bincount(place.ravel(), (p @ holds).ravel(), minlength=len(due))
        potential += step * np.log((due + EMPTY) / (used + EMPTY))
        np.clip(potential, -strongest, strongest, out=potential)
    return np.asarray(odds + potential[place] @ holds.T)


@dataclass(frozen=True, eq=False)
class Labels:
    """Weights of classes in rows (m, classes), of k images each."""

    values: Floats
    k: int

    def classes_of(self, weights: NDArray[Any]) -> Floats:
        """(n, classes), ones and zeros: the class of each image, that which the rows that mix it by
        weights (m, n) have most often beyond chance."""
        present = (self.values > 0).astype(np.float32)
        share = weights.T @ present / np.maximum(weights.sum(axis=0)[:, None], EMPTY)
        chance = present.mean(axis=0)
        best = ((share - chance) / (1.001 - chance)).argmax(axis=1)
        return np.asarray(np.eye(len(chance), dtype=np.float32)[best])

    def due(self) -> NDArray[np.float64]:
        """(m, classes): images of each class in each row; as many of one as of another."""
        present = self.values > 0
        return np.asarray(self.k * present / np.maximum(present.sum(axis=1, keepdims=True), 1))

    def weights(self, classes: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(m, n): λ of each image were it in the row, and whether that is sure."""
        lam = self.values @ classes.T
        certain = np.count_nonzero(self.values, axis=1) == self.k
        return lam, certain[:, None] & (lam > 0)


def lawful_labels(
    labels: Floats, k: int, mean: float, *, faint: float = 1e-3, off: float = 1.5
) -> Labels | None:
    """Labels as Σ λ·onehot of k images with weights of this mean; None: they cannot be.

    Smoothing, which adds the same to all classes, is taken off. Labels that sum to one next to
    public images are scaled to the law of weights.

    faint: weights below are rounding errors; off: times the law's that labels may weigh.
    """
    # 1. k images leave some class without, if there are more classes: what all have was added.
    if labels.shape[1] > k:
        labels = labels - labels.min(axis=1, keepdims=True)
    labels = np.where(labels > faint, labels, 0).astype(np.float32)
    # 2. No row has more classes than images, one class alone tells nothing, and not nearly all rows
    #    have one class, as where only the heaviest is named.
    present = labels > 0
    several = present.sum(axis=1)
    if (several > k).any() or np.count_nonzero(present.any(axis=0)) < 2:
        return None
    share = present.sum(axis=0) / present.sum()
    if k > 1 and np.mean(several[several > 0] == 1) > (1 + (share**2).sum()) / 2:
        return None
    # 3. In the unit of the law.
    heavy = float(labels.sum() / np.count_nonzero(several)) / (k * mean)
    return Labels(labels if 1 / off < heavy < off else labels / np.float32(heavy), k)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Of c images: log odds (m, columns·c) that a row mixes them, λ to expect if it does, how far
    their best scores (c,) stand out from noise."""

    odds: Floats
    weight: Floats
    strength: NDArray[np.float64]

    @property
    def columns(self) -> int:
        return int(self.odds.shape[1] // max(len(self.strength), 1))

    def at(self, keep: NDArray[np.int64]) -> Beliefs:
        """Of some images."""
        names = np.add.outer(len(self.strength) * np.arange(self.columns), keep).ravel()
        return Beliefs(self.odds[:, names], self.weight[:, names], self.strength[keep])


def side_by_side(one: Floats, other: Floats, columns: int) -> Floats:
    """Columns of two sets of images, copy by copy."""
    pairs = zip(np.hsplit(one, columns), np.hsplit(other, columns), strict=True)
    return np.hstack([part for pair in pairs for part in pair])


def over_images(values: NDArray[Any], columns: int) -> NDArray[Any]:
    """(m, c): sums over the columns of each image."""
    return np.asarray(values.reshape(len(values), columns, -1).sum(axis=1))


def beliefs(
    scores: Floats,
    n: int,
    k: int,
    law: NDArray[np.float64],
    length: Floats,
    columns: int = 1,
    *,
    grid: int = 25,
) -> Beliefs:
    """From scores (m, columns·c) ∝ λ², whose noise goes with the length of rows (m,).

    law: a sample of private weights; grid: quantiles of it that are averaged over.
    """
    # 1. In the unit of λ²: the mean of the largest scores is that of the law.
    m = len(scores)
    x = np.concatenate(np.hsplit(scores, columns))
    x = x - np.median(x, axis=0)
    top = np.sort(x, axis=0)[-max(1, k * m // n) :].mean(axis=0)
    x *= np.float32(np.mean(law**2)) / np.maximum(top, np.float32(EMPTY))
    noise = np.tile(length, columns)[:, None]
    # 1.4826 median deviations of a Gaussian are its standard deviation.
    spread = np.float32(1.4826) * np.median(np.abs(x / noise), axis=0) + np.float32(EMPTY)
    # 2. The likelihood with the image over that without it, averaged over the law.
    total, first = np.zeros_like(x), np.zeros_like(x)
    precision = 1 / (noise * spread) ** 2
    x *= precision
    for value in np.quantile(law, np.linspace(0.02, 0.98, grid)).astype(np.float32):
        gain = np.exp(np.clip(value**2 * (x - value**2 / 2 * precision), -80, 80))
        total += gain
        first += value * gain
    odds = np.log(total * np.float32(k / n / grid / columns))
    return Beliefs(
        np.hstack(np.vsplit(odds, columns)),
        np.hstack(np.vsplit(first / total, columns)),
        np.mean(law**2) / spread.astype(np.float64),
    )


@dataclass(frozen=True, eq=False)
class Memberships:
    """Expected λ and λ² (m, columns·n), n, and the order of rows where they have one."""

    weights: Floats
    squares: Floats
    n: int
    epochs: Epochs | None


def memberships(
    alike: Similarity,
    n: int | None,
    k: int,
    law: NDArray[np.float64],
    labels: Labels | None,
    rng: np.random.Generator,
    *,
    rounds: int = 6,
    search: tuple[int, ...] = (0, 2, 4),
    named: int = 3,
    more: float = 1.5,
    faint: float = 0.02,
) -> Memberships:
    """Of n images; None: as many as stand out. `alike` forgets pairs of one epoch on the way.

    law: a sample of private weights.
    search: rounds in which columns are looked for, `more` times as many as are missing.
    named: round from which on labels tell.
    faint: probabilities below are taken for zero.
    """
    m, columns = len(alike.K), alike.columns
    number = alike.visible(rng) if n is None else n
    Q, epochs = np.zeros((m, 0), np.float32), None
    if labels is not None:  # an epoch has the same classes every time
        epochs = find_epochs(labels.values > 0, _sizes(n, number), k)
    for turn in range(rounds):
        # 1. Scores of the columns there are, and of new ones where images have none.
        have = Q.shape[1] // columns
        scores = alike.scores(Q) if have else np.zeros((m, 0), np.float32)
        if turn in search and have < number:
            new = alike.components(int(np.ceil(more * (number - have))) + 2, Q, rng)
            scores = side_by_side(scores, new, columns)
        found = beliefs(scores, number, k, law, alike.length, columns)
        p = match(found.odds, k, columns)
        # 2. Whether rows come epoch by epoch, and how many images there are.
        likely = over_images(p, columns) > 0.5
        if turn == 0 or epochs is None:
            strong = np.argsort(-found.strength)[: max(number // 2, 2)]
            epochs = epochs or find_epochs(likely[:, strong], _sizes(n, number), k)
            if epochs is not None:
                number = epochs.n
                alike.forget_within(epochs.slices())
        if turn == 0 and epochs is None and n is None:  # as strong as the strongest third, nearly
            top = np.median(found.strength[np.argsort(-found.strength)[: -(-number // 3)]])
            clear = np.where(found.strength > 0.6 * top, -found.strength, np.inf)
            keep = distinct(p, clear, number, columns)
            number = max(int(np.isfinite(clear[keep]).sum()), k)
        # 3. The columns that are images; probabilities, matched.
        bad = -found.strength if epochs is None else epochs.dispersion(likely)
        found = found.at(distinct(p, bad, number, columns))
        classes = None
        if labels is not None and turn >= named:
            p = match(found.odds, k, columns)
            of = labels.classes_of(over_images(p * found.weight, columns))
            found = _with_labels(found, labels, of)
            classes = of, labels.due()
        p = match(found.odds, k, columns, epochs, classes)
        p = np.where(p > faint, p, 0).astype(np.float32)
        Q = p * found.weight**2 / alike.length[:, None]
    missing = number - p.shape[1] // columns
    none = np.zeros((m, columns * missing), np.float32)
    A, S = (side_by_side(p * found.weight**power, none, columns) for power in (1, 2))
    return Memberships(A, S, number, epochs)


def _sizes(n: int | None, number: int) -> Sequence[int]:
    """Sizes that an epoch may have: n, or from a third of the number of images that stand out:
    public images that rows of an epoch share stand out as well."""
    return [n] if n is not None else range(max(3, number // 3), int(1.2 * number) + 2)


def _with_labels(found: Beliefs, labels: Labels, classes: Floats) -> Beliefs:
    """No row mixes images of a class that it does not have; labels that show weights are them."""
    weights, certain = labels.weights(classes)
    lam, sure = np.tile(weights, found.columns), np.tile(certain, found.columns)
    odds = np.where(lam > 0, found.odds, -60).astype(np.float32)
    return Beliefs(odds, np.where(sure, lam, found.weight).astype(np.float32), found.strength)


def distinct(
    p: NDArray[Any], bad: NDArray[np.float64], most: int, columns: int, *, same: float = 0.4
) -> NDArray[np.int64]:
    """The `most` images least bad of p (m, columns·c), none of which has the rows of another; same:
    correlation of rows from which on two images are one."""
    x = np.concatenate(np.hsplit(p, columns))
    x = x - x.mean(axis=0)
    x /= np.linalg.norm(x, axis=0) + EMPTY
    alike = np.asarray(x.T @ x) > same
    if columns > 1:
        alike |= x.T @ np.roll(x, len(p), axis=0) > same
    keep: list[int] = []
    for c in np.argsort(bad, kind="stable"):
        if len(keep) < most and not alike[c, keep].any():
            keep.append(int(c))
    return np.sort(np.array(keep, np.int64))


def over_copies(
    weights: Floats, squares: Floats, alignment: Alignment | None, copies: Copies
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Expected λ and λ² (m, count·n) over all copies, from those over images."""
    if alignment is None:
        return sparse.csr_array(weights), sparse.csr_array(squares)
    m, n = weights.shape
    p = np.where(squares > 0, weights**2 / np.maximum(squares, 1e-12), 0)
    pose = _poses(alignment, p, copies.reach)
    row, image = np.nonzero(weights)
    place = (row, pose[row, image] * n + image)
    parts = [
        sparse.csr_array((values[row, image], place), shape=(m, copies.count * n))
        for values in (weights, squares)
    ]
    return parts[0], parts[1]


def _poses(
    alignment: Alignment, p: Floats, reach: int, *, turns: int = 6, sure: float = 0.5
) -> NDArray[np.int64]:
    """(m, n): the copy of each image that a row shows, were it in it; p (m, n): who is, surely from
    `sure` on. Copy t is (mirrored·side + down)·side + across, side = 2·reach + 1."""
    m, n = p.shape
    far, side = 2 * reach, 2 * reach + 1
    span = 2 * far + 1
    gain = np.maximum(alignment.similarity - np.median(alignment.similarity), 0)
    out = np.zeros((m, n), np.int64)
    at = np.arange(m)
    for j in range(n):
        rows = np.argsort(-p[:, j], kind="stable")[: max(8, int((p[:, j] > sure).sum()))]
        rows = rows[p[rows, j] > 0]
        if len(rows) < 3:
            continue
        # 1. Poses against the row that is most alike to the others; then by votes of all.
        first = rows[gain[np.ix_(rows, rows)].sum(axis=1).argmax()]
        pose = alignment.moves[alignment.move[first]].copy()  # (m, 3)
        pose[first] = 0
        for _ in range(turns):
            g, move = pose[rows], alignment.moves[alignment.move[rows]]  # (r, 3), (r, m, 3)
            flip = g[:, None, 0] ^ move[:, :, 0]
            down = g[:, None, 1] + move[:, :, 1]
            across = g[:, None, 2] + np.where(g[:, None, 0] == 1, -1, 1) * move[:, :, 2]
            inside = (np.abs(down) <= far) & (np.abs(across) <= far)
            code = np.where(inside, (flip * span + down + far) * span + across + far, 0)
            weight = np.where(inside & (rows[:, None] != at), gain[rows], 0)
            names = at * (2 * span * span) + code
            votes = np.bincount(names.ravel(), weight.ravel(), minlength=m * 2 * span * span)
            best = votes.reshape(m, -1).argmax(axis=1)
            pose = np.stack([best // span**2, best // span % span - far, best % span - far], axis=1)
        # 2. Within reach of the crops, as many members as can be.
        down, across = (_within(far - pose[:, axis], rows, reach) for axis in (1, 2))
        out[:, j] = (pose[:, 0] * side + down) * side + across
    return out


def _within(place: NDArray[np.int64], rows: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Places along one axis, from the window of 2·reach + 1 that has most of the rows, the middle
    one of several; others at its edge."""
    counts = np.bincount(place[rows], minlength=4 * reach + 1)
    inside = np.convolve(counts, np.ones(2 * reach + 1), mode="valid")
    best = np.flatnonzero(inside == inside.max())
    return np.asarray(np.clip(place - best[len(best) // 2], 0, 2 * reach))
