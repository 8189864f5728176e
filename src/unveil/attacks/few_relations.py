"""Pairs and pixels where relations are too few, or encodings too many, for their null space:
thousands of encodings.

    1  signs ← relations                    of the encodings they join, at more pixels than vectors
                                            (`relations.signs`)
    2  pairs ← the space that these span    exact, most encodings (`relations.span`)
    3  pairs ← matching at a few pixels     all others, and vectors that were missed
                                            (`solve.signs.pair_matching`)
    4  x ← every pixel                      with the values in doubt (`solve.signs.signed_pairs`)

k_private = 2, no public part, and more pixels than vectors. Only steps 1 and 4 see more than a few
dozen pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import Progress
from unveil.relations.signs import joined, propagate_signs, relation_rows, sign_graph
from unveil.relations.sketch import Floats, Index, Sketch
from unveil.relations.span import column_space, complete_part, local_subsets
from unveil.relations.subspace import relation_matrix
from unveil.solve.determined import undetermined_by
from unveil.solve.signs.pair_matching import match_pairs
from unveil.solve.signs.relation_pixels import RelationSolution
from unveil.solve.signs.signed_pairs import solve_signed_pairs

ENOUGH_FOR_SIGNS = 0.6
"""Relations found per encoding after which the search ends: nearly all signs follow from a third as
many (0.3 were enough for 1,000 and for 2,000 images)."""
PIXELS = (0.25, 0.4, 1.0)
"""Pixels per encoding that are tried: vectors are about a sixth as many where there are seven
encodings for each."""
SPARE = 1.3
"""Pixels looked at for one that is used: those at which most signs are known."""
TELLING = 24
"""Pixels at which pairs are matched, at least: three or four continuous ones prove a match, images
need some dozen."""
ANYWHERE = 48
"""Further pixels at which matches are checked, drawn from all: two pictures may be alike wherever
pixels tell most."""
ROUNDS, WORST = 30, 0.5
"""Rounds of dropping encodings whose pair does not hold, those within half of the largest misfit; a
few of a thousand."""
FEWEST = 50
"""Encodings that must hang together: with fewer there is no rank to be seen."""


@dataclass(frozen=True, eq=False)
class Solved:
    """members (m, 2), −1 where unknown, of the vectors of a solution."""

    members: Index
    solution: RelationSolution


def solve_few(
    y: NDArray[np.float32],
    sketch: Sketch,
    quads: Index,
    bound: Floats,
    rng: np.random.Generator,
    clock: Stopwatch,
    *,
    limit: int,
    progress: Progress | None = None,
) -> Solved | None:
    """|x_u + x_v| = y (m, d), different encodings, unit weights, with relations `quads`; None:
    nothing is found."""
    # 1–2. Pairs of most encodings, and their vectors at some pixels.
    with clock("subsets"):
        start = _by_span(y, sketch, quads, bound, rng, limit)
    if start is None:
        return None
    members, values, matching, telling = start
    # 3. The others.
    with clock("growth"):
        matched = match_pairs(
            y[:, matching].astype(np.float64), members, values, bound[matching], telling, rng
        )
    # 4. All pixels; vectors that one encoding alone has are not determined.
    rows, named = _determined(matched.members)
    if len(rows) < FEWEST:
        return None
    with clock("pixels"):
        part = y if len(rows) == len(y) else y[rows]
        solution = solve_signed_pairs(part, named, int(named.max()) + 1, bound, progress=progress)
    members = np.full((len(y), 2), -1, np.int64)
    members[rows] = named
    return Solved(members, solution)


def _by_span(
    y: NDArray[np.float32],
    sketch: Sketch,
    quads: Index,
    bound: Floats,
    rng: np.random.Generator,
    limit: int,
) -> tuple[Index, Floats, Index, int] | None:
    """(members (m, 2), values (n, pixels), those pixels, how many of them, the first ones, are
    those of the sketch)."""
    m, d = y.shape
    quads, coefficients = relation_rows(relation_matrix(sketch, quads))
    hanging = joined(quads, m)
    rows = np.flatnonzero(hanging)
    inside = hanging[quads[:, 0]]
    place = np.cumsum(hanging) - 1
    graph = sign_graph(place[quads[inside]], coefficients[inside], len(rows))
    if len(rows) < FEWEST:
        return None
    # The sketch's pixels first: they tell most, and pairs are matched there.
    order = np.concatenate(
        [sketch.pixels, np.setdiff1d(rng.permutation(d), sketch.pixels, assume_unique=True)]
    )
    sign = np.empty((len(rows), 0), np.int8)
    for share in PIXELS:
        most = min(d, int(share * len(rows)))
        if 8 * most * (3 * most + 3 * len(rows)) > limit and share > PIXELS[0]:
            return None
        more = order[sign.shape[1] : min(d, int(SPARE * most) + len(sketch.pixels))]
        sign = np.hstack([sign, propagate_signs(graph, y[np.ix_(rows, more)], bound[more])])
        kept, pixels = complete_part(sign, most)
        telling = pixels[pixels < len(sketch.pixels)]
        if len(kept) < FEWEST or len(telling) < TELLING:
            return None
        z = sign[np.ix_(kept, pixels)] * y[np.ix_(rows[kept], order[pixels])].astype(np.float64)
        V = column_space(z)
        if V is not None:
            break
        if most == d:
            return None
    else:
        return None
    with one_blas_thread():
        told = local_subsets(V, 2, rng)
    if len(told.rows) < FEWEST:
        return None
    # The sketch's pixels have many values, but may be alike for two vectors; others, anywhere, tell
    # them apart.
    matching = np.flatnonzero(pixels < len(sketch.pixels))
    others = np.flatnonzero(pixels >= len(sketch.pixels))
    matching = np.concatenate([matching, rng.permutation(others)[:ANYWHERE]])
    members, values = _solved(
        told.members, z[told.rows][:, matching] * told.sign[:, None], bound[order[pixels[matching]]]
    )
    out = np.full((m, 2), -1, np.int64)
    out[rows[kept[told.rows]]] = members
    return out, values, order[pixels[matching]], len(telling)


def _solved(members: Index, z: Floats, bound: Floats) -> tuple[Index, Floats]:
    """(members, −1 where they do not hold; values (n', pixels) of the vectors they name) from x_u +
    x_v = z (rows, pixels)."""
    members = members.copy()
    for _ in range(ROUNDS):
        known, named = _determined(members)
        rows = len(known)
        if not rows:
            break
        W = sparse.csc_array((np.ones(2 * rows), (np.repeat(np.arange(rows), 2), named.ravel())))
        values = splu(sparse.csc_array(W.T @ W)).solve(np.asarray(W.T @ z[known]))
        miss = np.abs(W @ values - z[known])
        if (miss <= 2 * bound).all():
            out = np.full(members.shape, -1, np.int64)
            out[known] = named
            return out, values
        # A wrong pair pulls on all that share a vector with it: only those that miss most are
        # dropped at a time.
        size = np.linalg.norm(miss, axis=1)
        members[known[size > WORST * size.max()]] = -1
    return np.full(members.shape, -1, np.int64), np.empty((0, len(bound)))


def _determined(members: Index) -> tuple[Index, Index]:
    """(rows whose vectors the rows determine, their members, renamed)."""
    rows = np.flatnonzero(members[:, 0] >= 0)
    while len(rows):
        used, names = np.unique(members[rows], return_inverse=True)
        named = names.reshape(len(rows), 2).astype(np.int64)
        open_ = undetermined_by(named, len(used)) | (
            np.bincount(named.ravel(), minlength=len(used)) < 2
        )
        if not open_.any():
            return rows.astype(np.int64), named
        rows = rows[~open_[named].any(axis=1)]
    return np.empty(0, np.int64), np.empty((0, 2), np.int64)
