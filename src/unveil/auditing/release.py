"""What is attacked: encodings of one make, drawn as often as is asked for.

    scheme     the records encoded as the scheme says, anew in every draw        (`encode.simulate`)
    encoder    what the user's own encoder returns for them
    given      encodings somebody else made of these records; there is one draw

Which records an encoding mixes is part of the truth that an audit holds results against. The first
kind knows it. For the others it is found with all records at hand (`supports.learn_public`), and
counts only where the records then reproduce the encodings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, as_array, as_vectors, row_blocks
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.kept import name_of
from unveil.paper import learn_public
from unveil.scheme import Scheme

KEPT = 1 << 26
"""Values of drawn encodings kept in memory."""
REPRODUCED = 1e-3
"""Relative error up to which an encoding is taken for the sum of the records that were found."""
CLEARLY, MANY = 0.5, 20
"""Or, where all sums can be tried: what it leaves unexplained, as a share of what the next best one
leaves. Encodings may be clipped, or carry noise; where nothing is mixed, the best two are alike, if
there are so many columns."""
ENOUGH = 0.9
"""Share of encodings that must be reproduced before the records behind them count as known."""
MOST_TRIED = 20_000_000
"""Values of all sums of k records, up to which every one is tried: a tenth of a GiB."""
FEW, MOST_SETS = 40, 5_000_000
"""Encodings that tell how many records are mixed, and sets of records beyond which a number is not
tried: seconds."""
Encode = Callable[[int], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Encodings (m, d), and the records (m, k) each of them mixes; None: not known."""

    values: NDArray[np.float32]
    chosen: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class Release:
    """Where encodings come from. make(number): those of a draw, where the scheme does not make
    them; draws: how many there can be, None: any number."""

    private: NDArray[np.float32]
    public: NDArray[np.float32] | None
    scheme: Scheme
    top: int
    noise: float
    seed: int
    shape: tuple[int, ...] | None = None
    make: Encode | None = None
    draws: int | None = None
    _drawn: dict[int, Drawn] = field(default_factory=dict)

    @property
    def stated(self) -> bool:
        """Whether the scheme made the encodings, so that it is right about them."""
        return self.make is None

    def draw(self, number: int) -> Drawn:
        """The encodings of a draw; a few are kept in memory."""
        if number not in self._drawn:
            # All or nothing: which draw is asked for next cannot be known.
            if (len(self._drawn) + 1) * self.top * self.private.shape[1] > KEPT:
                self._drawn.clear()
            self._drawn[number] = self._made(number)
        return self._drawn[number]

    def chosen(self, number: int, m: int) -> NDArray[np.int64] | None:
        """The records behind the first m encodings of a draw, where they are known."""
        chosen = self.draw(number).chosen
        return None if chosen is None else chosen[:m]

    @property
    def identity(self) -> str:
        """All that decides what the encodings are."""
        facts = {"scheme": vars(self.scheme), "top": self.top, "noise": self.noise}
        facts |= {"seed": self.seed, "shape": self.shape}
        # What an encoder makes is known by its output: two versions of it are two releases.
        values = None if self.make is None else self.draw(0).values
        return name_of(facts, self.private, self.public, values)

    def _made(self, number: int) -> Drawn:
        if self.make is not None:
            values = self.make(number)
            return Drawn(values, records_behind(values, self.private, self.scheme, self.public))
        sim = simulate(
            self.scheme,
            private=self.private,
            public=self.public,
            m=self.top,
            noise=self.noise,
            shape=self.shape,
            rng=np.random.default_rng(np.random.SeedSequence([self.seed, number])),
        )
        return Drawn(sim.encodings.values, sim.selection.private)


def _failure(error: Exception) -> str:
    """What went wrong in the user's encoder, and where; or that it could not be called at all."""
    text = f"the encoder failed with {f'{type(error).__name__}: {error}'[:200]}"
    inside = extract_tb(error.__traceback__)[1:]
    if not inside:
        return f"{text}: it must take (private, public, rng)"
    return f"{text} ({Path(inside[-1].filename).name}, line {inside[-1].lineno})"


