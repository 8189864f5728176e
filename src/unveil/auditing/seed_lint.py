"""Encoder lint, the seeds: looked at from outside.

Two calls without a seed must differ. The global generator of NumPy, set to the same state before
both, must not make them equal. And no seed an attacker would try (0 to `GUESSES`, or the second of
the release) may give the released encodings again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.auditing.result import Finding
from unveil.checks import InputError, as_vectors
from unveil.records import Progress

Encoder = Callable[..., ArrayLike]
"""encoder(private, public, rng) → encodings (m, d); or an object with such an `encode`."""
GUESSES = 1000
"""Small seeds that are tried: those that people write by hand, such as 0, 1, 42 or 123."""
PIXELS = 64
"""Values of a record made up for the check: two fair masks are then equal once in 2⁶⁴ times."""
DRAWS_NOTHING = Finding(
    "The same records give the same encodings, whatever the seed: nothing is drawn, or the seed is "
    "fixed in the code.",
    "high",
    "Who has the code can encode a guess and compare; there is no chance that hides the records.",
    "Draw subsets and masks from a generator seeded by the operating system.",
)
"""What is said of an encoder that pays no heed to seeds: there is none to be guessed."""


def lint_seeds(
    encoder: Encoder,
    released: ArrayLike | None,
    private: ArrayLike | None,
    public: ArrayLike | None,
    seconds: float,
    progress: Progress | None,
) -> list[Finding]:
    """What chance there is in the encoder, and whether it can be guessed."""
    if _draws_nothing(encoder):
        return [DRAWS_NOTHING]
    return [
        _generator_kept(encoder),
        _seeds(encoder, *_release(encoder, released, private, public), seconds, progress),
    ]


def _draws_nothing(encoder: Encoder) -> bool:
    """Whether the encodings are the same for two seeds and without one: then there is no seed to
    guess."""
    data = generator(3).standard_normal((12, PIXELS)).astype(np.float32)
    first, *others = (
        call_encoder(encoder, data, data, seed) for seed in (generator(1), generator(2))
    )
    others.append(call_encoder(encoder, data, data, None))
    return all(np.array_equal(first, other) for other in others)


def _generator_kept(encoder: Encoder) -> Finding:
    """Called twice without a seed: equal output is a fixed one."""
    data = generator(3).standard_normal((12, PIXELS)).astype(np.float32)
    first, second = (call_encoder(encoder, data, data, None) for _ in range(2))
    if np.array_equal(first, second):
        return Finding(
            "Two calls without a seed return the same encodings: the seed is fixed in the code.",
            "high",
            "Who has the code knows every subset, weight and mask; what is left is linear algebra.",
            "Seed from the operating system (numpy.random.default_rng() without arguments) and "
            "keep the state secret.",
        )
    with _same_global_state():
        first = call_encoder(encoder, data, data, None)
    with _same_global_state():
        second = call_encoder(encoder, data, data, None)
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


def _release(
    encoder: Encoder,
    released: ArrayLike | None,
    private: ArrayLike | None,
    public: ArrayLike | None,
) -> tuple[NDArray[np.float32], NDArray[np.float32], ArrayLike | None]:
    """(encodings, records, public vectors) to compare with: the real ones, or some made here
    without a seed."""
    if released is not None and private is not None:
        return as_vectors(released, "released"), as_vectors(private, "private"), public
    data = generator(3).standard_normal((12, PIXELS)).astype(np.float32)
    return call_encoder(encoder, data, data, None), data, data


def _seeds(
    encoder: Encoder,
    target: NDArray[np.float32],
    data: NDArray[np.float32],
    others: ArrayLike | None,
    seconds: float,
    progress: Progress | None,
) -> Finding:
    """Try what an attacker would: small seeds, and the last minutes as seconds since 1970."""
    # 1. What people use: small numbers, and the clock.
    now = int(time.time())
    guesses = [*range(GUESSES + 1), *range(now, now - 600, -1)]
    # 2. One by one, as a number and as a generator, until the time is over.
    start, tried = time.perf_counter(), 0
    for tried, guess in enumerate(guesses, 1):
        for seed in (guess, generator(guess)):
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


def call_encoder(encoder: Encoder, private: Any, public: Any, rng: Any) -> NDArray[np.float32]:
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


def generator(seed: int) -> np.random.Generator:
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
