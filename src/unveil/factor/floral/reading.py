"""Which sets stand behind a floral submatrix? `lem:construct` says: all k-subsets of k+2 vectors.
There is a second family.

Let C be k−2 vectors and P run over all pairs of k+2 further ones. Then |(C∪P) ∩ (C∪P')| = k−2 +
|P∩P'|, and this is exactly |S∩S'| for the complements S of P and S' of P' in the k+2 names. So
every floral submatrix has two readings,

    "subsets"    T_S = S,              the paper's;
    "sunflower"  T_S = C ∪ ([k+2]∖S),   k−2 vectors common to all encodings, and pairs of k+2 petals,

and both satisfy all t equations of the sign system at every pixel, public part included: if x
solves the sunflower, then x'_i = (Σ_C x + Σ_{1..k+2} x)/k − x_i solves the subsets. For k = 2 the
core C is empty and the two readings are two labellings of the same six encodings. For k ≥ 3
sunflowers are the more common ones, by far.

Only further encodings tell. Let one share the names τ ∈ {0,1}^{k+2} if the reading is "subsets".
Its overlaps with the floral are Aτ, A the incidence matrix of F. If it shares g vectors with a
sunflower, among them the petals σ, they are A(g/k − σ). The two agree exactly when g = k and τ = 1
− σ, with |τ| = 2, …, k. So

  * an encoding that shares exactly one name (|τ| = 1) is a vote for "subsets": a sunflower cannot
  explain it;
  * an encoding with fractions (0 < g < k) is a vote for "sunflower".

Encodings with |τ| ≥ 2 fit both. When n_private = 2k there are no others, for a deep reason: x'_i =
Σ_all x/k − x_i with every subset replaced by its complement gives the same encodings, and is an
orthogonal image of x. No method can tell the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.records import Floral, Overlaps


@dataclass(frozen=True, eq=False)
class Reading:
    """Votes of the other encodings; `tau` (m, k+2): the names each one uses, in fractions, if the
    reading is "subsets"; `members` (m, k+2): the same where it is whole; `witnesses`: encodings
    that can tell the readings apart."""

    subsets: int
    sunflower: int
    tau: NDArray[np.float64]
    members: NDArray[np.bool_]
    witnesses: NDArray[np.int64]


def read_floral(overlaps: Overlaps, floral: Floral) -> Reading:
    """Let every encoding vote. Single wrong overlaps are tolerated: a vote needs two entries more
    in its favour."""
    A = floral.incidence.astype(np.float64)
    t, names = A.shape
    k = names - 2
    shared = overlaps.matrix[floral.rows].toarray().T.astype(np.float64)
    tau = shared @ np.linalg.pinv(A).T
    few = t // 5

    members = np.rint(tau) == 1
    whole_wrong = _wrong(shared, members.astype(np.float64) @ A.T)
    size = members.sum(axis=1)

    fraction_wrong = np.full(len(shared), t)
    for g in range(1, k):
        petals = np.clip(np.rint(g / k - tau), 0, 1)
        wrong = _wrong(shared, (g / k - petals) @ A.T)
        core = g - petals.sum(axis=1)
        fraction_wrong = np.minimum(
            fraction_wrong, np.where((core >= 0) & (core <= k - 2), wrong, t)
        )

    subsets = (size == 1) & (whole_wrong <= few) & (whole_wrong + 2 <= fraction_wrong)
    sunflower = (fraction_wrong <= few) & (fraction_wrong + 2 <= whole_wrong)
    fits = (whole_wrong <= few) & (size <= k)
    witnesses = np.flatnonzero(shared.any(axis=1) & ~(fits & (size >= 2)))
    return Reading(
        int(subsets.sum()), int(sunflower.sum()), tau, members & fits[:, None], witnesses
    )


def swap_reading(floral: Floral) -> Floral:
    """For k = 2, the same rows under the other labelling: each pair becomes its complement."""
    names = np.arange(floral.labels.shape[1] + 2)
    return Floral(floral.rows, np.array([np.setdiff1d(names, label) for label in floral.labels]))


def _wrong(found: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray((np.abs(found - predicted) > 0.25).sum(axis=1))
