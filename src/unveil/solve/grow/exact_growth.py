"""Encodings that relations left over, by exact matching: as sums of known vectors, or of known ones
and one that is new.

  known   the k-subsets of known vectors, sorted by their sum at one telling pixel: an encoding is
          held against the few that have its value there, then at other pixels
  new     with k−1 known members an encoding says that the last one is hi − s or lo − s at each
          pixel. Encodings that miss the same vector agree there. Two of them can always be read in
          two ways, ({a, u}, {b, w}) or ({a, w}, {b, u}), so that vectors of three and more come
          first; of the two readings the one with the smaller values is kept. Its value at a pixel
          is in doubt where both of its values fit.

Values match within rounding or not at all: a dozen pixels leave nothing to chance. Cost: C(n, k)
sums, and C(n, k−1) keys for each encoding left over; beyond `MOST` of them the search is left out.
Where a similarity of all pairs of encodings is known, it names the likely members of each encoding,
and only these are tried, for any k.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from unveil.solve.model import Values, incidence
from unveil.solve.signs.sign_search import Bools, Floats, Index

MOST = 4_000_000
"""Sums, or keys, that are looked at: some seconds."""
PIXELS = 24
"""Pixels at which a match is checked, the most telling ones first."""
FEWEST = 3
"""Encodings that must agree on a new vector."""
LIKELY = 12
"""Known vectors tried for an encoding where similarity names them: the k−1 that it has are nearly
always among them."""
KEYS = (2, 6)
"""Pixels that are hashed at once, each with two values. Two are enough where values are continuous;
six tell partners apart where a pixel takes few."""
MOST_GROUPS = 5_000
"""Groups of equal keys that are looked at, the largest first: a second or two. Where there are
more, encodings agree by chance, as they do with the wrong k; the groups of a true vector are among
the largest."""
CELL = 64.0
"""Width of a hash cell, in units of what counts as zero: one match in a hundred is cut apart, and
found the next time."""


class Growth:
    """What is known of the encodings, and grows: members (m, k), −1 where unknown; values and
    doubtful (n, d)."""

    def __init__(
        self,
        y: Values,
        c: Values | None,
        members: Index,
        values: Floats,
        doubtful: Bools,
        bound: Floats,
        similarity: Floats | None = None,
    ) -> None:
        self.y, self.c, self.bound, self.similarity = y, c, bound, similarity
        self.members, self.values, self.doubtful = members.copy(), values, doubtful

    def sides(self, rows: Index, pixels: Index) -> tuple[Floats, Floats]:
        """The two values (rows, pixels) that the sum of the private vectors may have."""
        y = self.y[np.ix_(rows, pixels)].astype(np.float64)
        c = 0.0 if self.c is None else self.c[np.ix_(rows, pixels)].astype(np.float64)
        return y - c, -y - c

    def run(self, telling: Index) -> None:
        """Known and new by turns, until nothing changes; `telling`: pixels in the order of what
        they say."""
        self.merge(telling)
        for turn in range(len(self.y)):  # every turn but the last explains an encoding
            sure = telling[~self.doubtful[:, telling].any(axis=0)]
            pixels = np.roll(sure[:PIXELS], turn)
            if len(pixels) < 2 or not (self.members < 0).any():
                break
            known = self.by_known(pixels) if self.similarity is None else self.by_likely(pixels)
            if not (known or self.by_new(pixels, FEWEST) or self.by_new(pixels, 2)):
                break

    def merge(self, telling: Index) -> None:
        """Vectors that came out under two names get one; encodings that then hold a vector twice
        are left over."""
        sure = telling[~self.doubtful[:, telling].any(axis=0)]
        if not len(sure):
            return
        order = np.argsort(self.values[:, sure[0]], kind="stable")
        name = np.arange(len(self.values))
        for place, i in enumerate(order):
            for j in order[place + 1 :]:
                if self.values[j, sure[0]] - self.values[i, sure[0]] > 4 * self.bound[sure[0]]:
                    break
                # At all pixels that both are sure of, most of them: the telling ones that nobody
                # doubts may be few.
                same = np.abs(self.values[i] - self.values[j]) <= 4 * self.bound
                unsure = self.doubtful[i] | self.doubtful[j]
                if (same | unsure).all() and 2 * unsure.sum() < len(same):
                    name[name == name[j]] = name[i]
        known = (self.members >= 0).all(axis=1)
        self.members[known] = np.sort(name[self.members[known]], axis=1)
        twice = known & (np.diff(self.members, axis=1) == 0).any(axis=1)
        self.members[twice] = -1
        used, names = np.unique(self.members[known & ~twice], return_inverse=True)
        self.members[known & ~twice] = names.reshape(-1, self.members.shape[1])
        self.values, self.doubtful = self.values[used], self.doubtful[used]

    def by_known(self, pixels: Index) -> bool:
        """Encodings that known vectors reproduce."""
        n, k = len(self.values), self.members.shape[1]
        left = np.flatnonzero((self.members < 0).any(axis=1))
        if not len(left) or comb(n, k) > MOST or n < k:
            return False
        subsets = _subsets(n, k)
        sums = self.values[:, pixels[0]][subsets].sum(axis=1)
        order = np.argsort(sums, kind="stable")
        sums = sums[order]
        changed = False
        near = 2 * self.bound[pixels]
        hi, lo = self.sides(left, pixels)
        for at, i in enumerate(left):
            first = np.array([hi[at, 0], lo[at, 0]])
            low, high = (
                np.searchsorted(sums, first - near[0]),
                np.searchsorted(sums, first + near[0]),
            )
            few = np.unique(np.concatenate([order[u:v] for u, v in zip(low, high, strict=True)]))
            for place in range(1, len(pixels)):
                if not len(few):
                    break
                s = self.values[:, pixels[place]][subsets[few]].sum(axis=1)
                few = few[
                    np.minimum(np.abs(s - hi[at, place]), np.abs(s - lo[at, place])) <= near[place]
                ]
            if len(few) == 1 and self._reproduced(
                int(i), subsets[few[0]]
            ):  # several: they say nothing about each other
                self.members[i] = subsets[few[0]]
                changed = True
        return changed

    def by_likely(self, pixels: Index) -> bool:
        """Encodings that those known vectors reproduce which similarity names."""
        left = np.flatnonzero((self.members < 0).any(axis=1))
        changed = False
        near = 2 * self.bound[pixels]
        hi, lo = self.sides(left, pixels)
        for at, few in enumerate(self._choices(left, self.members.shape[1])):
            for place in range(len(pixels)):
                s = self.values[:, pixels[place]][few].sum(axis=1)
                few = few[
                    np.minimum(np.abs(s - hi[at, place]), np.abs(s - lo[at, place])) <= near[place]
                ]
            if len(few) == 1 and self._reproduced(int(left[at]), few[0]):
                self.members[left[at]] = few[0]
                changed = True
        return changed

    def _choices(self, left: Index, size: int) -> Index:
        """(rows left, subsets, size): the subsets of known vectors that are tried for each; one row
        for all by default."""
        n = len(self.values)
        if self.similarity is None:
            return _subsets(n, size)[None]
        # Least squares of an encoding's similarities on who uses what.
        rows = np.flatnonzero((self.members >= 0).all(axis=1))
        W = incidence(self.members[rows], n)
        scores = np.linalg.solve(
            W.T @ W + 0.5 * np.eye(n), W.T @ self.similarity[np.ix_(rows, left)]
        ).T
        few = min(n, LIKELY)
        return np.sort(np.argsort(-scores, axis=1)[:, :few], axis=1)[:, _subsets(few, size)]

    def _reproduced(self, row: int, names: Index) -> bool:
        """Whether known vectors reproduce an encoding at every pixel that they are sure of."""
        s, unsure = self.values[names].sum(axis=0), self.doubtful[names].any(axis=0)
        hi, lo = self.sides(np.array([row]), np.arange(self.y.shape[1]))
        near = np.minimum(np.abs(s - hi[0]), np.abs(s - lo[0])) <= 2 * self.bound
        return bool((near | unsure).all())

    def by_new(self, pixels: Index, fewest: int) -> bool:
        """A vector that `fewest` encodings or more miss, found and solved; of two readings the
        shorter vector."""
        n, k = len(self.values), self.members.shape[1]
        left = np.flatnonzero((self.members < 0).any(axis=1))
        partners = comb(n if self.similarity is None else min(n, LIKELY), k - 1)
        if len(left) < fewest or n < k - 1:
            return False
        for hashed in KEYS:
            if 2**hashed * len(left) * partners > MOST or hashed > len(pixels):
                break
            found = self._missing(left, partners, pixels, hashed, fewest)
            if found:
                _, rows, who = min(found, key=lambda one: one[0])
                self._add(rows, who)
                return True
        return False

    def _missing(
        self, left: Index, partners: int, pixels: Index, hashed: int, fewest: int
    ) -> list[tuple[float, Index, Index]]:
        """(size, encodings, their partners) of vectors that `fewest` encodings or more miss; one at
        a time, where three agree."""
        subsets = self._choices(left, self.members.shape[1] - 1)
        # 1. Keys of (encoding, partners): the two values of the missing vector at each pixel.
        keys = self._keys(left, subsets, pixels[:hashed])
        order = np.argsort(keys, kind="stable")
        start = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
        size = np.diff(np.append(start, len(keys)))
        # 2. Groups of three and more that agree at all pixels, the largest first. Only one vector
        # is added at a time: rows {v, a, b}, {v, a, b'}, {v, a, b''} agree on v, and on v + a − c
        # as well. An alias shares c with all of its rows.
        groups = np.flatnonzero(size >= fewest)
        found: list[tuple[float, Index, Index]] = []
        for g in groups[np.argsort(-size[groups], kind="stable")][:MOST_GROUPS]:
            where = np.unique(order[start[g] : start[g] + size[g]] % (len(left) * partners))
            rows, once = np.unique(left[where // partners], return_index=True)
            who = subsets[where[once] // partners % len(subsets), where[once] % partners]
            # With fewer rows there are not more readings to tell apart: no need to look at pixels.
            if len(rows) < fewest or (fewest > 2 and not _one_reading(who)):
                continue
            value, _, agree = self._agreed(rows, who, pixels)
            fits = agree.all(axis=1)
            if fewest > 2 and not _one_reading(who[fits]):
                continue
            rows, who = rows[fits], who[fits]
            if min(len(rows), len(np.unique(who, axis=0))) >= fewest and self._agree_everywhere(
                rows, who
            ):
                found.append((float(value @ value), rows, who))
                if fewest > 2:
                    break
        return found

    def _keys(self, left: Index, subsets: Index, pixels: Index) -> Index:
        """One per choice of sides, encoding and partners: equal where the missing vector would have
        the same values at `pixels`."""
        keys: list[Index] = [np.zeros((len(left), subsets.shape[1]), np.int64)]
        sides = self.sides(left, pixels)
        for place, pixel in enumerate(pixels):
            grid = CELL * self.bound[pixel]
            sums = self.values[:, pixel][subsets].sum(axis=2)
            cells = [
                np.rint((side[:, place, None] - sums) / grid).astype(np.int64) for side in sides
            ]
            with np.errstate(over="ignore"):
                keys = [key * np.int64(0x9E3779B97F4A7C1) ^ cell for key in keys for cell in cells]
        return np.concatenate([key.ravel() for key in keys])

    def _agree_everywhere(self, rows: Index, partners: Index) -> bool:
        """Whether encodings agree on the vector they miss at every pixel that their partners are
        sure of."""
        agree = self._agreed(rows, partners, np.arange(self.y.shape[1]))[2]
        return bool((agree | self.doubtful[partners].any(axis=1)).all())

    def _add(self, rows: Index, partners: Index) -> None:
        """A new vector, from encodings `rows` (r,) that agree on it, with known `partners` (r,
        k−1)."""
        everywhere = np.arange(self.y.shape[1])
        value, doubtful, _ = self._agreed(rows, partners, everywhere)
        n = len(self.values)
        self.values = np.vstack([self.values, value])
        self.doubtful = np.vstack([self.doubtful, doubtful])
        self.members[rows] = np.column_stack([partners, np.full(len(rows), n)])

    def _agreed(self, rows: Index, partners: Index, pixels: Index) -> tuple[Floats, Bools, Bools]:
        """(the value most rows agree on, whether another one fits as well, which rows (r, pixels)
        agree with it)."""
        s = self.values[:, pixels][partners].sum(axis=1)
        unsure = self.doubtful[:, pixels][partners].any(axis=1)
        hi, lo = self.sides(rows, pixels)
        plus, minus = hi - s, lo - s
        options = np.concatenate([plus, minus])
        near = 4 * self.bound[pixels]
        # One vote of every row for each value that it allows.
        votes = np.zeros(options.shape, np.int64)
        for u, w, skip in zip(plus, minus, np.asarray(unsure), strict=True):
            votes += ((np.abs(options - u) <= near) | (np.abs(options - w) <= near)) & ~skip
        votes = np.where(np.concatenate([unsure, unsure]), 0, votes)
        best = votes.argmax(axis=0)
        here = np.arange(len(pixels))
        value = options[best, here]
        rivals = (np.abs(options - value) > near) & (votes == votes[best, here])
        agree = np.minimum(np.abs(plus - value), np.abs(minus - value)) <= near
        doubtful = rivals.any(axis=0) | ((~unsure).sum(axis=0) < 2)
        return value, np.asarray(doubtful), np.asarray(agree)


def _one_reading(partners: Index) -> bool:
    """Whether encodings with such partners (r, k−1) can be read in one way only
    (`certify.relabelling`): none of the partners is in all of them, so that it could be swapped,
    and there are too many for each encoding to have its complement instead."""
    used, rows = np.unique(partners, return_counts=True)
    return len(used) > 2 * partners.shape[1] and int(rows.max()) < len(partners)


def _subsets(n: int, k: int) -> Index:
    """(C(n, k), k), sorted."""
    if k == 0:
        return np.empty((1, 0), np.int64)
    if k == 1:
        return np.arange(n)[:, None]
    if k == 2:
        return np.column_stack(np.triu_indices(n, 1))
    return np.array(list(combinations(range(n), k)), dtype=np.int64).reshape(-1, k)
