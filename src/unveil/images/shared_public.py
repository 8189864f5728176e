"""Public images that rows of one epoch share, taken out without knowing any of them.

An epoch of n rows draws n public images, each once per slot (`encode.selection`): each is in
k_public rows of it. So what private images leave of its signed rows, R (n, components) in whitened
components, is correlated between rows,

    N = R Rᵀ/components,   P = N⁻¹
    E[r_i | the others] = −Σ_{j≠i} P_ij r_j / P_ii,   with variance 1/P_ii

and the other rows of an epoch tell most of each public part: a tenth to a fifth of its energy is
left. With that as the offset of each encoding signs and images are found again, some times in turn
(`without_shared`). Weights stay: found again they are better (correlation with the true ones 0.996
for 0.987), but their scale drifts, and images with it. O(m·n·d) besides the annealing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.cropping import Cropping
from unveil.images.epochs import Epochs
from unveil.images.prior import ImagePrior
from unveil.images.reweigh import half_signed, whiten
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import Mixture, anneal
from unveil.images.task import ImageTask, RoundState, unsure
from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress

Floats = NDArray[np.float32]
ROUNDS = 4
"""Times the shared part is found: the last gains 0.001 to 0.004 of SSIM."""
EPSILONS = np.geomspace(2.0, 0.1, 5)
"""ε of each round (`images.schedule`): images are good already; from 0.4 on 0.006 are lost."""
ALONE = 0.03
"""Share of N that is taken for its rows' own: signs and weights have errors, and products of
residuals chance."""
LEAST = 0.005
"""Least energy of what is left: less makes signs certain that are wrong."""


def without_shared(
    task: ImageTask, state: RoundState, epochs: Epochs, progress: Progress | None = None
) -> RoundState:
    """The state with better images and signs; weights as they were, over copies where images were
    cropped."""
    weights = state.mixture.weights
    more = unsure(state.weighing.weights, state.weighing.squares)
    for turn in range(ROUNDS):
        part = shared_part(
            task.Y, state.signed, weights, state.images, task.prior, epochs, task.cropping
        )
        noise = (part.left + more).astype(np.float32)
        mixture = Mixture(weights, noise)
        images, signed = anneal(
            task.Y, mixture, state.images, task.prior, EPSILONS, inner=SCHEDULE.sweeps,
            offsets=part.offsets, towards=task.start, cropping=task.cropping,
        )  # fmt: skip
        state = replace(state, images=images, signed=signed, mixture=mixture)
        if progress:
            progress("shared public images", turn + 1, ROUNDS)
    return state


@dataclass(frozen=True, eq=False)
class SharedPart:
    """offsets (m, d): the public part to expect of each encoding; left (m,): the energy of what it
    leaves."""

    offsets: Floats
    left: Floats


def shared_part(
    Y: Floats,
    signed: Floats,
    weights: sparse.csr_array,
    images: Floats,
    prior: ImagePrior,
    epochs: Epochs,
    cropping: Cropping | None = None,
) -> SharedPart:
    """Of signed encodings (m, d) of magnitudes Y (m, d), with weights (m, n) of images (n, d), or
    of their copies."""
    W = whiten(prior)
    offsets, left = np.empty_like(Y), np.empty(len(Y), np.float32)

    def task(rows: slice) -> None:
        # 1. What private images leave, besides the public mean.
        part = sparse.csr_array(weights[rows])
        rest = 1 - np.asarray(part.sum(axis=1)).ravel().astype(np.float32)
        known = rest[:, None] * prior.mean
        residual = half_signed(Y[rows], signed[rows]) - known
        residual -= part @ images if cropping is None else cropping.mixed(part, images)
        # 2. How rows correlate, and what the others tell of each.
        r = (residual @ W).astype(np.float64)
        N = r @ r.T / W.shape[1]
        own = np.diag(N) + 1e-9  # guards the inverse: a row may be explained completely
        P = np.linalg.inv((1 - ALONE) * N + ALONE * np.diag(own))
        tells = -P / np.diag(P)[:, None]
        np.fill_diagonal(tells, 0)
        offsets[rows] = known + tells.astype(np.float32) @ residual
        left[rows] = np.maximum(1 / np.diag(P), LEAST)

    run_blocks(task, epochs.slices(), worker_count(where().workers))
    return SharedPart(offsets, left)
