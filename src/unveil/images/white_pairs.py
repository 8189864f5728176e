"""Which two images each encoding mixes among public white noise, while signs are known in part.

Images are smooth, so that y² averaged over a block of pixels is nearly Gaussian, and with weights a
and b and noise of variance v

    mean  a²e_j + b²e_l + 2ab·t_j·t_l·p_jl + v
    variance  (2v² + 4v·(mean − v))/pixels + 4a²b²·(what of x_j·x_l is not told)

e are block means of x², p_jl of x_j·x_l. t is how far the signs of an image are believed: at 0 only
its squares speak, so that no region with the wrong sign can vouch for itself; later products speak
too. The law of (a, b, v) is a table of equally likely cells. Each cell is one product of matrices
over all pairs: O(cells·m·n²·blocks).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.weights import sample_weights
from unveil.images.epochs import EMPTY, STEP, STRONGEST, SWEEPS, Epochs
from unveil.images.task import DRAWS, ImageTask

Floats = NDArray[np.float32]
SIDE = 4
"""Pixels of a block's side: images hardly change there, and the noise of sixteen squares is half of
what an image adds."""
SPLITS = (6, 6, 3)
"""Parts of the law by the first weight, the second and the noise: 108 cells, a second for
1500 encodings; other numbers were not tried."""
DARKEST = 0.003
"""Least energy of a block: of images that nothing is known of, which may take over what is left."""
OPEN, ALWAYS = 0.5, 0.05
"""Shares of e_j·e_l by which a product varies where signs are open, and in any case: blocks are not
quite flat, and images not exact."""
INEXACT = 0.1
"""Share by which the energy of a mixture is not known."""
KEPT = 120
"""Pairs of each encoding that are kept, to bound memory: the likeliest quarter of 435."""
NUMBERS = 40_000_000
"""Likelihoods held at once, to bound memory."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (m, c, 2) of every encoding with their log likelihoods (m, c); expected weights and
    squared weights (m, c, 2) and noise (m, c) were it this pair."""

    members: NDArray[np.int64]
    likelihood: Floats
    weights: Floats
    squares: Floats
    noise: Floats

    def odds(self, n: int, epochs: Epochs | None) -> Floats:
        """(m, c) probabilities; where rows come epoch by epoch each of the n images is k times in
        each (`images.epochs`)."""
        odds = self.likelihood.astype(np.float64)
        if epochs is None:
            return _shares(odds)
        place = epochs.block[:, None, None] * n + self.members
        due = np.repeat(epochs.k * epochs.share(), n)
        potential = np.zeros(len(due))
        for _ in range(SWEEPS):
            p = _shares(odds + potential[place].sum(axis=2))
            total = np.bincount(place.ravel(), np.repeat(p.ravel(), 2), minlength=len(due))
            potential += STEP * np.log(due / (total + EMPTY))
            np.clip(potential, -STRONGEST, STRONGEST, out=potential)
        return _shares(odds + potential[place].sum(axis=2))

    def expected(self, odds: Floats, n: int) -> tuple[Floats, Floats, Floats]:
        """Expected weights and squared weights (m, n), and the expected noise (m,)."""
        m, c = odds.shape
        rows = np.repeat(np.arange(m), 2 * c)
        first, second = (
            sparse.coo_array(
                ((odds[..., None] * part).ravel(), (rows, self.members.ravel())), shape=(m, n)
            ).toarray()
            for part in (self.weights, self.squares)
        )
        noise = (odds * self.noise).sum(axis=1)
        return first.astype(np.float32), second.astype(np.float32), noise.astype(np.float32)


def law_cells(task: ImageTask, rng: np.random.Generator) -> Floats:
    """(cells, 3): both weights and the variance of the noise, each row as likely."""
    drawn = sample_weights(task.scheme, DRAWS, rng)
    variance = (drawn[:, 2:] ** 2).sum(axis=1) * float(task.prior.pixel.mean())
    parts = [np.column_stack([drawn[:, :2], variance])]
    for column, count in enumerate(SPLITS):
        parts = [
            piece
            for part in parts
            for piece in np.array_split(part[np.argsort(part[:, column], kind="stable")], count)
        ]
    return np.array([part.mean(axis=0) for part in parts], np.float32)


def block_means(shape: tuple[int, ...]) -> tuple[sparse.csr_array, Floats]:
    """(blocks, d), which takes the mean over each block, every channel by itself; and (blocks,) how
    many pixels each has."""
    height, width = shape[:2]
    down, across = (np.arange(side) * max(1, side // SIDE) // side for side in (height, width))
    channels = int(np.prod(shape)) // (height * width)
    place = (down[:, None] * (across[-1] + 1) + across)[..., None] * channels + np.arange(channels)
    pixels = np.bincount(place.ravel()).astype(np.float32)
    data = 1 / pixels[place.ravel()]
    return sparse.csr_array((data, (place.ravel(), np.arange(place.size)))), pixels


def soft_pairs(task: ImageTask, images: Floats, cells: Floats, told: NDArray[np.floating]) -> Pairs:
    """Pairs by block means of squares; told (n,): t, from 0 (signs unknown) to 1."""
    assert task.shape is not None
    # 1. Energies of images, products of pairs as far as they are told, and what is left open.
    means, pixels = block_means(task.shape)
    i, j = np.triu_indices(len(images), 1)
    energy = np.maximum((means @ (images**2).T).T, DARKEST)
    product = (told[i] * told[j])[:, None] * (means @ (images[i] * images[j]).T).T
    both = energy[i] * energy[j]
    left = np.maximum(OPEN * both - product**2, 0) + ALWAYS * both
    # 2. A Gaussian is linear in y² and its square.
    seen = (means @ (task.Y**2).T).T.astype(np.float32)
    seen = np.concatenate([seen**2, seen], axis=1)
    m, count = len(seen), min(KEPT, len(i))
    out = Pairs(
        np.empty((m, count, 2), np.int64),
        *(np.empty((m, count, *size), np.float32) for size in ((), (2,), (2,), ())),
    )
    step = max(1, NUMBERS // (len(i) * len(cells)))
    for start in range(0, m, step):
        rows = slice(start, start + step)
        every = np.empty((len(cells), len(seen[rows]), len(i)), np.float32)
        for c, (a, b, noise) in enumerate(cells):
            level = np.maximum(a * a * energy[i] + b * b * energy[j] + 2 * a * b * product, 0)
            variance = (2 * noise**2 + 4 * noise * level) / pixels
            variance += 4 * a * a * b * b * left + (INEXACT * level) ** 2
            mean = level + noise
            factors = np.concatenate([-0.5 / variance, mean / variance], axis=1)
            constant = -0.5 * (mean**2 / variance + np.log(variance)).sum(axis=1)
            np.matmul(seen[rows], factors.T.astype(np.float32), out=every[c])
            every[c] += constant.astype(np.float32)
        # 3. The likeliest pairs, averaged over the law.
        largest = every.max(axis=0)
        every -= largest
        np.exp(every, out=every)
        total = every.sum(axis=0)
        likelihood = largest + np.log(total)
        top = np.argpartition(-likelihood, count - 1, axis=1)[:, :count]
        share = np.take_along_axis(every, top[None], axis=2)
        share /= share.sum(axis=0)
        out.members[rows] = np.stack([i[top], j[top]], axis=-1)
        out.likelihood[rows] = np.take_along_axis(likelihood, top, axis=1)
        out.weights[rows] = np.einsum("crp,cw->rpw", share, cells[:, :2])
        out.squares[rows] = np.einsum("crp,cw->rpw", share, cells[:, :2] ** 2)
        out.noise[rows] = np.einsum("crp,c->rp", share, cells[:, 2])
    return out


def _shares(odds: NDArray[np.float64]) -> Floats:
    p = np.exp(odds - odds.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p, np.float32)
