"""Which private records came back, and how well? One recovery held against the truth, record by
record.

  exact          every pixel within `relative_tolerance` times the root mean square of the data
  approximate    not exact, but correlated with the record by more than `APPROXIMATE` after the mean of all records is taken off
                 both: what is common to all records (the grey background of every image) is no leak
                 of one. Or `MOST` of the pixels that set it apart from that mean are right, to a
                 tenth of the rms: a few wrong signs in the background spoil a correlation, but not
                 a picture
  not recovered  neither

A recovered vector counts for one record only, its nearest. What the attacker believes of it
("verified", …) plays no part here.

Without a public part one sign per pixel, common to all vectors, is free. It is chosen by all
vectors for the errors, as in `unveil.score`; for the correlation each vector has it chosen by those
of *other* records, so that it gains nothing from the choice. Fewer than `FEWEST` pixels correlate
by chance: then nothing is called approximate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.records import Recovery
from unveil.scoring import score
from unveil.scoring.score import sign_votes

APPROXIMATE = 0.9
MOST = 0.8
FEWEST = 30
NOT, ALMOST, EXACT = 0, 1, 2
OUTCOMES = ("not recovered", "approximate", "exact")


@dataclass(frozen=True, eq=False)
class Risks:
    """For each private record: outcome (index into OUTCOMES), error and correlation (NaN where no
    vector is near it), and which recovered vector it is (−1: none). wrong: verified vectors that
    equal no record. vectors (r, d): signs as aligned."""

    outcome: NDArray[np.int8]
    error: NDArray[np.float64]
    correlation: NDArray[np.float64]
    which: NDArray[np.int64]
    wrong: int
    vectors: NDArray[np.float32]

    @property
    def recovered(self) -> int:
        return int((self.outcome > NOT).sum())


def assess(
    recovery: Recovery, private: NDArray[np.float32], *, relative_tolerance: float = 1e-2
) -> Risks:
    """Outcome of every private record; errors are relative to the rms of the data."""
    n, d = private.shape
    rms = float(np.sqrt(np.mean(np.square(private, dtype=np.float64)))) or 1.0
    bound = relative_tolerance * rms
    scores = score(recovery, private, tolerance=bound)
    X, nearest = recovery.vectors, scores.nearest
    votes = (
        np.zeros((len(X), d), np.float32)
        if recovery.signed
        else sign_votes(X, private[nearest], bound)
    )
    voters = recovery.verified if recovery.verified.any() else np.ones(len(X), bool)
    total = votes[voters].sum(axis=0)
    common = private.mean(axis=0) if n > 2 else np.zeros(d, np.float32)
    spread = float(np.sqrt(np.mean(np.square(private - common, dtype=np.float64))))
    outcome = np.zeros(n, np.int8)
    error, correlation = np.full(n, np.nan), np.full(n, np.nan)
    which = np.full(n, -1, np.int64)
    for i, j in enumerate(nearest):
        others = np.sign(total - votes[voters & (nearest == j)].sum(axis=0))
        alone = X[i] * (np.ones(d, np.float32) if recovery.signed else others)
        alike = _correlation(alone - common, private[j] - common)
        if which[j] >= 0 and scores.error[i] >= error[j]:
            continue
        which[j], error[j], correlation[j] = i, scores.error[i], alike
        close = alike > APPROXIMATE or _mostly_right(alone, private[j], common, spread, 0.1 * rms)
        if scores.error[i] <= bound and (close or recovery.signed):
            outcome[j] = EXACT
        else:
            outcome[j] = ALMOST if close and d >= FEWEST else NOT
    signs = (
        np.ones(d, np.float32)
        if recovery.signed
        else np.where(total < 0, np.float32(-1), np.float32(1))
    )
    return Risks(outcome, error, correlation, which, scores.wrong, X * signs)


def _mostly_right(
    found: NDArray[np.float32],
    record: NDArray[np.float32],
    common: NDArray[np.float32],
    spread: float,
    bound: float,
) -> bool:
    """Whether most of the pixels in which the record differs from the mean of all are right."""
    its_own = np.abs(record - common) > 0.25 * spread
    return bool(
        its_own.sum() >= FEWEST and (np.abs(found - record)[its_own] < bound).mean() >= MOST
    )


def _correlation(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a.astype(np.float64) @ b) / size if size > 0 else 0.0
