"""The public part of encodings that keep their signs: taken off, and looked for again once private
vectors are known.

Matching pursuit names the public vectors first (`supports.pursuit`), with the private part as
noise. Where that noise was too much, a second look helps: with private vectors known nothing is
noise any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.encodings import Encodings
from unveil.parallel import Stopwatch
from unveil.records import Progress
from unveil.solve.linear import Floats, LinearFit, best_members, fit_linear
from unveil.solve.model import PIXEL, rms
from unveil.supports.pursuit import pursue

ROUNDS = 3
"""Times that the public part of encodings left over is looked for again; each explains more."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Encodings in units in which private weights are 1, with the public vectors `names` (m,
    k_public), times `weight`."""

    y: Floats
    names: NDArray[np.int64]
    public: NDArray[np.float32] | None
    weight: float

    @classmethod
    def of(
        cls,
        encodings: Encodings,
        P: NDArray[np.float32] | None,
        limit: int,
        clock: Stopwatch,
        progress: Progress | None,
    ) -> Mixed:
        scheme = encodings.scheme
        y = encodings.values.astype(np.float64) / scheme.private_weight
        names, weight = (
            np.empty((len(y), 0), np.int64),
            scheme.public_weight / scheme.private_weight,
        )
        if P is not None:
            with clock("learn public"):
                names = pursue(y.astype(np.float32), P, scheme.k_public, weight, limit, progress)
        return cls(y, names, P, weight)

    def private_part(self) -> Floats:
        """What is left of the encodings without their public part."""
        if self.public is None:
            return self.y
        return np.asarray(
            self.y - self.weight * self.public[self.names].sum(axis=1, dtype=np.float64)
        )


def public_again(
    mixed: Mixed, fit: LinearFit, limit: int, progress: Progress | None
) -> tuple[Mixed, LinearFit]:
    """Encodings left over may have a wrong public part: private and public part are looked for in
    turn, the other taken off."""
    assert mixed.public is not None
    m, k = len(mixed.y), fit.members.shape[1]
    bound = PIXEL * rms(mixed.y)
    for _ in range(ROUNDS):
        left = np.setdiff1d(np.arange(m), fit.rows)
        if not len(left):
            break
        # 1. Private members as they seem, and with these taken off the public ones; then the
        # private ones again.
        names = mixed.names.copy()
        own = fit.values[best_members(mixed.private_part()[left], fit.values, k)].sum(axis=1)
        names[left] = pursue(
            (mixed.y[left] - own).astype(np.float32),
            mixed.public,
            names.shape[1],
            mixed.weight,
            limit,
        )
        trial = Mixed(mixed.y, names, mixed.public, mixed.weight)
        rest = trial.private_part()
        members = np.full((m, k), -1, np.int64)
        members[fit.rows] = fit.members
        members[left] = best_members(rest[left], fit.values, k)
        # 2. Rows that are reproduced now join; the others keep the public part they had.
        fits = np.abs(rest[left] - fit.values[members[left]].sum(axis=1)).max(axis=1) <= bound
        names[left[~fits]] = mixed.names[left[~fits]]
        trusted = np.isin(np.arange(m), np.append(fit.rows, left[fits]))
        new = fit_linear(trial.private_part(), members, trusted, progress=progress)
        if new is None or not new.exact or len(new.rows) <= len(fit.rows):
            break
        mixed, fit = trial, new
    return mixed, fit
