"""Under noise: one vector that was solved twice becomes one, and encodings left over yield vectors
that were not known.

  merge   two columns whose difference is no larger than their errors make it
  new     rows i and j that hold known vectors a and b and the same unknown one: ±y_i − x_a = ±y_j −
          x_b up to noise at every pixel. It is a relation of four, two of which have known signs,
          and is found as such (`relations.among`)

Pairs only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unveil.records import Progress
from unveil.relations.among import compare
from unveil.relations.sketch import sketch
from unveil.solve.model import incidence
from unveil.solve.pixels.noisy import NoisySolution, explained, solve_noisy

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARP = 5.0
"""Standard deviations by which the difference of two columns may exceed their errors."""
PIXELS = 512
"""Pixels that are compared: under noise of 5% one says half a nat, and some 40 are needed."""
MOST = 60
"""Agreements per row after which the search ends: each row has one unknown vector, in some twenty
rows."""
MOST_PAIRS = 20_000
"""Encodings times known vectors that are compared, every two of them: a few seconds."""
WEAK = 2
"""Encodings of a column that make it doubtful: any two of them can be explained by a vector made
for the purpose."""
ROUNDS = 4
"""Of merging and new vectors: each new vector explains encodings that reveal others."""


def hold_noisy(
    y: NDArray[np.float32],
    rows: Index,
    members: Index,
    noise: float,
    rng: np.random.Generator,
    *,
    start: Floats | None = None,
    progress: Progress | None = None,
) -> NoisySolution | None:
    """The most likely values of y (m, d) = |Σx|, unit weights, from `rows` and their `members`,
    grown where these are pairs; start (columns, d): where they are known roughly. None: hardly a
    row fits."""
    used, names = np.unique(members, return_inverse=True)
    named, n = names.reshape(members.shape).astype(np.int64), len(used)
    if len(rows) <= n:
        return None
    first = None if start is None else start[used]
    noisy = solve_noisy(y, None, rows, named, n, noise, rng, start=first, progress=progress)
    return grow(y, noisy, rng, progress) if members.shape[1] == 2 else noisy


def on_all_pixels(
    y: NDArray[np.float32],
    telling: Index,
    noisy: NoisySolution | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution | None:
    """The solution for y (m, d) from that of the `telling` pixels. None: less than half of the
    encodings fit, so that what was found may be anything."""
    if noisy is None or 2 * len(noisy.rows) < len(y):
        return None
    if len(telling) == y.shape[1]:
        return replace(noisy, values=noisy.values[:, np.argsort(telling)])
    rows, n = noisy.rows, len(noisy.values)
    return solve_noisy(
        y, None, rows, noisy.members, n, noisy.noise, rng, rounds=1, progress=progress
    )


def grow(
    y: NDArray[np.float32],
    noisy: NoisySolution | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution | None:
    """The solution when nothing more is merged and no vector added; None stays None."""
    for _ in range(ROUNDS):
        grown = None if noisy is None else _grown(y, noisy, rng, progress)
        if grown is None:
            break
        noisy = grown
    return noisy


def merged(noisy: NoisySolution) -> Index:
    """(n,) the first column that is the same vector as each one."""
    x, d = noisy.values, noisy.values.shape[1]
    n = len(x)
    W = incidence(noisy.members, n)
    # Variance of the difference of two columns, from the covariance of least squares.
    C = np.linalg.pinv(W.T @ W)
    variance = noisy.noise**2 * (np.diag(C)[:, None] + np.diag(C) - 2 * C)
    size = np.einsum("ij,ij->i", x, x)
    apart = np.maximum(size[:, None] + size - 2 * x @ x.T, 0.0) / d
    same = (
        (apart < variance * (1 + SHARP * np.sqrt(2 / d)))
        & noisy.determined
        & noisy.determined[:, None]
    )
    group = connected_components(coo_array(same), directed=False)[1]
    return np.asarray(np.unique(group, return_index=True)[1][group], np.int64)


def new_vectors(
    y: NDArray[np.float32], x: Floats, left: Index, noise: float, rng: np.random.Generator
) -> tuple[Floats, Index, Index]:
    """(values (q, d), rows (r,), members (r, 2)) of new columns from len(x) on: |x_a + x_new| = y
    for some rows of `left`."""
    none = np.empty((0, y.shape[1])), np.empty(0, np.int64), np.empty((0, 2), np.int64)
    left = left[: MOST_PAIRS // max(1, len(x))]
    if len(left) < 2 or len(y) < 4:
        return none
    # 1. Relations of two rows and two known vectors.
    view = sketch(y, None, noise, rng, PIXELS)
    rows, names = np.divmod(np.arange(len(left) * len(x)), len(x))
    theirs, known = view.hi[left] / view.spread, x[:, view.pixels] / view.spread
    differences = np.stack(
        [theirs[rows] - known[names], -theirs[rows] - known[names]], axis=2
    ).astype(np.float32)
    quads = compare(
        differences, np.column_stack([rows, names + len(left)]), view.nats, MOST * len(left)
    )
    if quads is None or not len(quads):
        return none
    ends = quads[:, [0, 2]] * len(x) + quads[:, [1, 3]] - len(left)
    # 2. Places (row, partner) that hang together hold one new vector.
    places, at = np.unique(ends, return_inverse=True)
    at = at.reshape(ends.shape)
    group = connected_components(
        coo_array((np.ones(len(at)), at.T), shape=(len(places),) * 2), directed=False
    )[1]
    candidates = []
    for g in range(group.max() + 1):
        row, partner = np.divmod(places[group == g], len(x))
        first = np.unique(row, return_index=True)[1]
        row, partner = row[first], partner[first]
        value = _consensus(y[left[row]].astype(np.float64), x[partner])
        candidates.append((len(row), float(np.mean(value**2)), row, partner, value))
    # 3. The best supported first; of the two readings of two rows the smaller vector.
    free = np.ones(len(left), bool)
    values: list[Floats] = []
    found: list[Index] = []
    members: list[Index] = []
    for _, _, row, partner, value in sorted(candidates, key=lambda one: (-one[0], one[1])):
        if not free[row].all() or len(np.unique(partner)) < 2:
            continue
        free[row] = False
        found.append(left[row])
        members.append(np.column_stack([partner, np.full(len(row), len(x) + len(values))]))
        values.append(value)
    return (np.array(values), np.concatenate(found), np.concatenate(members)) if values else none


def _consensus(y: Floats, known: Floats) -> Floats:
    """(d,) the value that is nearest to one of ±y − known in every row."""
    options = np.stack([y - known, -y - known])
    best, out = np.full(y.shape[1], np.inf), np.zeros(y.shape[1])
    for guess in options[:, 0]:
        nearest = np.take_along_axis(options, np.abs(options - guess).argmin(axis=0)[None], axis=0)[
            0
        ]
        miss = ((nearest - nearest.mean(axis=0)) ** 2).sum(axis=0)
        out = np.where(miss < best, nearest.mean(axis=0), out)
        best = np.minimum(best, miss)
    return out


def _grown(
    y: NDArray[np.float32],
    noisy: NoisySolution,
    rng: np.random.Generator,
    progress: Progress | None,
) -> NoisySolution | None:
    """The solution with columns of one vector merged, and with vectors that rows left over reveal;
    None: nothing changed."""
    # 1. One column per vector. Columns that hardly a row uses are looked for again, now that more
    # is known.
    used, names = np.unique(merged(noisy), return_inverse=True)
    uses = np.bincount(names[noisy.members].ravel(), minlength=len(used))
    weak = uses <= WEAK
    x = noisy.values[used[~weak]]
    if not weak.any() and len(used) == len(names) and len(noisy.rows) == len(y):
        return None
    rows, members = explained(y, None, x, noisy.noise, 2, rng)
    # 2. New vectors in what is left.
    values, theirs, more = new_vectors(
        y, x, np.setdiff1d(np.arange(len(y)), rows), noisy.noise, rng
    )
    if len(x) + len(values) == len(names) and len(rows) + len(theirs) <= len(noisy.rows):
        return None
    x, rows, members = (
        np.vstack([x, values]),
        np.concatenate([rows, theirs]),
        np.concatenate([members, more]),
    )
    return solve_noisy(y, None, rows, members, len(x), noisy.noise, rng, start=x, progress=progress)
