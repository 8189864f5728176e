"""Min-cost flow: every encoding takes exactly k images, no image more encodings than it has room
for, at the best total score.

    maximise Σ scores_ic   over the chosen (i, c): k for every i, at most capacity_c for every c,
                           no (i, c) twice

This is the transportation problem. Its vertices are whole, so that the flow is an assignment.
Without capacities every encoding takes its k best. With them successive shortest paths start from
there: that is optimal, but some images have too many encodings. One at a time, the excess is passed
on along the cheapest chain of moves (an encoding leaves a for b, another leaves b for c, …) to an
image with room. Encodings are contracted away: a chain is a path in a graph of the n images, whose
edge a → b costs what the cheapest encoding loses by the move. Prices keep all costs nonnegative
(Dijkstra), and make the result optimal.

O(m·n·k) to start with, O(n² + m + n·m·k/n) per unit of excess, and there are at most m·k of these.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from unveil.checks import InputError


def assign(
    scores: NDArray[np.float64], k: int, capacity: ArrayLike | None = None
) -> NDArray[np.int64]:
    """members (m, k), sorted in each row: the assignment with the largest sum of scores (m, n).

    capacity: how many encodings an image has room for, one number or one per image; None: no bound
    """
    m, n = scores.shape
    if not 1 <= k <= n:
        raise InputError(f"k={k} of {n} images for each encoding: ask for 1 to {n}")
    taken = np.zeros((m, n), bool)
    np.put_along_axis(taken, np.argsort(-scores, axis=1, kind="stable")[:, :k], True, axis=1)
    if capacity is not None:
        room = np.minimum(np.broadcast_to(np.asarray(capacity, np.int64), (n,)), m)
        if room.min(initial=0) < 0 or room.sum() < k * m:
            raise InputError(
                f"room for {room.sum()} of the {k * m} places that {m} encodings need: "
                "raise the capacity"
            )
        _pass_on(np.ascontiguousarray(-scores, np.float64), taken, room.astype(np.int64))
    return np.nonzero(taken)[1].reshape(m, k)


@njit(cache=True, nogil=True)
def _moves(cost, taken, a, gap, mover):  # type: ignore[no-untyped-def]
    """For every image b: what it costs least that an encoding leaves a for b, and which one that
    is."""
    m, n = cost.shape
    gap[a, :] = np.inf
    mover[a, :] = -1
    for i in range(m):
        if taken[i, a]:
            for b in range(n):
                if not taken[i, b] and cost[i, b] - cost[i, a] < gap[a, b]:
                    gap[a, b] = cost[i, b] - cost[i, a]
                    mover[a, b] = i


@njit(cache=True, nogil=True)
def _pass_on(cost, taken, room):  # type: ignore[no-untyped-def]
    """Successive shortest paths from images with too many encodings to those with room; `taken` in
    place."""
    m, n = cost.shape
    load = np.zeros(n, np.int64)
    for i in range(m):
        for a in range(n):
            load[a] += taken[i, a]
    gap = np.empty((n, n))
    mover = np.empty((n, n), np.int64)
    for a in range(n):
        _moves(cost, taken, a, gap, mover)
    price, price_of_room = np.zeros(n), 0.0
    dist, done, stale = np.empty(n), np.empty(n, np.bool_), np.zeros(n, np.bool_)
    before = np.empty(n, np.int64)
    for source in range(n):
        while load[source] > room[source]:
            # 1. the cheapest chain, in reduced costs; it ends where there is room
            dist[:] = np.inf
            done[:] = False
            dist[source] = 0.0
            sink, end = -1, np.inf
            while True:
                a, near = -1, end
                for b in range(n):
                    if not done[b] and dist[b] < near:
                        a, near = b, dist[b]
                if a < 0:
                    break
                done[a] = True
                if load[a] < room[a] and near + max(0.0, price[a] - price_of_room) < end:
                    sink, end = a, near + max(0.0, price[a] - price_of_room)
                for b in range(n):
                    if not done[b] and mover[a, b] >= 0:
                        # Rounding can make a reduced cost slightly negative.
                        through = near + max(0.0, gap[a, b] + price[a] - price[b])
                        if through < dist[b]:
                            dist[b] = through
                            before[b] = a
            # 2. prices under which all reduced costs stay nonnegative
            for a in range(n):
                price[a] += min(dist[a], end)
            price_of_room += end
            # 3. every encoding of the chain moves on; its images have other cheapest moves now
            load[source] -= 1
            load[sink] += 1
            b = sink
            while b != source:
                a = before[b]
                i = mover[a, b]
                for c in range(n):
                    stale[c] |= taken[i, c]
                taken[i, a], taken[i, b] = False, True
                stale[b] = True
                b = a
            for a in range(n):
                if stale[a]:
                    _moves(cost, taken, a, gap, mover)
                    stale[a] = False
