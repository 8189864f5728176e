"""Encoder lint: what an implementation gives away besides the mathematics, read off its encodings
alone.

  duplicates     rows with equal magnitudes: one subset, encoded twice
  self-pairs     a record mixed with itself has twice the power of others for k_private = 2: a
                 second peak of row powers
  sign masks     independent masks leave signed rows uncorrelated but for chance; a mask used twice
                 lets overlaps through
  fixed weights  the scheme's own weights are the same in every encoding, so that overlaps take
                 k_private + 1 values
  public prefix  N draws from n_public vectors are all among the first q of them with probability
                 (q/n_public)^N

Every finding has its consequence and its cure. Thresholds leave a false alarm about one chance in a
million.
"""

from __future__ import annotations

from math import comb, expm1, log1p

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.result import Finding
from unveil.checks import row_blocks
from unveil.encodings import Encodings
from unveil.identify import coin_bound, coin_squares
from unveil.records import Supports

CHANCE = 1e-6
"""Probability of a false alarm: one release in a million."""
NOISY = 0.02
"""Share of the power in negative values up to which they are noise on magnitudes: masks leave half,
and noise of half the signal two hundredths."""
MOST_SUBSETS = 10**18
"""Subsets beyond which none is drawn twice by chance, and floating point counts none."""


def lint_encodings(
    encodings: Encodings,
    *,
    supports: Supports | None = None,
    n_public: int = 0,
    chosen: NDArray[np.int64] | None = None,
    n_private: int = 0,
) -> tuple[Finding, ...]:
    """What these encodings show of how they were made, besides the mathematics.

    Parameters
    ----------
    encodings : Encodings
        With the scheme that is said to have made them.
    supports : Supports or None
        Which public vectors each encoding mixes, learned or known.
    n_public : int
        Public vectors to choose from; 0: their use is not looked at.
    chosen : array of shape (m, k_private) or None
        The true subsets of records, where they are known.
    n_private : int
        Records to choose from; with `chosen` only.

    Returns
    -------
    tuple of Finding
        What, how grave ("high", "medium", "low", "fine"), the consequence and the cure.

    Examples
    --------
    >>> import unveil
    >>> from unveil.auditing.lint import lint_encodings
    >>> scheme = unveil.Scheme(k_private=2, signs="kept")
    >>> sim = unveil.simulate(scheme, n_private=30, n_public=0, m=40, d=100, rng=0)
    >>> [finding.what for finding in lint_encodings(sim.encodings) if finding.severity == "high"]
    ['Signs are kept, as in MixUp.']
    """
    # 1. What encodings show by themselves. Where it is known who was mixed, subsets say more than
    # equal rows do.
    found = [
        duplicates(encodings.values) if chosen is None else repeated_subsets(chosen, n_private),
        self_pairs(encodings),
        *sign_masks(encodings),
        fixed_weights(encodings),
    ]
    # 2. The public part, as far as it is sure: a guess would accuse an honest encoder.
    if supports is not None and n_public and supports.indices.size:
        rows = (
            np.ones(len(supports.indices), bool) if supports.certain is None else supports.certain
        )
        found.append(public_prefix(supports.indices[rows], n_public))
    return tuple(f for f in found if f is not None)


def duplicates(values: NDArray[np.float32]) -> Finding:
    """Rows equal up to signs."""
    # Hashes alone: equal rows have equal ones, and a chance hit is one in 10¹⁹.
    seen = {hash(row.tobytes()) for _, block in row_blocks(values) for row in np.abs(block)}
    count = len(values) - len(seen)
    if not count:
        return Finding("No encoding is repeated.", "fine", "")
    return Finding(
        f"{count} encodings repeat another one, up to signs.",
        "medium",
        "A repeat says that the same records were mixed twice, and with random signs two copies "
        "reveal where they differ.",
        "Draw subsets without repetition, and drop encodings whose subset was drawn before.",
    )


def self_pairs(encodings: Encodings) -> Finding | None:
    """k_private = 2 without a public part: rows with twice the power of the typical one."""
    scheme = encodings.scheme
    if scheme.k_private != 2 or scheme.k_public or encodings.m < 20 or encodings.d < 100:
        return None
    power = np.concatenate(
        [np.einsum("ij,ij->i", b, b, dtype=np.float64) for _, b in row_blocks(encodings.values)]
    )
    typical = float(np.median(power))
    ratio = power / max(typical, 1e-30)
    # 1.4826 median deviations are one standard deviation, for normal values.
    spread = 1.4826 * float(np.median(np.abs(ratio - 1)))
    # Records of different power, as images have, widen the peak: then the second one cannot be told
    # from its tail.
    if spread > 0.12:
        return None
    # A little more than six deviations: without any spread rounding would decide.
    twice = int((np.abs(ratio - 2) < 6 * spread + 0.02).sum())
    if not twice or 1 + 6 * spread > 2 - 6 * spread:
        return None if twice else Finding("No encoding mixes a record with itself.", "fine", "")
    return Finding(
        f"{twice} of {encodings.m} encodings have twice the power of the others: a record mixed "
        "with itself.",
        "high",
        "Such an encoding is the record itself, with its signs hidden and nothing mixed in.",
        "Draw the records of a subset without replacement.",
    )


