"""The nouns that cross rooms: frozen, validated when made, with the evidence they carry.

Arrays are (items, pixels) in C order; the paper's image matrix X ∈ R^{d×n} is the transpose
(docs/notation.md). Every complaint about input is an `InputError`: one sentence that names the
cure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod, sqrt
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Weighting = Literal[
    "equal",
    "paper",
    "convex",
    "half-normal",
    "released",
    "uniform",
    "dirichlet",
    "sorted",
    "unknown",
]
Signs = Literal["absolute", "random", "kept"]
Pairing = Literal["independent", "epochs"]
Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): called from long loops, never from inside kernels."""

FIXED_WEIGHTINGS: tuple[Weighting, ...] = ("equal", "paper", "convex")
EXACT_WEIGHTINGS: tuple[Weighting, ...] = (*FIXED_WEIGHTINGS, "half-normal")
"""Those the attacks that recover exact values take on."""
WEIGHTINGS: tuple[Weighting, ...] = (
    *EXACT_WEIGHTINGS,
    "released",
    "uniform",
    "dirichlet",
    "sorted",
    "unknown",
)
SIGNS: tuple[Signs, ...] = ("absolute", "random", "kept")
PAIRINGS: tuple[Pairing, ...] = ("independent", "epochs")

VERIFIED, AMBIGUOUS, UNRESOLVED = STATUSES = "verified", "ambiguous", "unresolved"
MOST_MIXED = 10**9
"""Vectors per encoding: beyond it counts of subsets leave 64 bits, and nobody mixes so many."""


class InputError(ValueError):
    """Input that cannot be used, said in one sentence that names the cure."""


@dataclass(frozen=True)
class Scheme:
    """How encodings are made: y = |Σ_public a_pub·p + Σ_private a_priv·x|
    (`defn:select_distribution`).

    weighting  "equal":  every selected entry is 1/√(k_public+k_private), so the selection vector has norm 1
               "paper":  1/√k_public and 1/√k_private as printed; norm √2 when both parts are present
               "convex": every selected entry is 1/(k_public+k_private); entries sum to 1
               "half-normal": magnitudes of normal numbers, divided by their sum, drawn anew for
               every encoding and unknown;
                         no public part; there is no one weight, and what needs one refuses
               "released", "uniform", "dirichlet", "sorted": weights of private and public vectors
               together, drawn anew
                         for every encoding and unknown; each law is a function of `encode.weights`
               "unknown": one of these; `attack="natural"` finds out which
    signs      "absolute": y = |Xw|; "random": y = ±Xw with a fair coin per pixel (InstaHide as released);
               "kept": y = Xw (MixUp). The first two carry the same information.
    pairing    "independent": every encoding draws a subset of private vectors of its own
               "epochs": as a training run does: in each epoch encoding i mixes private vector i
               with those that random
                         permutations put at place i, one for each further slot; a vector may meet
                         itself, weights then add
    """

    k_private: int = 2
    k_public: int = 0
    weighting: Weighting = "equal"
    signs: Signs = "absolute"
    pairing: Pairing = "independent"

    def __post_init__(self) -> None:
        for name in ("k_private", "k_public"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, np.integer))
                or not 0 <= value <= MOST_MIXED
            ):
                raise InputError(f"{name}={value!r}: give a whole number, 0 or more")
            object.__setattr__(self, name, int(value))
        if self.k_private + self.k_public == 0:
            raise InputError("k_private=0 and k_public=0: an encoding must mix at least one vector")
        if self.weighting not in WEIGHTINGS:
            raise InputError(f"weighting={self.weighting!r}: choose one of {', '.join(WEIGHTINGS)}")
        if self.weighting == "half-normal" and self.k_public:
            raise InputError(
                f"weighting={self.weighting!r} with k_public={self.k_public}: weights of their own need k_public=0, "
                "or weighting='released'"
            )
        if self.signs not in SIGNS:
            raise InputError(f"signs={self.signs!r}: choose one of {', '.join(SIGNS)}")
        if self.pairing not in PAIRINGS:
            raise InputError(f"pairing={self.pairing!r}: choose one of {', '.join(PAIRINGS)}")

    @property
    def fixed_weights(self) -> bool:
        """Whether all encodings have the same weights."""
        return self.weighting in FIXED_WEIGHTINGS

    @property
    def private_weight(self) -> float:
        """The weight of each selected private vector."""
        return self._weight(self.k_private)

    @property
    def public_weight(self) -> float:
        """The weight of each selected public vector."""
        return self._weight(self.k_public)

    @property
    def private_variance(self) -> float:
        """What the private part adds to E[y²] when vectors are standard: ‖[w]_private‖²."""
        return self.k_private * self.private_weight**2

    @property
    def public_variance(self) -> float:
        """What the public part adds to E[y²] when vectors are standard: ‖[w]_public‖²."""
        return self.k_public * self.public_weight**2

    def require_weighting(self, *known: Weighting) -> None:
        """Asked by what can take on some weightings only."""
        if self.weighting not in known:
            attack = "full" if self.weighting in EXACT_WEIGHTINGS else "natural"
            raise InputError(
                f"weighting={self.weighting!r}: every encoding has weights of its own; use attack='{attack}'"
            )

    def _weight(self, part: int) -> float:
        if part == 0:
            return 0.0
        self.require_weighting(*FIXED_WEIGHTINGS)
        total = self.k_private + self.k_public
        return {"equal": 1 / sqrt(total), "paper": 1 / sqrt(part), "convex": 1 / total}[
            self.weighting
        ]


