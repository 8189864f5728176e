"""What an audit is about, checked before any work: records, public vectors, where encodings come
from, how many there are.

Public vectors are brought to the units of the private ones. A table with more than `most` records
is audited by a sample that keeps the number of encodings per record; what was left out is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.outcome import distinct
from unveil.auditing.plan import encodings_for_all
from unveil.auditing.release import Encoder, Release
from unveil.checks import TABLES, DataLike, InputError, as_array, as_vectors, child, root
from unveil.data import Dataset, gaussian_vectors, load_dataset
from unveil.data.arrays import read_labels
from unveil.data.tables import read_table
from unveil.engine.blocks import memory_limit
from unveil.engine.files import read_array
from unveil.scheme import Scheme

Data = DataLike | Dataset
AXES = ("noise", "k", "m")
"""What can be changed in "what if"."""


@dataclass(frozen=True, eq=False)
class Case:
    """The data of an audit and where its encodings come from.

    low : from how few encodings on the curve is asked for; places : where the records of the
    release stand in `data`; left_out : how many records are not among them.
    """

    data: Dataset
    release: Release
    low: int
    places: NDArray[np.int64]
    column: int | None = None
    labels: NDArray[np.int64] | None = None

    @property
    def left_out(self) -> int:
        return len(self.data.names) - len(self.places)


def load(
    private: Data | None,
    public: Data | None,
    scheme: Scheme | None,
    *,
    m: int | tuple[int, int] | None,
    noise: float,
    seed: int,
    sample: int | None,
    encoder: Encoder | None,
    encodings: Data | None,
    sensitive: int | str | None,
    labels: DataLike | None,
    most: int = 2000,
) -> Case:
    """Everything an audit starts from; most: records that are attacked at once."""
    scheme = Scheme() if scheme is None else scheme
    _must_be_auditable(scheme, encoder, encodings)
    family, limit = root(seed), memory_limit(None)
    # 1. The records.
    _must_hold_records(private)
    rng = child(family, "private")
    data = load_dataset(private, sample=sample, most=1 << 30, limit=limit // 4, rng=rng)
    if encodings is not None and data.kind == "features":
        # Who encoded a table did so in its own units.
        data = replace(
            data, values=as_vectors(data.restore(data.values), "private"), mean=0.0, scale=1.0
        )
    n, d = data.values.shape
    others = _public(public, data, scheme, child(family, "public"), limit)
    if scheme.k_private > n:
        raise InputError(
            f"k_private={scheme.k_private} of only {n} private records: lower k_private or add "
            "records"
        )
    if n > 1 and len(distinct(data.values)[0]) == 1:
        zero = "zero" if not data.values.any() else "equal"
        raise InputError(
            f"all {n} records are {zero}: there is nothing to tell apart; give records that differ"
        )
    vague = not scheme.fixed_weights and scheme.signs in ("absolute", "random")
    if encoder is None and encodings is None and vague and scheme.k_public and not data.image_shape:
        raise InputError(
            f"weighting={scheme.weighting!r}, signs={scheme.signs!r}, k_public={scheme.k_public}: "
            "no attack takes on weights drawn anew, hidden signs and a public part together, but "
            "on images; audit it with k_public=0 or weighting='equal', which hide less"
        )
    # 2. The encodings.
    given = None if encodings is None else _encodings(encodings, d)
    release = Release(data.values, others, scheme, 0, noise, seed, data.image_shape, encoder, given)
    top = None if release.stated else len(release.draw(0).values)
    low, high = _range(m, scheme, n, data.image_shape is not None, top)
    if 8 * high * d > limit:
        raise InputError(
            f"{high:,} encodings of {d:,} values are more than the memory limit: lower m, or "
            "sample the records"
        )
    release = replace(release, m=high)
    # 3. As many records as can be attacked at once.
    places = np.arange(n)
    if n > most and given is None:
        places = np.sort(child(family, "sample").choice(n, most, replace=False))
        release = release.sample(places)
    return Case(data, release, low, places, _column(sensitive, data), _labels(labels, n))


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
    if what_if is None or what_if == "all":
        return () if what_if is None else AXES
    if what_if not in AXES:
        raise InputError(f"what_if={what_if!r}: choose one of {', '.join(AXES)}, all")
    return (what_if,)


def _must_be_auditable(scheme: Scheme, encoder: Encoder | None, encodings: Data | None) -> None:
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    if encoder is not None and encodings is not None:
        raise InputError("encoder and encodings: give what makes them, or what was made")
    made = encoder is not None or encodings is not None
    if not scheme.k_private or (scheme.k_private + scheme.k_public < 2 and not made):
        raise InputError(
            f"k_private={scheme.k_private}, k_public={scheme.k_public}: nothing private is mixed "
            "with anything; use k_private of 2 or more"
        )
    if scheme.weighting == "unknown" and not made:
        raise InputError(
            "weighting='unknown': no encodings can be made without a law of weights; state it, or "
            "give encodings= or encoder="
        )


def _range(
    m: int | tuple[int, int] | None, scheme: Scheme, n: int, images: bool, top: int | None
) -> tuple[int, int]:
    """From how few to how many encodings; `top`: how many there are, where they are not drawn."""
    least = scheme.k_private + 2
    if m is None:
        high = encodings_for_all(scheme, n, images) if top is None else top
        return min(max(least, high // 8), high), high
    low, high = (max(least, m // 8), m) if isinstance(m, (int, np.integer)) else m
    whole = all(isinstance(count, (int, np.integer)) for count in (low, high))
    if isinstance(m, bool) or not whole or low < 1 or high < 2:
        raise InputError(
            f"m={m!r}: give a number of encodings of 2 or more, or a range (low, high)"
        )
    if low > high and isinstance(m, tuple):
        raise InputError(f"m from {low} to {high}: give the smaller number first")
    high = int(high) if top is None else min(int(high), top)
    return min(int(low), high), high


def _encodings(source: Data, d: int) -> NDArray[np.float32]:
    """Encodings that somebody else made of records of d values."""
    if isinstance(source, Dataset):
        values = source.values
    else:
        if isinstance(source, (str, Path)):
            path = Path(source)
            table = path.suffix.lower() in TABLES
            source = read_table(path) if table else read_array(path)
        array = as_array(source, "encodings")
        values = as_vectors(array.reshape(len(array), -1), "encodings")
    if values.shape[1] != d:
        raise InputError(
            f"encodings have {values.shape[1]} values each, the records {d}: they must come from "
            "the same space"
        )
    return values


def _public(
    public: Data | None, data: Dataset, scheme: Scheme, rng: np.random.Generator, limit: int
) -> NDArray[np.float32] | None:
    """Public vectors in the units of the private ones, or None when the scheme mixes none."""
    if scheme.k_public == 0:
        if public is not None:
            raise InputError(
                "public vectors with k_public=0: say how many an encoding mixes (k_public), or "
                "leave them out"
            )
        return None
    d = data.values.shape[1]
    table = isinstance(public, (str, Path)) and Path(public).suffix.lower() in TABLES
    if public is None:
        if data.kind != "gaussian":
            raise InputError(
                f"k_public={scheme.k_public} but no public vectors: give them with public"
            )
        vectors = gaussian_vectors(200, d, rng)
    elif table and data.kind == "features":
        # Public rows of a table are standardised like the private ones: the encoder adds them up.
        vectors = as_vectors(read_table(public, limit=limit // 4).to_numpy(), "public")
        if vectors.shape[1] == d:
            scale = np.where(np.asarray(data.scale) > 0, data.scale, 1.0)
            vectors = as_vectors((vectors - data.mean) / scale, "public")
    else:
        vectors = load_dataset(public, most=1 << 30, limit=limit // 4, rng=rng).values
    if vectors.shape[1] != d:
        raise InputError(
            f"public vectors have {vectors.shape[1]} values, private ones {d}: they must come "
            "from the same space"
        )
    if scheme.k_public > len(vectors):
        raise InputError(
            f"k_public={scheme.k_public} of only {len(vectors)} public vectors: lower k_public or "
            "add vectors"
        )
    return vectors


def _must_hold_records(private: Data | None) -> None:
    if private is None or isinstance(private, (str, Path, Dataset)):
        return
    shape = getattr(private, "shape", None) or np.shape(as_array(private, "private records"))
    if 0 in shape:
        raise InputError(f"private records of shape {shape}: there are none; give at least two")


def _column(sensitive: int | str | None, data: Dataset) -> int | None:
    """The index of the sensitive column, given by its place or by its name."""
    if sensitive is None:
        return None
    names, d = data.columns, data.values.shape[1]
    # A name wins over a number: a column may be called 7.
    if isinstance(sensitive, str) and sensitive in names:
        return names.index(sensitive)
    try:
        place = int(sensitive)
    except ValueError:
        listed = f"one of {', '.join(names[:10])}" if names else f"its place, 0 to {d - 1}"
        raise InputError(f"sensitive={sensitive!r}: no such column; give {listed}") from None
    if not 0 <= place < d:
        raise InputError(f"sensitive={sensitive!r}: columns are numbered from 0 to {d - 1}")
    return place


def _labels(labels: DataLike | None, n: int) -> NDArray[np.int64] | None:
    if labels is None:
        return None
    if isinstance(labels, (str, Path)):
        found = read_labels(labels)
    else:
        # Classes may be any words or numbers; only which are equal matters.
        found = np.unique(as_array(labels, "labels"), return_inverse=True)[1].ravel()
    if len(found) != n:
        raise InputError(f"{len(found)} labels of {n} records: give one for each record")
    return found.astype(np.int64)
