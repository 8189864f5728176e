"""Is a fit under noise more than chance? Rows are predicted by vectors that were made without them.

Values and signs that were chosen to fit the other rows say nothing of these: they cost nothing, and
only the choice of members, and of weights where they were found too, is counted.
"""

from __future__ import annotations

from math import comb, log

import numpy as np
from numpy.typing import NDArray

from unveil.folded import log_density
from unveil.solve.model import Members, Values
from unveil.solve.pixels.chance import LUCK
from unveil.solve.pixels.loud import Design, solve_loud

HELD_OUT, ON = 10, 128
"""One row in so many is left out to be predicted, on so many pixels."""


def beyond_chance(
    y: Values,
    members: Members,
    n: int,
    noise: float,
    rng: np.random.Generator,
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Nats by which the members of y (rows, d) explain it better than chance, less the choice of
    these members. Rows are predicted by vectors that were made without them.

    weights (rows, k): of the members, where they were found as well; each costs what it takes to
    write it down as precisely as the pixels tell it
    """
    rows, k = members.shape
    some = np.sort(rng.permutation(y.shape[1])[:ON])
    part = np.ascontiguousarray(y[:, some])
    # 1. Values from the other rows.
    out = rng.permutation(rows) < max(1, rows // HELD_OUT)
    each = np.ones(members.shape) if weights is None else weights
    loud = solve_loud(part[~out], members[~out], n, noise, rng, weights=each[~out], fine=False)
    C = Design(members[~out], n, each[~out]).C
    theirs, w = members[out], each[out]
    # 2. What these say of the rows left out: the sum of the members, as well as it is known.
    known = np.einsum("rij,ri,rj->r", C[theirs[:, :, None], theirs[:, None, :]], w, w)
    variance = noise**2 * (1 + known[:, None])
    own = log_density(part[out], np.einsum("rk,rkp->rp", w, loud.x[theirs]), variance)
    # 3. Chance: each pixel has the values it has, whether about zero or about its mean.
    power = np.mean(np.square(part[~out], dtype=np.float64), axis=0)
    mean = part[~out].mean(axis=0, dtype=np.float64)
    spread = np.maximum(power - mean**2, 1e-12 * power + 1e-30)
    about_zero = log_density(part[out], 0.0, np.maximum(power, 1e-30))
    about_mean = log_density(part[out], mean, spread)
    chance = np.maximum(about_zero.sum(axis=0), about_mean.sum(axis=0)).sum()
    # 4. All pixels, all rows.
    gain = (float(own.sum()) - float(chance)) / (out.sum() * len(some)) * y.shape[1]
    spent = log(max(comb(n, k), 1))
    if weights is not None:
        spent += k * log(1 + np.sqrt(y.shape[1]) / noise)
    return float(rows * (gain - spent) - LUCK)