@dataclass(frozen=True, eq=False)
class Encodings:
    """m released encodings with the scheme that made them: `values` (m, d), with or without signs.

    pixel_rms: root mean square of a private pixel; 1 in the paper's model, None when nothing is
    known of it. Without a public part it is what ties the scale of the recovered vectors to the
    scale of the encodings.
    shape: (height, width) or (height, width, channels), where a vector is an image; None otherwise.
    labels (m, classes): what was released of the classes, Σ λ·onehot over private vectors; None
    where nothing was.
    """

    values: NDArray[np.float32]
    scheme: Scheme
    pixel_rms: float | None = 1.0
    shape: tuple[int, ...] | None = None
    labels: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_vectors(self.values, "encodings"))
        if not isinstance(self.scheme, Scheme):
            raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
        rms = self.pixel_rms
        if rms is not None and (
            isinstance(rms, bool) or not isinstance(rms, Real) or not 0 < rms <= sys.float_info.max
        ):
            raise InputError(
                f"pixel_rms={self.pixel_rms!r}: give a positive number, or None when unknown"
            )
        if self.shape is not None:
            object.__setattr__(self, "shape", as_shape(self.shape, self.d))
        if self.labels is not None:
            labels = as_vectors(self.labels, "labels")
            if len(labels) != self.m:
                raise InputError(
                    f"{len(labels)} labels of {self.m} encodings: give one row of class weights per encoding"
                )
            if labels.min() < 0:
                raise InputError("labels below zero: give the weight of each class, 0 or more")
            object.__setattr__(self, "labels", labels)

    @property
    def m(self) -> int:
        return int(self.values.shape[0])

    @property
    def d(self) -> int:
        return int(self.values.shape[1])

    def magnitudes(self, rows: slice | NDArray[np.intp] = slice(None)) -> NDArray[np.float32]:
        """|y| of the given rows: what every attack starts from, whether signs were hidden or
        randomised."""
        return np.abs(self.values[rows])


@dataclass(frozen=True, eq=False)
class Selection:
    """Which vectors each encoding mixes: `private` (m, k_private) and `public` (m, k_public),
    sorted in each row.

    weights (m, k_private), public_weights (m, k_public): in the same order; None when the scheme's
    are meant.
    """

    private: NDArray[np.int64]
    public: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    public_weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Simulation:
    """Encodings together with the truth behind them."""

    encodings: Encodings
    private: NDArray[np.float32]
    public: NDArray[np.float32] | None
    selection: Selection


@dataclass(frozen=True, eq=False)
class Supports:
    """The output of LearnPublic.

    indices (m, k): which public vectors each encoding uses, sorted in each row, −1 at the end where
    there are fewer confidence (m,) in [0, 1]: "folded-em": the probability that the support is
    right; other methods: a relative margin
    certain (m,): the supports to rely on (rules: `supports.folded.confidence`,
    `supports.correlated.tree_search`); None: the method does not say
    weights (m, k): the weight of each, 0 where there is none; None when the scheme's were used
    interchangeable: groups of equal public vectors; the first of a group stands for all of it in
    `indices`
    warning: in words, when encodings and scheme contradict each other, or vectors are not what the
    likelihood assumes
    """

    indices: NDArray[np.int64]
    confidence: NDArray[np.float64]
    method: str
    certain: NDArray[np.bool_] | None = None
    weights: NDArray[np.float64] | None = None
    interchangeable: tuple[tuple[int, ...], ...] = ()
    warning: str = ""

    def incidence(self, n_public: int) -> sparse.csr_array:
        """The m×n_public matrix of zeros and ones."""
        rows, columns = np.nonzero(self.indices >= 0)
        chosen = self.indices[rows, columns]
        if chosen.max(initial=-1) >= n_public:
            raise InputError(
                f"supports name public vectors beyond the {n_public} there are: learn them from these vectors"
            )
        out = sparse.csr_array(
            (np.ones(len(rows), dtype=np.int32), (rows, chosen)),
            shape=(len(self.indices), n_public),
        )
        if out.nnz and out.max() > 1:
            raise InputError(
                "supports name a public vector twice in one encoding: give k_public different ones"
            )
        return out


