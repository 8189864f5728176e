"""May a record be called verified where signs are kept and every encoding has weights of its own?
See `docs/certificate.md`, "Weights of their own".

Y = WX, rows of W with k entries above 0 that sum to 1. Let X have independent rows. Every other
reading is W' = WT, X = TX', and x_i is in it if row i of T is a unit vector.

  core     nnz(Wt) ≥ nnz(We_i) for every t with t_i ≠ 0, with equality for multiples of e_i only.
           T has a nonzero entry in every row, all in different columns; so the columns of W' have
           at least as many entries as those of W. They may not have more, since rows of W' have k
           entries at most. So T is a permutation.
           Where does the first claim hold? Let t be nonzero on S, i ∈ S. A row that meets S once
           is nonzero. One that meets it more often is zero if its weights solve an equation, and
           |S| − 1 rows can at most, weights being in general position. So it holds if more than
           |R| rows without i meet R, for every set R of other vectors; and that is so if every
           vector has more than k rows without i. One more is asked for, so that two coincidences
           to five digits would be needed to break it. For k = 2 that is so with k + 1 already:
           rows are edges, weights are positive, so that edges that vanish together close no odd
           circle and no two of them join the same pair. On four vectors or less they are too few
  growth   z joins, if in the rows that mix it with known vectors only no known vector is always
           among them. Row r of W' is λ·T_z + the others' weights: at least 0, at most k entries.
           The k − 1 known ones stay, and leave one place. So T_z has one entry that is none of
           theirs, and besides it entries that all these rows share, which are none
  general  weights in few levels, or with λ_a : λ_b the same for a pair wherever it meets, are not
  position in general position: nothing is verified
  masks    two records that differ in signs alone are one behind two masks (`attacks.unmask`): what
           is mixed is not the records, and nothing is verified

Weights below `FAINT` are no evidence, and rows with one do not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certify.aliases import BLANK, blanks
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED
from unveil.solve.model import Members, rms
from unveil.solve.simplex import Corners

SPARE, SPARE_PAIRS = 2, 1
"""Rows of a vector without i, beyond k; the second for k = 2."""
FAINT = 1e-2
"""A smaller weight is known to few digits, and counts for nothing."""
SHARP = 1e-3
"""Error of a pixel, in units of the rms of the records, up to which a record may be called
exact."""
FLATTEST = 1e-5
"""Singular values of the records, and of W, below this share of the largest are none: rounding
leaves 1e-7 of the encodings."""
NEAR, WIDER, OFTEN, SOME = 1e-5, 16, 3.0, 10
"""Two weights are the same within NEAR. A window WIDER times as wide holds WIDER times as many
chance pairs; OFTEN times more than that, and SOME besides, are levels."""
ADDITIVE = 1e-4
"""How near log-weights come to a sum of a term per row and one per record, where that is no
chance."""
FITS = 12
"""Rounds of reweighted least squares: residuals of rows that agree fall tenfold in each."""
RIDGE = 1e-9
"""Added to the diagonal of the normal equations of log-weights, relative to its mean: a term that
all records share is free."""
SAME = 1e-4
"""How near magnitudes of two records must be to be the same, relative to their size."""
FEWEST_VALUES = 4
"""Columns beyond which a mixture of k known records is no accident to seven digits."""


def certify_own_weights(found: Corners, *, grow: bool = True) -> tuple[NDArray[np.str_], list[str]]:
    """Status and reason of every corner; without growth only the core is certain."""
    n, d = found.values.shape
    k = found.members.shape[1]
    # 1. Rows that count: reproduced, all weights clear, each one once.
    rows = np.flatnonzero(found.fits & (found.weights > FAINT).all(axis=1))
    rows = _different(rows, found.members, found.weights)
    # 2. What speaks against all records.
    core = _core(found.members[rows], n)
    inside = rows[core[found.members[rows]].all(axis=1)]
    whole = _doubt_about_all(found, inside, core)
    # 3. What speaks against one: the design, then how sharply rounding lets it be known.
    known = _grown(found.members[rows], core) if grow and not whole else core
    error = _errors(found, known)
    uses = np.bincount(found.members[rows].ravel(), minlength=n)
    seen = np.bincount(found.members[found.weights > FAINT].ravel(), minlength=n)
    blank = blanks(found.values)
    status, reasons = np.full(n, AMBIGUOUS, dtype="<U10"), []
    for i in range(n):
        if not seen[i]:
            status[i], why = UNRESOLVED, "no encoding uses it"
        elif blank[i]:
            why = BLANK
        elif seen[i] == 1:
            why = "appears in one encoding only: a mixture, or a damaged encoding"
        elif whole:
            why = whole
        elif not known[i]:
            why = f"its {uses[i]} encodings do not exclude another reading"
        elif not error[i] <= SHARP:
            why = f"its encodings determine it to about {error[i]:.1g} of its size only"
        else:
            status[i] = VERIFIED
            why = f"{uses[i]} different encodings reproduced at all {d} pixels, {k} records each, "
            why += "by one solution only"
        reasons.append(why)
    return status, reasons


def _different(rows: NDArray[np.int64], members: Members, weights: NDArray[np.float64]) -> Members:
    """Each of these rows once: the same records with the same weights say the same."""
    order = np.argsort(members[rows], axis=1)
    names = np.take_along_axis(members[rows], order, 1)
    levels = np.rint(np.take_along_axis(weights[rows], order, 1) / NEAR)
    first = np.unique(np.column_stack([names, levels]), axis=0, return_index=True)[1]
    return rows[np.sort(first)]


def _core(members: Members, n: int) -> NDArray[np.bool_]:
    """The largest set of vectors, each with more than k rows inside it and without i, for every
    other vector i."""
    k = members.shape[1]
    need = k + (SPARE_PAIRS if k == 2 else SPARE)
    core = np.ones(n, bool)
    while True:
        rows = members[core[members].all(axis=1)]
        at = np.repeat(np.arange(len(rows)), k), rows.ravel()
        B = sparse.csr_array((np.ones(rows.size), at), shape=(len(rows), n))
        together = sparse.csr_array(B.T @ B)
        uses = together.diagonal()
        together.setdiag(0)
        most = np.asarray(together.max(axis=1).todense()).ravel()
        enough = core & (uses - most >= need)
        if (enough == core).all():
            return core
        core = enough


def _grown(members: Members, core: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Core, and what follows from it."""
    known = core.copy()
    if not core.any():
        return known
    while True:
        fresh = ~known[members]
        rows = np.flatnonzero(fresh.sum(axis=1) == 1)
        joined = False
        names = members[rows][fresh[rows]]
        for z in np.unique(names):
            others = [set(members[r]) - {z} for r in rows[names == z]]
            if len(others) > 1 and not set.intersection(*others):
                known[z] = joined = True
        if not joined:
            return known


