"""The data that an audit is about: records, public vectors, and where encodings come from.

Records come from a path, an array or a name (`data.dataset`); public vectors in the units of the
private ones. Encodings come from the scheme, from the user's encoder, or from a file
(`auditing.release`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil import store
from unveil.auditing.audit_options import Data, Options
from unveil.auditing.plan import encodings_for_all
from unveil.auditing.release import Encode, Release, by_encoder, must_match, with_k_found
from unveil.auditing.risks import distinct
from unveil.checks import DataLike, InputError, as_array, as_vectors
from unveil.data import Dataset, gaussian_vectors, load_dataset
from unveil.data.dataset import BUNDLED
from unveil.data.features import SUFFIXES, read_features
from unveil.data.labels import read_labels
from unveil.npy import read_array
from unveil.scheme import EXACT_WEIGHTINGS, Scheme
from unveil.seeds import child, root

FEW_IMAGES, MANY_IMAGES = 5, 50
"""Encodings per image of a release of images with weights of their own, where nothing is said: the
challenge has 50."""


@dataclass(frozen=True, eq=False)
class Case:
    """The data of an audit, where its encodings come from, and from how few to how many of them are
    attacked."""

    data: Dataset
    release: Release
    low: int
    high: int
    column: int | None = None
    labels: NDArray[np.int64] | None = None


def load(
    private: Data | None,
    public: Data | None,
    options: Options,
    *,
    n_private: int | None,
    n_public: int | None,
    d: int | None,
    sample: int | None,
) -> Case:
    """Everything an audit starts from."""
    family, scheme = root(options.seed), options.scheme
    # 1. The records.
    _must_hold_records(private)
    data = load_dataset(
        private,
        n=n_private,
        d=d,
        sample=sample,
        limit=options.limit // 4,
        rng=child(family, "private"),
    )
    if options.encodings is not None and data.kind == "features":
        # Who encoded a table did so in its own units.
        data = replace(data, values=as_vectors(data.restore(data.values), "private"))
    n, pixels = data.values.shape
    if data.image_shape is None:
        scheme.require_weighting(*EXACT_WEIGHTINGS)
    others = _public(public, data, scheme, n_public, child(family, "public"), options.limit)
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
    # 2. The encodings.
    make, draws, top = _make(options, data, others)
    low, high = _range(options.m, scheme, n, data.image_shape is not None, top)
    if 8 * high * pixels > options.limit:
        raise InputError(
            f"{high:,} encodings of {pixels:,} values are more than the memory limit: lower m, or "
            "raise memory_limit"
        )
    release = Release(
        private=data.values,
        public=others,
        scheme=scheme,
        top=high if top is None else top,
        noise=options.noise,
        seed=options.seed,
        shape=data.image_shape,
        make=make,
        draws=draws,
    )
    return Case(
        data,
        with_k_found(release),
        low,
        high,
        _column(options.sensitive, data),
        _labels(options.labels, n),
    )


def trials_folder(out: Path | None) -> Path | None:
    """Where trials are kept: in a new folder, or in one that an audit made."""
    if out is None:
        return None
    if not holds_audits(out):
        store.must_be_new(out)
    return out / "trials"


def holds_audits(out: Path) -> bool:
    """Whether audits made this folder: one, or those that run when nothing is said, each in a
    folder of its own."""
    return any((out / name / "trials").is_dir() for name in ("", *BUNDLED))


def _make(
    options: Options, data: Dataset, public: NDArray[np.float32] | None
) -> tuple[Encode | None, int | None, int | None]:
    """What makes the encodings, how often it can, and how many it makes; None: as the scheme
    does."""
    if options.encoder is not None:
        make = by_encoder(options.encoder, data.values, public, options.seed)
        return make, None, len(make(0))
    if options.encodings is not None:
        values = must_match(_read_encodings(options.encodings), data.values)
        return (lambda number: values), 1, len(values)
    return None, None, None


def _read_encodings(source: Data) -> NDArray[np.float32]:
    if isinstance(source, Dataset):
        return source.values
    if isinstance(source, (str, Path)):
        path = Path(source)
        table = path.suffix.lower() in SUFFIXES
        source = read_features(path).values if table else read_array(path)
    values = as_array(source, "encodings")
    if values.ndim > 2:
        values = values.reshape(len(values), -1)
    return as_vectors(values, "encodings")


def _range(
    m: int | tuple[int, int] | None, scheme: Scheme, n: int, images: bool, top: int | None
) -> tuple[int, int]:
    """From how few to how many encodings; `top`: how many there are, where they are not drawn."""
    least = scheme.k_private + 2
    # What is there decides, where encodings were made by others.
    if m is None and top is not None:
        return min(max(least, top // 8), top), top
    # Images with weights of their own take many looks at each of them.
    if m is None and images and scheme.weighting not in EXACT_WEIGHTINGS:
        return FEW_IMAGES * n, MANY_IMAGES * n
    if m is None:
        return max(least, n // 2), encodings_for_all(scheme, n)
    low, high = (max(least, m // 8), m) if isinstance(m, (int, np.integer)) else m
    whole = all(isinstance(count, (int, np.integer)) for count in (low, high))
    if isinstance(m, bool) or not whole or low < 1 or high < 2:
        raise InputError(
            f"m={m!r}: give a number of encodings of 2 or more, or a range (low, high)"
        )
    # A small m was meant as it is: then there is no range to trace.
    if low > high and not isinstance(m, tuple):
        low = high
    if low > high:
        raise InputError(f"m from {low} to {high}: give the smaller number first")
    if top is not None:
        low, high = min(low, top), min(high, top)
    return int(low), int(high)


def _public(
    public: Data | None,
    data: Dataset,
    scheme: Scheme,
    n_public: int | None,
    rng: np.random.Generator,
    limit: int,
) -> NDArray[np.float32] | None:
    """Public vectors in the units of the private ones, or None when the scheme mixes none."""
    if scheme.k_public == 0:
        if public is not None or n_public:
            raise InputError(
                "public vectors with k_public=0: say how many an encoding mixes (k_public), or "
                "leave them out"
            )
        return None
    d = data.values.shape[1]
    # 1. From where they are.
    # Public rows of a table are standardised like the private ones: the encoder adds them up.
    table = isinstance(public, (str, Path)) and Path(public).suffix.lower() in SUFFIXES
    if public is None:
        if data.kind != "gaussian":
            raise InputError(
                f"k_public={scheme.k_public} but no public vectors: give them with public"
            )
        vectors = gaussian_vectors(200 if n_public is None else n_public, d, rng)
    elif table and data.kind == "features":
        vectors = read_features(public, limit=limit // 4).values
        if vectors.shape[1] == d:
            scale = np.where(np.asarray(data.scale) > 0, data.scale, 1.0)
            vectors = as_vectors((vectors - data.mean) / scale, "public")
    else:
        vectors = load_dataset(public, most=1 << 30, limit=limit // 4, rng=rng).values
    # 2. Whether they fit.
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
    names = tuple(getattr(data, "columns", ()))
    d = data.values.shape[1]
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
