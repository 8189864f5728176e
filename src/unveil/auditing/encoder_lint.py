"""Encoder lint on the user's own function `encoder(private, public, rng)`, which returns encodings
(m, d).

Its subsets, weights and masks are read exactly, by feeding it data made for that:

  unit vectors      record i is the i-th unit vector, so that an encoding *is* its weights
  ones              every value is 1, so that the signs of an encoding are its mask

Its seeds are looked at from outside (`auditing.seed_lint`).
"""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.auditing.lint import expected_repeats, public_prefix
from unveil.auditing.result import Finding
from unveil.auditing.seed_lint import PIXELS, Encoder, call_encoder, generator, lint_seeds
from unveil.checks import InputError
from unveil.records import Progress

USED = 1e-6
"""Weight from which on a record is in an encoding: less is rounding of float32."""
CROSSING = 0.1
"""Encodings of ones all have about one size, whatever their masks. Values far smaller than that are
on their way to the other sign, by noise."""
SAME_WEIGHT = 1e-4
"""Relative difference below which weights are equal: far above rounding, far below what is drawn
anew."""
KEPT = Finding(
    "Signs are kept: records of negative values give negative encodings.",
    "high",
    "Encodings are plain sums of records, and linear algebra recovers all of them.",
    "Hide the signs (they are still not enough), or do not release.",
)
"""What is said of an encoder that hides no sign."""


