"""How the rounds of the natural-image attack run: how many, how hot, and what counts as bad.

`Schedule` has one sentence for every number. They were chosen on CIFAR-10 images, on other seeds
than those measured in `docs/natural_images_notes.md`, which also lists what lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Schedule:
    """Temperatures ε are those of `images.sign_fields`, energies those of `Mixture.noise`."""

    hot: float = 6.0
    """ε at which a round starts. At 30 the sign common to all images is lost; at a small ε regions
    freeze with the wrong sign."""
    cooler: tuple[float, ...] = (4.0, 2.0, 2.0)
    """ε at which the last rounds start: images are good by then. As hot as the first rounds they
    lose 0.01 to 0.02 of SSIM."""
    cooler_few: tuple[float, ...] = (5.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0)
    """The same where encodings are few: hot rounds stay where they are, each cooler one gains."""
    cold: float = 0.2
    """ε at which a round ends: finer detail is not needed to weigh images."""
    finest: float = 0.1
    """ε at which the last round ends: no other round repairs its signs."""
    steps: int = 10
    """Values of ε in a round, from hot to cold, evenly spaced in logarithms."""
    sweeps: int = 4
    """Mean-field sweeps at each ε: the next ε goes on from there, so they need not converge."""
    rounds: int = 6
    """Rounds where encodings are many: each costs m·d·components, and few images are bad then."""
    rounds_few: int = 10
    """Rounds where encodings are few: they are cheap then, and each repairs some images."""
    few: int = 60
    """Encodings of an image, k·m/n, below which they are few."""
    regrow: tuple[int, ...] = (0, 1, 2, 3, 5, 8)
    """Rounds after which missed images are looked for: early, when most are missing, and twice
    more where there are many rounds."""
    look: tuple[int, ...] = (2, 5, 8)
    """Rounds after which it is seen whether private images have much in common, besides the last:
    early, and twice more where encodings are few and images slow to show."""
    polish: NDArray[np.float64] = field(default_factory=lambda: np.geomspace(0.4, 0.1, 4))
    """ε with which images are fitted to the last weights: hotter ones move signs that are right."""
    faint: float = 0.05
    """A weight below this does not count as a member: reweighing leaves some in every encoding."""
    fewer: float = 0.7
    """A bad column with less than this share of an image's encodings may be given to another
    image."""
    misfit: float = 1.2
    """An image whose encodings fit so much worse than the median starts again from the mean."""
    misfit_few: float = 1.5
    """The same where encodings are few: good images have up to 1.4 then, and each that starts again
    may be lost."""
    untold: float = 0.4
    """An image with less evidence for its sign than this, by the median at the same energy, starts
    again as well: negatives have 0 to 0.4, good images 0.5 and more (`images.regions`)."""
    misfit_alone: float = 5.0
    """The same without public images: misfit is all there is then, and varies much more."""
    least: float = 0.03
    """Least energy of what is not known of an encoding with public images: less makes signs certain
    too early."""
    least_alone: float = 0.004
    """The same without public images, where weights and images can become nearly exact."""
    warm: float = 0.2
    """Least energy in the first round without public images, where all images start from the mean
    image: else its signs stay frozen. It falls to `least_alone` from round to round."""
    informative: float = 0.15
    """Share of the energy from which on the mean image tells signs better than cross terms: twenty
    photographs have 0.03 ± 0.03 in common, faces 0.3, objects on an empty ground 0.5."""
    public_hots: tuple[float, ...] = (2.0, 1.0)
    """ε at which the rounds with public images taken out start: images are good already."""
    public_rest: float = 0.6
    """Energy of public images that were not found, by the square of their weight: one image would
    have 1, several of the same weight less."""
    public_least: float = 0.01
    """Least energy left where all public images were found: their weights are not exact."""

    def starts(self, few: bool, rounds: int | None) -> tuple[float, ...]:
        """ε at which each round starts; `rounds`: that many hot ones, for a first look."""
        if rounds is not None:
            return (self.hot,) * rounds
        count = self.rounds_few if few else self.rounds
        cooler = self.cool(few)
        return (self.hot,) * (count - len(cooler)) + cooler

    def cool(self, few: bool) -> tuple[float, ...]:
        """ε at which the last rounds start."""
        return self.cooler_few if few else self.cooler

    def least_energies(self, count: int, public: bool, mean_share: float) -> list[float]:
        """The least energy of what is not known, for each of `count` rounds."""
        if public:
            return [self.least] * count
        first = self.warm if mean_share > self.informative else self.least_alone
        return [float(value) for value in np.geomspace(first, self.least_alone, count)]

    def bad(self, public: bool, few: bool) -> float:
        """The misfit, over the median, from which on an image starts again."""
        if not public:
            return self.misfit_alone
        return self.misfit_few if few else self.misfit


SCHEDULE = Schedule()
