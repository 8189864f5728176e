"""Who mixes whom, where labels were released: a label names the classes that a row mixes, and with
which weights.

A row of as many classes as images has one place in each of them, and the weight of that place is
known. So who is in it is asked within one class alone, of a few images. Two rows that share one
are alike by g·λ²λ'² in whitened squares (`gram.windows`), with g the same for all pairs, and by
noise else. In units of that noise, z, the evidence that they share it is

    M = μ·z − μ²/2,   μ = g·λ²λ'²,   z and the μ of the bound not above `LOUDEST`

since noise has a long tail. Places are given to images by the mean field of these pairs, from soft
to sure, p ∝ exp(β·M·p): an image has as many places as any other of its class, in every epoch where
rows come epoch by epoch (`images.epochs`), else in all. Labels tell that order too, and the number
of images. From several random starts the likeliest is kept.

O(places²·images·starts) for each class and step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from unveil.gram.cosines import UNIT, Alike, Cosines
from unveil.images.epochs import EMPTY, FEWEST, Epochs
from unveil.images.labels import ImageMemberships
from unveil.images.settling import DEVIATION, SPREAD

Floats = NDArray[np.float32]
LOUDEST = 4.0
"""Deviations beyond which a pair says no more: one in two hundred that share nothing is as loud.
With 10 a fifth fewer of the starts agree, and 2% fewer members are right."""
VAGUE = 1 / 3
"""Share of rows whose label does not tell each weight from which on clusters serve better. Of two
classes half are so: 0.86 for 0.96 by clusters at T = 25; of four a quarter, 0.98 for 0.95."""
CHANCE = 1e-6
"""Probability by chance of counts as even as those of epochs, below which rows have that order."""
WHOLE = 0.5
"""Counts are whole numbers: they are not more even than this."""
BETAS = np.geomspace(0.05, 1.0, 25)
"""β from soft to sure: at the first all starts are the same still, and at one it is the
likelihood."""
STEPS, SWEEPS = 3, 6
"""Times the field is found at each β, and potentials corrected for each: the next go on from
there."""
STEP = 0.9
"""Share of each correction that is made: whole ones overshoot."""
STARTS = 8
"""Random starts: nineteen in twenty end as likely as the best."""
EVENLY = 5.0
"""Concentration of the random starts: nearly even, so that evidence decides."""
CENTRINGS = 4
"""Times the level of each row is found: those that are clipped hardly change any more."""


@dataclass(frozen=True, eq=False)
class Places:
    """row, class and weight of every place that labels tell of, by rows. Where a row has fewer
    classes than images, weights are parts of the whole and not `sure`."""

    row: NDArray[np.int64]
    of: NDArray[np.int64]
    weight: Floats
    sure: NDArray[np.bool_]


def labelled_memberships(
    alike: Alike,
    labels: Floats,
    k: int,
    n: int | None,
    rng: np.random.Generator,
) -> ImageMemberships | None:
    """Memberships of all n images, with the order of rows if they have one; None: labels do not
    tell how many images of each class a row has, or nothing tells n. `alike` is left as it is."""
    # 1. What labels say: places, the order of rows, and how many images each class has.
    m = len(labels)
    places = places_of(labels, k)
    if places is None:
        return None
    counts = np.zeros(labels.shape, np.int64)
    np.add.at(counts, (places.row, places.of), 1)
    n = length_of_epochs(counts, k) if n is None else n
    if n is None:
        return None
    epochs = Epochs(np.arange(m) // n, n, k) if in_epochs(counts, n) else None
    sizes = class_sizes(counts.sum(axis=0), n)
    # 2. How alike rows are, in units of noise; and how alike those that share an image.
    block = np.zeros(m, np.int64) if epochs is None else epochs.block
    likeness = _Likeness.of(alike, epochs)
    parts = []
    product, energy = 0.0, EMPTY
    for c in np.flatnonzero(sizes):
        mine = np.flatnonzero(places.of == c)
        rows = places.row[mine]
        z = likeness.between(rows)
        square = places.weight[mine] ** 2 / alike.lengths[rows]
        both = np.outer(square, square)
        # Of pairs of a class, one in `size` share an image.
        product += float((z * both).sum())
        energy += float((both * both)[z != 0].sum()) / sizes[c]
        parts.append((mine, z, both))
    g = max(product / energy, 0.0)
    # 3. Places are given to images, class by class.
    probability, weight = np.zeros((2, m, n), np.float32)
    first = 0
    for (mine, z, both), size in zip(parts, sizes[sizes > 0], strict=True):
        rows = places.row[mine]
        odds = (
            evidence(z, np.float32(g) * both) * places.sure[mine]
        )  # the others are found, and find nobody
        p = matched_places(odds, block[rows], int(size), rng)
        columns = slice(first, first + int(size))
        np.add.at(probability[:, columns], rows, p)
        weight[rows, columns] = places.weight[mine, None]
        first += int(size)
    return ImageMemberships(np.minimum(probability, 1), weight, epochs)


def places_of(labels: Floats, k: int) -> Places | None:
    """None: some rows do not say how many images of each class they have, or too many do not say
    which weights."""
    several = (labels > 0).sum(axis=1)
    if (k % several[several > 0]).any() or np.mean(several < k) > VAGUE:
        return None
    row, of = np.nonzero(labels > 0)
    each = k // several[row]
    weight = labels[row, of] / each
    return Places(*(np.repeat(values, each) for values in (row, of, weight, each == 1)))


def in_epochs(counts: NDArray[np.int64], n: int) -> bool:
    """Whether blocks of n rows have the same number of places of each class, more so than by chance
    and than other blocks. counts (m, classes): places of each row."""
    if len(counts) < FEWEST * n:
        return False
    less, right, more = (_unevenness(counts, size) for size in (n - 1, n, n + 1))
    freedom = (len(counts) // n - 1) * (np.count_nonzero(counts.any(axis=0)) - 1)
    # The distribution of χ²; of one class every block has as many.
    return right < min(less, more) and bool(gammainc(float(freedom) / 2, right / 2) < CHANCE)


def length_of_epochs(counts: NDArray[np.int64], k: int) -> int | None:
    """The shortest block of which every one has the same places, k for each image."""
    for length in range(2, len(counts) // FEWEST + 1):
        blocks = _blocks(counts, length)
        if (blocks == blocks[0]).all() and not (blocks[0] % k).any() and in_epochs(counts, length):
            return length
    return None


def _blocks(counts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """(blocks, classes): places of each whole block."""
    whole = len(counts) // max(length, 1)
    return np.asarray(counts[: whole * length].reshape(whole, length, -1).sum(axis=1))


def _unevenness(counts: NDArray[np.int64], length: int) -> float:
    """χ² of the places in each block against their mean."""
    blocks = _blocks(counts, length)
    mean = blocks.mean(axis=0)
    apart = np.maximum(np.abs(blocks - mean), WHOLE)[:, mean > 0]
    return float((apart**2 / mean[mean > 0]).sum())


def class_sizes(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """How many of n images each class has, by its places: one at least if it has any."""
    share = n * counts / counts.sum()
    sizes = np.maximum(np.floor(share), counts > 0).astype(np.int64)
    while sizes.sum() < n:
        sizes[np.argmax(share - sizes)] += 1
    while sizes.sum() > n:  # more classes than images: the rarest are mistakes
        sizes[np.argmin(np.where(sizes > 0, share - sizes, np.inf))] -= 1
    return np.asarray(sizes)


@dataclass(frozen=True, eq=False)
class _Likeness:
    """Cosines of rows, without the level that each has with all, in units of their noise."""

    cosines: Cosines
    epochs: Epochs | None
    level: Floats
    noise: float

    @classmethod
    def of(cls, alike: Alike, epochs: Epochs | None) -> _Likeness:
        """Levels and noise are read from some columns. Of most pairs nothing is shared, so that
        what stands out is clipped."""
        m = len(alike)
        some = np.arange(0, m, -(-m // SPREAD))
        cosines = alike.cosines[:, some] / np.float32(UNIT)
        apart = _apart(np.arange(m), some, epochs)
        level = np.zeros(m, np.float32)
        noise = np.inf
        for _ in range(CENTRINGS):
            left = (cosines - level[:, None] - level[some]) * apart
            noise = DEVIATION * float(np.median(np.abs(left[apart])))
            step = np.clip(left, -3 * noise, 3 * noise).sum(axis=1) / apart.sum(axis=1)
            level += step - step[some].mean() / 2
        return cls(alike.cosines, epochs, level, noise + EMPTY)

    def between(self, rows: NDArray[np.int64]) -> Floats:
        """z of all pairs; zero of those that tell nothing: a row with itself, and rows of one
        epoch, which share public images."""
        z = self.cosines[np.ix_(rows, rows)] / np.float32(UNIT)
        z -= self.level[rows, None] + self.level[rows]
        z *= _apart(rows, rows, self.epochs) / np.float32(self.noise)
        return np.asarray(z, np.float32)


def _apart(
    rows: NDArray[np.int64], others: NDArray[np.int64], epochs: Epochs | None
) -> NDArray[np.bool_]:
    """Pairs of rows that are of different epochs, or just different ones."""
    if epochs is not None:
        rows, others = epochs.block[rows], epochs.block[others]
    return np.asarray(rows[:, None] != others)


def evidence(z: Floats, mu: Floats) -> Floats:
    """Log odds that two rows share an image, were they alike by mu if they do."""
    odds = mu * (np.clip(z, -LOUDEST, LOUDEST) - 0.5 * np.minimum(mu, LOUDEST))
    return np.where(z != 0, odds, 0).astype(np.float32)


def matched_places(
    M: Floats, block: NDArray[np.int64], size: int, rng: np.random.Generator
) -> Floats:
    """(places, size): probabilities of the images of a class, each as often in a block as any
    other. M (places, places): evidence for each place by who has the same as each other."""
    count = len(M)
    shape = (count, STARTS, size)
    within = np.zeros((int(block[-1]) + 1, count), np.float32)
    within[block, np.arange(count)] = 1
    due = within.sum(axis=1)[:, None] / size + EMPTY
    flat = rng.dirichlet(np.full(size, EVENLY), size=shape[:2]).reshape(count, -1)
    flat = flat.astype(np.float32)
    potential = np.zeros((len(within), STARTS * size), np.float32)
    for beta in np.repeat(BETAS, STEPS):
        field = np.float32(beta) * (M @ flat)
        for _ in range(SWEEPS):
            p = (field + potential[block]).reshape(shape)
            p = np.exp(p - p.max(axis=2, keepdims=True))
            flat = (p / p.sum(axis=2, keepdims=True)).reshape(count, -1)
            potential += STEP * np.log(due / (within @ flat + EMPTY))
    likelihood = (0.5 * flat * (M @ flat) - flat * np.log(flat + EMPTY)).reshape(shape)
    best = likelihood.sum(axis=(0, 2)).argmax()
    return np.asarray(flat.reshape(shape)[:, best])
