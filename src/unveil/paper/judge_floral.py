"""One floral, solved and judged: the sign system at every pixel, then every reason to doubt its
solution.

A solution is convincing only if all of these hold; the first one that fails is told instead.
Whether its vectors are verified is for the certificate to say.

  1  re-encoding reproduces the t encodings of the floral at every pixel, from t equations for k+2
     unknowns
  2  it reproduces most further encodings whose overlaps say that they mix these vectors only; those
     it does not reproduce have wrong overlaps or supports, and are left out and counted
  3  no other values fit at any pixel
  4  other encodings rule out the second family of sets behind a floral (`paper.floral.read_floral`)
  5  other encodings look like sums with these vectors: no wrong k_private
  6  the recovered pixels have the size they are expected to have
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.encode import mix
from unveil.encodings import Encodings
from unveil.paper.floral import Reading, estimate_n_private
from unveil.paper.floral_evidence import Evidence, gather_evidence
from unveil.paper.private_image import SignSolution
from unveil.records import AMBIGUOUS, UNRESOLVED, Floral, Overlaps, Supports

CONVINCING = "convincing"
FLORAL_NOISE, FLORAL_LEAST = 100.0, 1e-5
"""A misfit so many times that of rounding, and this share of the rms at least, is noise."""
MOST_MISSED = 0.5
"""Where more of the further encodings than this are missed, the vectors are at fault, not the
overlaps."""
NEAR_COMPLEMENT = 0.1
"""n_private is estimated, to some percent: this near to 2k it is 2k."""
NATS = 10.0
"""Log-likelihood by which other encodings must favour the reading: odds of e¹⁰ = 22,000 to 1."""
WITNESSES = 64
"""How many further encodings are asked; each has tens of nats to give."""


@dataclass(frozen=True, eq=False)
class FloralSolution:
    """k+2 vectors with their status and the sentence that explains it; `members` (m, k+2) says
    which encodings use them."""

    floral: Floral
    signs: SignSolution
    signed: bool
    status: str
    reason: str
    votes: tuple[int, int]
    nats: float
    reproduced: int
    members: NDArray[np.bool_]

    @property
    def convincing(self) -> bool:
        return self.status == CONVINCING

    @property
    def rank(self) -> tuple[int, int]:
        """Larger is better: first the status, then the number of settled pixels."""
        return [UNRESOLVED, AMBIGUOUS, CONVINCING].index(self.status), int(self.signs.settled.sum())


def judge_floral(
    encodings: Encodings,
    public: NDArray[np.float32] | None,
    supports: Supports,
    overlaps: Overlaps,
    floral: Floral,
    reading: Reading,
    signs: SignSolution,
) -> FloralSolution:
    """Judge the solution of a floral's sign system by all encodings."""
    scheme = encodings.scheme

    def public_part(rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if public is None or not scheme.k_public:
            return None
        return mix(public, supports.indices[rows], scheme.public_weight).astype(np.float64)

    # 1. Whether signs are determined.
    c = public_part(floral.rows)

    # 2. Encodings said to mix its vectors only: those that are not reproduced are left out.
    members = reading.members.copy()
    inside = np.setdiff1d(np.flatnonzero(members.sum(axis=1) == scheme.k_private), floral.rows)
    reproduced = _reproduces(encodings, inside, members, signs, public_part(inside))
    members[inside[~reproduced]] = False

    # 3. What all others say.
    witnesses = _witnesses(reading, floral.rows, scheme.k_private)
    evidence = gather_evidence(
        encodings.magnitudes(witnesses),
        reading.tau[witnesses],
        signs.values,
        scheme.private_weight,
        public_part(witnesses),
    )
    votes = (reading.subsets, reading.sunflower)
    status, reason = _judge(
        encodings, signs, votes, evidence, reproduced, estimate_n_private(overlaps)
    )
    count = len(floral.rows) + int(reproduced.sum())
    return FloralSolution(
        floral,
        signs,
        c is not None,
        status,
        reason,
        votes,
        float(evidence.reading.sum()),
        count,
        members,
    )


def _witnesses(reading: Reading, rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Encodings to ask: those that can tell the readings apart, and as many taken evenly from all
    that are not inside."""
    telling = np.setdiff1d(reading.witnesses, rows)[:WITNESSES]
    others = np.setdiff1d(np.flatnonzero(reading.members.sum(axis=1) < k), rows)
    return np.union1d(telling, others[:: max(1, len(others) // WITNESSES)])


def _judge(
    encodings: Encodings,
    signs: SignSolution,
    votes: tuple[int, int],
    evidence: Evidence,
    reproduced: NDArray[np.bool_],
    n_private: float,
) -> tuple[str, str]:
    """Status and reason, by the six conditions of this file, in their order."""
    d, k, nats = encodings.d, encodings.scheme.k_private, float(evidence.reading.sum())
    # 1. Its own encodings.
    if not signs.fits.all():
        return (
            UNRESOLVED,
            f"re-encoding misses the encodings at {int((~signs.fits).sum())} of {d} pixels",
        )
    # 2. Further encodings of the same vectors.
    if reproduced.size and reproduced.mean() < MOST_MISSED:
        return (
            UNRESOLVED,
            f"re-encoding misses {int((~reproduced).sum())} further encodings of the same vectors",
        )
    # 3. Other values.
    if not signs.settled.all():
        return AMBIGUOUS, f"other values fit as well at {int((~signs.settled).sum())} of {d} pixels"
    # 4. The other family of sets.
    if votes[0] <= votes[1] or nats < NATS:
        if abs(n_private - 2 * k) < NEAR_COMPLEMENT:
            return AMBIGUOUS, (
                "there seem to be n_private = 2·k_private vectors: then x and Σx/k − x, with all "
                "subsets replaced by their complements, give the same encodings, and nothing can "
                "tell them apart"
            )
        return AMBIGUOUS, (
            "two families of subsets fit, and other encodings do not settle which "
            f"({votes[0]} votes for, {votes[1]} against; {nats:.0f} nats, {NATS:.0f} needed)"
        )
    # 5. Sums of these vectors and others.
    if evidence.contradicts(k):
        return AMBIGUOUS, (
            "other encodings do not look like sums with these vectors "
            f"(free coefficients gain {evidence.excess.mean():.0f} nats each): is k_private right?"
        )
    # 6. Their size. A wrong weighting shows in nothing else when there is no public part.
    expected, size = encodings.pixel_rms, float(np.sqrt(np.mean(signs.values**2)))
    if expected is not None and size_in_doubt(size / expected, signs.values.size):
        return AMBIGUOUS, (
            f"the scale is in doubt: recovered pixels have rms {size:.2f}, expected {expected} "
            "(check weighting and k_private, or set pixel_rms; None if unknown)"
        )
    missed, but = int((~reproduced).sum()), ""
    if missed:
        but = f"; {missed} encodings that seem to mix these vectors only are not reproduced and "
        but += "were left out"
    return (
        CONVINCING,
        f"all {d} pixels reproduced by one solution only; {votes[0]} other encodings agree{but}",
    )


def _reproduces(
    encodings: Encodings,
    rows: NDArray[np.int64],
    members: NDArray[np.bool_],
    signs: SignSolution,
    c: NDArray[np.float64] | None,
) -> NDArray[np.bool_]:
    """Which of `rows`, said to mix recovered vectors only, re-encoding reproduces at every
    pixel."""
    if not rows.size:
        return np.empty(0, dtype=bool)
    y = encodings.magnitudes(rows).astype(np.float64)
    mixed = encodings.scheme.private_weight * members[rows].astype(np.float64) @ signs.values
    bound = max(FLORAL_NOISE * signs.noise, FLORAL_LEAST) * np.sqrt(np.mean(y * y))
    return np.asarray((np.abs(np.abs(mixed + (0 if c is None else c)) - y) <= bound).all(axis=1))


def size_in_doubt(ratio: float, numbers: int) -> bool:
    """Whether recovered values are not of the expected size: `ratio` of their rms to it.

    Such an rms is off by five standard errors less than once in a million times. At least 2%, since
    values need not be quite Gaussian; at most 20%, since another k_private is off by more.
    """
    return bool(abs(ratio - 1) > min(max(0.02, 5 / np.sqrt(2 * numbers)), 0.2))