def lint_encoder(
    encoder: Encoder,
    n_private: int = 50,
    n_public: int = 0,
    *,
    released: ArrayLike | None = None,
    private: ArrayLike | None = None,
    public: ArrayLike | None = None,
    seconds: float = 10.0,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """What an encoder gives away, found by calling it on records that show it.

    Parameters
    ----------
    encoder : function or object with `encode`
        encoder(private, public, rng) → encodings (m, values).
    n_private, n_public : int
        How many records and public vectors it is called with.
    released : array of shape (m, d) or None
        A release it made of `private`: seeds are then tried against it.
    private, public : arrays or None
        What `released` was made of.
    seconds : float
        Time for guessing seeds.
    progress : callable or None
        progress(stage, done, total), called as seeds are tried.

    Returns
    -------
    tuple of Finding
        What, how grave ("high", "medium", "low", "fine"), the consequence and the cure.

    Raises
    ------
    InputError
        Where the encoder fails, or returns something else than encodings.

    Examples
    --------
    >>> from unveil.auditing.encoder_lint import lint_encoder
    >>> found = lint_encoder(lambda private, public, rng: private, 20)
    >>> found[0].what
    'Every encoding is one record by itself: nothing is mixed.'
    """
    encoder = getattr(encoder, "encode", encoder)
    if not callable(encoder):
        raise InputError(
            "encoder: give a function encoder(private, public, rng) that returns encodings"
        )
    n, p = n_private, n_public
    eye = np.eye(n + p, dtype=np.float32)
    # Unit vectors show who is mixed with what weight: every value of an encoding is one record's.
    units = call_encoder(encoder, eye[:n], eye[n:] if p else None, generator(7))
    if units.shape[1] != n + p:
        raise InputError(
            f"encoder returned {units.shape[1]} values for {n + p}: it must keep the number of "
            "values"
        )
    weights = np.abs(units)
    # Equal records leave nothing but signs to be seen.
    ones = np.ones((n + p, PIXELS), np.float32)
    masks = call_encoder(encoder, ones[:n], ones[n:] if p else None, generator(8))
    found: list[Finding | None] = [
        *_subsets(weights[:, :n], n),
        _weights(weights[:, :n]),
        *(_masks(masks) if not _signs_kept(encoder, n, p, masks) else [KEPT]),
    ]
    found += lint_seeds(encoder, released, private, public, seconds, progress)
    if p and weights[:, n:].any():
        used = np.flatnonzero((weights[:, n:] > 0).any(axis=0))
        draws = int((weights[:, n:] > 0).sum())
        found.append(public_prefix(np.append(used, np.full(max(0, draws - len(used)), used[0])), p))
    return tuple(f for f in found if f is not None)


def _subsets(weights: NDArray[np.float32], n: int) -> list[Finding]:
    # 1. How many records an encoding mixes.
    used = weights > USED
    sizes = used.sum(axis=1)
    k = int(sizes.max(initial=0))
    if not k:
        return [
            Finding(
                "Encodings do not depend on the private records.",
                "low",
                "There is nothing to protect in them.",
            )
        ]
    if k == 1:
        return [
            Finding(
                "Every encoding is one record by itself: nothing is mixed.",
                "high",
                "Such an encoding is the record, hidden by its signs at most.",
                "Mix several records, or do not release.",
            )
        ]
    # 2. Records drawn twice, subsets drawn twice.
    found = []
    short = int((sizes < k).sum())
    if short:
        found.append(
            Finding(
                f"{short} of {len(sizes)} encodings mix fewer than {k} different records: a record "
                "is drawn twice.",
                "high",
                "A record mixed with itself is hidden by nothing but its signs.",
                "Draw the records of a subset without replacement.",
            )
        )
    subsets = Counter(map(bytes, np.packbits(used, axis=1)))
    repeats = len(sizes) - len(subsets)
    expected = expected_repeats(len(sizes), comb(n, k))
    if repeats > expected + 6 * np.sqrt(expected) + 1:
        found.append(
            Finding(
                f"{repeats} of {len(sizes)} encodings repeat a subset; {expected:.1f} repeats were "
                "to be expected.",
                "high",
                "Repeated subsets give several looks at one mixture: noise and fresh public parts "
                "average out.",
                "Draw subsets uniformly, and never one twice.",
            )
        )
    # 3. Records used too often, or too seldom.
    degree = used.sum(axis=0)
    # Uses of a record are binomial; six standard deviations leave one chance in 10⁸ each.
    mean = sizes.sum() / n
    uneven = int((np.abs(degree - mean) > 6 * np.sqrt(mean) + 2).sum())
    if uneven:
        found.append(
            Finding(
                f"{uneven} of {n} records are used far more or far less often than the others.",
                "medium",
                "Records used more often are easier to recover.",
                "Draw records uniformly.",
            )
        )
    return found or [
        Finding("Subsets are drawn without replacement, evenly and without repetition.", "fine", "")
    ]


def _weights(weights: NDArray[np.float32]) -> Finding:
    values = np.sort(weights, axis=1)[:, ::-1]
    same = bool(
        np.ptp(values, axis=0).max(initial=0)
        < SAME_WEIGHT * max(float(values.max(initial=0)), 1e-30)
    )
    if not same:
        return Finding("Weights differ from encoding to encoding.", "fine", "")
    return Finding(
        "Weights are the same in every encoding.",
        "low",
        "Overlaps take few values, which makes them easy to read.",
        "Draw weights anew for every encoding. This makes attacks harder, not impossible.",
    )


def _masks(values: NDArray[np.float32]) -> list[Finding]:
    """values: encodings of ones, so that signs are masks."""
    if not (values < 0).any():
        return [Finding("Signs are hidden, or every one is kept.", "fine", "")]
    sizes = np.abs(values)
    if float(sizes.min()) < CROSSING * float(np.median(sizes)):
        return [Finding("Values are noisy, so that masks of signs do not show.", "fine", "")]
    signs = values < 0
    distinct = len(np.unique(np.packbits(signs, axis=1), axis=0))
    constant = int((signs.all(axis=0) | ~signs.any(axis=0)).sum())
    whole = int((signs.all(axis=1) | ~signs.any(axis=1)).sum())
    if distinct < len(values):
        what = (
            "The same sign mask is used for every encoding."
            if distinct == 1
            else f"Only {distinct} sign masks are used."
        )
    elif constant:
        what = f"The sign of {constant} of {signs.shape[1]} values is the same in every encoding."
    elif 2 * whole > len(values):
        what = "The mask flips whole encodings, not single values."
    else:
        return [Finding("Every encoding has its own sign mask.", "fine", "")]
    return [
        Finding(
            what,
            "high",
            "Signed products of encodings show which records they share, as if no sign were "
            "hidden.",
            "Draw one fair coin per value and encoding.",
        )
    ]


def _signs_kept(encoder: Encoder, n: int, p: int, masks: NDArray[np.float32]) -> bool:
    """Whether records of minus ones come out negative where ones come out positive."""
    ones = -np.ones((n + p, PIXELS), np.float32)
    turned = call_encoder(encoder, ones[:n], ones[n:] if p else None, generator(8))
    return bool((masks > 0).all() and (turned < 0).all())
