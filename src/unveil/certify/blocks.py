"""Vectors that no single one holds together.

Where one vector alone joins two parts of the encodings, the signs of one part follow from those of
the other by the values of that vector. If two vectors with the same magnitudes stand behind it, one
in each part, every encoding inside either fits, and the signs of one part are wrong. Values in
general position exclude that; encodings that mix vectors of both parts, and contradict them, show
it. A block is a set of vectors that stays connected without any one of them.

Tarjan's search in depth, with a stack of its own: O(m·k²).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


def largest_block(members: Index, n: int) -> Flags:
    """(n,) the vectors of the largest block, by rows (m, k)."""
    largest = max(_blocks(members, n), key=len, default=set())
    out = np.zeros(n, bool)
    out[list(largest)] = True
    return out


def _blocks(members: Index, n: int) -> list[set[int]]:
    """Vectors of every block; two that share a row are joined."""
    # 1. Who shares a row with whom.
    beside: list[set[int]] = [set() for _ in range(n)]
    for row in np.unique(np.sort(members, axis=1), axis=0).tolist():
        for a, b in combinations(sorted(set(row)), 2):
            beside[a].add(b)
            beside[b].add(a)
    # 2. In depth. `low`: the earliest vector that can be reached besides by the way it was come to.
    # Where a child reaches no vector before its parent, what lies above it on the path is a block.
    out: list[set[int]] = []
    entered, low = [-1] * n, [0] * n
    time = 0
    for root in range(n):
        if entered[root] >= 0:
            continue
        entered[root] = low[root] = time
        time += 1
        path, todo = [root], [(root, -1, iter(beside[root]))]
        while todo:
            v, parent, rest = todo[-1]
            for w in rest:
                if entered[w] < 0:
                    entered[w] = low[w] = time
                    time += 1
                    path.append(w)
                    todo.append((w, v, iter(beside[w])))
                    break
                if w != parent:
                    low[v] = min(low[v], entered[w])
            else:
                todo.pop()
                if parent < 0:
                    continue
                low[parent] = min(low[parent], low[v])
                if low[v] >= entered[parent]:
                    at = path.index(v)
                    out.append({parent, *path[at:]})
                    del path[at:]
    return out