def _doubt_about_all(found: Corners, inside: NDArray[np.int64], core: NDArray[np.bool_]) -> str:
    """In words; empty where there is none."""
    k = found.members.shape[1]
    n, d = found.values.shape
    clear = (found.weights > FAINT).sum(axis=1)
    if k < 2:
        return "an encoding of one record is the record: nothing is unmixed"
    if not core.any():
        usual = int(np.median(clear))
        if usual < k:
            return f"most encodings mix {usual} records, not {k}: state k_private={usual}"
        return "too few encodings share records to exclude another reading"
    if d < max(FEWEST_VALUES, k + 1):
        return f"{d} values are too few to tell mixtures of {k} records from chance"
    lifted = np.column_stack([found.values, np.full(n, rms(found.values))])
    sizes = np.linalg.svd(lifted, compute_uv=False)
    if len(sizes) < n or sizes[-1] < FLATTEST * sizes[0]:
        return "records that are combinations of others: encodings can be read in another way"
    if under_two_masks(found.values):
        return "records that differ in signs alone: one behind two sign masks (signs='masked')"
    W = found.matrix[inside][:, np.flatnonzero(core)].toarray()
    sizes = np.linalg.svd(W, compute_uv=False)
    if sizes[-1] < FLATTEST * sizes[0]:
        return "the encodings do not determine the records they mix"
    # The last weight of a row follows from the others.
    weights = found.weights[inside]
    if in_levels(weights[:, :-1]) or _additive(found.members[inside], weights, n):
        return "weights in few levels, or tied to records: other readings are not excluded"
    return ""


def under_two_masks(values: NDArray[np.float64]) -> bool:
    """Whether two vectors differ in signs alone. Magnitudes that are all the same say nothing."""
    size = np.abs(values)
    size = size[size.max(axis=1) - size.min(axis=1) > SAME * size.max(axis=1)]
    if len(size) < 2:
        return False
    # Those with the same magnitudes have the same sum of them: they are neighbours by it.
    size = size[np.argsort(size.sum(axis=1))]
    apart = np.linalg.norm(np.diff(size, axis=0), axis=1)
    return bool((apart <= SAME * np.linalg.norm(size[1:], axis=1)).any())


def in_levels(values: NDArray[np.float64], near: float = NEAR) -> bool:
    """Whether values are the same within `near` more often than chance."""
    v = np.sort(values.ravel())

    def pairs(width: float) -> int:
        return int((np.searchsorted(v, v + width, "right") - np.arange(len(v)) - 1).sum())

    return pairs(near) > OFTEN * pairs(WIDER * near) / WIDER + SOME


def _additive(members: Members, weights: NDArray[np.float64], n: int) -> bool:
    """Whether log λ is a sum of a term per row and one per record in more rows than there are
    records."""
    m, k = members.shape
    logs = np.log(weights)
    logs -= logs.mean(axis=1, keepdims=True)
    at = np.arange(m * k), members.ravel()
    B = sparse.csr_array((np.ones(m * k), at), shape=(m * k, n))
    mean = sparse.kron(sparse.eye_array(m), np.full((k, k), 1 / k), format="csr")
    A = sparse.csr_array(B - mean @ B)
    strength = np.ones(m)
    rest = np.zeros((m, k))
    for _ in range(FITS):
        heavy = np.repeat(strength, k)
        gram = (A.T @ A.multiply(heavy[:, None])).toarray()
        gram[np.diag_indices(n)] += RIDGE * np.trace(gram) / n
        terms = np.linalg.solve(gram, A.T @ (heavy * logs.ravel()))
        rest = (logs.ravel() - A @ terms).reshape(m, k)
        strength = 1 / np.maximum(np.abs(rest).max(axis=1), ADDITIVE / 10)
    return int((np.abs(rest).max(axis=1) < ADDITIVE).sum()) > n + SOME


def _errors(found: Corners, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,) largest error of a pixel that residuals allow for, in units of the rms of the records;
    infinite for those that are not known."""
    out = np.full(len(known), np.inf)
    if not known.any():
        return out
    names = np.flatnonzero(known)
    W = found.matrix[found.fits][:, names].toarray()
    spread = np.sqrt(np.diag(np.linalg.pinv(W.T @ W)))
    # Six standard errors, as if the largest residual were the noise.
    out[names] = 6 * found.noise * spread / rms(found.values)
    return out
