"""What the rounds of the natural-image attack are given, and what they believe after each of them.

`WeightLaw` and `ImageTask`: the law of weights, magnitudes, what images look like. `RoundState`:
images, signed encodings and weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encode.weights import sample_weights
from unveil.gram.cosines import Alike
from unveil.images.cropping import Cropping
from unveil.images.epochs import Epochs
from unveil.images.prior import ImagePrior
from unveil.images.public_part import PublicImages
from unveil.images.reweigh import Weighing
from unveil.images.schedule import SCHEDULE
from unveil.images.sign_fields import REST, Mixture
from unveil.scheme import Scheme

DRAWS = 40_000
"""Draws from the law of weights: enough to know its mean and its largest weight to a percent."""
EMPTY = 1e-12
"""Guards a division: of encodings that share nothing, images may all be zero."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """The law of weights: a sorted sample of private ones, the largest, the mean, and the public
    energy Σλ² over (Σλ)²."""

    sample: NDArray[np.float64]
    largest: float
    mean: float
    public: float

    @property
    def evenness(self) -> float:
        """(Σλ)²/Σλ² of private weights, over their number: one where all are the same."""
        return self.mean**2 / max(float(np.mean(self.sample**2)), EMPTY)

    @classmethod
    def of(cls, scheme: Scheme, rng: np.random.Generator) -> WeightLaw:
        weights = sample_weights(scheme, DRAWS, rng)
        private, public = weights[:, : scheme.k_private], weights[:, scheme.k_private :]
        rest = np.maximum(public.sum(axis=1), 1e-9)  # guards the division: zero without public ones
        ratio = float(np.mean((public**2).sum(axis=1) / rest**2)) if scheme.k_public else 0.0
        return cls(np.sort(private.ravel()), float(private.max()), float(private.mean()), ratio)


@dataclass(frozen=True, eq=False)
class ImageTask:
    """What is given: magnitudes Y (m, d), the scheme and its law, what images look like, and the
    labels of encodings where they were released."""

    Y: Floats
    scheme: Scheme
    law: WeightLaw
    prior: ImagePrior
    labels: Floats | None
    centre: Floats | None = None
    """The mean of private images, where it is known to be another than that of public ones."""
    cropping: Cropping | None = None
    """What was done to images before they were mixed; weights are over copies then."""

    shape: tuple[int, ...] | None = None
    """Where pixels lie; None: regions are not turned (`images.regions`)."""
    alike: Alike | None = None
    """How alike encodings are, in which missed images are looked for (`images.missing`)."""

    epochs: Epochs | None = None
    """Which rows are of one epoch, where they are in that order (`images.epochs`)."""

    @property
    def start(self) -> Floats:
        """What an image is before anything is known of it."""
        return self.prior.mean if self.centre is None else self.centre

    @property
    def public(self) -> bool:
        return self.scheme.k_public > 0

    def private(self, weights: sparse.csr_array) -> NDArray[Any]:
        """What the private images of each encoding weigh together. Labels say it exactly."""
        return np.asarray(
            weights.sum(axis=1) if self.labels is None else self.labels.sum(axis=1)
        ).ravel()

    def mixture(
        self,
        weights: sparse.csr_array,
        squares: sparse.csr_array,
        misfit: Floats | None = None,
        least: float | None = None,
    ) -> Mixture:
        """Expected weights with the energy of all else: the public part, and what is not known of
        the weights, `least` at the least. An encoding that fitted badly has more."""
        total = self.private(weights)
        rest = np.clip(1 - total, *REST) if self.public else np.zeros_like(total)
        if least is None:
            least = SCHEDULE.least if self.public else SCHEDULE.least_alone
        noise = np.maximum(rest**2 * self.law.public, least) + unsure(weights, squares)
        raised = np.ones(len(noise), np.float32)
        if misfit is not None and self.public:
            # Bounded both ways: no single encoding may count for nothing, or for everything.
            raised = np.clip(misfit / max(float(np.median(misfit)), EMPTY), 0.5, 4)
        noise = (noise * raised).astype(np.float32)
        return Mixture(sparse.csr_array(weights).astype(np.float32), noise, raised)


@dataclass(frozen=True, eq=False)
class RoundState:
    """Images, signed encodings, what was believed of the weights when these were found, and the
    weights found after. polarity: how sure it is, in standard deviations, that images are not
    negatives of themselves, where that was asked (`images.polarity`)."""

    images: Floats
    signed: Floats
    mixture: Mixture
    weighing: Weighing
    part: PublicImages | None = None
    polarity: float | None = None

    def merged(self, images: Floats, became: NDArray[np.int64]) -> RoundState:
        """With images that became one (`images.mirrored`): members have their new names."""
        return replace(
            self,
            images=images,
            weighing=replace(self.weighing, members=became[self.weighing.members]),
        )


def unsure(weights: sparse.csr_array, squares: sparse.csr_array) -> NDArray[Any]:
    """The variance of what is believed of an encoding's weights."""
    variance = np.asarray((squares - weights.multiply(weights)).sum(axis=1)).ravel()
    return np.asarray(np.maximum(variance, 0))
