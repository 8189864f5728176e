"""Encoder lint on the user's own function `encoder(private, public, rng)`, which returns encodings
(m, d).

Its subsets, weights and masks are read exactly, by feeding it data made for that:

  unit vectors      record i is the i-th unit vector, so that an encoding *is* its weights
  ones              every value is 1, so that the signs of an encoding are its mask

The generator is looked at from outside: two calls without a seed must differ; the global generator
of NumPy, set to the same state before both, must not make them equal; and no seed an attacker would
try (0 to `GUESSES`, or the second of the release) may give the released encodings again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.auditing.lint import expected_repeats, public_prefix
from unveil.auditing.result import Finding
from unveil.checks import InputError, as_vectors
from unveil.records import Progress

Encoder = Callable[..., ArrayLike]
"""encoder(private, public, rng) → encodings (m, d); or an object with such an `encode`."""
GUESSES = 1000
"""Small seeds that are tried: those that people write by hand, such as 0, 1, 42 or 123."""
PIXELS = 64
"""Values of a record made up for the check: two fair masks are then equal once in 2⁶⁴ times."""
USED = 1e-6
"""Weight from which on a record is in an encoding: less is rounding of float32."""
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
DRAWS_NOTHING = Finding(
    "The same records give the same encodings, whatever the seed: nothing is drawn, or the seed is "
    "fixed in the code.",
    "high",
    "Who has the code can encode a guess and compare; there is no chance that hides the records.",
    "Draw subsets and masks from a generator seeded by the operating system.",
)
"""What is said of an encoder that pays no heed to seeds: there is none to be guessed."""


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
    units = _call(encoder, eye[:n], eye[n:] if p else None, _generator(7))
    if units.shape[1] != n + p:
        raise InputError(
            f"encoder returned {units.shape[1]} values for {n + p}: it must keep the number of "
            "values"
        )
    weights = np.abs(units)
    # Equal records leave nothing but signs to be seen.
    ones = np.ones((n + p, PIXELS), np.float32)
    masks = _call(encoder, ones[:n], ones[n:] if p else None, _generator(8))
    found: list[Finding | None] = [
        *_subsets(weights[:, :n], n),
        _weights(weights[:, :n]),
        *(_masks(masks) if not _signs_kept(encoder, n, p, masks) else [KEPT]),
    ]
    if _draws_nothing(encoder):
        found.append(DRAWS_NOTHING)
    else:
        found += [
            _generator_kept(encoder),
            _seeds(encoder, released, private, public, seconds, progress),
        ]
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
    turned = _call(encoder, ones[:n], ones[n:] if p else None, _generator(8))
    return bool((masks > 0).all() and (turned < 0).all())


def _draws_nothing(encoder: Encoder) -> bool:
    """Whether the encodings are the same for two seeds and without one: then there is no seed to
    guess."""
    data = _generator(3).standard_normal((12, PIXELS)).astype(np.float32)
    first, *others = (_call(encoder, data, data, seed) for seed in (_generator(1), _generator(2)))
    others.append(_call(encoder, data, data, None))
    return all(np.array_equal(first, other) for other in others)


def _generator_kept(encoder: Encoder) -> Finding:
    """Called twice without a seed: equal output is a fixed one."""
    data = _generator(3).standard_normal((12, PIXELS)).astype(np.float32)
    first, second = (_call(encoder, data, data, None) for _ in range(2))
    if np.array_equal(first, second):
        return Finding(
            "Two calls without a seed return the same encodings: the seed is fixed in the code.",
            "high",
            "Who has the code knows every subset, weight and mask; what is left is linear algebra.",
            "Seed from the operating system (numpy.random.default_rng() without arguments) and "
            "keep the state secret.",
        )
    with _same_global_state():
        first = _call(encoder, data, data, None)
    with _same_global_state():
        second = _call(encoder, data, data, None)
    if np.array_equal(first, second):
        return Finding(
            "The encoder draws from NumPy's global generator.",
            "medium",
            "Any numpy.random.seed elsewhere in the program, often 0 or 42 for reproducibility, "
            "fixes all subsets and masks.",
            "Pass a numpy.random.Generator of its own, seeded by the operating system.",
        )
    return Finding(
        "Two calls without a seed differ, and the global generator plays no part.", "fine", ""
    )


def _seeds(
    encoder: Encoder,
    released: ArrayLike | None,
    private: ArrayLike | None,
    public: ArrayLike | None,
    seconds: float,
    progress: Progress | None,
) -> Finding:
    """Try what an attacker would: small seeds, and the last minutes as seconds since 1970."""
    # 1. A release to compare with: the real one, or one made here without a seed.
    if released is not None and private is not None:
        target, data, others = (
            as_vectors(released, "released"),
            as_vectors(private, "private"),
            public,
        )
    else:
        data = _generator(3).standard_normal((12, PIXELS)).astype(np.float32)
        others = data
        target = _call(encoder, data, others, None)
    now = int(time.time())
    # 2. What people use: small numbers, and the clock.
    guesses = [*range(GUESSES + 1), *range(now, now - 600, -1)]
    # 3. One by one, as a number and as a generator, until the time is over.
    start, tried = time.perf_counter(), 0
    for tried, guess in enumerate(guesses, 1):
        for seed in (guess, _generator(guess)):
            try:
                same = np.array_equal(
                    np.asarray(encoder(data, others, seed), dtype=np.float32), target
                )
            except Exception:  # an encoder may take one kind of seed only
                same = False
            if same:
                return Finding(
                    f"The encodings are those of seed {guess}.",
                    "high",
                    f"An attacker finds it in {tried} tries, and with it every subset, weight and "
                    "mask.",
                    "Seed with at least 128 bits from the operating system, and keep them secret.",
                )
        if progress:
            progress("seeds", tried, len(guesses))
        if time.perf_counter() - start > seconds:
            break
    return Finding(
        f"None of {tried} seeds an attacker would try first gives these encodings.", "fine", ""
    )


def _call(encoder: Encoder, private: Any, public: Any, rng: Any) -> NDArray[np.float32]:
    try:
        return as_vectors(encoder(private, public, rng), "what the encoder returned")
    except InputError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise InputError(
            f"the encoder failed with {text[:200]}: it must take (private, public, rng) and accept "
            "rng=None"
        ) from error


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@contextmanager
def _same_global_state() -> Iterator[None]:
    """NumPy's global generator in one fixed state, and afterwards as it was. Only to see whether
    the encoder draws from it."""
    module: Any = np.random
    before = module.get_state()
    module.seed(12345)
    try:
        yield
    finally:
        module.set_state(before)
