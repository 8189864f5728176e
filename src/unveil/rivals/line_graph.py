"""The line-graph attack, k_private = 2: who mixes whom by Whitney's theorem (Huang, Song, Tao,
Zhang and Zhuo, "InstaHide's sample complexity when mixing two private images", 2020).

Let private vectors be vertices and encodings edges of a graph H. Two encodings overlap where their
edges meet: the overlaps are the line graph L(H), and who mixes whom is its root.

    1  M ← LearnPublic, GramExtract
    2  H ← the root of M, component by component
    3  x ← every value from the pairs, with its status (`exact.from_members`)

*The root* (Krausz 1943, Roussopoulos 1973): a graph is a line graph where its edges fall apart into
cliques, the *cells*, no row being in more than two of them. Two rows i, j that overlap are in one
cell, with all rows that both meet but for at most one, which closes a triangle and meets none of
the rest: at most two first cells are possible, and each is tried. Besides the members of its known
cell a row meets those of one other cell. A full check follows, so that a root that is found is one,
and one that exists is found.

*Copies*: overlap 2 is the same pair again; such rows count once. *Two ways*: a connected line graph
has one root and every row one place in it, unless the root is K3, K1,3, a triangle with a tail, K4
less an edge, or K4 (Whitney 1932): `unique` says so. *Wrong overlaps*: where a component is no line
graph its rows are placed one by one where they contradict the fewest overlaps, then every row anew
until nothing changes (after Degiorgi and Simon 1995).

Cost: O(overlaps); a component that is no line graph some twenty times that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.checks import InputError, Rng, child, root
from unveil.encodings import Encodings
from unveil.engine.blocks import Stopwatch
from unveil.exact.from_members import from_subsets, read_overlaps
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import FIXED_WEIGHTINGS

NAME = "line-graph"
Index = NDArray[np.int64]
Neighbours = Sequence[set[int]]


# --- The root of a line graph --------------------------------------------------------------------


def root_of_component(near: Neighbours, rows: Sequence[int]) -> dict[int, tuple[int, int]] | None:
    """The two cells of every row of a connected graph, named 0, 1, …; None: it is no line graph.
    near[i]: the neighbours of row i."""
    i = rows[0]
    if not near[i]:
        return {i: (0, 1)}
    j = min(near[i])
    both = near[i] & near[j]
    alone = [r for r in both if not near[r] & both]
    if len(both) > 2 and len(alone) > 1:
        return None
    # The whole, or without the one or the other that may close a triangle.
    tries: list[int | None] = [*alone, None] if len(both) <= 2 else [*alone] or [None]
    for left_out in tries:
        cells = _spread(near, rows, {i, j} | both - {left_out})
        if cells is not None:
            return cells
    return None


def _spread(
    near: Neighbours, rows: Sequence[int], first: set[int]
) -> dict[int, tuple[int, int]] | None:
    """All cells of a component from its first one, checked."""
    of: dict[int, list[int]] = defaultdict(list)
    cells = [first]
    for r in first:
        of[r].append(0)
    queue = list(first)
    while queue:
        r = queue.pop()
        if len(of[r]) > 1:
            continue
        # What it meets besides the members of its cell is its other cell.
        cell = (near[r] - cells[of[r][0]]) | {r}
        for q in cell:
            if len(of[q]) == 2:
                return None
            of[q].append(len(cells))
            queue.append(q)
        cells.append(cell)
    for r in rows:
        if len(of[r]) != 2:
            return None
        one, two = (cells[c] for c in of[r])
        if one & two != {r} or (one | two) - {r} != near[r]:
            return None
    return {r: (of[r][0], of[r][1]) for r in rows}


def nearest_pairs(near: Neighbours, rows: Sequence[int], rounds: int = 20) -> dict[int, list[int]]:
    """Two vertices for every row of a component, so that few overlaps are contradicted.

    With u and v row i contradicts |N(i)| + [s(u) − 2t(u)] + [s(v) − 2t(v)] overlaps, s(u) rows
    having u, t(u) of them among its neighbours N(i), a row with both counting once. So u is one of
    the three best, and v the best among the rows without u; a vertex that no row has counts 0.
    """
    pairs: dict[int, list[int]] = {}
    rows_of: dict[int, set[int]] = defaultdict(set)
    names = iter(range(10**9))

    def place(i: int) -> bool:
        old = pairs.pop(i, [])
        for v in old:
            rows_of[v].discard(i)

        def scores(others: list[int]) -> Counter[int]:
            votes = Counter(v for r in others for v in pairs[r])
            # What the row has is worth a little more, so that rounds come to an end.
            gain = {v: 2 * t - len(rows_of[v]) + 0.5 * (v in old) for v, t in votes.items()}
            return Counter({v: g for v, g in gain.items() if g > 0})

        placed = [r for r in near[i] if r in pairs]
        best, new = 0.0, [next(names), next(names)]
        for u, gain in scores(placed).most_common(3):
            rest = scores([r for r in placed if u not in pairs[r]])
            rest.pop(u, None)
            v, more = rest.most_common(1)[0] if rest else (next(names), 0)
            if gain + more > best:
                best, new = gain + more, [u, v]
        pairs[i] = new
        for v in new:
            rows_of[v].add(i)
        return set(new) != set(old)

    # The star of a row with most neighbours, then rows as they are reached from it.
    centre = max(rows, key=lambda r: len(near[r]))
    partner = max(near[centre], key=lambda r: len(near[centre] & near[r]))
    both = near[centre] & near[partner]
    hub = next(names)
    order = [centre, partner, *(r for r in both if 2 * len(near[r] & both) >= len(both) - 1)]
    for r in order:
        pairs[r] = [hub, next(names)]
        for v in pairs[r]:
            rows_of[v].add(r)
    for r in order:
        new = near[r] - pairs.keys()
        order += sorted(new, key=lambda q: -len(near[q] & pairs.keys()))
        for q in order[-len(new) :] if new else ():
            place(q)
    for _ in range(rounds):
        if not sum([place(r) for r in rows]):
            break
    return pairs


# --- Pairs from overlaps -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LineGraphRoot:
    """members (m, 2): the pair of every encoding, names 0 … n−1; unique (m,): no other pairs have
    the same overlaps in its component; contradicted: overlaps that these pairs do not have;
    components, and how many of them are no line graph."""

    members: Index
    n: int
    unique: NDArray[np.bool_]
    contradicted: int
    components: int
    broken: int


def line_graph_root(overlaps: Overlaps, trusted: float = 0.5) -> LineGraphRoot:
    """The pairs of all rows; trusted: overlaps at least this likely to be right take part."""
    if overlaps.k_private != 2:
        raise InputError(
            f"k_private={overlaps.k_private}: overlaps are a line graph for k_private=2 only"
        )
    graph = overlaps.tocsr()
    if graph.nnz and not 0 <= graph.data.min() <= graph.data.max() <= 2:
        raise InputError(
            "overlaps below 0 or above 2: encodings of two vectors share none, one or both"
        )
    # 1. Overlaps off the diagonal, as far as they are trusted; copies of a pair count once.
    m = overlaps.m
    keep = np.repeat(np.arange(m), np.diff(graph.indptr)) != graph.indices
    if overlaps.confidence is not None:
        keep &= overlaps.confidence >= trusted
    graph.data = np.where(keep, graph.data, 0).astype(np.int8)
    graph.eliminate_zeros()
    twice = graph.copy()
    twice.data = (twice.data == 2).astype(np.int8)
    twice.eliminate_zeros()
    same = connected_components(twice, directed=False)[1]
    _, first, copy = np.unique(same, return_index=True, return_inverse=True)
    components, component = connected_components(graph, directed=False)
    bounds = zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    near = [set(graph.indices[a:b].tolist()) for a, b in bounds]
    once = {int(r): int(c) for c, r in enumerate(first)}
    reduced = [{once[q] for q in near[r] if q in once} for r in first]
    # 2. Each component: its root, if copies agree with it, else the nearest pairs.
    members, names, broken = np.empty((m, 2), np.int64), 0, 0
    rows_of = defaultdict(list)
    for r in range(m):
        rows_of[component[r]].append(r)
    for rows in rows_of.values():
        cells = root_of_component(reduced, sorted({int(copy[r]) for r in rows}))
        if cells is not None:
            members[rows] = [cells[int(copy[r])] for r in rows]
        if cells is None or _contradictions(graph, members, rows):
            broken += 1
            pairs = nearest_pairs(near, rows)
            members[rows] = [pairs[r] for r in rows]
        used, inverse = np.unique(members[rows], return_inverse=True)
        members[rows] = inverse.reshape(-1, 2) + names
        names += len(used)
    wrong = _contradictions(graph, members, range(m)) // 2
    return LineGraphRoot(members, names, ~_two_ways(members, names), wrong, components, broken)


def _contradictions(graph: sparse.csr_array, members: Index, rows: Sequence[int]) -> int:
    """Overlaps among `rows` that are not those of their pairs, each counted from both sides."""
    some = np.asarray(rows)
    used, pairs = np.unique(members[some], return_inverse=True)
    at = np.repeat(np.arange(len(some)), 2), pairs.ravel()
    W = sparse.csr_array((np.ones(2 * len(some), np.int16), at), shape=(len(some), len(used)))
    claimed = W @ W.T
    claimed.setdiag(0)
    return int(((claimed - graph[some][:, some]) != 0).sum())


def _two_ways(members: Index, n: int) -> NDArray[np.bool_]:
    """Rows of the components for which Whitney's theorem has an exception: the triangle, and all
    roots of four vertices in which one meets the other three."""
    u, v = members.T
    join = sparse.coo_array((np.ones(len(u), np.int8), (u, v)), shape=(n, n))
    component = connected_components(join, directed=False)[1]
    pairs = np.unique(np.sort(members, axis=1), axis=0)
    degree = np.bincount(pairs.ravel(), minlength=n)
    vertices = np.bincount(component)
    edges = np.bincount(component[pairs[:, 0]], minlength=len(vertices))
    most = np.zeros(len(vertices), np.int64)
    np.maximum.at(most, component, degree)
    exception = ((vertices == 3) & (edges == 3)) | ((vertices == 4) & (most == 3))
    return np.asarray(exception[component[u]])


# --- The attack ----------------------------------------------------------------------------------


def line_graph(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that the root of the overlaps determines, each with its status.

    overlaps: to start from, where they are known from elsewhere; some may be wrong
    """
    scheme, clock = encodings.scheme, Stopwatch()
    if scheme.k_private != 2:
        raise InputError(
            f"k_private={scheme.k_private}: overlaps are a line graph for k_private=2 only; "
            "use attack='exact'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    how: dict[str, Any] = {"memory_limit": memory_limit, "progress": progress}
    with clock("overlaps"):
        M, part = read_overlaps(encodings, public, overlaps, how)
    with clock("root"):
        H = line_graph_root(M)
    facts = {
        "components": H.components,
        "components_not_line_graphs": H.broken,
        "contradicted_overlaps": H.contradicted,
        "encodings_with_two_roots": int((~H.unique).sum()),
    }
    rows, draw = np.arange(encodings.m), child(root(rng), "pixels")
    found = from_subsets(encodings, NAME, rows, H.members, draw, clock, facts=facts, **part, **how)
    text = found.explanation
    if not H.unique.all():
        text += f"; {int((~H.unique).sum())} encodings are in components with two roots"
    if H.broken:
        text += f"; overlaps are no line graph in {H.broken} of {H.components} components"
    return replace(found, explanation=text)
