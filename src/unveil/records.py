"""What attacks find on their way: public vectors, overlaps, florals; frozen, with their evidence.

What they end with is in `recovery`, and can be imported from here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, as_array, is_count
from unveil.encodings import Encodings
from unveil.recovery import AMBIGUOUS as AMBIGUOUS
from unveil.recovery import UNRESOLVED as UNRESOLVED
from unveil.recovery import VERIFIED as VERIFIED
from unveil.recovery import Recovery as Recovery
from unveil.shown import Shown, draw_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): called from long loops, never from inside kernels."""


@dataclass(frozen=True, eq=False)
class Supports(Shown):
    """Which public vectors each encoding uses: the output of LearnPublic.

    Attributes
    ----------
    indices : array of shape (m, k)
        Sorted in each row, −1 at the end where there are fewer.
    confidence : array of shape (m,)
        In [0, 1]. "folded-em": the probability that the support is right; other methods: a
        relative margin.
    method : str
        The method that found them.
    certain : array of bool of shape (m,), or None
        The supports to rely on (`paper.folded_search`); None: the method does not say.
    weights : array of shape (m, k), or None
        The weight of each, 0 where there is none; None when the scheme's were used.
    interchangeable : tuple of tuples
        Groups of equal public vectors; the first of a group stands for all of it in `indices`.
    warning : str
        In words, when encodings and scheme contradict each other, or vectors are not what the
        likelihood assumes; else empty.

    References
    ----------
    `alg:public_attack`, `lem:public` of the paper.
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
            raise InputError(f"supports name public vectors beyond the {n_public} there are")
        ones, m = np.ones(len(rows), dtype=np.int32), len(self.indices)
        out = sparse.csr_array((ones, (rows, chosen)), shape=(m, n_public))
        # Equal places are added up by the constructor: a sum of 2 is a vector named twice.
        if out.nnz and out.max() > 1:
            raise InputError("supports name a public vector twice in one encoding")
        return out

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        # People count from one; the indices themselves are those of the arrays, from zero.
        out = {f"public {place + 1}": column for place, column in enumerate(self.indices.T)}
        certain = {} if self.certain is None else {"certain": self.certain}
        return {**out, "confidence": self.confidence, **certain}

    def facts(self) -> dict[str, Any]:
        return {"method": self.method, "warning": self.warning, **self._columns()}

    def _sentence(self) -> str:
        text = f"public vectors of {len(self.indices)} encodings, by {self.method}"
        return f"{text}; {self.warning}" if self.warning else text


@dataclass(frozen=True, eq=False)
class Overlaps(Shown):
    """How many private vectors each two encodings share: the paper's M restricted to the private
    part.

    Attributes
    ----------
    matrix : sparse array of shape (m, m)
        Symmetric whole numbers, k_private on the diagonal.
    k_private : int
        Private vectors per encoding.
    expected_errors : float
        Wrong pairs to expect, missed ones included, where the statistic that was rounded follows
        the Gaussian model; NaN when the overlaps were given, not measured.
    confidence : array or None
        The probability that an entry is right, one number for each of `matrix.data`; None when
        the overlaps were given.

    References
    ----------
    `alg:private_attack`, `lem:gramextract` of the paper.

    Examples
    --------
    >>> import unveil
    >>> overlaps = unveil.Overlaps.from_array([[2, 1, 0], [1, 2, 1], [0, 1, 2]], k_private=2)
    >>> overlaps.m, overlaps.toarray()[0].tolist()
    (3, [2, 1, 0])
    """

    matrix: sparse.csr_array
    k_private: int
    expected_errors: float = float("nan")
    confidence: NDArray[np.float32] | None = None

    @classmethod
    def from_array(cls, matrix: ArrayLike | sparse.sparray, k_private: int) -> Overlaps:
        """Overlaps from a symmetric integer matrix, dense or sparse."""
        if not is_count(k_private, 1):
            raise InputError(f"k_private={k_private!r}: give a whole number, 1 or more")
        # Sparse input stays sparse: m×m numbers may not fit.
        dense = not sparse.issparse(matrix)
        given: Any = as_array(matrix, "overlaps") if dense else matrix
        if len(given.shape) != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
            raise InputError(
                f"overlaps of shape {given.shape}: give a square matrix, one row per encoding"
            )
        # Beyond 2⁵³ every double is whole.
        data = np.asarray(given if dense else given.tocsr().data)
        if data.dtype.kind not in "iu" and (
            data.dtype.kind != "f" or not (np.abs(data) < 2**53).all() or (data % 1).any()
        ):
            raise InputError(
                "overlaps that are not whole numbers: round them first (see unveil.gram_extract)"
            )
        csr = sparse.csr_array(given).astype(np.int64)
        # One entry per pair and no zeros, so that `nnz` counts pairs that overlap.
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if abs(csr - csr.T).sum():
            raise InputError("overlaps that are not symmetric: pass (M + M.T) // 2")
        return cls(csr, int(k_private))

    @property
    def m(self) -> int:
        """How many encodings there are."""
        return int(self.matrix.shape[0])

    def of(self, encodings: Encodings) -> Overlaps:
        """These overlaps, after a look that they can belong to these encodings."""
        m, k = encodings.m, encodings.scheme.k_private
        if (self.m, self.k_private) != (m, k):
            raise InputError(
                f"overlaps of {self.m} encodings with k_private={self.k_private} are not those of "
                f"these {m} with {k}"
            )
        return self

    def tocsr(self) -> sparse.csr_array:
        """A copy of the matrix, sparse."""
        return self.matrix.copy()

    def toarray(self) -> NDArray[np.int64]:
        """The matrix, dense."""
        return np.asarray(self.matrix.toarray(), dtype=np.int64)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Pairs of encodings that share something, each once."""
        pairs = sparse.triu(self.matrix, 1).tocoo()
        return {"encoding": pairs.row, "other": pairs.col, "shared": pairs.data}

    def facts(self) -> dict[str, Any]:
        about = {"m": self.m, "k_private": self.k_private, "expected_errors": self.expected_errors}
        return {**about, **self._columns()}

    def _sentence(self) -> str:
        return f"overlaps of {self.m} encodings, k_private = {self.k_private}"

    def plot(self) -> Figure:
        """The first 600 rows and columns: more than there are pixels in the figure."""
        title = f"private vectors that two of {self.m} encodings share"
        return draw_matrix(self.matrix[:600, :600].toarray(), "encoding", "encoding", title)


