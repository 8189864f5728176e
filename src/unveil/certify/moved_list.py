"""Does the public list hold its own vectors again, moved?

If p + t is listed for every p that stands in the rows of x, then x − w·t with these in their place
explains the same rows. So it is for all private vectors together, each moved by w·t/k, if p + t is
listed for one p of every row; and for −x − 2w·c/k, signs hidden, if 2c − p is listed for all p.
A list in general position has no such t; pictures with and without a watermark have. Which of both
was meant no encoding tells: all such vectors are in doubt. A vector that nobody else is mixed with
(k = 1) may have a mirror image of its own.

Lists are long and t is unknown: it is the difference between a public vector of the first row and
any other listed one. Two random projections say at once which of these differences lead from a
vector of the next row into the list again. Nearly always none is left after two rows. Points that
have no listed vector near them are told by a table of cells, one look-up each: a search in the
sorted list took 18 s for 1,000 vectors and 10,000 listed ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.solve.model import PublicPart

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Values = NDArray[np.float64]

SAME = 1e-5
"""Distance of vectors that are one, relative to the size of listed ones: single precision leaves
1e-7 of each."""
LARGEST = 200_000_000
"""Vectors × listed ones × k_public² up to which vectors are looked at one by one: about ten
seconds. Beyond, only all of them together."""
CELLS = 1 << 20
"""Of a table: a megabyte stays in a processor's cache."""
BESIDE = (-2, -1, 0, 1)
"""Places of a sorted list that are looked at: more than two vectors within `SAME` are copies of
each other."""


def moved(members: Index, n: int, public: PublicPart, *, kept: bool) -> Flags:
    """(n,) vectors that moved public ones leave in doubt. members (rows, k): of the same rows as
    `public.names`; kept: signs were not hidden."""
    listed = _Listed(public.vectors)
    names = public.names
    if not names.shape[1] or listed.moves(names) or (not kept and listed.mirrors(names)):
        return np.full(n, bool(names.shape[1]))
    out = np.zeros(n, bool)
    if n * len(public.vectors) * names.shape[1] ** 2 <= LARGEST:
        for i in range(n):
            own = names[(members == i).any(axis=1)]
            out[i] = listed.moves(own)
            if members.shape[1] == 1 and not kept:
                out[i] |= listed.mirrors(own)
    return out


class _Listed:
    """Listed vectors (N, d), and two projections of each, in the order of the first."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        size = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64)))) or 1.0
        # Projections on directions of length one vary as one value does.
        directions = np.random.default_rng(0).standard_normal((vectors.shape[1], 2))
        self.directions = directions / np.linalg.norm(directions, axis=0)
        self.at = vectors @ self.directions
        self.order = np.argsort(self.at[:, 0], kind="stable")
        self.sorted = self.at[self.order, 0]
        self.near = SAME * size
        self.near_all = SAME * size * np.sqrt(vectors.shape[1])
        # Cells with a listed vector in them or beside them, of each projection. They are no
        # narrower than `near`, and the outermost ones stay empty.
        self.width = np.maximum(self.near, np.ptp(self.at, axis=0) / (CELLS - 6))
        self.cells = ((self.at - self.at.min(axis=0)) / self.width + 3).T.copy()
        self.taken = np.zeros((2, CELLS), bool)
        for taken, own in zip(self.taken, self.cells.astype(np.int64), strict=True):
            for beside in (-1, 0, 1):
                taken[own + beside] = True

    def lead(self, shift: Values) -> Index:
        """Which listed vectors lead to listed ones, by a shift (2,) of projections."""
        left = np.arange(len(self.at))
        for taken, cells, moved in zip(self.taken, self.cells, shift / self.width, strict=True):
            # Beyond the list's own cells the outermost ones answer.
            left = left[taken.take((cells[left] + moved).astype(np.int64), mode="clip")]
        return left[self.find(self.at[left] + shift) >= 0]

    def find(self, points: Values) -> Index:
        """Which listed vector has these projections (…, 2); −1: none."""
        first = np.searchsorted(self.sorted, points[..., 0])
        out = np.full(points.shape[:-1], -1)
        for step in BESIDE:
            place = self.order[np.clip(first + step, 0, len(self.order) - 1)]
            fits = (np.abs(self.at[place] - points) <= self.near).all(axis=-1)
            out = np.where(fits, place, out)
        return out

    def moves(self, names: Index) -> bool:
        """Whether one t ≠ 0 leads from a public vector of every row (rows, k_public) into the
        list. One that stands in all rows always has such t: `certify.relabelling` judges that."""
        rows = np.unique(np.sort(names, axis=1), axis=0)
        if len(rows) < 2 or any((rows == h).any(axis=1).all() for h in rows[0]):
            return False
        # 1. Every t = q − p of the first row that the second one allows, by (p, q).
        allowed: list[Index] = []
        for p in rows[0]:
            q = np.unique(np.concatenate([self.lead(self.at[h] - self.at[p]) for h in rows[1]]))
            q = q[np.linalg.norm(self.at[q] - self.at[p], axis=1) > self.near]
            allowed.append(np.column_stack([np.full(len(q), p), q]))
        start, end = np.concatenate(allowed).T
        # 2. Those that every further row allows.
        for row in rows[2:]:
            t = self.at[end] - self.at[start]
            stay = np.any(self.find(self.at[row][None] + t[:, None]) >= 0, axis=1)
            start, end = start[stay], end[stay]
            if not len(end):
                return False
        # 3. At all pixels.
        pairs = zip(start, end, strict=True)
        return any(self._holds(rows, self.vectors[b] - self.vectors[a], 1) for a, b in pairs)

    def mirrors(self, names: Index) -> bool:
        """Whether 2c − p is listed for all p that stand in rows, with one c."""
        used = np.unique(names)
        if len(used) < 3:
            return False
        end = np.arange(len(self.vectors))
        for h in used[1:]:
            end = end[self.find(self.at[used[0]] + self.at[end] - self.at[h]) >= 0]
            if not len(end):
                return False
        rows = used[:, None]
        return any(self._holds(rows, self.vectors[used[0]] + self.vectors[b], -1) for b in end)

    def _holds(self, rows: Index, t: NDArray[np.float32], sign: int) -> bool:
        """Whether ±p + t is listed, at all pixels, for one p of every row."""
        shift = self.vectors[rows] * np.float32(sign) + t
        found = self.find(sign * self.at[rows] + t @ self.directions)
        off = np.abs(self.vectors[found] - shift).max(axis=-1)
        return bool(((found >= 0) & (off <= self.near_all)).any(axis=1).all())
