"""Where encodings come from, drawn as often as is asked for.

    scheme     the records encoded as the scheme says, anew in every draw
    encoder    what the user's own encoder returns for them
    given      encodings that somebody else made of these records; there is one draw

Encodings of a draw are nested: fewer are the first m of many. Which records an encoding mixes is
part of the truth. The first kind knows it; for the others it is found with all records at hand
(`members_of`), and counts only where the records then reproduce the encodings.
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
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, as_array, as_vectors, child, root, row_blocks
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.paper import learn_public
from unveil.scheme import Scheme

Encoder = Callable[..., ArrayLike]
"""encoder(private, public, rng) → encodings (m, d); or an object with such an `encode`."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Draw:
    """Encodings (m, d); members (m, k): the records each of them mixes, None: not known."""

    values: Floats
    members: NDArray[np.int64] | None

    def first(self, m: int) -> Draw:
        return Draw(self.values[:m], None if self.members is None else self.members[:m])

    def incidence(self, n: int) -> sparse.csr_array | None:
        """(m, n) True where an encoding mixes a record."""
        if self.members is None:
            return None
        m, k = self.members.shape
        ones = np.ones(m * k, bool)
        return sparse.csr_array((ones, (np.repeat(np.arange(m), k), self.members.ravel())), (m, n))


@dataclass(frozen=True, eq=False)
class Release:
    """What is released of which records.

    Attributes
    ----------
    private, public : arrays of shape (n, d), (n_public, d) or None
        The records, and the pool.
    scheme : Scheme
        How encodings are made, or are said to be made.
    m : int
        How many are released.
    noise : float
        Standard deviation added to every value.
    seed : int
        Draw number i of the same seed is always the same.
    shape : tuple of int or None
        Height, width and channels of records that are images.
    encoder : function or None
        The user's own.
    given : array of shape (m, d) or None
        Encodings that are there.
    """

    private: Floats
    public: Floats | None
    scheme: Scheme
    m: int
    noise: float
    seed: int
    shape: tuple[int, ...] | None = None
    encoder: Encoder | None = None
    given: Floats | None = None
    _drawn: dict[int, Draw] = field(default_factory=dict)

    @property
    def stated(self) -> bool:
        """Whether the scheme made the encodings, so that it is right about them."""
        return self.encoder is None and self.given is None

    def draw(self, number: int) -> Draw:
        if number not in self._drawn:
            self._drawn[number] = self._make(number)
        return self._drawn[number]

    def sample(self, rows: NDArray[np.int64]) -> Release:
        """The same release of some of the records, with as many encodings per record."""
        m = max(self.scheme.k_private + 2, round(self.m * len(rows) / len(self.private)))
        return replace(self, private=self.private[rows], m=m, _drawn={})

    def changed(self, **changes: Any) -> Release:
        return replace(self, _drawn={}, **changes)

    def _make(self, number: int) -> Draw:
        # A generator for each draw: draw 7 is the same whether or not others were made before.
        rng = child(root(self.seed), f"draw {number}")
        if self.stated:
            sim = simulate(
                self.scheme,
                private=self.private,
                public=self.public,
                m=self.m,
                noise=self.noise,
                image_shape=self.shape,
                rng=rng,
            )
            return Draw(sim.encodings.values, sim.selection.private)
        values = self.given
        if self.encoder is not None:
            values = run_encoder(self.encoder, self.private, self.public, rng)
        assert values is not None
        return Draw(values, members_of(values, self.private, self.scheme, self.public))


def run_encoder(encoder: Any, private: Floats, public: Floats | None, rng: Any) -> Floats:
    """What encoder(private, public, rng), a function or an object with `encode`, returns; its
    failures become one sentence."""
    encode = getattr(encoder, "encode", encoder)
    if not callable(encode):
        raise InputError(
            "encoder: give a function encoder(private, public, rng), or an object with encode"
        )
    try:
        returned = encode(private.copy(), None if public is None else public.copy(), rng)
    except Exception as error:
        text = f"the encoder failed with {f'{type(error).__name__}: {error}'[:200]}"
        inside = extract_tb(error.__traceback__)[1:]
        where = f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""
        cure = where or ": it must take (private, public, rng), and accept rng=None"
        raise InputError(f"{text}{cure}") from error
    if returned is None:
        raise InputError("the encoder returned nothing: end it with return and the encodings")
    values = as_array(returned, "what the encoder returned")
    if values.ndim < 2:
        raise InputError(
            f"the encoder returned shape {values.shape}: return all encodings at once, as an array "
            "(encodings, values)"
        )
    values = as_vectors(values.reshape(len(values), -1), "what the encoder returned")
    if values.shape[1] != private.shape[1]:
        raise InputError(
            f"the encoder returned {values.shape[1]} values per encoding for records of "
            f"{private.shape[1]}: it must return (encodings, values), as many values as a record "
            "has, in the same space"
        )
    return values


def members_of(
    values: Floats,
    private: Floats,
    scheme: Scheme,
    public: Floats | None,
    *,
    reproduced: float = 1e-3,
    clearly: float = 0.5,
    enough: float = 0.9,
    most_values: int = 20_000_000,
) -> NDArray[np.int64] | None:
    """(m, k): the records each encoding mixes, found with all of them at hand; None where they do
    not reproduce the encodings.

    reproduced : float    Relative error up to which an encoding is the sum of these records.
    clearly : float       Or what the best sum leaves unexplained, as a share of what the next best
                          does, where all sums are tried: encodings may be clipped, or noisy.
    enough : float        Share of encodings that must be explained.
    most_values : int     Values of all sums of k records up to which all are tried.
    """
    k, (n, d) = scheme.k_private, private.shape
    if not scheme.fixed_weights or scheme.k_public or public is not None or n <= k:
        return None
    clear = np.zeros(len(values), bool)
    if comb(n, k) * d <= most_values:
        found, clear = _best_sums(values, private, k, clearly)
    else:
        # The search that learns public vectors, with all records as the pool.
        found = learn_public(Encodings(np.abs(values), Scheme(0, k), None), private).indices[:, :k]
    if found.shape[1] < k or (found < 0).any():
        return None
    sums = np.abs(private[found].sum(axis=1))
    # The weights may be others than the scheme's: one factor is free.
    factor = float((sums * np.abs(values)).sum() / max(float((sums * sums).sum()), 1e-30))
    miss = np.linalg.norm(factor * sums - np.abs(values), axis=1)
    fits = miss <= reproduced * np.maximum(np.linalg.norm(values, axis=1), 1e-30)
    return np.sort(found, axis=1) if (fits | clear).mean() >= enough else None


def _best_sums(
    values: Floats, private: Floats, k: int, clearly: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Of all sets of k records the one whose sum is most like the encoding, by cosine; and whether
    it clearly is. With fewer than 20 columns the best two are alike by chance."""
    sets = np.array(list(combinations(range(len(private)), k)), np.int64)
    sums = np.abs(private[sets].sum(axis=1))
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-30)
    best, clear = [], []
    for _, block in row_blocks(values, 1 << 20):
        size = np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-30)
        alike = (np.abs(block) / size) @ sums.T
        best.append(alike.argmax(axis=1))
        two = 1 - np.square(np.sort(alike, axis=1)[:, -2:], dtype=np.float64)
        clear.append((two[:, -1] <= clearly * two[:, 0]) & (block.shape[1] >= 20))
    return np.asarray(sets[np.concatenate(best)]), np.concatenate(clear)
