"""What is audited, checked before any work: records, public vectors, and encodings, drawn as often
as is asked for.

    scheme     the records encoded as the scheme says, anew in every draw
    encoder    what the user's own encoder returns for them
    given      encodings that somebody else made of these records; there is one draw

Public vectors are brought to the units of the private ones. A table with more than `most` records
is audited by a sample that keeps the number of encodings per record; what was left out is said.

Which records an encoding mixes is part of the truth. The scheme knows it; otherwise it is found
with all records at hand (`members_of`), and counts only where the records then reproduce the
encodings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import comb
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.auditing.outcome import correlations, distinct
from unveil.auditing.plan import encodings_for_all
from unveil.checks import DataLike, InputError, as_array, as_vectors, child, is_count, root
from unveil.data import Dataset, gaussian_vectors, load_dataset
from unveil.data.arrays import load_shaped, read_labels
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.engine.blocks import memory_limit
from unveil.paper import learn_public
from unveil.scheme import Scheme

Data = DataLike | Dataset
AXES = ("noise", "k", "m")
"""What can be changed in "what if"."""
Encoder = Callable[..., ArrayLike]
"""encoder(private, public, rng) → encodings (m, d); or an object with such an `encode`."""
Floats = NDArray[np.float32]
Members = NDArray[np.int64] | None
"""(m, k): the records that each encoding mixes; None: not known."""


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
    _drawn: dict[int, tuple[Floats, Members]] = field(default_factory=dict)

    @property
    def stated(self) -> bool:
        """Whether the scheme made the encodings, so that it is right about them."""
        return self.encoder is None and self.given is None

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first of every set of equal records, and the set of each: equal ones count once."""
        return distinct(self.private)

    def changed(self, **changes: Any) -> Release:
        return replace(self, _drawn={}, **changes)

    def sample(self, rows: NDArray[np.int64]) -> Release:
        """The same release of some of the records, with as many encodings per record."""
        m = max(self.scheme.k_private + 2, round(self.m * len(rows) / len(self.private)))
        return self.changed(private=self.private[rows], m=m)

    def draw(self, number: int) -> tuple[Floats, Members]:
        """Encodings, and the distinct records that each of them mixes."""
        if number not in self._drawn:
            members: Members = None
            if self.stated:
                who: Any = {"private": self.private, "public": self.public}
                how: Any = {"m": self.m, "noise": self.noise, "image_shape": self.shape}
                sim = simulate(self.scheme, rng=self._rng(number), **who, **how)
                values, members = sim.encodings.values, sim.selection.private
            else:
                values = self.encoded(number) if self.given is None else self.given
                members = self._members_of_units(number, values)
                # How many are mixed may be another number than is said.
                for k in dict.fromkeys((self.scheme.k_private, 2, 3, 4)):
                    if members is None:
                        law = replace(self.scheme, k_private=k)
                        members = members_of(values, self.private, law, self.public)
            self._drawn[number] = values, None if members is None else self.distinct[1][members]
        return self._drawn[number]

    def encoded(self, number: int, private: Floats | None = None) -> Floats:
        """What the user's encoder makes of the records, or of others in their place."""
        records = self.private if private is None else private
        return run_encoder(self.encoder, records, self.public, self._rng(number))

    def _rng(self, number: int) -> np.random.Generator:
        # A generator for each draw: draw 7 is the same whether or not others were made before.
        return child(root(self.seed), f"draw {number}")

    def _members_of_units(self, number: int, values: Floats, most: int = 64) -> Members:
        """(m, k): who is mixed, read off unit vectors, d of them at a time and so often at most,
        that the encoder mixes in the place of the records and with the same generator; None where
        these weights do not reproduce the encodings."""
        n, d = self.private.shape
        if self.encoder is None or self.public is not None or n > most * d:
            return None
        units = (np.eye(n, d, -start, dtype=np.float32) for start in range(0, n, d))
        found = [np.abs(self.encoded(number, part)) for part in units]
        if any(len(part) != len(values) for part in found):
            return None
        W = np.concatenate(found, axis=1)[:, :n]
        miss = np.linalg.norm(np.abs(W @ self.private) - np.abs(values), axis=1)
        uses = (W > 1e-6).sum(axis=1)
        k = int(uses.max())
        if not 1 <= k <= 16 or (miss > 1e-3 * np.linalg.norm(values, axis=1)).mean() > 0.1:
            return None
        members = np.argsort(-W, axis=1)[:, :k]
        return np.where(np.arange(k) < uses[:, None], members, members[:, :1])


