"""White noise that rows of one epoch share: it tells signs, and is taken out, without knowing any
public image.

Each public image of an epoch is in k_public rows of it, so that the noise z of its rows is
correlated, in the same way at every pixel. With what is expected of z, E[z] = y·tanh(y·(Ax + o)/c)
− Ax, and how unsure that is,

    N = (E[z] E[z]ᵀ + diag Var z)/d,   P = N⁻¹
    o_i = −Σ_{j≠i} P_ij E[z_j]/P_ii,   c_i = 1/P_ii

o is what the other rows tell of the noise of each, and c the noise that is left, three fifths of
it.

Weights are positive, and so is every N_ij. Where an image has the wrong sign its rows are signed
wrongly, and their noise has *negative* products with that of other rows (`noise_agrees`). With |N|
in place of N the other rows tell such a row its noise as it is: an image that starts again next to
it comes back with the right sign (`images.white_epochs`). O(m·n·d) a sweep.
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
CHANCE = 0.07
"""Correlations of noise up to this are taken for chance where |N| is: two standard deviations of
1,024 pixels. Rows that share a public image have 0.25 about."""
SINGULAR = 0.05
"""Least eigenvalue of these correlations: single ones set to zero may leave negative ones."""
EMPTY = 1e-12
"""Guards divisions: a row may have no noise."""


def without_shared_noise(
    Y: Floats, images: Floats, fit: WhiteFit, epochs: Epochs
) -> tuple[Floats, Floats, Floats]:
    """Better images (n, d); the noise (m, d) that other rows tell; and the variance (m,) of what is
    left of it."""
    offsets, left = np.zeros_like(Y), fit.noise
    for _ in range(ROUNDS):
        offsets, left = shared_noise(Y, fit.weights @ images, offsets, left, epochs)
        images = WhiteFit.of(fit.weights, left, fit.prior).settle(Y, images, SWEEPS, offsets)
    return images, offsets, left


def shared_noise(
    Y: Floats,
    mixed: Floats,
    offsets: Floats,
    left: Floats,
    epochs: Epochs,
    *,
    sweeps: int = SWEEPS,
    positive: bool = False,
) -> tuple[Floats, Floats]:
    """Offsets (m, d) and what they leave (m,), from those there were; mixed: the private part;
    positive: by |N|."""
    offsets, left = offsets.copy(), left.copy()
    for rows in epochs.slices():
        for _ in range(sweeps):
            offsets[rows], left[rows] = _told_by_others(
                Y[rows], mixed[rows], offsets[rows], left[rows], positive
            )
    return offsets, left


def _told_by_others(
    Y: Floats, mixed: Floats, offsets: Floats, left: Floats, positive: bool
) -> tuple[Floats, Floats]:
    """Offsets and what they leave, of the rows of one epoch."""
    signs = np.tanh(Y * (mixed + offsets) / left[:, None])
    noise = Y * signs - mixed
    unsure = (Y**2 * (1 - signs**2)).mean(axis=1)
    N = (noise @ noise.T).astype(np.float64) / Y.shape[1]
    own = np.diag(N).copy()
    if positive:
        N = _magnitudes(N)
    N *= 1 - ALONE
    N[np.diag_indices(len(N))] += ALONE * own + unsure
    P = np.linalg.inv(N)
    tells = -P / np.diag(P)[:, None]
    np.fill_diagonal(tells, 0)
    rest = np.maximum(1 / np.diag(P), LEAST)
    return tells.astype(np.float32) @ noise, rest.astype(np.float32)


def _magnitudes(N: NDArray[np.float64]) -> NDArray[np.float64]:
    """|N| where it is more than chance, zero elsewhere."""
    size = np.sqrt(np.diag(N)) + EMPTY
    share = np.abs(N / np.outer(size, size))
    share[share < CHANCE] = 0
    np.fill_diagonal(share, 1)
    values, vectors = np.linalg.eigh(share)
    share = (vectors * np.maximum(values, SINGULAR)) @ vectors.T
    return np.asarray(share * np.outer(size, size))


def noise_agrees(Y: Floats, mixed: Floats, noise: Floats, epochs: Epochs) -> float:
    """How far products of noise of rows of one epoch are positive, from −1 to 1, each cubed so that
    chance counts little: near one where signs are right. Regions that are inverted in all images at
    once do not show."""
    z = Y * np.tanh(Y * mixed / noise[:, None]) - mixed
    z /= np.linalg.norm(z, axis=1, keepdims=True) + np.float32(EMPTY)
    total, size = 0.0, EMPTY
    for rows in epochs.slices():
        cubes = (z[rows] @ z[rows].T).astype(np.float64) ** 3
        np.fill_diagonal(cubes, 0)
        total += float(cubes.sum())
        size += float(np.abs(cubes).sum())
    return total / size
