"""Are all images negatives of themselves? The public mean tells.

Turn the sign of every image and every encoding, and all magnitudes stay. Only one thing does not
turn: the mean of public images, where it is known from others like them. It is fitted to the signed
encodings as one more image, whose weight is what private images leave, and held against the known
mean in whitened components, where the public part is white noise:

    z = ⟨fitted, known⟩ / (‖known‖·standard error)

Positive: signs are right; negative: all are to be turned. How badly encodings fit does not tell:
the wrong sign can fit better.

Before any signs are known, magnitudes tell, region by region (`images.public_sides`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.prior import ImagePrior
from unveil.images.reweigh import whiten

Floats = NDArray[np.float32]
SURE = 6.4
"""Standard deviations from which on the sign is told. Errors of images have a part in z besides
chance: over sixteen pairs of sets it was wrong at up to 6.0, with clothes or textures for public
images, and right from 6.5 on."""
LEANS = 2.0
"""Below so many standard deviations images stay as the first rounds had them, which knew the public
mean: that is right for photographs more often than not."""
RIDGE = 1e-3
"""Added to the normal equations: an image may be in no encoding."""


def polarity(
    Y: Floats, E: Floats, weights: sparse.csr_array, noise: Floats, prior: ImagePrior
) -> float:
    """z, in standard deviations, of signed encodings E (m, d) of magnitudes Y (m, d); zero where
    nothing is known of the public mean."""
    W = whiten(prior)
    known = (prior.mean @ W).astype(np.float64)
    size = float(np.linalg.norm(known))
    if not prior.known or size == 0:
        return 0.0
    # Images, and the public mean as one more that weighs what they leave.
    rest = np.maximum(1 - np.asarray(weights.sum(axis=1)).ravel(), 0)
    A = np.concatenate([weights.toarray(), rest[:, None]], axis=1).astype(np.float64)
    scaled = A / noise[:, None]
    inverse = np.linalg.inv(A.T @ scaled + RIDGE * np.eye(A.shape[1]))
    fitted = (inverse[-1] @ scaled.T) @ (np.copysign(Y, E) @ W)
    return float(fitted @ known / (size * np.sqrt(inverse[-1, -1])))