@dataclass(frozen=True, eq=False)
class Overlaps:
    """How many private vectors each two encodings share: the paper's M restricted to the private
    part.

    `expected_errors` is the number of wrong pairs to expect, missed ones included, where the
    statistic that was rounded follows the Gaussian model (NaN when the overlaps were given, not
    measured). `confidence` is the probability that an entry is right, one number for each of
    `matrix.data` (None when the overlaps were given).
    """

    matrix: sparse.csr_array
    k_private: int
    expected_errors: float = float("nan")
    confidence: NDArray[np.float32] | None = None

    @classmethod
    def from_array(cls, matrix: ArrayLike | sparse.sparray, k_private: int) -> Overlaps:
        """Overlaps from a symmetric integer matrix, dense or sparse."""
        if (
            isinstance(k_private, bool)
            or not isinstance(k_private, (int, np.integer))
            or k_private < 1
        ):
            raise InputError(f"k_private={k_private!r}: give a whole number, 1 or more")
        dense = (
            sparse.csr_array(matrix) if sparse.issparse(matrix) else _as_array(matrix, "overlaps")
        )
        if len(dense.shape) != 2 or dense.shape[0] != dense.shape[1] or dense.shape[0] == 0:
            raise InputError(
                f"overlaps of shape {dense.shape}: give a square matrix, one row per encoding"
            )
        if not (np.issubdtype(dense.dtype, np.integer) or _is_whole(dense)):
            raise InputError(
                "overlaps that are not whole numbers: round them first (see unveil.gram_extract)"
            )
        csr = sparse.csr_array(dense).astype(np.int64)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if abs(csr - csr.T).sum():
            raise InputError(
                "overlaps that are not symmetric: pass (M + M.T) // 2 or recompute them"
            )
        return cls(csr, int(k_private))

    @property
    def m(self) -> int:
        return int(self.matrix.shape[0])

    def of(self, encodings: Encodings) -> Overlaps:
        """These overlaps, after a look that they can belong to these encodings."""
        m, k = encodings.m, encodings.scheme.k_private
        if (self.m, self.k_private) != (m, k):
            raise InputError(
                f"overlaps of {self.m} encodings with k_private={self.k_private} are not those of these {m} with {k}"
            )
        return self

    def tocsr(self) -> sparse.csr_array:
        return self.matrix.copy()

    def toarray(self) -> NDArray[np.int64]:
        return np.asarray(self.matrix.toarray(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Floral:
    """Encodings whose private subsets are all k-subsets of k+2 vectors (`defn:floral`).

    `rows` (t,) of the overlap matrix, t = (k+2)(k+1)/2; `labels` (t, k): F(row) as names 0..k+1.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def incidence(self) -> NDArray[np.int64]:
        """The t×(k+2) matrix with a one where F(row) contains the name."""
        out = np.zeros((len(self.rows), self.labels.shape[1] + 2), dtype=np.int64)
        np.put_along_axis(out, self.labels, 1, axis=1)
        return out


@dataclass(frozen=True, eq=False)
class Recovery:
    """Private vectors with the evidence for each.

    status "verified":   re-encoding reproduces every encoding known to mix these vectors only, from more
                         equations than unknowns, and no other labelling does
           "ambiguous":  the equations hold, but another solution does as well as this one
           "unresolved": the equations do not hold
    signed False means: one sign per pixel, common to all vectors, is not determined.
    weights (m, r): what each encoding gives to each vector, at the places of `members`; None when
    the scheme fixes them.
    doubtful (r, d): values that the encodings leave open, though the rest of the vector is
    determined; None: there are none.
    explained: how many encodings the vectors reproduce, exactly or up to noise; 0 where the attack
    does not say. exact: they are reproduced to rounding, so that there is no noise to allow for.
    """

    vectors: NDArray[np.float32]
    status: NDArray[np.str_]
    signed: bool
    members: sparse.csr_array
    residual: NDArray[np.float64]
    reasons: tuple[str, ...]
    attack: str
    explanation: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    weights: sparse.csr_array | None = None
    doubtful: NDArray[np.bool_] | None = None
    explained: int = 0
    exact: bool = False

    @classmethod
    def empty(
        cls,
        encodings: Encodings,
        attack: str,
        explanation: str,
        seconds: Mapping[str, float],
        evidence: Mapping[str, Any] | None = None,
    ) -> Recovery:
        return cls(
            vectors=np.empty((0, encodings.d), np.float32),
            status=np.empty(0, dtype="<U10"),
            signed=False,
            members=sparse.csr_array((encodings.m, 0), dtype=bool),
            residual=np.empty(0),
            reasons=(),
            attack=attack,
            explanation=explanation,
            seconds=seconds,
            evidence={} if evidence is None else evidence,
        )

    @property
    def verified(self) -> NDArray[np.bool_]:
        return np.asarray(self.status == VERIFIED)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, eq=False)
class Scores:
    """A recovery held against the truth.

    exact: distinct private vectors returned as verified with every pixel within tolerance
    wrong: verified vectors equal to no private vector; missing: private vectors not returned
    exactly
    matches (r,): the private vector each recovered one equals, or -1; error (r,): largest pixel
    error to it
    """

    exact: int
    wrong: int
    missing: int
    matches: NDArray[np.int64]
    nearest: NDArray[np.int64]
    error: NDArray[np.float64]
    tolerance: float


def as_vectors(values: ArrayLike, name: str) -> NDArray[np.float32]:
    """(items, pixels) as float32 in C order, every number finite; memory-mapped float32 stays on
    disk."""
    array = _as_array(values, name)
    if array.dtype == object or array.dtype.kind not in "fiub":
        raise InputError(f"{name} of dtype {array.dtype}: give real numbers (float32 is best)")
    if array.ndim != 2:
        raise InputError(
            f"{name} of shape {array.shape}: give a 2-D array (items, pixels); flatten images first"
        )
    if 0 in array.shape:
        raise InputError(
            f"{name} of shape {array.shape} is empty: give at least one item with one pixel"
        )
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(array, dtype=np.float32)
    for start, block in row_blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            row, pixel = np.argwhere(~finite)[0]
            raise InputError(
                f"{name}: the value at row {start + row}, pixel {pixel} is NaN, infinite or beyond float32; remove or repair it"
            )
    return array


def as_shape(shape: Any, d: int) -> tuple[int, ...]:
    """(height, width) or (height, width, channels) of images with d pixels."""
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        sizes = ()
    if len(sizes) not in (2, 3) or min(sizes) < 1 or sizes != tuple(shape):
        raise InputError(f"shape={shape!r}: give (height, width) or (height, width, channels)")
    if prod(sizes) != d:
        raise InputError(
            f"shape={sizes} has {prod(sizes)} pixels, the vectors {d}: the product must be the number of pixels"
        )
    return sizes


def as_public(public: ArrayLike | None, encodings: Encodings) -> NDArray[np.float32] | None:
    """The public vectors, checked against the scheme and the pixels of the encodings."""
    k_public = encodings.scheme.k_public
    if public is None:
        if k_public:
            raise InputError(
                f"k_public={k_public} but no public vectors: pass public=, or use k_public=0"
            )
        return None
    vectors = as_vectors(public, "public")
    if vectors.shape[1] != encodings.d:
        raise InputError(
            f"public vectors have {vectors.shape[1]} pixels, encodings {encodings.d}: they must come from the same space"
        )
    if k_public > len(vectors):
        raise InputError(
            f"k_public={k_public} of only {len(vectors)} public vectors: lower k_public or add vectors"
        )
    return vectors


def row_blocks(array: NDArray[Any], numbers: int = 1 << 24) -> Iterator[tuple[int, NDArray[Any]]]:
    """(start, rows) in blocks of about `numbers` numbers, so that a memory-mapped array is never
    loaded whole."""
    step = max(1, numbers // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def _as_array(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asanyarray(values)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths; give a rectangular array") from None
    return (
        array.filled(np.nan)
        if isinstance(array, np.ma.MaskedArray) and array.dtype.kind == "f"
        else array
    )


def _is_whole(matrix: Any) -> bool:
    data: NDArray[Any] = np.asarray(
        getattr(matrix, "data", matrix) if sparse.issparse(matrix) else matrix
    )
    return bool(
        data.dtype.kind == "f" and np.all(np.abs(data) < 2**53) and np.all(data == np.rint(data))
    )
