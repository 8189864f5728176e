"""Private images under public white noise: signs pixel by pixel, images smooth.

    y = |Σ λ_j x_j + noise|,   noise independent at every pixel, of variance v in each encoding

Neighbouring pixels say nothing of the sign of an encoding here, but all of the private images: the
fields of `images.sign_fields` have no use, and a prior on the images all. Expectation–maximisation:

    E = y·tanh(y·Ax/v),     x = argmin Σ (E − Ax)²/v + x C⁻¹ x

AᵀA/v = V S Vᵀ over images and C = U w Uᵀ over pixels, so that the second step is a division in the
basis V ⊗ U. A step is O(m·n·d + n·d·components).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unveil.images.prior import ImagePrior, smooth_prior

Floats = NDArray[np.float32]


@cache
def smooth(shape: tuple[int, ...], neighbours: float) -> ImagePrior:
    """What images look like whose neighbouring pixels correlate so."""
    return smooth_prior(shape, neighbours=neighbours)


@dataclass(frozen=True, eq=False)
class WhiteFit:
    """What is believed of the weights, A (m, n), and of the noise, v (m,), with what images look
    like, ready to fit images to signed encodings."""

    weights: Floats
    noise: Floats
    prior: ImagePrior
    towards: Floats
    """AᵀD (n, m), D the inverse of the noise."""
    energies: Floats
    vectors: Floats
    """S (n,) and V (n, n) of AᵀDA."""

    @classmethod
    def of(cls, weights: Floats, noise: Floats, prior: ImagePrior) -> WhiteFit:
        towards = np.ascontiguousarray((weights / noise[:, None]).T)
        values, vectors = np.linalg.eigh((towards @ weights).astype(np.float64))
        values = np.maximum(values, 0).astype(np.float32)
        return cls(weights, noise, prior, towards, values, vectors.astype(np.float32))

    def images(self, signed: Floats) -> Floats:
        """Images (n, d) of signed encodings (m, d)."""
        parts = self.vectors.T @ (self.towards @ signed) @ self.prior.basis
        parts /= self.energies[:, None] + 1 / self.prior.variances
        return np.asarray(self.vectors @ parts @ self.prior.basis.T, np.float32)

    def own_part(self, Y: Floats, images: Floats, offsets: Floats | None = None) -> Floats:
        """(m, d): what an encoding would add to an image of which it has a weight of v, were it
        not explained by the others already: each image without an encoding of weight λ in it is
        smaller by λ/v of this."""
        mixed = self.weights @ images
        left = self.signed(Y, mixed, offsets) - mixed
        usual = float(np.median(np.einsum("ji,ij->j", self.towards, self.weights)))
        parts = left @ self.prior.basis
        parts /= usual + 1 / self.prior.variances
        return np.asarray(parts @ self.prior.basis.T, np.float32)

    def signed(self, Y: Floats, mixed: Floats, offsets: Floats | None = None) -> Floats:
        """Expected encodings with signs, of magnitudes Y and mixtures of private images; less the
        noise that is known, offsets (m, d)."""
        if offsets is None:
            return np.asarray(Y * np.tanh(Y * mixed / self.noise[:, None]), np.float32)
        signs = np.tanh(Y * (mixed + offsets) / self.noise[:, None])
        return np.asarray(Y * signs - offsets, np.float32)

    def settle(
        self, Y: Floats, images: Floats, sweeps: int, offsets: Floats | None = None
    ) -> Floats:
        """Images after some rounds of expectation–maximisation."""
        for _ in range(sweeps):
            images = self.images(self.signed(Y, self.weights @ images, offsets))
        return images
