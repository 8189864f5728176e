"""Rows of a training run come epoch by epoch, and every epoch uses each private image k times.

A block of n rows is one epoch then (`encode.selection`, pairing "epochs"), and in it image j is in
k rows, no more and no fewer. So the log odds of who is in a row are shifted by a potential μ of its
block and image,

    Σ_{i in block b} p_ij = k,      p_i ∝ exp(odds_i + Σ_{j in subset} μ_bj)

which is the likeliest matching of images and rows, softly. A faint second member, which alone is
not told from noise, is told by who has no place elsewhere.

Whether rows are in that order is not believed but seen (`epochs_of`): the number of sure members of
an image in a block varies less than chance has it. One pass over the odds for every sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float32]
SWEEPS = 25
"""Times potentials are corrected: the last changes are below a hundredth."""
STEP = 0.7
"""Share of each correction that is made: whole ones overshoot, since all images of a subset move at
once."""
STRONGEST = 6.0
"""Bound of a potential: a true member may not be among the candidates of its row, and no other
should be forced into its place at any cost."""
SIGMAS = 5.0
"""Standard deviations by which variance over mean of the number of members in a block lies below
one, which it is by chance, where rows are in order: it is the share of members not found then."""
CERTAIN = 60.0
"""Log odds beyond which a probability is 0 or 1 in double precision."""
HALF = 0.5
"""Probability of a member that counts."""
UNEVEN = 0.95
"""Variance over mean from which on a column stands for no image: clusters of images have 0.3 to
0.8, those of public images that are alike 1.2 to 3."""
EVEN = 0.6
"""The same of signed encodings, below which a column stands for an image: of images that were right
it was 0.03 to 0.57, of others 0.6 to 1.6."""
SOME = 0.2
"""Share of its members that an image must have at least to tell how evenly they lie."""
SAME = 0.4
"""Correlation of their probabilities from which on two columns are one image: of two images it is
about zero, of repeats 0.5 to 0.95."""
FEWEST = 4
"""Blocks from which on that is told."""
EMPTY = 1e-9
"""Guards logarithms and divisions: an image may be nobody's candidate in a block."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """block (m,): the epoch of each row; n images, each k times in it."""

    block: NDArray[np.int64]
    n: int
    k: int

    @property
    def count(self) -> int:
        return int(self.block[-1]) + 1

    def share(self) -> NDArray[np.float64]:
        """(blocks,) how much of each epoch there is: the last one may be cut."""
        return np.bincount(self.block) / self.n

    def slices(self) -> list[slice]:
        """The rows of each epoch."""
        bounds = np.flatnonzero(np.diff(self.block, prepend=-1, append=self.count))
        return [slice(int(start), int(stop)) for start, stop in pairwise(bounds)]

    def at(self, rows: NDArray[np.int64]) -> Epochs:
        """The same of some rows."""
        return replace(self, block=self.block[rows])

    def most(self, ranked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of rows, the best first, those that are among the best k of their block."""
        block = self.block[ranked]
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], block[order])
        place = np.empty(len(ranked), np.int64)
        place[order] = np.arange(len(ranked)) - starts
        return np.asarray(ranked[place < self.k])

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """(blocks, …): sums of values (m, …) over the rows of each block."""
        m = len(values)
        ones = np.ones(m, np.result_type(values.dtype, np.float32))
        places = self.block, np.arange(m)
        return np.asarray(sparse.csr_array((ones, places), shape=(self.count, m)) @ values)


def epochs_of(members: NDArray[np.bool_], n: int, k: int) -> Epochs | None:
    """members (m, c): who is surely in which row, of the n images; None: rows are in no order, or
    too few."""
    m = len(members)
    if m < FEWEST * n:
        return None
    # By chance it is one. Blocks of another length than an epoch are even in part: one row less, or
    # more, tells.
    less, right, more = (
        float(np.median(dispersion(members, blocks_of(m, size, k)))) for size in (n - 1, n, n + 1)
    )
    chance = SIGMAS * np.sqrt(2 / (m // n * members.shape[1]))
    return blocks_of(m, n, k) if right < min(less, more, 1 - chance) else None


def blocks_of(m: int, n: int, k: int) -> Epochs:
    return Epochs(np.arange(m) // n, n, k)


def dispersion(members: NDArray[np.bool_], epochs: Epochs) -> NDArray[np.float64]:
    """(c,) variance over mean of how many rows of a block each image is in."""
    counts = epochs.totals(members)[: len(members) // epochs.n]
    return np.asarray(counts.var(axis=0) / (counts.mean(axis=0) + EMPTY))


def forget_within(matrix: NDArray[Any], epochs: Epochs) -> None:
    """Sets products (m, m) of two rows of one epoch to zero, in place. Each of its public images is
    in several of its rows and in no other epoch: of the most similar pairs that share no private
    image, four in five are of one epoch."""
    for rows in epochs.slices():
        part = matrix[rows, rows]
        part[~np.eye(len(part), dtype=bool)] = 0


def even_columns(probability: Floats, epochs: Epochs, most: int) -> NDArray[np.bool_]:
    """(c,) columns of probability (m, c) that stand for an image of their own, the `most` even at
    most. What stands for public images, or for chance, is in some epochs more often than in others;
    of two columns that have the same rows the less even one goes. All stay where none is even."""
    spread = dispersion(probability > HALF, epochs)
    p = probability - probability.mean(axis=0)
    p /= np.linalg.norm(p, axis=0) + EMPTY
    keep = (spread < UNEVEN) & ~((p.T @ p > SAME) & (spread[:, None] > spread)).any(axis=1)
    keep[np.argsort(np.where(keep, spread, np.inf), kind="stable")[most:]] = False
    return np.asarray(keep if keep.any() else ~keep)


def match_members(
    odds: NDArray[np.float64],
    chosen: NDArray[np.int64],
    subsets: list[tuple[int, ...]],
    n: int,
    epochs: Epochs,
) -> tuple[NDArray[np.float64], Floats]:
    """Log odds (m, s) of subsets of each row's candidates, chosen (m, c) of n images, each of which
    has its k rows of every epoch; and (n,) how unevenly its members lay before."""
    holds = np.zeros((len(subsets), chosen.shape[1]))
    for s, subset in enumerate(subsets):
        holds[s, list(subset)] = 1
    spread = uneven(odds, chosen, holds, n, epochs)
    return matched_subsets(odds, chosen, holds, np.full(n, float(epochs.k)), epochs), spread


def uneven(
    odds: NDArray[np.float64],
    chosen: NDArray[np.int64],
    holds: NDArray[np.float64],
    n: int,
    epochs: Epochs,
) -> Floats:
    """(n,) how unevenly the likely members of each image lie over epochs; infinite where it has
    hardly any. The arguments are those of `matched_subsets`."""
    p = np.exp(odds - odds.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)) @ holds
    likely = np.zeros((len(odds), n), bool)
    np.put_along_axis(likely, chosen, p > HALF, axis=1)
    found = likely.sum(axis=0) > SOME * epochs.k * epochs.count
    return np.where(found, dispersion(likely, epochs), np.inf).astype(np.float32)


def matched_subsets(
    odds: NDArray[np.float64],
    chosen: NDArray[np.int64],
    holds: NDArray[np.float64],
    uses: NDArray[np.float64],
    epochs: Epochs,
) -> NDArray[np.float64]:
    """Log odds (m, s) of subsets of each row's candidates with potentials added.

    chosen (m, c): the candidates; holds (s, c): which of them a subset has, and how often; uses
    (columns,): how often an epoch has each column
    """
    columns = len(uses)
    place = epochs.block[:, None] * columns + chosen
    due = np.outer(epochs.share(), uses).ravel()
    potential = np.zeros(epochs.count * columns)
    for _ in range(SWEEPS):
        p = odds + potential[place] @ holds.T
        p = np.exp(p - p.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        total = np.bincount(place.ravel(), (p @ holds).ravel(), minlength=len(due))
        potential += STEP * np.log((due + EMPTY) / (total + EMPTY))
        np.clip(potential, -STRONGEST, STRONGEST, out=potential)
    return np.asarray(odds + potential[place] @ holds.T)


def matched_odds(odds: NDArray[Any], epochs: Epochs) -> NDArray[Any]:
    """Log odds (m, c) that each image is in each row, shifted so that probabilities sum to k over
    an image in a block, and to k over a row; to at most k where some of the n images have no column
    yet."""
    due = (epochs.k * epochs.share()[:, None]).astype(odds.dtype)
    potential = np.zeros((epochs.count, odds.shape[1]), odds.dtype)
    shift = np.zeros((len(odds), 1), odds.dtype)
    known = odds.shape[1] >= epochs.n
    for _ in range(SWEEPS):
        p = logistic(odds + shift + potential[epochs.block])
        shift += STEP * np.log(epochs.k / (p.sum(axis=1, keepdims=True) + EMPTY))
        np.clip(shift, -CERTAIN, CERTAIN if known else 0, out=shift)
        p = logistic(odds + shift + potential[epochs.block])
        potential += STEP * np.log(due / (epochs.totals(p) + EMPTY))
        np.clip(potential, -STRONGEST, STRONGEST, out=potential)
    return np.asarray(odds + shift + potential[epochs.block])


def logistic(odds: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -CERTAIN, CERTAIN))))