@dataclass(frozen=True, eq=False)
class Floral(Shown):
    """Encodings whose private subsets are all k-subsets of k+2 vectors.

    Attributes
    ----------
    rows : array of shape (t,)
        Rows of the overlap matrix, t = (k+2)(k+1)/2.
    labels : array of shape (t, k)
        F(row): the vectors that each row mixes, under the names 0 … k+1.

    References
    ----------
    `defn:floral`, `example:floral` of the paper.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def incidence(self) -> NDArray[np.int64]:
        """The t×(k+2) matrix with a one where F(row) contains the name."""
        out = np.zeros((len(self.rows), self.labels.shape[1] + 2), dtype=np.int64)
        np.put_along_axis(out, self.labels, 1, axis=1)
        return out

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        names = {f"vector {place + 1}": column for place, column in enumerate(self.labels.T)}
        return {"encoding": self.rows, **names}

    def _sentence(self) -> str:
        vectors = self.labels.shape[1] + 2
        return f"a floral: {len(self.rows)} encodings of {vectors} private vectors"

    def plot(self) -> Figure:
        """Which encoding mixes which of the k+2 vectors."""
        figure = draw_matrix(self.incidence, "private vector", "encoding", "who mixes whom")
        names = [chr(ord("a") + i) for i in range(self.incidence.shape[1])]
        figure.axes[0].set_xticks(range(len(names)), names)
        figure.axes[0].set_yticks(range(len(self.rows)), [str(row) for row in self.rows])
        return figure
