"""Who mixes whom: designs with a second reading, or nearly. Each makes rows (m, k) of names, from 0
on.

`random_rows` is the design that nobody chose; the others have symmetries, bottlenecks, or hardly a
row to spare.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Rng = np.random.Generator

MOST_ROWS = 120
"""Rows of a design with all subsets in it: some of them are drawn where there are more."""


def random_rows(rng: Rng, k: int, n: int | None = None, m: int | None = None) -> Index:
    n = int(rng.integers(2 * k + 2, 22)) if n is None else n
    m = int(n * rng.uniform(1.5, 8)) if m is None else m
    return np.array([rng.choice(n, k, replace=False) for _ in range(m)], dtype=np.int64).reshape(
        m, k
    )


def _bipartite(rng: Rng, k: int) -> Index:
    """One member from each of two halves; sometimes with a few rows inside a half."""
    h = int(rng.integers(k, 9))
    rows = [
        np.append(rng.choice(h, 1), h + rng.choice(h, k - 1, replace=False))
        for _ in range(int(rng.integers(2, 5)) * h)
    ]
    return np.array(
        rows + [rng.choice(h, k, replace=False) for _ in range(int(rng.integers(0, 4)))]
    )


def _blocks(rng: Rng, k: int) -> Index:
    """Two blocks that meet in one or two vectors."""
    h, shared = int(rng.integers(2 * k + 1, 11)), int(rng.integers(1, 3))
    size = int(h * rng.uniform(2, 5))
    return np.vstack([random_rows(rng, k, h, size), random_rows(rng, k, h, size) + h - shared])


def _cyclic(rng: Rng, k: int) -> Index:
    n = int(rng.integers(2 * k + 1, 16))
    steps = [np.arange(k), np.append(np.arange(k - 1), k + int(rng.integers(0, 3)))][
        : int(rng.integers(1, 3))
    ]
    rows = np.vstack([(np.arange(n)[:, None] + step) % n for step in steps])
    return np.vstack([rows, random_rows(rng, k, n, int(rng.integers(0, n)) + 1)])


def _chains(rng: Rng, k: int) -> Index:
    """A dense core, and chains of vectors of two rows each that begin and end in it."""
    core, rows = int(rng.integers(2 * k + 2, 12)), []
    new = core
    for _ in range(int(rng.integers(1, 4))):
        length = int(rng.integers(1, 5))
        links = [int(rng.integers(core)), *range(new, new + length), int(rng.integers(core))]
        new += length
        for a, b in pairwise(links):
            if a != b:
                others = np.setdiff1d(np.arange(core), [a, b])
                rows.append(np.append([a, b], rng.choice(others, k - 2, replace=False)))
    dense = random_rows(rng, k, core, 5 * core)
    return np.vstack([dense, np.array(rows).reshape(-1, k), random_rows(rng, k, core, 1)]).astype(
        np.int64
    )


def _tree(rng: Rng, k: int) -> Index:
    n = int(rng.integers(k + 3, 16))
    rows = [np.append(v, rng.choice(v, k - 1, replace=False)) for v in range(k, n)]
    return np.array([np.arange(k), *rows, *random_rows(rng, k, n, int(rng.integers(1, 4)))])


def _bridge(rng: Rng, k: int) -> Index:
    """Two dense cores joined by one or two rows."""
    h = int(rng.integers(2 * k + 2, 11))
    rows = np.vstack([random_rows(rng, k, h, 4 * h), random_rows(rng, k, h, 4 * h) + h])
    across = [
        np.append(rng.choice(h, k - 1, replace=False), h + rng.integers(h))
        for _ in range(int(rng.integers(1, 3)))
    ]
    return np.vstack([rows, across])


def _complements(rng: Rng, k: int) -> Index:
    n = 2 * k + int(rng.integers(0, 2))
    return random_rows(rng, k, n, int(rng.integers(n + 2, 6 * n)))


def _sunflower(rng: Rng, k: int) -> Index:
    """Most rows share the first vectors."""
    n, core = int(rng.integers(2 * k + 2, 18)), int(rng.integers(1, k))
    petals = [
        np.append(np.arange(core), core + rng.choice(n - core, k - core, replace=False))
        for _ in range(3 * n)
    ]
    return np.vstack([petals, random_rows(rng, k, n, int(rng.integers(1, n)))])


def _even_set(rng: Rng, k: int) -> Index:
    """2s vectors that every row meets in 0 or s: their complements fit as well, inside."""
    s = max(1, min(k - 1, int(rng.integers(1, k + 1))))
    n = int(rng.integers(2 * k + 2, 14))
    inside = [
        np.append(rng.choice(2 * s, s, replace=False), 2 * s + rng.choice(n, k - s, replace=False))
        for _ in range(40)
    ]
    return np.vstack([inside, random_rows(rng, k, n, 40) + 2 * s])


def _tiny_surplus(rng: Rng, k: int) -> Index:
    n = int(rng.integers(2 * k + 2, 18))
    return random_rows(rng, k, n, n + int(rng.integers(0, 6)))


def _circulant(rng: Rng, k: int) -> Index:
    """One to three base rows and all their shifts, and nothing else."""
    n = int(rng.integers(2 * k + 1, 20))
    bases = [
        np.append(0, 1 + rng.choice(n - 1, k - 1, replace=False))
        for _ in range(int(rng.integers(1, 4)))
    ]
    return np.vstack([(np.arange(n)[:, None] + base) % n for base in bases])


def _symmetric(rng: Rng, k: int) -> Index:
    """Planes and graphs with many symmetries: Fano, the affine planes of order 3 and 4, the
    projective plane of order 3, the octahedron, Petersen's graph, a cube, a torus; some without a
    row or two, some with a few more."""
    if k == 2:
        graphs = [
            _octahedron(),
            _petersen(),
            _cube(int(rng.integers(3, 5))),
            _torus(3, int(rng.integers(3, 6))),
        ]
        rows = graphs[int(rng.integers(len(graphs)))]
    elif k == 3:
        rows = [_shifts(7, (0, 1, 3)), _affine(3), _shifts(13, (0, 1, 4), (0, 2, 7))][
            int(rng.integers(3))
        ]
    else:
        rows = (
            [_shifts(13, (0, 1, 3, 9)), _affine(4)][int(rng.integers(2))]
            if k == 4
            else _shifts(21, (0, 1, 4, 14, 16))
        )
        k = rows.shape[1]
    rows = rows[rng.permutation(len(rows))[: len(rows) - int(rng.integers(0, 3))]]
    more = int(rng.integers(0, 12)) if rng.random() < 0.6 else 0
    return np.vstack([rows, random_rows(rng, k, int(rows.max()) + 1, more)])


def _shifts(n: int, *bases: tuple[int, ...]) -> Index:
    return np.vstack([(np.arange(n)[:, None] + np.array(base)) % n for base in bases])


def _affine(q: int) -> Index:
    """Lines of the affine plane with q² points: those of one direction by a Latin square of Z_3, or
    of the field with 4."""
    square = {
        3: lambda a, x: (a * x) % 3,
        4: lambda a, x: ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))[a][x],
    }[q]
    plus = {3: lambda a, b: (a + b) % 3, 4: lambda a, b: a ^ b}[q]
    lines = [[q * x + y for y in range(q)] for x in range(q)]
    lines += [[q * x + plus(square(a, x), b) for x in range(q)] for a in range(q) for b in range(q)]
    return np.array(lines)


def _octahedron() -> Index:
    return np.array([pair for pair in combinations(range(6), 2) if sum(pair) != 5])


def _petersen() -> Index:
    pairs = list(combinations(range(5), 2))
    return np.array(
        [(a, b) for a, b in combinations(range(10), 2) if not set(pairs[a]) & set(pairs[b])]
    )


def _cube(dimension: int) -> Index:
    """Edges of a cube: bipartite, so that nothing is determined until a further row is added."""
    return np.array(
        [(a, a | 1 << i) for a in range(2**dimension) for i in range(dimension) if not a >> i & 1]
    )


def _torus(a: int, b: int) -> Index:
    points = [(i, j) for i in range(a) for j in range(b)]
    return np.array(
        [(b * i + j, b * ((i + 1) % a) + j) for i, j in points]
        + [(b * i + j, b * i + (j + 1) % b) for i, j in points]
    )


def _complete(rng: Rng, k: int) -> Index:
    """All subsets of few vectors, or one from each of k groups; one to three rows are missing or
    come on top."""
    if rng.random() < 0.5:
        n = int(rng.integers(2 * k, 2 * k + 5))
        rows = np.array(list(combinations(range(n), k)))
    else:
        size = int(rng.integers(2, 5))
        rows = np.stack(
            np.meshgrid(*[np.arange(size) + size * i for i in range(k)]), axis=-1
        ).reshape(-1, k)
        rows = np.vstack([rows, random_rows(rng, k, size * k, int(rng.integers(0, 4)))])
    return rows[rng.permutation(len(rows))[: min(MOST_ROWS, len(rows) - int(rng.integers(0, 4)))]]


def _apart(rng: Rng, k: int) -> Index:
    """Two or three designs that share nothing."""
    sizes = [int(rng.integers(k + 1, 11)) for _ in range(int(rng.integers(2, 4)))]
    parts = [random_rows(rng, k, n, int(n * rng.uniform(2, 5))) for n in sizes]
    return np.vstack([part + sum(sizes[:i]) for i, part in enumerate(parts)])


def _twins(rng: Rng, k: int) -> Index:
    """Vectors that occur together in all rows but a few: only those few tell one from the other."""
    n, pairs = int(rng.integers(2 * k + 3, 16)), int(rng.integers(1, 4))
    rows = random_rows(rng, k, n, int(n * rng.uniform(3, 7)))
    for row in rows:
        for pair in range(min(pairs, n // 2)):
            a, b = 2 * pair, 2 * pair + 1
            if (a in row) != (b in row):
                row[rng.choice(np.flatnonzero((row != a) & (row != b)))] = b if a in row else a
    spare = random_rows(rng, k, n, int(rng.integers(0, 4)))
    return np.vstack([rows, spare])


def _barely_more(rng: Rng, k: int) -> Index:
    """n = 2k to 2k + 3, and many rows: complements are near."""
    n = 2 * k + int(rng.integers(0, 4))
    return random_rows(rng, k, n, int(rng.integers(n + 2, 8 * n)))


def _hubs(rng: Rng, k: int) -> Index:
    """One or two vectors in nearly all rows, or absent from nearly all."""
    n, often = int(rng.integers(2 * k + 3, 20)), int(rng.integers(1, min(3, k)))
    rows = random_rows(rng, k, n, 5 * n)
    for row in rows[: int(len(rows) * rng.choice([0.8, 0.95, 1.0]))]:
        others = rng.choice(np.arange(often, n), k - often, replace=False)
        row[:] = np.append(np.arange(often), others)
    return rows


def _many_mixed(rng: Rng, k: int) -> Index:
    """k of 5 or 6."""
    k = int(rng.integers(5, 7))
    n = int(rng.integers(2 * k + 1, 2 * k + 12))
    return random_rows(rng, k, n, int(n * rng.uniform(2, 9)))


DESIGNS: dict[str, Callable[[Rng, int], Index]] = {
    "bipartite": _bipartite,
    "blocks": _blocks,
    "cyclic": _cyclic,
    "chains": _chains,
    "tree": _tree,
    "bridge": _bridge,
    "complements": _complements,
    "sunflower": _sunflower,
    "even sets": _even_set,
    "tiny surplus": _tiny_surplus,
    "circulant": _circulant,
    "symmetric": _symmetric,
    "complete": _complete,
    "apart": _apart,
    "twins": _twins,
    "barely more than 2k": _barely_more,
    "hubs": _hubs,
    "many mixed": _many_mixed,
}
"""A design may answer with rows of another k than it was asked for."""
