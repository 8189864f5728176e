"""Two images from their mean: h = (x₁ + x₂)/2, where images of the same kind are at hand.

x₁ = h + u and x₂ = h − u fit h whatever u is, as long as both stay in [−1, 1]. Smoothness does not
tell u: by the sum of gradients an edge may as well be in both. Images of the kind do: of all pairs
(a, b) of `like` images those with the smallest ‖h − (a + b)/2‖ look like (x₁, x₂), and

    u ← mean of ±(a − b)/2 over the `PAIRS` best, weighted by fit, each the way round that agrees
    with the best pair.

The mean, not the best: where pairs disagree they cancel, so that u is as large as what is known of
it, and where nothing is known both images are h. Also the mean of (a + b)/2: a guess at h itself,
which helps to tell signs. Cost per image: products with `like`, and one pass over its pairs;
memory: a matrix over all pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PAIRS = 200
MOST = 1000
"""Like images looked at, evenly spaced."""

Floats = NDArray[np.float32]


class Layers:
    """Pairs of `like` images, prepared once."""

    def __init__(self, like: Floats) -> None:
        self.like = np.ascontiguousarray(like[:: -(-len(like) // MOST)])
        gram = self.like @ self.like.T
        self.first, self.second = np.triu_indices(len(gram), 1)
        size = np.diag(gram)
        self.quarter = ((size[:, None] + size + 2 * gram) / 4)[self.first, self.second]

    def split(self, h: Floats) -> tuple[Floats, Floats, NDArray[np.float64]]:
        """u (m, d), the mean of the best pairs (m, d), and ‖h − (a + b)/2‖² of the best one
        (m,)."""
        u, mean, miss = np.empty_like(h), np.empty_like(h), np.empty(len(h))
        count = min(PAIRS, len(self.quarter))
        for i, image in enumerate(h):
            along = self.like @ image
            cost = self.quarter - along[self.first] - along[self.second]
            top = np.argpartition(cost, count - 1)[:count]
            top = top[np.argsort(cost[top], kind="stable")]
            a, b = self.like[self.first[top]], self.like[self.second[top]]
            apart = (a - b) / 2
            way = np.where(apart @ apart[0] < 0, np.float32(-1), np.float32(1))
            # A third of the spread of costs as temperature: the last of the pairs hardly counts.
            weight = np.exp(
                -3 * (cost[top] - cost[top[0]]) / max(float(cost[top[-1]] - cost[top[0]]), 1e-9)
            )
            weight = (weight / weight.sum()).astype(np.float32)
            u[i], mean[i] = (weight * way) @ apart, weight @ (a + b) / 2
            miss[i] = max(0.0, float(cost[top[0]]) + float(image @ image))
        return u, mean, miss
