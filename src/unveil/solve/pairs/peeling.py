"""All pixels from known pairs, hundreds of times faster than `affine_rrr`: x_u + x_v ∈ {hi, lo}
along cores and ears.

k_private = 2 only. A plan (`solve.pairs.plans`) says in which order; it is the same for all pixels:
a vertex takes, of the two values that its first known neighbour allows, the one that fits the
others. Cost: a few operations per encoding and pixel.

Why one solution is the only one. A plan is a proof: every step leaves, for vectors in general
position, one value. What can go wrong is chance at a pixel: two values that fit within rounding. A
wrong one makes later encodings fail, so that the pixel is not reproduced and is solved again by
another plan. It goes unnoticed only where few encodings follow. Hence

  two plans  every pixel is solved by plans from different cores until two of them reproduce all
             encodings; where they differ, both values fit. Of two values that fit equally well
             each plan takes one at random, so that what is not in general position (pixels of few
             levels) shows itself as it does between independent starts of an iteration
             (`solve.pixels.pixels`), which have nothing else to go by
  ties       after that, at each vertex and pixel the other value that its first neighbour allows is
             tried against all of its encodings, with a margin far above rounding; and so are the
             other ways along ears that nothing else touches

Both are counted in `differs`. What no plan reaches is not solved here: `plans.reachable` says
beforehand what is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.cluster import results
from unveil.records import Progress
from unveil.solve.model import APART, PIXEL, TIE, rms
from unveil.solve.pairs.pair_graph import (
    Index,
    PairGraph,
    Sums,
    pair_graph,
    solve_core,
    solve_ear,
)
from unveil.solve.pairs.plans import PeelingPlan, different_first, plans_of
from unveil.solve.pixels.pixels import PixelSolution

LEAN = 1e-6
"""Misfit by which a plan prefers one of two values, chosen at random for each vertex: a little
above rounding."""
PLANS = 8
"""Plans that a pixel is tried with until two succeed. One fails where two values happen to fit; the
next takes another way."""
CAP = 0.1
"""What one anchor can say against a value, relative to the rms of y: an anchor that is itself wrong
at a pixel must not outvote five that are right."""


def peel(
    magnitudes: NDArray[np.float32],
    offsets: NDArray[np.float32] | None,
    members: Index,
    n: int,
    a: float,
    rng: np.random.Generator,
    *,
    block: int = 64,
    progress: Progress | None = None,
) -> PixelSolution:
    """Solve |a(x_u + x_v) + c| = y (rows, d) for x (n, d), where plans reach all n vertices; else
    no pixel is solved."""
    # 1. Plans that reach everything, from different cores as far as there are any.
    d = magnitudes.shape[1]
    graph = pair_graph(members, n)
    whole = [plan for plan in plans_of(graph, rng, 4 * PLANS) if plan.known.all()]
    plans = different_first(whole)[:PLANS]
    scale = rms(magnitudes)
    values = np.zeros((n, d))
    misfit = np.full(d, np.inf)
    differs = np.zeros((d, n), bool)
    group = np.zeros(n, np.int64)
    if not plans:
        return PixelSolution(values, misfit, misfit < 0, differs.sum(axis=0), group)

    # 2. Blocks of pixels, each solved by itself; a pixel is solved where two plans reproduce every
    # encoding.
    shared = _Pairs(magnitudes, offsets, members, a, graph, plans, scale)
    blocks = [slice(s, min(s + block, d)) for s in range(0, d, block)]
    done = 0
    for pixels, found in results(_solved, shared, blocks):
        values[:, pixels], misfit[pixels], differs[pixels] = found
        done += pixels.stop - pixels.start
        if progress:
            progress("pixels", done, d)
    return PixelSolution(values, misfit, misfit <= PIXEL, differs.sum(axis=0), group)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """What all pixels share, as `peel` takes it; scale: the rms of y."""

    magnitudes: NDArray[np.float32]
    offsets: NDArray[np.float32] | None
    members: Index
    a: float
    graph: PairGraph
    plans: list[PeelingPlan]
    scale: float


def _solved(
    shared: _Pairs, pixels: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Values, misfits, and where plans differ, at these pixels."""
    offsets = None if shared.offsets is None else shared.offsets[:, pixels]
    hi, lo = sums(shared.magnitudes[:, pixels], offsets, shared.a)
    scale = shared.scale / shared.a
    return _solve_block(shared.graph, shared.plans, shared.members, hi, lo, offsets is None, scale)


def sums(
    magnitudes: NDArray[np.float32], offsets: NDArray[np.float32] | None, a: float
) -> tuple[Sums, Sums]:
    """hi, lo (rows, pixels): the two values that Σx can have in each encoding."""
    y = magnitudes.astype(np.float64)
    if offsets is None:
        hi = y / a
        return hi, -hi
    return (y - offsets) / a, (-y - offsets) / a


