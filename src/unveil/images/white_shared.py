"""White noise that rows of one epoch share, taken out without knowing any public image.

Each public image of an epoch is in k_public rows of it, so that the noise z of its rows is
correlated, in the same way at every pixel. With what is expected of z, E[z] = y·tanh(y·(Ax + o)/c)
− Ax, and how unsure that is,

    N = (E[z] E[z]ᵀ + diag Var z)/d,   P = N⁻¹
    o_i = −Σ_{j≠i} P_ij E[z_j]/P_ii,   c_i = 1/P_ii

o is what the other rows tell of the noise of each, and c the noise that is left. Images are fitted
to what remains, in turn (`images.white_fit`). Three fifths of the noise are left. Signs
are told better as well: where an image is dark the public part tells them. O(m·n·d) a sweep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.images.epochs import Epochs
from unveil.images.white_fit import WhiteFit

Floats = NDArray[np.float32]
ROUNDS, SWEEPS = 6, 3
"""Times images are fitted again, and sweeps over noise and over images in each: the last round
gains 0.002 of SSIM."""
ALONE = 0.03
"""Share of N that is taken for its rows' own: products of what is left have chance in them."""
LEAST = 0.003
"""Least variance of what is left: less makes signs certain that are wrong."""


def without_shared_noise(
    Y: Floats, images: Floats, fit: WhiteFit, epochs: Epochs
) -> tuple[Floats, Floats, Floats]:
    """Better images (n, d); the noise (m, d) that other rows tell; and the variance (m,) of what is
    left of it."""
    offsets, left = np.zeros_like(Y), fit.noise.copy()
    for _ in range(ROUNDS):
        mixed = fit.weights @ images
        for rows in epochs.slices():
            for _ in range(SWEEPS):
                offsets[rows], left[rows] = _told_by_others(
                    Y[rows], mixed[rows], offsets[rows], left[rows]
                )
        part = WhiteFit.of(fit.weights, left, fit.prior)
        for _ in range(SWEEPS):
            known = fit.weights @ images + offsets
            images = part.images(part.signed(Y, known) - offsets)
    return images, offsets, left


def _told_by_others(
    Y: Floats, mixed: Floats, offsets: Floats, left: Floats
) -> tuple[Floats, Floats]:
    """Offsets and what they leave, of the rows of one epoch."""
    signs = np.tanh(Y * (mixed + offsets) / left[:, None])
    noise = Y * signs - mixed
    unsure = (Y**2 * (1 - signs**2)).mean(axis=1)
    N = (noise @ noise.T).astype(np.float64) / Y.shape[1]
    own = np.diag(N).copy()
    N *= 1 - ALONE
    N[np.diag_indices(len(N))] += ALONE * own + unsure
    P = np.linalg.inv(N)
    tells = -P / np.diag(P)[:, None]
    np.fill_diagonal(tells, 0)
    rest = np.maximum(1 / np.diag(P), LEAST)
    return tells.astype(np.float32) @ noise, rest.astype(np.float32)
