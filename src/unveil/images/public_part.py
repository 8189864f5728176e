"""Which of the candidate images make up the public part of each signed encoding, and with what
weights.

What a signed encoding leaves after its private images is a mixture of k_public images. In the
whitened components of the prior (`images.reweigh`) every candidate is a direction of its own: the
one with the largest product is taken if that stands out from chance among all candidates, all
weights are fitted again, and so on (orthogonal matching pursuit). What is found is taken out of the
encodings; what is not stays noise. O(m·candidates·components) per image found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import half_signed, whiten
from unveil.parallel import run_blocks, where, worker_count

Floats = NDArray[np.float32]
BLOCK = 256
COMPONENTS = 512
STANDS_OUT = 6.0
"""Standard deviations a candidate must reach: noise over ten thousand candidates reaches four. They
are as long as said where whitened components are white, that is where variances exceed
`reweigh.FLOOR`: photographs of 32×32 pixels in colour. In small or very smooth images noise reaches
twice as far."""


@dataclass(frozen=True, eq=False)
class PublicImages:
    """indices (m, k_public) of candidates, −1 where none stood out; weights (m, k_public); rest
    (m,): the weight not accounted for; offsets (m, d): the public part as far as it is known, and
    the mean image for the rest."""

    indices: NDArray[np.int64]
    weights: Floats
    rest: Floats
    offsets: Floats


def find_public_part(
    Y: Floats,
    E: Floats,
    private: sparse.csr_array,
    images: Floats,
    candidates: Floats,
    prior: ImagePrior,
    k_public: int,
    total: Floats,
) -> PublicImages:
    """private: weights (m, n) of the private images; total (m,): the weight that public images have
    together"""
    m = len(E)
    W = np.ascontiguousarray(whiten(prior)[:, :COMPONENTS])
    P = (candidates - prior.mean) @ W
    norms = np.linalg.norm(P, axis=1) + 1e-9
    unit = (P / norms[:, None]).T.copy()
    indices = np.full((m, k_public), -1, np.int64)
    weights = np.zeros((m, k_public), np.float32)
    offsets = np.empty_like(E)

    def task(rows: slice) -> None:
        left = (
            half_signed(Y[rows], E[rows]) - private[rows] @ images - total[rows, None] * prior.mean
        )
        target = left @ W
        residual = target.copy()
        count = len(target)
        at = np.arange(count)
        active = np.ones(count, bool)
        for step in range(k_public):
            scores = residual @ unit
            for earlier in range(step):
                found = indices[rows][:, earlier] >= 0
                scores[at[found], indices[rows][found, earlier]] = -np.inf
            best = scores.argmax(axis=1)
            spread = np.sqrt(np.mean(residual**2, axis=1)) + 1e-12
            active &= scores[at, best] > STANDS_OUT * spread
            if not active.any():
                break
            indices[rows][active, step] = best[active]
            chosen = indices[rows][:, : step + 1]
            basis = np.where((chosen >= 0)[:, :, None], P[np.maximum(chosen, 0)], 0)
            gram = np.einsum("ijr,ilr->ijl", basis, basis) + 1e-3 * np.eye(step + 1)
            fit = np.linalg.solve(gram, np.einsum("ijr,ir->ij", basis, target)[:, :, None])[:, :, 0]
            fit = np.where(chosen >= 0, np.clip(fit, 0, 0.65), 0)
            weights[rows][:, : step + 1] = fit
            residual = target - np.einsum("ij,ijr->ir", fit, basis)
        over = np.maximum(weights[rows].sum(axis=1) / np.maximum(total[rows], 1e-6), 1)
        weights[rows] /= over[:, None]
        rest = np.maximum(total[rows] - weights[rows].sum(axis=1), 0)
        offset = rest[:, None] * prior.mean
        for column in range(k_public):
            chosen = np.maximum(indices[rows][:, column], 0)
            offset += weights[rows][:, column, None] * candidates[chosen]
        offsets[rows] = offset

    run_blocks(
        task, [slice(s, s + BLOCK) for s in range(0, m, BLOCK)], worker_count(where().workers)
    )
    return PublicImages(indices, weights, np.maximum(total - weights.sum(axis=1), 0), offsets)