@dataclass(frozen=True, eq=False)
class Case:
    """The data of an audit and where its encodings come from.

    low : from how few encodings on the curve is asked for; places : where the records of the
    release stand in `data`; column : the place of the sensitive one; found : what the encodings
    show to be otherwise than was stated.
    """

    data: Dataset
    release: Release
    low: int
    places: NDArray[np.int64]
    column: int | None = None
    labels: NDArray[np.int64] | None = None
    found: str = ""

    @property
    def images(self) -> bool:
        return self.release.shape is not None

    @property
    def record(self) -> str:
        return "image" if self.images else "record"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, or numbers from 1 on."""
        return self.data.columns or tuple(str(j + 1) for j in range(self.data.values.shape[1]))


def load(
    private: Data | None,
    public: Data | None = None,
    scheme: Scheme | None = None,
    m: int | tuple[int, int] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    sample: int | None = None,
    encoder: Encoder | None = None,
    encodings: Data | None = None,
    sensitive: int | str | None = None,
    labels: DataLike | None = None,
    *,
    most: int = 2000,
) -> Case:
    """Everything an audit starts from; most: records that are attacked at once."""
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    if encoder is not None and encodings is not None:
        raise InputError("encoder and encodings: give what makes them, or what was made")
    family, limit = root(seed), memory_limit(None)
    how: dict[str, Any] = {"most": 1 << 30, "limit": limit // 4}
    # 1. The records. Who encoded a table did so in units of its own.
    rng, own = child(family, "private"), encodings is not None
    data = load_dataset(private, sample=sample, as_they_are=own, rng=rng, **how)
    given = None
    if encodings is not None:
        given, image_shape = _encodings(encodings, data.values.shape[1])
        data = replace(data, image_shape=data.image_shape or image_shape)
    others = _public(public, data, scheme.k_public, child(family, "public"), how)
    # 2. The encodings.
    release = Release(data.values, others, scheme, 0, noise, seed, data.image_shape, encoder, given)
    _must_be_auditable(release)
    low, high = _range(m, release)
    if 8 * high * data.values.shape[1] > limit:
        raise InputError(f"{high:,} encodings are more than the memory limit: lower m, or sample")
    release, n = replace(release, m=high), len(data.values)
    members = None if release.stated else release.draw(0)[1]
    found, k = "", scheme.k_private if members is None else members.shape[1]
    if k > 1 and k != scheme.k_private:
        found = f"Encodings mix {k} records each, not {scheme.k_private} as was stated."
        release = replace(release, scheme=replace(scheme, k_private=k))
    # 3. As many records as can be attacked at once.
    places = np.arange(n)
    if n > most and given is None:
        places = np.sort(child(family, "sample").choice(n, most, replace=False))
        release = release.sample(places)
    classes = None if labels is None else _labels(labels, n)[places]
    return Case(data, release, low, places, _column(sensitive, data), classes, found)


def seconds_of(time: float | str | None) -> float | None:
    """Seconds of "90s", "10m", "2h" or a number."""
    if time is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(time))
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if isinstance(time, bool) or seconds <= 0:
        raise InputError(f"time={time!r}: give seconds, or a text like 90s, 10m or 2h")
    return seconds


def axes_of(what_if: str | None) -> tuple[str, ...]:
    if what_if not in (None, "all", *AXES):
        raise InputError(f"what_if={what_if!r}: choose one of {', '.join(AXES)}, all")
    return AXES if what_if == "all" else () if what_if is None else (what_if,)


def _must_be_auditable(release: Release) -> None:
    """There is something to find, and somebody who looks for it."""
    scheme, n, made = release.scheme, len(release.private), not release.stated
    vague = not scheme.fixed_weights and scheme.signs in ("absolute", "random")
    faults = (
        (
            not scheme.k_private or (scheme.k_private + scheme.k_public < 2 and not made),
            f"k_private={scheme.k_private}, k_public={scheme.k_public}: nothing private is mixed "
            "with anything; use k_private of 2 or more",
        ),
        (
            scheme.weighting == "unknown" and not made,
            "weighting='unknown': no encodings can be made without a law of weights; state it, or "
            "give encodings= or encoder=",
        ),
        (
            scheme.k_private > n,
            f"k_private={scheme.k_private} of only {n} private records: lower it or add records",
        ),
        (
            n > 1 and len(release.distinct[0]) == 1,
            f"all {n} records are {'equal' if release.private.any() else 'zero'}: there is nothing "
            "to tell apart; give records that differ",
        ),
        (
            vague and scheme.k_public and not made and release.shape is None,
            f"weighting={scheme.weighting!r}, signs={scheme.signs!r}, k_public={scheme.k_public}: "
            "no attack takes on weights drawn anew, hidden signs and a public part together, but "
            "on images; audit it with k_public=0 or weighting='equal', which hide less",
        ),
    )
    if words := next((words for there, words in faults if there), ""):
        raise InputError(words)


def _range(m: int | tuple[int, int] | None, release: Release) -> tuple[int, int]:
    """From how few to how many encodings."""
    least = release.scheme.k_private + 2
    top = None if release.stated else len(release.draw(0)[0])
    images = release.shape is not None
    enough = top or encodings_for_all(release.scheme, len(release.private), images)
    low, high = m if isinstance(m, tuple) else (None, enough if m is None else m)
    if not is_count(high, 2) or not (low is None or is_count(low, 1)):
        raise InputError(f"m={m!r}: give how many encodings, 2 or more, or (low, high)")
    if low is not None and low > high:
        raise InputError(f"m from {low} to {high}: give the smaller number first")
    high = min(int(high), top or int(high))
    low = max(least, high // 8) if low is None else low
    return min(int(low), high), high


def _encodings(source: Data, d: int) -> tuple[Floats, tuple[int, ...] | None]:
    """Encodings that somebody else made of records of d values, and their shape where they are
    images."""
    shape = None
    if isinstance(source, Dataset):
        values = source.values
    elif isinstance(source, (str, Path)):
        values, shape = load_shaped(source, "encodings")
    else:
        array = as_array(source, "encodings")
        values = as_vectors(array.reshape(len(array), -1), "encodings")
    _must_match(values, "encodings", d)
    return values, shape


def _must_match(vectors: Floats, name: str, d: int) -> None:
    if vectors.shape[1] != d:
        raise InputError(
            f"{name} have {vectors.shape[1]} values each, private records {d}: they must come from "
            "the same space"
        )


def _public(public: Data | None, data: Dataset, k: int, rng: Any, how: Any) -> Floats | None:
    """Public vectors in the units of the private ones, or None where k = 0 are mixed."""
    if k == 0:
        if public is not None:
            raise InputError("public vectors with k_public=0: say how many an encoding mixes")
        return None
    d = data.values.shape[1]
    if public is not None:
        table = data.kind == "features"
        given = load_dataset(public, as_they_are=table, rng=rng, **how)
        vectors = given.values
        if table and given.kind == data.kind and vectors.shape[1] == d:
            # Rows are standardised like the private ones: the encoder adds them up.
            scale = np.where(np.asarray(data.scale) > 0, data.scale, 1.0)
            vectors = as_vectors((vectors - data.mean) / scale, "public")
    elif data.kind == "gaussian":
        vectors = gaussian_vectors(200, d, rng)
    else:
        raise InputError(f"k_public={k} but no public vectors: give them with public")
    _must_match(vectors, "public vectors", d)
    if k > len(vectors):
        raise InputError(f"k_public={k} of only {len(vectors)} public vectors: lower it, or add")
    return vectors


def _column(sensitive: int | str | None, data: Dataset) -> int | None:
    """The index of the sensitive column, given by its place from 0 on; or, as a text, by its name
    or its number from 1 on."""
    names, d = data.columns, data.values.shape[1]
    # A name wins over a number: a column may be called 7.
    place: Any = sensitive
    if isinstance(sensitive, str):
        number = int(sensitive) - 1 if sensitive.isdecimal() else -1
        place = names.index(sensitive) if sensitive in names else number
    if place is not None and not 0 <= place < d:
        known = f"one of {', '.join(names[:10])}" if names else f"its number, from 1 to {d}"
        raise InputError(f"sensitive={sensitive!r}: no such column; give {known}")
    return None if place is None else int(place)


def _labels(labels: DataLike, n: int) -> NDArray[np.int64]:
    if isinstance(labels, (str, Path)):
        found = read_labels(labels)
    else:
        # Classes may be any words or numbers; only which are equal matters.
        found = np.unique(as_array(labels, "labels"), return_inverse=True)[1].ravel()
    if len(found) != n:
        raise InputError(f"{len(found)} labels of {n} records: give one for each record")
    return found.astype(np.int64)


def run_encoder(encoder: Any, private: Floats, public: Floats | None, rng: Any) -> Floats:
    """What encoder(private, public, rng), a function or an object with `encode`, returns; its
    failures become one sentence."""
    encode = getattr(encoder, "encode", encoder)
    if not callable(encode):
        raise InputError("encoder: give a function(private, public, rng), or what has encode")
    try:
        returned = encode(private.copy(), None if public is None else public.copy(), rng)
    except Exception as error:
        text = f"the encoder failed with {f'{type(error).__name__}: {error}'[:200]}"
        # The place in the code of the user: what only wraps the call is none.
        ours = Path(__file__).parents[1]
        frames = extract_tb(error.__traceback__)[1:]
        inside = [one for one in frames if not Path(one.filename).is_relative_to(ours)]
        where = f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""
        cure = where or ": it must take (private, public, rng), and accept rng=None"
        raise InputError(f"{text}{cure}") from error
    if returned is None:
        raise InputError("the encoder returned nothing: end it with return and the encodings")
    values = as_array(returned, "what the encoder returned")
    if values.ndim < 2 or values[:1].size != private.shape[1]:
        raise InputError(
            f"the encoder returned shape {values.shape} for records of {private.shape[1]} values: "
            "return all encodings at once, (encodings, values), as many values as a record has"
        )
    return as_vectors(values.reshape(len(values), -1), "what the encoder returned")


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
) -> Members:
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
    sizes, clear = np.abs(values), np.zeros(len(values), bool)
    if comb(n, k) * d <= most_values:
        found, clear = _best_sums(sizes, private, k, clearly)
    else:
        # The search that learns public vectors, with all records as the pool.
        found = learn_public(Encodings(sizes, Scheme(0, k), None), private).indices[:, :k]
        if found.shape[1] < k or (found < 0).any():
            return None
    sums = np.abs(private[found].sum(axis=1))
    # The weights may be others than the scheme's: one factor is free.
    factor = float((sums * sizes).sum() / max(float((sums * sums).sum()), 1e-30))
    miss = np.linalg.norm(factor * sums - sizes, axis=1)
    fits = miss <= reproduced * np.maximum(np.linalg.norm(sizes, axis=1), 1e-30)
    return np.sort(found, axis=1) if (fits | clear).mean() >= enough else None


def _best_sums(
    sizes: Floats, private: Floats, k: int, clearly: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Of all sets of k records the one whose sum is most like the encoding, by cosine; and whether
    it clearly is. With fewer than 20 columns the best two are alike by chance."""
    sets = np.array(list(combinations(range(len(private)), k)), np.int64)
    sums = np.abs(private[sets].sum(axis=1))
    best, two = np.empty(len(sizes), np.int64), np.empty((len(sizes), 2))
    step = max(1, (1 << 23) // len(sets))
    for start in range(0, len(sizes), step):
        rows = slice(start, start + step)
        alike = correlations(sizes[rows], sums)
        best[rows] = alike.argmax(axis=1)
        two[rows] = 1 - np.square(np.partition(alike, -2)[:, -2:])
    clear = (two[:, 1] <= clearly * two[:, 0]) & (private.shape[1] >= 20)
    return sets[best], clear
