"""The end of an attack under noise: vectors become a `Recovery` that proves nothing, and tells how
far off each is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.finish import incidence, placed, recovery
from unveil.encodings import Encodings
from unveil.parallel import Stopwatch
from unveil.records import AMBIGUOUS, UNRESOLVED, Recovery
from unveil.solve.pixels.chance import spare_nats
from unveil.solve.pixels.noisy import NoisySolution

OPEN = 0.05
"""The share of pixels at which other values may fit as well as those of a vector that comes with an
error: so many are off by more than twice the error of a normal value."""


def approximate(
    encodings: Encodings,
    name: str,
    noisy: NoisySolution,
    unit: float,
    signed: bool,
    clock: Stopwatch,
    facts: Mapping[str, Any],
    doubtful: NDArray[np.bool_] | None = None,
) -> Recovery:
    """The recovery under noise: nothing is proved, but how far off each vector is likely to be is
    known. Empty, if chance explains as much (`solve.pixels.chance`).

    doubtful (n, d): values that are open, noise or not
    """
    # 1. Would chance explain as much?
    scheme, m = encodings.scheme, encodings.m
    rows, n = len(noisy.rows), len(noisy.values)
    hidden = 0 if scheme.signs == "kept" else encodings.d
    spare = noisy.spare
    if spare is None:
        spare = spare_nats(noisy.nats, rows, n, scheme.k_private, m, hidden)
    if spare < 0:
        why = f"{n} vectors that fit {rows} of {m} encodings up to noise fit as many by chance: "
        why += "more pixels are needed"
        return Recovery.empty(encodings, name, why, clock.seconds)
    # 2. Noise in the units of the encodings, errors in those of the vectors.
    own = noisy.weights
    size = noisy.noise * unit * (scheme.private_weight if own is None else 1.0)
    error = noisy.error * unit
    share = np.zeros(n) if noisy.open_share is None else noisy.open_share
    settled = noisy.determined & (share <= OPEN)
    status = np.where(settled, UNRESOLVED, AMBIGUOUS).astype("<U10")
    reasons = tuple(
        f"known to about ±{error[i]:.2g} per pixel: the encodings carry noise of about {size:.2g}"
        if settled[i]
        else f"at about {share[i]:.0%} of the pixels other values fit as well"
        if noisy.determined[i]
        else "the encodings that use it do not determine it"
        for i in range(len(error))
    )
    # 3. In words. An error is told of what is settled alone.
    text = f"{rows} of {m} encodings explained up to noise of about {size:.2g}"
    if settled.any():
        typical = f"±{np.median(error[settled]):.2g}"
        text = (
            f"{int(settled.sum())} private vectors recovered to about {typical} per pixel; {text}"
        )
        text += ", so that nothing is exact"
    else:
        text += f", but at about {np.median(share):.0%} of the pixels other values fit as well: "
        text += "more encodings are needed"
    told = {
        "encodings_explained": rows,
        "noise": size,
        "standard_error": [
            float(e) if sure else None for e, sure in zip(error, settled, strict=True)
        ],
    }
    return recovery(
        name,
        noisy.values * unit,
        status,
        reasons,
        incidence([(noisy.rows, noisy.members)], m, len(error)),
        np.full(len(error), noisy.noise),
        text,
        clock,
        {**facts, **told},
        signed=signed,
        explained=rows,
        exact=False,
        doubtful=doubtful,
        weights=None if own is None else placed(noisy.rows, noisy.members, own, (m, n)),
    )
