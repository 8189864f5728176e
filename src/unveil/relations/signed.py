"""Relations under noise where columns go together: by likely signs instead of any.

Four encodings with S₁ + S₃ = S₂ + S₄ have z₁ − z₂ = ±(z₄ − z₃) up to noise, at every column with
the same sign. With signs free at every column (`relations.among`) chance comes near that too often:
a table of 30 columns with noise of 5% has more false relations than true ones. But few sign
patterns are likely (`gram.folded_normal`), and the evidence that counts is

    log p(y₁ … y₄ | relation) / p(y₁) … p(y₄)
        ≈  ½(log det C − d·log σ²) − Σ_p min_s (r_ps²/8σ² + κ_ps)

with r the residual under the signs s, and κ = −log of how likely they are. The determinant is what
columns that repeat each other take away from chance.

    1  pairs ← encodings that probably share a vector   the likelihood ratio of two signed encodings
    2  relations ← every two of these pairs             those whose differences point the same way

O(m²·d) for pairs, O(pairs²·d) for relations.
"""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.folded import log_2cosh
from unveil.gram.folded_normal import Floats, Patterns
from unveil.parallel import one_blas_thread, run_blocks, where, worker_count

Index = NDArray[np.int64]

LEAST_FLIP = 0.01
"""No sign is more certain than that: C is an estimate, and records are not normal."""
ALONG = 0.45
"""Cosine of two differences from which on they are compared: four of five true relations reach it,
one in ten of the others, with columns weighted between what they are and all alike."""
BEHIND = -10.0
"""Nats behind chance at which a comparison ends: a true one falls so far behind once in e^10
times."""
OUTLIER = -4.6
"""Nats that a column costs at most, log of 0.01: as many may be off by more than noise."""
BLOCK = 128
"""Pairs that one thread compares with all later ones at a time: their cosines are as many rows."""


def shared_nats(patterns: Patterns, noise: float) -> tuple[Floats, NDArray[np.bool_]]:
    """(L, opposite), both (m, m): the log likelihood ratio of one shared vector against none, and
    whether the two encodings then have opposite signs. Normal vectors, signs as they are
    likeliest."""
    values, vectors = np.linalg.eigh(patterns.C)
    u = patterns.z @ (vectors / np.sqrt(values))
    # Two sums with one vector of two in common correlate by half of what is not noise.
    half = np.clip((values - noise**2) / (2 * values), 0.0, 0.5)
    own = u**2 @ (half**2 / (1 - half**2))
    cross = (u * (half / (1 - half**2))) @ u.T
    base = -0.5 * np.log(1 - half**2).sum() - 0.5 * (own[:, None] + own)
    return base + log_2cosh(np.abs(cross)) - log(2), cross < 0


def find_signed(
    patterns: Patterns, noise: float, pairs: Index, opposite: NDArray[np.bool_]
) -> Index:
    """(r, 4) relations, the `pairs` (p, 2) of encodings they are made of next to each other;
    opposite (p,): pairs whose two encodings have opposite signs."""
    z, d = patterns.z, patterns.z.shape[1]
    if len(pairs) < 2:
        return np.empty((0, 4), np.int64)
    # 1. What each pair's difference may be, and what it costs: as the signs are, both turned, or
    # one.
    flip = np.clip(patterns.flip, LEAST_FLIP, 0.5)
    keep, turn = -np.log(1 - flip), -np.log(flip)
    i, j = pairs.T
    one, two = z[i] / (2 * noise), np.where(opposite, -1, 1)[:, None] * z[j] / (2 * noise)
    options = np.stack([one - two, two - one, one + two, -one - two], axis=2)
    costs = np.stack(
        [keep[i] + keep[j], turn[i] + turn[j], keep[i] + turn[j], turn[i] + keep[j]], 2
    )
    # 2. Where it points.
    values, vectors = np.linalg.eigh(patterns.C)
    along = (one - two) @ (vectors * values**-0.25)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-30)
    # 3. Every two pairs. As much evidence as there are comparisons.
    gain = 0.5 * (np.linalg.slogdet(patterns.C)[1] / d - 2 * log(noise))
    need = log(len(pairs) * (len(pairs) - 1) / 2)
    options, costs, along = (np.ascontiguousarray(a, np.float32) for a in (options, costs, along))
    found: dict[int, Index] = {}

    def search(begin: int) -> None:
        end = min(begin + BLOCK, len(pairs))
        cosines = along[begin:end] @ along.T
        found[begin] = _search(
            options, costs, cosines, pairs, begin, np.float32(gain), np.float32(need)
        )

    with one_blas_thread():
        run_blocks(search, list(range(0, len(pairs), BLOCK)), worker_count(where().workers))
    quads = np.concatenate([found[begin] for begin in sorted(found)])
    return np.asarray(quads[np.unique(np.sort(quads, axis=1), axis=0, return_index=True)[1]])


@njit(cache=True, nogil=True, fastmath=True)
def _search(options, costs, cosines, pairs, begin, gain, need):  # type: ignore[no-untyped-def]
    """Relations of the pairs from `begin` on, as many as cosines (…, p) has rows, with later
    ones."""
    d = options.shape[1]
    hits = [(0, 0)][:0]
    for i in range(begin, begin + len(cosines)):
        a, b = pairs[i]
        for j in range(i + 1, len(pairs)):
            cosine = cosines[i - begin, j]
            if abs(cosine) < ALONG:
                continue
            c, e = pairs[j]
            if a in (c, e) or b in (c, e):
                continue
            sign = np.float32(1.0 if cosine > 0 else -1.0)
            total = np.float32(0.0)
            for p in range(d):
                # More than any signs cost, so that the first ones replace it.
                best = np.float32(1e9)
                for u in range(4):
                    for v in range(4):
                        r = options[i, p, u] - sign * options[j, p, v]
                        best = min(best, np.float32(0.5) * r * r + costs[i, p, u] + costs[j, p, v])
                total += max(gain - best, np.float32(OUTLIER))
                if total < BEHIND:
                    break
            if total >= need:
                hits.append((i, j))
    out = np.empty((len(hits), 4), np.int64)
    for r in range(len(hits)):
        i, j = hits[r]
        out[r, 0], out[r, 1] = pairs[i]
        out[r, 2], out[r, 3] = pairs[j]
    return out