def by_encoder(
    encoder: Any, private: NDArray[np.float32], public: NDArray[np.float32] | None, seed: int
) -> Encode:
    """The user's encoder(private, public, rng), a function or an object with `encode`, as draws."""
    encode = getattr(encoder, "encode", encoder)
    if not callable(encode):
        raise InputError(
            "encoder: give a function encoder(private, public, rng), or an object with encode"
        )

    def make(number: int) -> NDArray[np.float32]:
        # A generator for each draw: draw 7 is the same whether or not others were made before.
        rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
        try:
            returned = encode(private.copy(), None if public is None else public.copy(), rng)
        except Exception as error:
            raise InputError(_failure(error)) from error
        if returned is None:
            raise InputError("the encoder returned nothing: end it with return and the encodings")
        values = as_array(returned, "what the encoder returned")
        if values.ndim < 2:
            raise InputError(
                f"the encoder returned shape {values.shape}: return all encodings at once, as an "
                "array (encodings, values)"
            )
        if values.ndim > 2:
            values = values.reshape(len(values), -1)
        values = as_vectors(values, "what the encoder returned")
        if values.shape[1] != private.shape[1]:
            raise InputError(
                f"the encoder returned {values.shape[1]} values per encoding for records of "
                f"{private.shape[1]}: it must return (encodings, values), as many values as a "
                "record has, in the same space"
            )
        return values

    return make


def must_match(values: NDArray[np.float32], private: NDArray[np.float32]) -> NDArray[np.float32]:
    """The encodings, after a look that they can be those of these records."""
    if values.shape[1] != private.shape[1]:
        raise InputError(
            f"encodings have {values.shape[1]} values each, the records {private.shape[1]}: "
            "they must come from the same space"
        )
    return values


def with_k_found(release: Release, *, most: int = 6) -> Release:
    """The release with the number of records that its encodings really mix, where the stated one
    does not reproduce them and another does: whoever holds the records can tell."""
    scheme = release.scheme
    if release.stated or not scheme.fixed_weights or scheme.k_public or release.public is not None:
        return release
    drawn = release.draw(0)
    if drawn.chosen is not None:
        return release
    some = drawn.values[:FEW]
    for k in range(2, most + 1):
        other = replace(scheme, k_private=k)
        if k == scheme.k_private or comb(len(release.private), k) > MOST_SETS:
            continue
        if records_behind(some, release.private, other, None, exactly=True) is not None:
            return replace(release, scheme=other, _drawn={})
    return release


def records_behind(
    values: NDArray[np.float32],
    private: NDArray[np.float32],
    scheme: Scheme,
    public: NDArray[np.float32] | None,
    *,
    exactly: bool = False,
) -> NDArray[np.int64] | None:
    """(m, k): the records each encoding mixes, found with all of them at hand; None where they do
    not reproduce the encodings. exactly: to rounding, or it says nothing."""
    k, n = scheme.k_private, len(private)
    if not scheme.fixed_weights or scheme.k_public or public is not None or n <= k:
        return None
    # Exact where it can be tried out; else the search that learns public vectors, with all records
    # as the pool.
    clear = np.zeros(len(values), bool)
    if comb(n, k) * private.shape[1] <= MOST_TRIED:
        found, clear = _by_trying(values, private, k)
    else:
        found = learn_public(Encodings(np.abs(values), Scheme(0, k), None), private).indices[:, :k]
    if found.shape[1] < k or (found < 0).any():
        return None
    sums = np.abs(private[found].sum(axis=1))
    # The weights may be others than the scheme's: one factor is free.
    factor = float((sums * np.abs(values)).sum() / max(float((sums * sums).sum()), 1e-30))
    miss = np.linalg.norm(factor * sums - np.abs(values), axis=1)
    fits = miss <= REPRODUCED * np.maximum(np.linalg.norm(values, axis=1), 1e-30)
    sure = fits if exactly else fits | clear
    return np.sort(found, axis=1) if sure.mean() >= ENOUGH else None


def _by_trying(
    values: NDArray[np.float32], private: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(m, k): of all sets of k records the one whose sum is most like the encoding, by cosine; and
    whether it clearly is the one."""
    sets = np.array(list(combinations(range(len(private)), k)), np.int64)
    sums = np.abs(private[sets].sum(axis=1))
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-30)
    best, clear = [], []
    for _, block in row_blocks(values, 1 << 20):
        size = np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-30)
        alike = (np.abs(block) / size) @ sums.T
        best.append(alike.argmax(axis=1))
        two = 1 - np.square(np.sort(alike, axis=1)[:, -2:], dtype=np.float64)
        clear.append((two[:, -1] <= CLEARLY * two[:, 0]) & (block.shape[1] >= MANY))
    return np.asarray(sets[np.concatenate(best)]), np.concatenate(clear)
