"""Are the values of a pixel the only ones, once it is known who mixes whom? See
`docs/certificate.md`, "One pixel".

|Wx' + c| = |Wx + c| at a pixel means x = a + b where every row has W_r·a = 0 or W_r·b = 0. For
pixels in general position that leaves x' = ±x; each coincidence among values (a zero, a tie) may
free some of them. Whatever solved the pixel has seen one solution, or two. Here it is asked what
the coincidences allow:

  pieces  vectors hang together at a pixel by rows of which no part sums to zero. A piece that does
          not hang together with the largest one, or with the public part where there is one, may
          have the other sign
  levels  a pixel at which far more sums agree than would among continuous values is not in general
          position, and nothing is taken for granted there: what many encodings leave no chance to
          (`certify.ample`) and what relations of four rows prove by search stands, the rest is open

O(rows·2^k) per pixel, a graph search for pixels with zeros, and `sign_search` for pixels of few
levels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.certify.ample import Spread, settled_by_chance, spread_of
from unveil.certify.rows import linked
from unveil.solve.model import TIE, PublicPart
from unveil.solve.signs.relation_pixels import solve_by_relations
from unveil.solve.signs.sign_search import Bools, Floats, Index
from unveil.solve.signs.signed_pairs import solve_signed_pairs

Parts = Iterator[tuple[int, Floats]]

WIDE = 64
"""A window so many times as wide holds as many times more chance agreements of continuous values,
and no more of levels."""
SAMPLED = 400
"""Vectors at which agreements are counted: levels belong to the pixel, and show themselves
anywhere."""
MOST_ROWS = 3000
"""Rows up to which relations among them are looked for: all pairs, a second."""
CELLS = 20_000_000
"""Numbers in memory at a time: rows times pixels of a block."""


def open_values(members: Index, x: Floats, public: PublicPart | None, misfit: Floats) -> Bools:
    """(n, d) values of x that may be others: rows `members` (r, k) with their public part.

    misfit (d,): the largest residual of each pixel, relative to the rms of y
    """
    n, d = x.shape
    # A row that is there twice says nothing new, and its sums agree everywhere.
    members = np.sort(members, axis=1)
    keys = members if public is None else np.hstack([members, np.sort(public.names, axis=1)])
    once = np.unique(keys, axis=0, return_index=True)[1]
    members, names = members[once], None if public is None else public.names[once]
    # The sums have the size of k independent vectors; a pixel that was solved less well is given
    # three times what it misses by.
    group = linked(members, n)
    rms = float(np.sqrt(np.mean(x**2) * members.shape[1])) or 1.0
    near = np.maximum(TIE, 3 * misfit) * rms
    out = np.zeros(x.shape, bool)
    quads: Index | None = None
    spread: Spread | None = None
    size = int(max(8, min(256, CELLS // len(members))))
    for start in range(0, d, size):
        part = slice(start, start + size)
        here, close = x[:, part], near[part]
        c = None
        if public is not None and names is not None:
            c = public.weight * public.vectors[:, part].astype(np.float64)[names].sum(axis=1)
        _add_pieces(out[:, part], members, here, c, close, group)
        few = np.flatnonzero(few_levels(members, here, c, close))
        if not len(few):
            continue
        # Sums of all rows, at the few pixels that need them.
        total = _sums(members, here[:, few], None if c is None else c[:, few])
        spread = spread_of(members, n) if spread is None else spread
        left = ~settled_by_chance(members, total, close[few], spread, d)
        few, total = few[left], total[:, left]
        if len(few):
            quads = design_relations(members, n) if quads is None else quads
            proved = _proved(
                members,
                n,
                np.abs(total),
                None if c is None else c[:, few],
                close[few],
                quads,
            )
            out[:, start + few] |= ~proved
    return out


def _sums(members: Index, x: Floats, c: Floats | None) -> Floats:
    """(rows, pixels): what the members and the public part c of each row add up to."""
    total = np.zeros((len(members), x.shape[1])) if c is None else c.copy()
    for column in members.T:
        total += x[column]
    return total


def _add_pieces(
    out: Bools, members: Index, x: Floats, c: Floats | None, near: Floats, group: Index
) -> None:
    """Marks vectors of pieces that do not hang together with the main one of their group. The
    public part is vector n."""
    (rows, k), n = members.shape, len(x)
    # 1. Rows of which a part sums to zero tie nothing together.
    loose = np.zeros((rows, x.shape[1]), bool)
    zero = np.abs(x) <= near
    for column in members.T:
        loose |= zero[column]
    for size, some in _parts([x[column] for column in members.T]):
        # A single vector is all there is to ask of, unless it meets the public part.
        if c is None and size in (1, k):
            continue
        loose |= np.abs(some) <= near
        if c is not None and size < k:
            loose |= np.abs(some + c) <= near
    # 2. Pixels with such rows: what the others tie together.
    for p in np.flatnonzero(loose.any(axis=0)):
        tied = members[~loose[:, p]]
        ends = np.repeat(tied[:, 0], k - 1), tied[:, 1:].ravel()
        if c is not None:
            ends = np.append(ends[0], tied[:, 0]), np.append(ends[1], np.full(len(tied), n))
        graph = sparse.coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n + 1, n + 1))
        piece = connected_components(graph, directed=False)[1]
        for g in np.unique(group):
            inside = (group == g) & ~zero[:, p]
            main = (
                piece[n] if c is not None else np.bincount(piece[:n][inside], minlength=1).argmax()
            )
            out[inside & (piece[:n] != main), p] = True


def _parts(terms: list[Floats], size: int = 0, some: Floats | None = None) -> Parts:
    """How many terms, and their sum, of every part of them but the empty one: an addition each."""
    for i, term in enumerate(terms):
        more = term if some is None else some + term
        yield size + 1, more
        yield from _parts(terms[i + 1 :], size + 1, more)


def few_levels(members: Index, x: Floats, c: Floats | None, near: Floats) -> Bools:
    """(pixels,) where more sums of the partners of a vector, and of the public part c, agree than
    chance would have it."""
    n = len(x)
    flat = members.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(n + 1))
    close, wide = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for i in range(0, n, -(-n // SAMPLED)):
        rows = order[ends[i] : ends[i + 1]] // members.shape[1]
        total = _sums(members[rows], x, None if c is None else c[rows])
        gaps = np.diff(np.sort(total - x[i], axis=0), axis=0)
        close += (gaps <= near).sum(axis=0)
        wide += (gaps <= WIDE * near).sum(axis=0)
    # Chance agreements are Poisson: six standard deviations, and two more where there are hardly
    # any.
    expected = wide / WIDE
    return np.asarray(close > expected + 6 * np.sqrt(expected) + 2)


def _proved(
    members: Index, n: int, y: Floats, c: Floats | None, near: Floats, quads: Index
) -> Bools:
    """(n, pixels) values that relations among the rows prove to be the only ones."""
    if members.shape[1] == 2 and c is None:
        return ~solve_signed_pairs(y.astype(np.float32), members, n, near).doubtful
    if not len(quads):
        return np.zeros((n, y.shape[1]), bool)
    offsets = None if c is None else c.astype(np.float32)
    return ~solve_by_relations(
        y.astype(np.float32), offsets, members, n, quads, near, np.random.default_rng(0)
    ).doubtful


def design_relations(members: Index, n: int) -> Index:
    """(q, 4) rows a, b, c, d with the same vectors in a and b together as in c and d. None beyond
    `MOST_ROWS`."""
    m = len(members)
    if m > MOST_ROWS:
        return np.empty((0, 4), np.int64)
    # Random numbers as names: two pairs of rows hold the same vectors when their names have the
    # same sum.
    name = np.random.default_rng(0).integers(0, 2**62, n)
    a, b = np.triu_indices(m, 1)
    with np.errstate(over="ignore"):
        key = name[members].sum(axis=1)
        key = key[a] + key[b]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    quads = np.column_stack(
        [a[order[same]], b[order[same]], a[order[same + 1]], b[order[same + 1]]]
    )
    return quads[(np.diff(np.sort(quads, axis=1), axis=1) > 0).all(axis=1)].astype(np.int64)
