"""Squares of encodings whitened in the same way at every pixel.

`gram.energies` whitens squares by their own covariance, of d² numbers from m encodings. Of images
the spectrum says most of it: how much each frequency varies, channels together, wherever in the
image. With C the covariance of channels at a frequency, and N what of it is no image,

    Z = (C − N)^½ (C + s·I)⁻¹ F

and Z Zᵀ is, to first order, the likelihood ratio of sharing an image. N is the level to which
the spectrum falls at its faintest frequencies: that of white noise, if there is any. Among public
images that are none `gram.windows` tells far more. O(m·d·log d).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.gram.cosines import Alike

Floats = NDArray[np.float32]
RIDGE = 0.001
"""s, by the mean power: the mean is that of the lowest frequencies, which tell images apart badly,
and a hundred times as much loses a tenth of the pairs."""
FAINT, ABOVE = 0.02, 1.1
"""The quantile of power over frequencies, and times that, which is taken for noise: of white noise
all frequencies have the same power up to chance, of images the faintest have next to nothing."""
LEAST = 1e-3
"""Least share of its power that a frequency keeps: below the noise it could still tell a little."""
EMPTY = 1e-12
"""Guards divisions: all encodings may be the same."""


def stationary(values: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Rows (m, d) of images of a shape, whitened, with a mean square of one: (m, height, width,
    channels); and (height, width, channels): their mean in the same way."""
    # 1. What all have in common is told apart; the level of each tells nothing.
    height, width = shape[:2]
    F = values.reshape(len(values), height, width, -1)
    mean = F.mean(axis=0)
    F = F - mean
    F -= F.mean(axis=(1, 2), keepdims=True)
    mean = mean - mean.mean(axis=(0, 1))
    # 2. The covariance of channels at every frequency, and what its components count.
    spectrum = np.fft.rfft2(F, axes=(1, 2)).astype(np.complex64)
    C = np.einsum("mhwc,mhwe->hwce", spectrum, spectrum.conj(), optimize=True) / len(F)
    power, vectors = np.linalg.eigh(C)
    noise = ABOVE * np.quantile(power.reshape(-1, power.shape[-1]), FAINT, axis=0)
    signal = np.maximum(np.maximum(power - noise, LEAST * power), 0)
    counts = np.sqrt(signal) / (power + RIDGE * power.mean() + EMPTY)
    root = np.einsum("hwik,hwk,hwjk->hwij", vectors, counts, vectors.conj()).astype(np.complex64)
    # 3. Back to pixels.
    out = np.empty((len(F) + 1, *F.shape[1:]), np.float32)
    both = np.concatenate([spectrum, np.fft.rfft2(mean[None], axes=(1, 2)).astype(np.complex64)])
    white = np.einsum("hwij,mhwj->mhwi", root, both, optimize=True)
    out[:] = np.fft.irfft2(white, s=(height, width), axes=(1, 2))
    out /= np.sqrt(np.mean(out[:-1] ** 2) + EMPTY)
    return out[:-1], out[-1]


def stationary_energies(Y: Floats, shape: tuple[int, ...]) -> Alike:
    """Of magnitudes (m, d), each encoding by its own mean square: those with more noise speak
    less."""
    squares = Y * Y
    squares /= squares.mean(axis=1, keepdims=True) + EMPTY
    features, mean = stationary(squares, shape)
    flat, level = features.reshape(len(Y), -1), mean.ravel()
    return Alike.of(flat @ flat.T, flat @ level, float(level @ level))
