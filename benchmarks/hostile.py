"""Instances made to fool an attack: wrong k, wrong weighting, noise, decoys, tiny sizes, and the
families of `hostile_families`. Not one wrong vector may be verified.

`python -m benchmarks.hostile [count] [attack] [kind] [first seed]` prints a row per kind of
mischief, with the seeds of whatever went wrong: a wrong vector, an error that is none of ours, a
warning, or more than a minute. Attack "default" is what `recover` chooses, "told" is `full` with
the true overlaps, "all" every attack that takes the encodings on, each a trial of its own. The
tests run a few dozen of them.
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from benchmarks.hostile_families import FAMILIES, Trap, family
from benchmarks.table import Row
from numpy.typing import NDArray

import unveil

KINDS = (
    "honest",
    "wrong k",
    "wrong weighting",
    "noise",
    "quantised",
    "pure noise",
    "equal vectors",
    "repeated encodings",
    "mixture of schemes",
    "wrong public",
    "public part denied",
    "smooth vectors",
)


LIMIT = 60
"""Seconds that a trial may take."""
SIGNED = ("mixing",)
HIDDEN = (
    "default",
    "told",
    "exact",
    "line-graph",
    "tensor",
    "cliques",
    "paper",
)
ALL_PUBLIC = ("default", "phase-retrieval")
"""Attacks of "all" on signs that were kept, on signs that were hidden, and where nothing is
private."""


def trap(kind: str, seed: int, size: int = 1, signs: str = "absolute") -> Trap:
    """One instance of random size: k 2 to 4, few vectors, 3 to 250 encodings, 1 to 3000 pixels;
    `size` times as many vectors and encodings. signs: "absolute", or "kept" as MixUp does."""
    hidden = np.abs if signs == "absolute" else np.asarray
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    k = int(rng.integers(2, 5))
    n, m = int(rng.integers(k, k + 14 * size)), int(rng.integers(3, 250 * size))
    d = int(rng.choice([1, 2, 5, 20, 50, 100, 300, 1000, 3000]))
    k_public = int(rng.choice([0, 0, 1, 2]))
    n_public = int(rng.integers(k_public, 30)) if k_public else 0
    weighting = str(rng.choice(["equal", "paper", "convex"]))
    scheme = told = unveil.Scheme(k, k_public, weighting, signs)
    private = rng.standard_normal((n, d)).astype(np.float32)
    public = rng.standard_normal((n_public, d)).astype(np.float32) if k_public else None
    pixel_rms: float | None = 1.0
    if kind == "equal vectors":
        private[1] = private[0]
        private[-1] = private[-2]
    if kind == "smooth vectors":
        walk = np.cumsum(rng.standard_normal((n, d)), axis=1)
        private = np.clip(2 * walk / (np.abs(walk).max() + 1e-9), -1, 1).astype(np.float32)
        pixel_rms = None

    def values(scheme: unveil.Scheme) -> NDArray[np.float32]:
        draw = int(rng.integers(1 << 30))
        return unveil.simulate(
            scheme, private=private, public=public, m=m, rng=draw
        ).encodings.values

    Y = values(scheme)
    if kind == "wrong k":
        told = unveil.Scheme(max(2, k + int(rng.choice([-1, 1, 2]))), k_public, weighting, signs)
    elif kind == "wrong weighting":
        told = unveil.Scheme(k, k_public, str(rng.choice(["equal", "paper", "convex"])), signs)
    elif kind == "noise":
        Y = hidden(Y + rng.normal(0, 10 ** rng.uniform(-7, 0), Y.shape)).astype(np.float32)
    elif kind == "quantised":
        Y = (np.round(Y * 50) / 50).astype(np.float32)
    elif kind == "pure noise":
        Y = hidden(rng.standard_normal(Y.shape)).astype(np.float32)
    elif kind == "repeated encodings":
        Y = Y[rng.integers(0, m, m)]
    elif kind == "mixture of schemes" and n > k:
        Y = np.vstack([Y, values(unveil.Scheme(k + 1, k_public, weighting, signs))])
    elif kind == "wrong public" and public is not None:
        public = rng.standard_normal(public.shape).astype(np.float32)
    elif kind == "public part denied":
        told, public = unveil.Scheme(k, 0, weighting, signs), None
    return Trap(kind, unveil.Encodings(Y, told, pixel_rms), public, private)


def spring(trap: Trap, attack: str) -> tuple[str, int]:
    """What the attack answered, and how many vectors it verified wrongly."""
    try:
        name = None if attack in ("default", "told") else attack
        overlaps = trap.overlaps if attack == "told" else None
        recovery = unveil.recover(
            trap.encodings, trap.public, attack=name, overlaps=overlaps, rng=0
        )
    except unveil.InputError:
        return "declined", 0
    wrong = unveil.score(recovery, trap.private).wrong
    return (
        "nothing"
        if not len(recovery)
        else "verified"
        if recovery.verified.any()
        else str(recovery.status[0])
    ), wrong


def attacks(kind: str, signs: str) -> tuple[str, ...]:
    """Those of "all" that take such encodings on."""
    if kind == "nothing private":
        return ALL_PUBLIC
    return SIGNED if signs == "kept" else HIDDEN


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """TimeoutError after so many seconds, as soon as Python gets to see it."""

    def late(*_: object) -> None:
        raise TimeoutError(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def rows(count: int = 2000, attack: str = "paper", only: str = "", first: int = 0) -> list[Row]:
    """`count` instances in all, `first` the seed of the first of each kind."""
    kinds = [kind for kind in (*KINDS, *FAMILIES) if only in ("", kind)]
    return [_row(kind, range(first, first - (-count // len(kinds))), attack) for kind in kinds]


def _row(kind: str, seeds: range, attack: str) -> Row:
    start, slowest = time.perf_counter(), 0.0
    answers: Counter[str] = Counter()
    wrong, failures = 0, []
    make = trap if kind in KINDS else family
    # Every third instance of "all" keeps its signs.
    trials = [
        (seed, signs, name)
        for seed in seeds
        for signs in [
            "kept" if attack == "mixing" or (attack == "all" and seed % 3 == 2) else "absolute"
        ]
        for name in ([attack] if attack != "all" else attacks(kind, signs))
    ]
    for seed, signs, name in trials:
        began = time.perf_counter()
        try:
            with warnings.catch_warnings(), _within(LIMIT):
                warnings.simplefilter("error")
                answer, errors = spring(make(kind, seed, signs=signs), name)
        except Exception as error:  # what a user would see as a traceback
            answer, errors = "too slow" if isinstance(error, TimeoutError) else "crashed", 0
            failures.append(f"seed {seed} {name}: {error!r:.80}")
        slowest = max(slowest, time.perf_counter() - began)
        if errors:
            failures.append(f"seed {seed} {name}: {errors} wrong")
        answers[answer] += 1
        wrong += errors > 0
    said = ", ".join(f"{number} {answer}" for answer, number in answers.most_common())
    seconds = f"{time.perf_counter() - start:.0f} s, slowest {slowest:.0f} s"
    return (
        kind,
        "0 wrong, 0 crashed",
        "; ".join([f"{wrong} wrong ({said}; {seconds})", *failures]),
        not failures,
    )


if __name__ == "__main__":
    from benchmarks.table import show

    show(
        "Hostile instances",
        rows(*(kind(arg) for kind, arg in zip((int, str, str, int), sys.argv[1:], strict=False))),
    )
