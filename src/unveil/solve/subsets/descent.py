"""Which vectors explain an encoding, given their pixels? The subset with the smallest residual Σ(|Σ
x + c| − y)².

For k = 2 without a public part c all pairs at once, as matrix products. Else descent by one swap
from the present subset, and from random ones for encodings that stay unexplained. Cost of a sweep:
rows × k × columns × pixels.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.folded import log_density
from unveil.solve.model import Members, Values

SWEEPS, RESTART_SWEEPS = 4, 6
"""Passes over a row's members, from its present subset and from a random one: descent nearly always
ends by itself before that."""
TRIES = 10
"""Random subsets that an unexplained row starts from; a row that they leave has another chance in
the next round, with better pixels."""
GAIN = 1e-7
"""A restart must be better by more than rounding, in squares of a private pixel's rms, or equal
subsets in another order would count as new."""
GAIN_OF_SUM = np.float32(1e-6)
"""The same for one swap, of a sum over pixels in single precision."""
GAIN_IN_NATS = 1e-6
"""The same for a likelihood."""
ENDLESS = np.float32(1e30)
"""Larger than any residual."""


def reassign(
    y: Values,
    x: Values,
    members: Members,
    usable: NDArray[np.bool_],
    pixel_weights: Values,
    offsets: Values | None = None,
) -> tuple[Members, NDArray[np.float64]]:
    """The best subset of every row and its mean squared residual."""
    if members.shape[1] == 2 and offsets is None:
        return _all_pairs(y, x, usable, pixel_weights)
    members = members.copy()
    rows = np.arange(len(y))
    cost = descend(y, x, members, rows, usable, pixel_weights, offsets, sweeps=SWEEPS)
    return members, cost


def descend(
    y: Values,
    x: Values,
    members: Members,
    rows: NDArray[np.int64],
    usable: NDArray[np.bool_],
    pixel_weights: Values,
    offsets: Values | None = None,
    *,
    sweeps: int,
    repeats: bool = False,
) -> NDArray[np.float64]:
    """One-swap descent for `rows`, in place; their mean squared residuals. `repeats`: a vector may
    be used twice."""
    c = np.zeros((1, y.shape[1]), np.float32) if offsets is None else offsets
    cost = np.empty(len(y), np.float32)
    _descend(y, c, x, members, rows, cost, usable, sweeps, pixel_weights, repeats)
    return np.asarray(np.maximum(cost[rows].astype(np.float64) / y.shape[1], 0))


def _all_pairs(
    y: Values, x: Values, usable: NDArray[np.bool_], pixel_weights: Values, block: int = 16384
) -> tuple[Members, NDArray[np.float64]]:
    """k = 2: Σ w(|x_a + x_b| − y)² for all pairs and rows, as a matrix product over blocks of
    pairs."""
    # (|x_a + x_b| − y)² = |x_a + x_b|² − 2·y·|x_a + x_b| + y²: a matrix product for the middle one,
    # and the last does not depend on the pair.
    columns = np.flatnonzero(usable)
    a, b = (columns[side] for side in np.triu_indices(len(columns), 1))
    scale = np.sqrt(pixel_weights)
    weighted = y * scale
    best = np.full(len(y), np.inf, np.float32)
    members = np.zeros((len(y), 2), np.int64)
    for s in range(0, len(a), block):
        pairs = np.abs(x[a[s : s + block]] + x[b[s : s + block]]) * scale
        cost = np.einsum("ij,ij->i", pairs, pairs)[None, :] - 2 * (weighted @ pairs.T)
        j = cost.argmin(axis=1)
        value = cost[np.arange(len(y)), j]
        better = value < best
        best[better] = value[better]
        members[better, 0], members[better, 1] = a[s + j[better]], b[s + j[better]]
    square = np.einsum("ij,ij->i", weighted, weighted)
    return members, np.maximum((square + best).astype(np.float64) / y.shape[1], 0)


def restart(
    y: Values,
    x: Values,
    members: Members,
    cost: NDArray[np.float64],
    rows: NDArray[np.int64],
    usable: NDArray[np.bool_],
    pixel_weights: Values,
    rng: np.random.Generator,
    offsets: Values | None = None,
    tries: int = TRIES,
) -> tuple[Members, NDArray[np.float64]]:
    """Descend again from random subsets for rows that are not explained; keep what is better."""
    members, cost = members.copy(), cost.copy()
    columns = np.flatnonzero(usable)
    k = members.shape[1]
    for _ in range(tries):
        trial = members.copy()
        keys = rng.random((len(rows), len(columns)))
        trial[rows] = columns[np.argpartition(keys, k - 1, axis=1)[:, :k]]
        value = descend(y, x, trial, rows, usable, pixel_weights, offsets, sweeps=RESTART_SWEEPS)
        better = value < cost[rows] - GAIN
        members[rows[better]], cost[rows[better]] = trial[rows[better]], value[better]
    return members, cost


def best_partners(
    y: Values,
    x: Values,
    present: Members,
    known: NDArray[np.int64],
    sound: NDArray[np.bool_],
    offset: Values | None = None,
) -> NDArray[np.int64]:
    """The k−1 known columns under which y, with one more unknown standard vector, is most likely:
    descent by one swap."""
    k = len(present)
    # Start from the members that are sound, filled up with any known ones.
    chosen = [int(c) for c in present if sound[c]][: k - 1]
    chosen += [int(c) for c in known if c not in chosen][: k - 1 - len(chosen)]
    last = -np.inf
    for _ in range(SWEEPS):
        value = -np.inf
        for place in range(k - 1):
            others = [c for q, c in enumerate(chosen) if q != place]
            mean = x[known] + (x[others].sum(axis=0) + (0 if offset is None else offset))
            fit = log_density(y, mean, 1.0).sum(axis=1)
            fit[np.isin(known, others)] = -np.inf
            best = int(fit.argmax())
            chosen[place], value = int(known[best]), float(fit[best])
        if value <= last + GAIN_IN_NATS:
            break
        last = value
    return np.array(chosen, dtype=np.int64)


@njit(cache=True, nogil=True, fastmath=True)
def _descend(  # type: ignore[no-untyped-def]
    y, offsets, x, members, rows, cost, usable, sweeps, pixel_weights, repeats
):
    """One-swap descent of Σ w(|Σ x + c| − y)² for each of `rows`; members and cost in place. One
    row of c stands for all."""
    n, p = x.shape
    k = members.shape[1]
    base = np.empty(p, np.float32)
    for i in rows:
        c = offsets[i if len(offsets) > 1 else 0]
        best = ENDLESS
        for _ in range(sweeps):
            changed = False
            for place in range(k):
                # The sum without this member, then every column in its place.
                # Value by value: Numba takes seconds to compile one array written into another.
                for t in range(p):
                    base[t] = c[t]
                for q in range(k):
                    if q != place:
                        for t in range(p):
                            base[t] += x[members[i, q], t]
                lowest = ENDLESS
                lowest_at = -1
                for j in range(n):
                    taken = not usable[j]
                    for q in range(k):
                        taken |= q != place and members[i, q] == j and not repeats
                    if taken:
                        continue
                    s = np.float32(0)
                    for t in range(p):
                        e = abs(base[t] + x[j, t]) - y[i, t]
                        s += pixel_weights[t] * e * e
                    if s < lowest:
                        lowest = s
                        lowest_at = j
                if lowest_at != members[i, place] and lowest < best - GAIN_OF_SUM:
                    members[i, place] = lowest_at
                    changed = True
                best = min(best, lowest)
            if not changed:
                break
        cost[i] = best
