"""May a record be called verified where every encoding has weights of its own?

    y_i = s_i ∘ Σ_j Λ_ij·x_j,   k entries above 0 in each row of Λ, which sum to 1

Nothing is believed but the encodings, their scheme and the public vectors. Rows are encoded again,
and only those that are reproduced at every value count, with all k weights above `faint`.

Theorem (signs kept). Let X have independent rows once a column of ones is added, and let the
weights be in general position. Let C be a set of records such that for every record i of C each
other record of C has more than k + 1 rows (k = 2: k rows) inside C that do not mix i. Then every
reading of these rows with as many records has the records of C among its own.

  Proof. Another reading is Λ' = ΛT, X = TX' with T invertible. Take t with t_i ≠ 0 that is not a
  multiple of e_i, nonzero on S. A row that meets S once is nonzero in Λt. One that meets it more
  often vanishes if its weights solve a linear equation, and |S| − 1 rows at most do so in general
  position. The rows of the other records of S without i are more than that, so Λt has more entries
  than Λe_i. T has a nonzero entry in every row, all in different columns, so the columns of Λ' have
  together at least as many entries as those of Λ; and no more, since rows have k entries. So T is a
  permutation. For k = 2 rows are edges with positive weights: edges that vanish together close no
  odd circle and no two of them join the same pair, so one row less is enough.

  Growth. A record z joins C if, in the rows that mix z with records of C only, no record of C is
  always present: row r of Λ' is λ·T_z plus the others' weights, k − 1 places are taken, and so T_z
  has one entry beside entries that all these rows share, which are none.

Theorem (signs hidden). Let d > n, X independent, values and weights in general position. Columns of
S∘(ΛX), S the signs of another reading, are D_c·Λ·x_c with D_c diagonal signs. n + 1 of them lie in
a space of dimension n only if all spaces D_c·range(Λ) are one (Rado; Lovász 1977). Then D_c·D_1
maps range(Λ) into itself, which splits the rows of Λ into two sets whose ranks add up, unless it is
±1. If the rows of Λ are a connected matroid no such split exists, S is one sign per value, and the
first theorem applies, without growth.

Masks of a pool: the rows of one mask keep their signs relative to each other. A record is verified
by the rows of one mask alone; masks are tied to each other by records certain behind both.

General position is looked at: weights (and values, signs hidden) in few levels, or log λ a sum of a
term per row and one per record, verify nothing. Records that differ in signs alone are one record
behind two masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import nnls
from scipy.sparse.csgraph import connected_components

from unveil.encodings import Encodings
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Members = NDArray[np.int64]


class Judgement(NamedTuple):
    """status, reasons (r,); open_values (r, d); exact (m,): rows reproduced at every value;
    residual (r,): largest miss in the rows of a record, by the rms of the encodings."""

    status: NDArray[np.str_]
    reasons: list[str]
    open_values: Flags
    exact: Flags
    residual: Floats


def judge_own_weights(
    encodings: Encodings,
    vectors: NDArray[np.floating],
    weights: sparse.csr_array,
    *,
    public: NDArray[np.floating] | None = None,
    supports: NDArray[np.int64] | None = None,
    doubtful: Flags | None = None,
    near: float = 1e-4,
    near_hidden: float = 1e-3,
    faint: float = 1e-2,
    sharp: float = 1e-3,
) -> Judgement:
    """Status, reason and open values of every record.

    Parameters
    ----------
    vectors : (r, d)
        The records claimed.
    weights : csr (m, r)
        The weights claimed; those of public vectors are not given, but solved for.
    public, supports : (n_public, d), (m, k_public)
        The public vectors, and which of them each encoding is claimed to mix, −1 for none.
    doubtful : (r, d)
        Values that the claim itself leaves open: they are compared nowhere, and stay open.
    near, near_hidden : float
        Residual, relative to the spread of a column, that counts as rounding. Where signs are
        hidden errors of weights and records add up.
    faint : float
        A smaller weight is known to few digits: rows with one are no evidence.
    sharp : float
        Error of a value, relative to the spread of its column, up to which it is determined.

    """
    scheme, d = encodings.scheme, encodings.d
    r, hidden = len(vectors), scheme.signs in ("absolute", "random")
    opened = np.zeros((r, d), bool) if doubtful is None else np.asarray(doubtful, bool)
    if r == 0:
        nothing = np.zeros(encodings.m, bool)
        return Judgement(np.empty(0, "<U10"), [], opened, nothing, np.empty(0))
    # 1. All records, public ones included, with their weights.
    Y = encodings.values.astype(np.float64)
    x, W = _with_public(Y, np.asarray(vectors, np.float64), weights, public, supports, scheme.signs)
    total, size = W @ x, np.abs(Y)
    off = np.abs(Y - total) if scheme.signs == "kept" else np.abs(size - np.abs(total))
    closed = ~opened.any(axis=0)
    vague = np.zeros(encodings.m, bool)
    if opened.any():
        uses = sparse.csr_array(weights > 0).astype(np.float64) @ opened.astype(np.float64)
        off[uses > 0] = 0.0
        vague = 2 * (uses > 0).sum(axis=1) >= d
    # 2. Rows that are reproduced at every value, by k weights that sum to 1.
    rounding = 4 * np.finfo(np.float32).eps * size.max(axis=0, initial=0.0)
    spread = np.maximum((Y if scheme.signs == "kept" else size).std(axis=0), 1e-30)
    bound = (near_hidden if hidden else near) * spread + rounding
    k = scheme.k_private + scheme.k_public
    count = np.asarray((faint < W).sum(axis=1)).ravel()
    fair = np.abs(np.asarray(W.sum(axis=1)).ravel() - 1) <= near_hidden
    fair &= np.asarray((W < 0).sum(axis=1)).ravel() == 0
    shown = (off <= bound).all(axis=1) & fair & ~vague
    clear = shown & (count == k) & (np.asarray((W > 0).sum(axis=1)).ravel() == k)
    # 3. The theorems, by columns at which nothing is open.
    case = _Case(x[:, closed], W, np.flatnonzero(clear), k, faint)
    if scheme.signs == "masked":
        known, whole, apart = _behind_masks(case, Y[:, closed], total[:, closed])
    else:
        known, whole = _certain_hidden(case) if hidden else _certain(case)
        apart = np.zeros(len(x), bool)
    if 2 * shown.sum() < encodings.m:
        whole = f"only {int(shown.sum())} of {encodings.m} encodings are reproduced with them"
    # 4. How sharply rounding lets each be known.
    error = np.full((len(x), d), np.inf)
    rows = np.flatnonzero(shown)
    if known.any() and len(rows):
        names = np.flatnonzero(known)
        part = W[rows][:, names].toarray()
        spread_of = np.sqrt(np.diag(np.linalg.pinv(part.T @ part)))
        error[names] = 6 * spread_of[:, None] * off[rows].max(axis=0) / spread
    # 5. The first doubt decides.
    used = np.asarray((W[rows] > faint).sum(axis=0)).ravel()
    seen = np.asarray((faint < W).sum(axis=0)).ravel()
    evidence = np.bincount(case.members.ravel(), minlength=len(x))
    usual = int(np.median(count)) if len(count) else 0
    may_be_public = _may_be_public(W, rows, r, scheme.k_public, faint)
    blank = np.abs(x).max(axis=1) <= near * max(float(np.abs(Y).max(initial=0.0)), 1e-30)
    status, reasons = np.full(r, AMBIGUOUS, "<U10"), []
    for i in range(r):
        if not seen[i]:
            status[i], why = UNRESOLVED, "no encoding uses it"
        elif not used[i]:
            status[i] = UNRESOLVED
            why = f"none of its {seen[i]} encodings is reproduced to rounding"
        elif blank[i]:
            why = "all of its values are zero: nothing tells that it is there"
        elif used[i] == 1:
            why = "appears in one encoding only: a mixture, or a damaged encoding"
        elif usual < k:
            why = f"most encodings mix {usual} records, not {k}: state k_private={usual}"
        elif whole:
            why = whole
        elif apart[i]:
            why = "certain up to a sign per value that is not that of the others: no record is "
            why += "certain both behind its masks and behind theirs"
        elif not known[i]:
            why = f"its {evidence[i]} encodings do not exclude another reading"
        elif may_be_public[i]:
            why = "it may be a public vector: no encoding of it holds as many vectors of the "
            why += f"public list as the scheme says ({scheme.k_public})"
        elif not (error[i][~opened[i]] <= sharp).all():
            why = f"its encodings determine it to about {error[i].max():.1g} of its size only"
        else:
            status[i] = VERIFIED
            why = f"{evidence[i]} different encodings reproduced at all {d} values, {k} records "
            why += "each, by one solution only"
            why += ", all of one mask" if scheme.signs == "masked" else ""
        reasons.append(why)
    worst = sparse.csr_array(weights.astype(bool).multiply(off.max(axis=1, initial=0.0)[:, None]))
    residual = np.asarray(worst.max(axis=0).todense()).ravel() / max(
        float(np.sqrt(np.mean(Y**2))), 1e-30
    )
    return Judgement(status, reasons, opened, shown, residual)


class _Case:
    """Records x (n, d), weights W (m, n), and the rows that count, each one once: `members` and
    `weights` (rows, k)."""

    def __init__(
        self, x: Floats, W: sparse.csr_array, rows: NDArray[np.int64], k: int, faint: float
    ) -> None:
        self.x, self.W, self.k, self.faint = x, W, k, faint
        part = sparse.csr_array(W[rows])
        part.sort_indices()
        self.members = part.indices.reshape(-1, k).astype(np.int64)
        self.weights = part.data.reshape(-1, k)
        # The same records with the same weights say the same.
        levels = np.column_stack([self.members, np.rint(self.weights / 1e-5)])
        first = np.sort(np.unique(levels, axis=0, return_index=True)[1])
        self.rows, self.members, self.weights = (
            rows[first],
            self.members[first],
            self.weights[first],
        )

    def of_rows(self, keep: Flags) -> _Case:
        """The same with some of the rows only."""
        return _Case(self.x, self.W, self.rows[keep], self.k, self.faint)


def _with_public(
    Y: Floats,
    vectors: Floats,
    weights: sparse.csr_array,
    public: NDArray[np.floating] | None,
    supports: NDArray[np.int64] | None,
    signs: str,
) -> tuple[Floats, sparse.csr_array]:
    """Records and weights with the public vectors that `supports` names; their weights by least
    squares against what the records leave, with the signs that the claim itself gives."""
    W = sparse.csr_array(weights).astype(np.float64)
    if public is None or supports is None or not supports.size:
        return vectors, W
    P = np.asarray(public, np.float64)
    used, names = np.unique(supports[supports >= 0], return_inverse=True)
    at = np.full(supports.shape, -1)
    at[supports >= 0] = names
    total = W @ vectors
    rest = 1 - np.asarray(W.sum(axis=1)).ravel()
    extra = sparse.lil_array((len(Y), len(used)))
    for i in range(len(Y)):
        mine = at[i][at[i] >= 0]
        if len(mine):
            A = P[used[mine]]
            y = Y[i]
            if signs != "kept":
                # Signs are those of the claim; where public ones dominate, of their own mean.
                y = np.copysign(y, total[i] + rest[i] * A.mean(axis=0))
            for _ in range(1 if signs == "kept" else 5):
                share = nnls(A.T, y - total[i])[0]
                if signs != "kept":
                    y = np.copysign(Y[i], total[i] + share @ A)
            extra[i, mine] = share
    return np.concatenate([vectors, P[used]]), sparse.csr_array(sparse.hstack([W, extra]))


def _certain(case: _Case, *, hidden: bool = False) -> tuple[Flags, str]:
    """Which records are in every reading, signs kept; and a doubt about all, in words. Where signs
    are `hidden` two more rows are asked for, since weights are known to fewer digits."""
    n, d = case.x.shape
    none = np.zeros(n, bool)
    if case.k < 2:
        return none, "an encoding of one record is the record: nothing is unmixed"
    core = _core(case.members, n, 2 if hidden else 0)
    if not core.any():
        return none, "too few encodings share records to exclude another reading"
    if d < max(4, case.k + 1):
        return none, f"{d} values are too few to tell mixtures of {case.k} records from chance"
    scaled = case.x / np.maximum(case.x.std(axis=0), 1e-30)
    size = float(np.sqrt(np.mean(scaled**2)))
    sizes = np.linalg.svd(np.column_stack([scaled, np.full(n, size)]), compute_uv=False)
    if len(sizes) < n or sizes[-1] < 1e-5 * sizes[0]:
        if n > d + 1:
            return none, "more records than values: that no other reading holds is not proved"
        return none, "records that are combinations of others: encodings can be read in another way"
    if _differ_in_signs(case.x):
        return none, "records that differ in signs alone: one behind two sign masks"
    inside = core[case.members].all(axis=1)
    W = case.W[case.rows[inside]][:, np.flatnonzero(core)].toarray()
    sizes = np.linalg.svd(W, compute_uv=False)
    if len(sizes) < core.sum() or sizes[-1] < 1e-5 * sizes[0]:
        return none, "the encodings do not determine the records they mix"
    weights = case.weights[inside]
    if _in_levels(weights[:, :-1], 1e-5) or _additive(case.members[inside], weights, n):
        return none, "weights in few levels, or tied to records: other readings are not excluded"
    return core if hidden else _grown(case.members, core), ""


def _certain_hidden(case: _Case) -> tuple[Flags, str]:
    """The same where signs are hidden."""
    n, d = case.x.shape
    none = np.zeros(n, bool)
    if d <= n:
        return none, f"{d} values for {n} records: too few to rule out other signs"
    sizes = np.linalg.svd(case.x / np.maximum(np.sqrt(np.mean(case.x**2, axis=0)), 1e-30))[1]
    if sizes[-1] < 1e-5 * sizes[0]:
        return none, "records that are combinations of others: encodings can be read in another way"
    some = np.abs(case.x[:, :: -(-d // 200)])
    some = some / max(float(np.sqrt(np.mean(case.x**2))), 1e-300)
    if any(_in_levels(some, w) or _in_levels(case.weights[:, :-1], w) for w in (1e-5, 1e-4, 1e-3)):
        return none, "values or weights in few levels: other readings are not excluded"
    known, whole = _certain(case, hidden=True)
    inside = case.rows[known[case.members].all(axis=1)]
    if known.any() and not _connected(case.W[inside][:, np.flatnonzero(known)].toarray()):
        return none, "encodings fall into parts whose signs are their own"
    return known, whole


def _behind_masks(case: _Case, Y: Floats, total: Floats) -> tuple[Flags, str, Flags]:
    """Which records are certain, a doubt about all, and records certain up to signs of their own.

    Rows have one mask if they agree with the claim in the same signs wherever values are clear.
    """
    n = len(case.x)
    sure = np.abs(Y[case.rows]) > 1e-3 * np.abs(Y).mean()
    signs = np.where(sure, np.sign(Y[case.rows] * total[case.rows]), 0.0)
    group = np.full(len(signs), -1)
    count = 0
    while (group < 0).any():
        first = int(np.flatnonzero(group < 0)[0])
        same = (group < 0) & ~((signs * signs[first]) < 0).any(axis=1)
        group[same] = count
        count += 1
    part = np.full(n, -1)  # behind which masks a record is certain; tied masks have one number
    whole = "no mask has encodings enough to exclude another reading"
    for g in np.argsort(-np.bincount(group, minlength=1), kind="stable"):
        mine = group == g
        if mine.sum() < case.k + 1:
            break
        known, doubt = _certain(case.of_rows(mine))
        if not known.any():
            whole = doubt if part.max() < 0 and "too few" not in doubt else whole
            continue
        tied = np.unique(part[known & (part >= 0)])
        part[known | np.isin(part, tied)] = int(tied[0]) if len(tied) else int(g)
    if part.max() < 0:
        return np.zeros(n, bool), whole, np.zeros(n, bool)
    largest = np.bincount(part[part >= 0]).argmax()
    return part == largest, "", (part >= 0) & (part != largest)


def _core(members: Members, n: int, spare: int = 0) -> Flags:
    """The largest set of records, each with enough rows inside it without i, for every other i."""
    k = members.shape[1]
    need = k + (1 if k == 2 else 2) + spare
    core = np.ones(n, bool)
    while True:
        rows = members[core[members].all(axis=1)]
        at = np.repeat(np.arange(len(rows)), k), rows.ravel()
        B = sparse.csr_array((np.ones(rows.size), at), shape=(len(rows), n))
        together = sparse.csr_array(B.T @ B)
        uses = together.diagonal()
        together.setdiag(0)
        most = np.asarray(together.max(axis=1).todense()).ravel() if len(rows) else uses
        enough = core & (uses - most >= need)
        if (enough == core).all():
            return core
        core = enough


def _grown(members: Members, core: Flags) -> Flags:
    """Core, and what follows from it."""
    known = core.copy()
    while True:
        fresh = ~known[members]
        rows = np.flatnonzero(fresh.sum(axis=1) == 1)
        names, joined = members[rows][fresh[rows]], False
        for z in np.unique(names):
            others = [set(members[i]) - {z} for i in rows[names == z]]
            if len(others) > 1 and not set.intersection(*others):
                known[z] = joined = True
        if not joined:
            return known


def _connected(W: Floats, *, none: float = 1e-4) -> bool:
    """Whether the rows are a connected matroid: no two parts have ranks that add up to that of all.

    Rows are combinations of those of a basis, and tied to the ones they need with a coefficient
    above `none`; a matroid is connected if these ties are (Oxley, Matroid Theory, 4.1)."""
    m, n = W.shape
    if m <= n:
        return False
    order = qr(W.T, mode="r", pivoting=True)[1]
    basis, others = order[:n], order[n:]
    C = np.linalg.solve(W[basis].T, W[others].T).T
    ties = sparse.coo_array(np.abs(C) > none)
    graph = sparse.coo_array((np.ones(ties.nnz), (ties.row + n, ties.col)), shape=(m, m))
    return bool(connected_components(graph, directed=False)[0] == 1)


def _differ_in_signs(x: Floats, *, same: float = 1e-4) -> bool:
    """Whether two records differ in signs alone. Magnitudes that are all the same say nothing."""
    size = np.abs(x)
    size = size[size.max(axis=1) - size.min(axis=1) > same * size.max(axis=1)]
    if len(size) < 2:
        return False
    # Those with the same magnitudes have the same sum of them: they are neighbours by it.
    size = size[np.argsort(size.sum(axis=1))]
    apart = np.linalg.norm(np.diff(size, axis=0), axis=1)
    return bool((apart <= same * np.linalg.norm(size[1:], axis=1)).any())


def _in_levels(values: Floats, near: float, *, wider: int = 16, often: float = 3.0) -> bool:
    """Whether values are the same within `near` more often than chance: a window `wider` times as
    wide holds as many times the chance pairs; `often` times more than that, and ten, are levels."""
    v = np.sort(values.ravel())

    def pairs(width: float) -> int:
        return int((np.searchsorted(v, v + width, "right") - np.arange(len(v)) - 1).sum())

    return pairs(near) > often * pairs(wider * near) / wider + 10


def _additive(members: Members, weights: Floats, n: int, *, near: float = 1e-4) -> bool:
    """Whether log λ is a sum of a term per row and one per record in more rows than there are
    records, by least squares in which rows that agree count more and more."""
    m, k = members.shape
    logs = np.log(weights)
    logs -= logs.mean(axis=1, keepdims=True)
    at = np.arange(m * k), members.ravel()
    B = sparse.csr_array((np.ones(m * k), at), shape=(m * k, n))
    mean = sparse.kron(sparse.eye_array(m), np.full((k, k), 1 / k), format="csr")
    A = sparse.csr_array(B - mean @ B)
    strength, rest = np.ones(m), np.zeros((m, k))
    for _ in range(12):
        heavy = np.repeat(strength, k)
        gram = (A.T @ A.multiply(heavy[:, None])).toarray()
        gram[np.diag_indices(n)] += 1e-9 * np.trace(gram) / n + 1e-300
        terms = np.linalg.solve(gram, A.T @ (heavy * logs.ravel()))
        rest = (logs.ravel() - A @ terms).reshape(m, k)
        strength = 1 / np.maximum(np.abs(rest).max(axis=1), near / 10)
    return int((np.abs(rest).max(axis=1) < near).sum()) > n + 10


def _may_be_public(
    W: sparse.csr_array, rows: NDArray[np.int64], r: int, k_public: int, faint: float
) -> Flags:
    """Records that may be public vectors which are not listed. An encoding mixes k_public of them:
    where so many are found beside a record, it is private."""
    if not k_public:
        return np.zeros(r, bool)
    clear = sparse.csr_array(W[rows] > faint).astype(np.int64)
    full = np.flatnonzero(np.asarray(clear[:, r:].sum(axis=1)).ravel() >= k_public)
    return np.asarray(np.asarray(clear[full].sum(axis=0)).ravel()[:r] == 0)
