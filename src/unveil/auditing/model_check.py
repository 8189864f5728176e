"""How far are these records from the Gaussian model, and which guarantees hold then?

The theory, the certificates without a truth and the forecasts are for private vectors of
independent standard normal pixels. Measured here, at most `SAMPLE` records and pixels, drawn
evenly:

  marginals   skewness, excess kurtosis, and the Kolmogorov–Smirnov distance of all values,
              standardised, from the normal
  common      the share of the power that is the mean of all records: a background that every record
              has
  pixels      root mean square correlation of two pixels over the records, what is due to chance
              taken off
  records     root mean square correlation of two records over the pixels, what is due to chance
              taken off
  dimension   (Σλ)²/Σλ² of the records' Gram matrix, relative to n for independent records
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from unveil.auditing.result import Guarantee

SAMPLE = 1000
"""Records and pixels that are looked at, at most: their pairs are then a million."""
KS, KURTOSIS, SKEWNESS, CORRELATION, COMMON = 0.05, 1.0, 0.5, 0.1, 0.05
"""Beyond these the data are not taken for Gaussian; chance stays below them from 20 records of 100
pixels on."""


@dataclass(frozen=True)
class ModelCheck:
    rms: float
    skewness: float
    kurtosis: float
    ks_distance: float
    common: float
    pixel_correlation: float
    record_correlation: float
    dimension: float

    @property
    def normal(self) -> bool:
        """Whether the values look normal."""
        return (
            self.ks_distance < KS
            and abs(self.kurtosis) < KURTOSIS
            and abs(self.skewness) < SKEWNESS
        )

    @property
    def independent(self) -> bool:
        """Whether pixels and records look independent."""
        return (
            max(self.pixel_correlation, self.record_correlation) < CORRELATION
            and self.common < COMMON
        )

    @property
    def gaussian(self) -> bool:
        return self.normal and self.independent

    def sentence(self, noun: str = "pixel") -> str:
        """In words; `noun`: what a record is made of."""
        if self.gaussian:
            return "The data look like the Gaussian model of the theory."
        parts = []
        if not self.normal:
            parts.append(
                f"values are not normal (distance {self.ks_distance:.2f}, excess kurtosis "
                f"{self.kurtosis:.1f})"
            )
        if self.pixel_correlation >= CORRELATION:
            parts.append(f"{noun}s are correlated ({self.pixel_correlation:.2f} rms)")
        if self.record_correlation >= CORRELATION:
            parts.append(f"records are correlated ({self.record_correlation:.2f} rms)")
        if self.common >= COMMON:
            parts.append(f"{self.common:.0%} of the power is common to all records")
        return "The data are not the Gaussian model of the theory: " + ", ".join(parts) + "."

    def facts(self) -> dict[str, Any]:
        return {
            "gaussian": self.gaussian,
            "rms of a value": self.rms,
            "skewness": self.skewness,
            "excess kurtosis": self.kurtosis,
            "distance from the normal distribution": self.ks_distance,
            "share common to all records": self.common,
            "correlation of pixels, rms": self.pixel_correlation,
            "correlation of records, rms": self.record_correlation,
            "effective dimension, share of n": self.dimension,
        }


def check_model(values: NDArray[np.float32]) -> ModelCheck:
    """What the records (n, d) have in common with standard Gaussian vectors, and what not."""
    X = values[_evenly(len(values))][:, _evenly(values.shape[1])].astype(np.float64)
    n, d = X.shape
    rms = float(np.sqrt(np.mean(X**2)))
    flat = X.ravel()
    spread = float(flat.std()) or 1.0
    z = (flat - flat.mean()) / spread
    power = float(np.mean(X**2)) or 1.0
    # The mean of n independent records has 1/n of their power by chance.
    common = max(0.0, float(np.mean(X.mean(axis=0) ** 2)) / power - 1 / n)
    gram = X @ X.T
    trace, square = float(np.trace(gram)), float((gram**2).sum())
    # For independent pixels Σλ² is n + n(n−1)/d in units of the mean λ².
    dimension = trace**2 / max(square, 1e-30) / n * (1 + (n - 1) / d)
    return ModelCheck(
        rms=rms,
        skewness=float(np.mean(z**3)),
        kurtosis=float(np.mean(z**4) - 3),
        ks_distance=_ks(z),
        common=common,
        pixel_correlation=_rms_correlation(X.T),
        record_correlation=_rms_correlation(X),
        dimension=min(1.0, float(dimension)),
    )


KNEW = {
    "blind": "no knowledge beyond the encodings was used",
    "public": "the attack knew the public vectors, which anyone may have",
    "told": "the attack was told which encodings share a record",
    "insider": "the attack knew every second record",
    "holder": "encodings are linked by someone who holds candidate records",
}
"""What the attacker of the headline had besides the encodings."""


def guarantees(
    check: ModelCheck, *, wrong: int, who: str = "blind", noun: str = "pixel"
) -> tuple[Guarantee, ...]:
    """What may be relied on; `who`: the attacker of the headline; `wrong`: verified vectors that
    equal no record; `noun`: what a record is made of."""
    # 1. The reason of each.
    tested = f"every recovered vector was held against the true record, {noun} by {noun}"
    if wrong:
        verified = (
            f"{wrong} vectors were called verified and equal no record: without the truth they "
            "would have misled"
        )
    elif check.independent:
        verified = (
            f"{noun}s and records look independent, as the certificate assumes; none was wrong here"
        )
    else:
        verified = (
            "the certificate assumes independent records, these are not; none was wrong here, "
            "which is no proof"
        )
    forecast = "the forecasts were fitted to Gaussian data" + (
        "" if check.gaussian else ", which these are not"
    )
    knows = KNEW[who]
    # What is published is about images: said of a table, it would mislead.
    if who == "told" and noun == "pixel":
        knows += "; published attacks on images learn it from the encodings"
    # 2. All of them, whether they hold or not.
    return (
        Guarantee("The counts of this audit are facts about these encodings", True, tested),
        Guarantee(
            "“Verified” can be trusted where the truth is not known",
            check.independent and not wrong,
            verified,
        ),
        Guarantee("Forecasts of time and of encodings needed apply", check.gaussian, forecast),
        Guarantee(
            "The attacker had nothing but the release",
            who in ("blind", "public"),
            knows,
        ),
        Guarantee(
            "What was not recovered is safe",
            False,
            "an attack that fails proves nothing: stronger ones may exist",
        ),
    )


def _evenly(count: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64))


def _ks(z: NDArray[np.float64]) -> float:
    z = np.sort(z)
    below = norm.cdf(z)
    # The distribution function jumps at each value: the distance is looked for on both sides.
    steps = np.arange(len(z) + 1) / len(z)
    return float(max(np.max(steps[1:] - below), np.max(below - steps[:-1])))


def _rms_correlation(rows: NDArray[np.float64]) -> float:
    """Of two rows over the columns; independent ones have 1/columns of it, squared, by chance."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centred, axis=1)
    unit = centred[size > 0] / size[size > 0, None]
    n, columns = unit.shape
    if n < 2 or columns < 3:
        return 0.0
    # The diagonal is one each, and no correlation of two.
    square = (float(((unit @ unit.T) ** 2).sum()) - n) / (n * (n - 1))
    return float(np.sqrt(max(0.0, square - 1 / (columns - 1))))