def sign_masks(encodings: Encodings) -> list[Finding]:
    """Independent random signs leave no correlation between signed rows."""
    values, d = encodings.values, encodings.d
    # Evenly over the release: a slip may begin in the middle, with another run.
    some = np.unique(np.linspace(0, len(values) - 1, min(len(values), 1500)).astype(np.int64))
    Y = values[some]
    if not (Y < 0).any():
        return [Finding("Signs are hidden.", "fine", "")]
    # Noise that was added to magnitudes makes small ones negative, and is no mask.
    if np.mean(np.minimum(Y, 0) ** 2) < NOISY * np.mean(Y**2):
        return [
            Finding("Signs are hidden; what is negative is small, as noise makes it.", "fine", "")
        ]
    m = len(Y)
    if m < 2 or d < 20:
        return []
    if encodings.scheme.signs == "kept":
        return [
            Finding(
                "Signs are kept, as in MixUp.",
                "high",
                "Encodings are plain sums of records: with the subsets known, linear least squares "
                "recovers all of them.",
                "Hide the signs (they are still not enough), or do not release.",
            )
        ]
    square = coin_squares(Y)
    if float(square.sum()) / 2 <= coin_bound(m):
        return [Finding("Sign masks are independent of each other.", "fine", "")]
    # Seven standard deviations: one normal value in 4·10¹¹ gets there by chance.
    linked = int((square > 7.0**2).any(axis=1).sum())
    how = f"{linked} of {m} encodings correlate with others" if linked else "encodings correlate"
    return [
        Finding(
            f"Sign masks are not independent: {how}, signs included.",
            "high",
            "Where two encodings share a mask their signed product shows which records they share, "
            "as if nothing were hidden.",
            "Draw a fresh mask for every encoding from a generator seeded by the operating system.",
        )
    ]


def repeated_subsets(chosen: NDArray[np.int64], n: int) -> Finding:
    """Subsets drawn more than once, `chosen` (m, k) sorted in each row."""
    m, k = chosen.shape
    count = m - len(np.unique(chosen, axis=0))
    expected = expected_repeats(m, comb(n, k))
    if not count:
        return Finding("No subset of records is drawn twice.", "fine", "")
    words = f"{count} of {m} encodings repeat a subset of records"
    # Six deviations of a Poisson count, and one repeat more where hardly any is expected.
    if count <= expected + 6 * np.sqrt(expected) + 1:
        return Finding(f"{words}, as chance has it: {expected:.1f} are expected.", "fine", "")
    return Finding(
        f"{words}; {expected:.1f} repeats are to be expected by chance.",
        "high",
        "A repeated subset is a second look at the same mixture: noise and fresh public parts "
        "average out.",
        "Draw subsets without repetition.",
    )


def expected_repeats(m: int, subsets: int) -> float:
    """How many of m fair draws from N subsets repeat an earlier one: m − N(1 − (1 − 1/N)^m)."""
    if subsets < 2 or subsets > MOST_SUBSETS:
        return m - 1.0 if subsets < 2 else 0.0
    return max(0.0, m + subsets * expm1(m * log1p(-1 / subsets)))


def fixed_weights(encodings: Encodings) -> Finding:
    if not encodings.scheme.fixed_weights:
        return Finding("Weights are drawn anew for every encoding.", "fine", "")
    return Finding(
        f"Weights are the same in every encoding ({encodings.scheme.weighting}).",
        "low",
        f"Overlaps take only {encodings.scheme.k_private + 1} values, which makes them easy to "
        "read.",
        "Draw weights anew for every encoding. This makes attacks harder, not impossible.",
    )


def public_prefix(indices: NDArray[np.int64], n_public: int) -> Finding | None:
    """Whether the public vectors used all come from the beginning of the list."""
    used = indices[indices >= 0]
    if not used.size or n_public < 2:
        return None
    # Judged by the last one used: a prefix is the slip, of taking the first rows of a file.
    last = int(used.max()) + 1
    chance = used.size * np.log(last / n_public)
    if chance > np.log(CHANCE):
        return Finding("Public vectors are drawn from the whole set.", "fine", "")
    return Finding(
        f"Only the first {last} of {n_public} public vectors are used.",
        "medium",
        f"The search for the public part is {n_public / last:.0f} times smaller than it should be, "
        "and more often right.",
        "Draw public vectors from the whole set.",
    )