def _solve_block(
    graph: PairGraph,
    plans: list[PeelingPlan],
    members: Index,
    hi: Sums,
    lo: Sums,
    sign_free: bool,
    scale: float,
) -> tuple[Sums, NDArray[np.float64], NDArray[np.bool_]]:
    """values (n, pixels), misfit relative to `scale` (infinite unless two plans reproduce all),
    differs (pixels, n)."""
    pixels = hi.shape[1]
    values = np.zeros((graph.n, pixels))
    worst = np.zeros(pixels)
    differs = np.zeros((pixels, graph.n), bool)
    passed = np.zeros(pixels, np.int64)
    for plan in plans:
        # 1. The pixels that two plans have not solved yet, by the next one.
        todo = np.flatnonzero(passed < 2)
        if not todo.size:
            break
        whole = len(todo) == pixels
        h, g = (
            (hi, lo)
            if whole
            else (np.ascontiguousarray(hi[:, todo]), np.ascontiguousarray(lo[:, todo]))
        )
        x, tied = _follow(graph, plan, h, g, scale)
        error = _worst(members, h, g, x) / scale
        # 2. Where it reproduces all encodings: the first plan's values, held against the second's.
        for t in np.flatnonzero(error <= PIXEL):
            p = todo[t]
            differs[p] |= tied[:, t]
            worst[p] = max(worst[p], error[t])
            if passed[p]:
                same, flipped = (
                    np.abs(values[:, p] - sign * x[:, t]) <= APART * scale for sign in (1, -1)
                )
                differs[p] |= ~(flipped if sign_free and flipped.sum() > same.sum() else same)
            else:
                values[:, p] = x[:, t]
            passed[p] += 1
    # 3. Values that both may have fallen for.
    tie, apart = TIE * scale, APART * scale
    _ties(graph.indptr, graph.neighbour, graph.row, hi, lo, values, tie, apart, differs)
    return values, np.where(passed == 2, worst, np.inf), differs


def _follow(
    graph: PairGraph, plan: PeelingPlan, hi: Sums, lo: Sums, scale: float
) -> tuple[Sums, NDArray[np.bool_]]:
    """x (n, pixels) by one plan, and where an ear that nothing else touches had a second way."""
    x = np.zeros((graph.n, hi.shape[1]))
    tied = np.zeros(x.shape, bool)
    vertices, found, _ = solve_core(graph, plan.core, hi, lo)
    x[vertices] = found
    here = 0
    for ear, at in zip((*plan.ears, None), (*plan.at, len(plan.order)), strict=True):
        _run(
            plan.order,
            plan.start,
            plan.anchor,
            plan.row,
            LEAN * scale * plan.lean,
            here,
            at,
            hi,
            lo,
            x,
            CAP * scale,
        )
        here = at
        if ear is not None:
            inside = ear.vertices[1:-1]
            x[inside], _, second = solve_ear(ear, x, hi, lo, APART * scale)
            if (graph.degree[inside] == 2).all():
                tied[inside] = second < TIE * scale
    return x, tied


@njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    order, start, anchor, row, lean, begin, end, hi, lo, x, cap
):
    """The value of each vertex of a run: that of two which fits its anchors better, then the mean
    of what they say."""
    pixels = hi.shape[1]
    one, two = np.empty(pixels), np.empty(pixels)
    for o in range(begin, end):
        v, s, e = order[o], start[o], start[o + 1]
        a, i = anchor[s], row[s]
        # The misfit of both values that the first anchor allows, over the other anchors.
        one[:] = 0
        two[:] = 0
        for t in range(s + 1, e):
            b, j = anchor[t], row[t]
            for p in range(pixels):
                u = hi[i, p] - x[a, p] + x[b, p]
                w = lo[i, p] - x[a, p] + x[b, p]
                one[p] += min(min(abs(u - hi[j, p]), abs(u - lo[j, p])), cap)
                two[p] += min(min(abs(w - hi[j, p]), abs(w - lo[j, p])), cap)
        for p in range(pixels):
            one[p] = (hi[i, p] if one[p] <= two[p] + lean[o] else lo[i, p]) - x[a, p]
            two[p] = 0
        # With the signs that go with the better one: the mean over all anchors.
        for t in range(s, e):
            b, j = anchor[t], row[t]
            for p in range(pixels):
                total = one[p] + x[b, p]
                two[p] += (
                    hi[j, p] if abs(total - hi[j, p]) <= abs(total - lo[j, p]) else lo[j, p]
                ) - x[b, p]
        for p in range(pixels):
            x[v, p] = two[p] / (e - s)


@njit(cache=True, nogil=True)
def _worst(members, hi, lo, x):  # type: ignore[no-untyped-def]
    """The largest misfit of each pixel over all encodings."""
    pixels = hi.shape[1]
    out = np.zeros(pixels)
    for i in range(len(members)):
        a, b = members[i, 0], members[i, 1]
        for p in range(pixels):
            total = x[a, p] + x[b, p]
            out[p] = max(out[p], min(abs(total - hi[i, p]), abs(total - lo[i, p])))
    return out


@njit(cache=True, nogil=True)
def _ties(indptr, neighbour, row, hi, lo, x, tie, apart, differs):  # type: ignore[no-untyped-def]
    """Marks differs[pixel, vertex] where the other value that the first neighbour allows fits all
    encodings of the vertex."""
    pixels = hi.shape[1]
    for v in range(len(indptr) - 1):
        s, e = indptr[v], indptr[v + 1]
        if s == e:
            continue
        a, i = neighbour[s], row[s]
        for p in range(pixels):
            total = x[v, p] + x[a, p]
            other = (lo[i, p] if abs(total - hi[i, p]) <= abs(total - lo[i, p]) else hi[i, p]) - x[
                a, p
            ]
            if abs(other - x[v, p]) <= apart:
                continue
            fits = True
            for t in range(s + 1, e):
                w = other + x[neighbour[t], p]
                if min(abs(w - hi[row[t], p]), abs(w - lo[row[t], p])) > tie:
                    fits = False
                    break
            if fits:
                differs[p, v] = True
