"""Supports of a block of encodings: grown, swapped and held against their rivals in the likelihood
of a tree.

`TreeSetting` is the law of the pixels with the noise that goes with each number of unknown members,
`TreeBlock` the search itself: a beam over supports that grow one member at a time, then the best
swaps, then all rivals one swap away (recipe and margins: `supports.correlated.tree_search`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.encodings import Encodings
from unveil.parallel import rows_per_block
from unveil.supports.correlated.pixel_law import Noise, PixelLaw
from unveil.supports.correlated.tree import tree_difference, tree_likelihood, tree_residual
from unveil.supports.folded.likelihood import Floats, Indices
from unveil.supports.folded.screen import screen, top_products
from unveil.supports.folded.survey import Public, mean_square

ALONE = 4096
"""Most public vectors tried alone; of more, those with the largest products of squares
(`supports.folded.screen`)."""
BEAM, NEWCOMERS, SWEEPS = 12, 16, 8
"""Supports kept while they grow, vectors tried in each place, rounds of swaps."""
PLACES = NEWCOMERS + BEAM
"""Those vectors, and the best alone."""
PAIRS = 16
"""Pairs of vectors, per encoding, that measure c."""
LEAST = 1e-3
"""Share of the mean of y² that is left to the private part at least, where the public part would
explain more than there is."""
GAIN = 1e-3
"""Nats a swap must gain: less is rounding, and would go round in circles."""


class TreeSetting:
    """One law, and the noise when 0 to k members are unknown: private part, at the scale the mean
    of y² tells, and those."""

    def __init__(self, encodings: Encodings, public: Public, law: PixelLaw, k: int) -> None:
        self.public, self.law, self.k, self.weight = public, law, k, encodings.scheme.public_weight
        count, a, b = encodings.scheme.k_private, self.weight, encodings.scheme.private_weight
        mean, power = float((law.mean**2).mean()), float((law.deviation**2).mean())
        total = mean_square(encodings.values)
        # (count·b²·power + count²·b²·mean)·q² + 2·count·b·k·a·mean·q = total − public part, for the
        # size q of private vectors.
        second, first = count * b * b * (power + count * mean), count * b * k * a * mean
        left = max(total - k * a * a * power - (k * a) ** 2 * mean, LEAST * total)
        q = (np.sqrt(first**2 + second * left) - first) / second if second > 0 else 0.0
        self.noise = [
            Noise.of(law, q * b * count + r * a, max(q * q * b * b * count + r * a * a, 1e-12))
            for r in range(k + 1)
        ]


class TreeBlock:
    """A block of encodings."""

    def __init__(self, setting: TreeSetting, magnitudes: Floats, limit: int) -> None:
        self.y, self.public, self.k, self.limit = magnitudes, setting.public, setting.k, limit
        self.weight, self.noise = setting.weight, setting.noise
        self.alone = self._single()

    def find(self, start: Indices) -> tuple[Indices, NDArray[np.float64]]:
        """The likeliest support found, from the beam and from `start`, and its L."""
        # One public vector makes one support only.
        beam = self._beam()[:, :2]
        tried = beam.shape[1] + 1
        rows = np.repeat(np.arange(len(self.y)), tried)
        supports = np.concatenate([beam, start[:, None]], axis=1).reshape(-1, self.k)
        # A beam may be short of supports: then the start fills in.
        supports = np.where(supports < 0, start[rows], supports)
        supports, value = self._swap(rows, supports)
        best = value.reshape(-1, tried).argmax(axis=1) + tried * np.arange(len(self.y))
        return supports[best], value[best]

    def against(
        self, supports: Indices, likelihood: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """D and V of all rivals one swap away; whether no support of one member more or fewer is
        likelier."""
        k, rows = self.k, np.arange(len(self.y))
        rivals, real = self._neighbours(rows, supports)
        D, V = tree_difference(
            self.y, self.public.vectors, rows, supports, rivals, self.weight, self.noise[0]
        )
        # What is no rival is infinitely far behind.
        D[~real], V[~real] = np.inf, 1.0
        # One member fewer: each left out in turn. One more: the best newcomers at S.
        fewer = np.repeat(supports[:, None], k, axis=1)
        fewer[:, np.arange(k), np.arange(k)] = -1
        residual = tree_residual(
            self.y, self.public.vectors, rows, supports, self.weight, self.noise[0]
        )
        new = self._newcomers(residual, supports, self.alone)
        more = np.concatenate(
            [np.repeat(supports[:, None], new.shape[1], axis=1), new[:, :, None]], axis=2
        )
        best = np.maximum(
            self._values(rows, fewer).max(axis=1),
            np.where(new >= 0, self._values(rows, more), -np.inf).max(axis=1),
        )
        return D, V, best < likelihood

    def repeats(self, supports: Indices, draws: Indices) -> NDArray[np.float64]:
        """(m, 2): the mean of D² and of V, D between two vectors drawn at random in the place of
        one member."""
        rows = np.arange(len(self.y))
        place = np.arange(PAIRS) % self.k
        pairs = np.repeat(supports[:, None], 2 * PAIRS, axis=1)
        pairs[:, np.arange(2 * PAIRS), np.tile(place, 2)] = draws
        first, second = (
            pairs[:, :PAIRS].reshape(-1, self.k),
            pairs[:, PAIRS:].reshape(-1, 1, self.k),
        )
        D, V = tree_difference(
            self.y,
            self.public.vectors,
            np.repeat(rows, PAIRS),
            first,
            second,
            self.weight,
            self.noise[0],
        )
        # Members and vectors that cannot be selected say nothing about chance.
        drawn = draws.reshape(-1, 2, PAIRS)
        known = (drawn[..., None] == supports[:, None, None, :]).any(
            axis=(1, 3)
        ) | ~self.public.usable[drawn].all(axis=1)
        keep = np.where(known, 0.0, 1.0)
        return np.stack(
            [
                (D.reshape(-1, PAIRS) ** 2 * keep).sum(axis=1),
                (V.reshape(-1, PAIRS) * keep).sum(axis=1),
            ],
            axis=1,
        )

    def _single(self) -> Indices:
        """(m, BEAM): the likeliest public vectors alone, the rest of the public part being
        noise."""
        P = self.public
        every = np.flatnonzero(P.usable)
        pool = (
            np.tile(every, (len(self.y), 1))
            if len(every) <= ALONE
            else np.sort(screen(self.y, P, ALONE), axis=1)
        )
        return self._best(pool[:, :, None], self.k - 1, soft=False)[:, :, 0]

    def _beam(self) -> Indices:
        """(m, BEAM, k): the likeliest supports as they grow, best first; −1 where there are
        fewer."""
        m, k = len(self.y), self.k
        beam = self.alone[:, :, None]
        # Supports of one member more each time; the members still unknown count as noise.
        for size in range(1, k):
            rows, flat = np.repeat(np.arange(m), beam.shape[1]), beam.reshape(-1, size)
            u = tree_residual(
                self.y, self.public.vectors, rows, flat, self.weight, self.noise[k - size]
            )
            new = self._newcomers(u, flat, self.alone[rows])
            grown = np.concatenate(
                [np.repeat(flat[:, None], new.shape[1], axis=1), new[:, :, None]], axis=2
            )
            grown[(grown < 0).any(axis=2)] = -1
            beam = self._best(once(np.sort(grown, axis=2).reshape(m, -1, size + 1)), k - size - 1)
        return beam

    def _best(self, supports: Indices, unknown: int, *, soft: bool = True) -> Indices:
        """The likeliest BEAM of supports (m, N, size), best first."""
        value = self._values(np.arange(len(self.y)), supports, unknown, soft=soft)
        value[supports[:, :, 0] < 0] = -np.inf
        order = np.argsort(-value, axis=1, kind="stable")[:, :BEAM]
        return np.take_along_axis(supports, order[:, :, None], axis=1)

    def _values(
        self, rows: Indices, supports: Indices, unknown: int = 0, *, soft: bool = True
    ) -> NDArray[np.float64]:
        count, size = supports.shape[1:]
        flat = supports.reshape(-1, size)
        L = tree_likelihood(
            self.y,
            self.public.vectors,
            np.repeat(rows, count),
            flat,
            self.weight,
            self.noise[unknown],
            soft=soft,
        )
        return L.reshape(-1, count)

    def _newcomers(self, residual: Floats, supports: Indices, alone: Indices) -> Indices:
        """(N, PLACES): the vectors of the largest product with the residual, and the best alone; −1
        for members and gaps.

        The residual is blind where no member is bright: signs are unknown there. Sparse vectors are
        found alone.
        """
        indices = top_products(residual, self.public, NEWCOMERS)[1]
        new = np.concatenate(
            [indices, alone, np.full((len(alone), BEAM - alone.shape[1]), -1, np.int64)], axis=1
        )
        new[(new[:, :, None] == supports[:, None, :]).any(axis=2)] = -1
        return new

    def _neighbours(self, rows: Indices, supports: Indices) -> tuple[Indices, NDArray[np.bool_]]:
        """(N, k·PLACES, k): each member in turn replaced by the newcomers of its leave-one-out
        residual; which are real."""
        n, k = supports.shape
        each, every = np.repeat(supports, k, axis=0), np.arange(n * k)
        without = each.copy()
        without[every, every % k] = -1
        at = np.repeat(rows, k)
        new = np.empty((n * k, PLACES), np.int64)
        # In blocks: a residual per member and encoding would not fit.
        step = rows_per_block(8 * self.y.shape[1], self.limit // 4, most=max(1, n * k))
        for first in range(0, n * k, step):
            part = slice(first, first + step)
            u = tree_residual(
                self.y, self.public.vectors, at[part], without[part], self.weight, self.noise[1]
            )
            new[part] = self._newcomers(u, each[part], self.alone[at[part]])
        rivals = np.repeat(each[:, None], PLACES, axis=1)
        rivals[every, :, every % k] = np.where(new >= 0, new, each[every, every % k][:, None])
        return rivals.reshape(n, k * PLACES, k), (new >= 0).reshape(n, k * PLACES)

    def _swap(self, rows: Indices, supports: Indices) -> tuple[Indices, NDArray[np.float64]]:
        """Follow the best swap as long as it gains."""
        supports = np.sort(supports, axis=1)
        value = self._values(rows, supports[:, None])[:, 0]
        active = np.arange(len(rows))
        for _ in range(SWEEPS):
            rivals, real = self._neighbours(rows[active], supports[active])
            L = np.where(real, self._values(rows[active], rivals), -np.inf)
            best = L.argmax(axis=1)
            here = np.arange(len(active))
            up = L[here, best] > value[active] + GAIN
            moved = active[up]
            supports[moved], value[moved] = (
                np.sort(rivals[here, best][up], axis=1),
                L[here, best][up],
            )
            active = moved
            if len(active) == 0:
                break
        return supports, value


def once(supports: Indices) -> Indices:
    """Supports (m, N, size), each kept once in its row; −1 in place of the others."""
    out = supports.copy()
    for row in out:
        _, first = np.unique(row, axis=0, return_index=True)
        twice = np.ones(len(row), bool)
        twice[first] = False
        row[twice] = -1
    return out
