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

General position is looked at: weights in few levels, or log λ a sum of a term per row and one per
record, verify nothing; where signs are hidden, more columns than records must be free of zeros and
ties. At the other columns the weights, known by then, hold together what is not 0. Records that
differ in signs alone are one record behind two masks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import nnls
from scipy.sparse.csgraph import connected_components

from unveil.certificate.claim import Judgement, first_doubts, same_values, worst_of_rows
from unveil.certificate.design import common, grown, incidence
from unveil.certificate.few_records import connected_matroid
from unveil.encodings import Encodings
from unveil.records import AMBIGUOUS, UNRESOLVED

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]


def judge_own_weights(
    encodings: Encodings,
    vectors: NDArray[np.floating],
    weights: sparse.csr_array,
    *,
    public: NDArray[np.floating] | None = None,
    supports: Index | None = None,
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
        The records claimed; values that are not finite are open.
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
    scheme, Y = encodings.scheme, encodings.values.astype(np.float64)
    (r, d), k = vectors.shape, scheme.k_private + scheme.k_public
    kept, hidden = scheme.signs == "kept", scheme.signs in ("absolute", "random")
    opened = ~np.isfinite(vectors) | (False if doubtful is None else doubtful)
    # 1. All records, public ones included, with their weights.
    x, W = np.where(np.isfinite(vectors), vectors, 0).astype(np.float64), weights
    if public is not None and supports is not None:
        names = np.asarray(getattr(supports, "indices", supports))
        x, W = _with_public(Y, x, weights, public, names, kept)
    total, size = W @ x, np.abs(Y)
    off = np.abs(Y - total) if kept else np.abs(size - np.abs(total))
    vague = (weights > 0).astype(np.float64) @ opened.astype(np.float64) > 0
    off[vague] = 0.0
    # 2. Rows that are reproduced at every value, by k weights that sum to 1.
    rounding = 4 * np.finfo(np.float32).eps * size.max(axis=0)
    spread = np.maximum((Y if kept else size).std(axis=0), 1e-30)
    count = np.asarray((faint < W).sum(axis=1)).ravel()
    shown = (off <= (near_hidden if hidden else near) * spread + rounding).all(axis=1)
    shown &= np.abs(np.asarray(W.sum(axis=1)).ravel() - 1) <= near_hidden
    shown &= (np.asarray((W < 0).sum(axis=1)).ravel() == 0) & (2 * vague.sum(axis=1) < d)
    rows = np.flatnonzero(shown)
    clear = np.flatnonzero(shown & (count == k) & (np.diff(W.indptr) == k))
    # 3. The theorems, by columns at which nothing is open.
    closed, apart = ~opened.any(axis=0), np.zeros(len(x), bool)
    case = _Case.of(x[:, closed], W, clear, k)
    if scheme.signs == "masked":
        known, whole, apart = _behind_masks(case, Y[:, closed], total[:, closed])
    elif hidden:
        known, whole, cut = _certain_hidden(case)
        opened[:, np.flatnonzero(closed)[cut]] = True
    else:
        known, whole = _certain(case)
    if 2 * len(rows) < encodings.m:
        whole = f"only {len(rows)} of {encodings.m} encodings are reproduced with them"
    # 4. How sharply rounding lets each be known.
    error = np.full((len(x), d), np.inf)
    if known.any() and len(rows):
        part = W[rows][:, np.flatnonzero(known)].toarray()
        spread_of = np.sqrt(np.diag(np.linalg.pinv(part.T @ part)))
        error[known] = 6 * spread_of[:, None] * off[rows].max(axis=0) / spread
    error = np.where(opened, 0.0, error[:r])
    # 5. The first doubt decides.
    used = np.asarray((faint < W[rows]).sum(axis=0)).ravel()[:r]
    seen = np.asarray((faint < W).sum(axis=0)).ravel()[:r]
    usual = int(np.median(count)) if len(count) else 0
    blank = np.abs(x[:r]).max(axis=1) <= near * max(float(size.max(initial=0.0)), 1e-30)
    blurred = ~(error <= sharp).all(axis=1)
    facts = {"seen": seen, "usual": usual, "k": k, "d": d, "k_public": scheme.k_public}
    facts |= {"evidence": np.bincount(case.members.ravel(), minlength=len(x))[:r]}
    facts |= {"error": [f"{worst:.1g}" for worst in error.max(axis=1)]}
    doubts = (
        (UNRESOLVED, "no encoding uses it", seen == 0),
        (UNRESOLVED, "none of its {seen} encodings is reproduced to rounding", used == 0),
        (AMBIGUOUS, "all of its values are zero: nothing tells that it is there", blank),
        (AMBIGUOUS, "appears in one encoding only: a mixture, or a damaged encoding", used == 1),
        (
            AMBIGUOUS,
            "most encodings mix {usual} records, not {k}: state k_private={usual}",
            usual < k,
        ),
        (AMBIGUOUS, whole, bool(whole)),
        (
            AMBIGUOUS,
            "certain up to a sign per value that is not that of the others: no record is certain "
            "both behind its masks and behind theirs",
            apart[:r],
        ),
        (AMBIGUOUS, "its {evidence} encodings do not exclude another reading", ~known[:r]),
        (
            AMBIGUOUS,
            "it may be a public vector: no encoding of it holds as many vectors of the public list "
            "as the scheme says ({k_public})",
            _may_be_public(W, rows, r, scheme.k_public, faint),
        ),
        (AMBIGUOUS, "its encodings determine it to about {error} of its size only", blurred),
    )
    proof = "{evidence} different encodings reproduced at all {d} values, {k} records each, by one "
    proof += "solution only" + (", all of one mask" if scheme.signs == "masked" else "")
    status, reasons = first_doubts(doubts, proof, facts, r)
    rms = max(float(np.sqrt(np.mean(Y**2))), 1e-30)
    residual = worst_of_rows(off.max(axis=1, initial=0.0) / rms, weights)
    return Judgement(status, reasons, shown, residual, opened, signed=kept)


@dataclass(frozen=True, eq=False)
class _Case:
    """Records x (n, d), weights W (m, n), and the rows that count, each one once: `members` and
    `weights` (rows, k)."""

    x: Floats
    W: sparse.csr_array
    rows: Index
    members: Index
    weights: Floats

    @classmethod
    def of(cls, x: Floats, W: sparse.csr_array, rows: Index, k: int) -> _Case:
        part = sparse.csr_array(W[rows])
        part.sort_indices()
        members, weights = part.indices.reshape(-1, k).astype(np.int64), part.data.reshape(-1, k)
        # The same records with the same weights say the same.
        levels = np.column_stack([members, np.rint(weights / 1e-5)])
        return cls(x, W, rows, members, weights).part(
            np.sort(np.unique(levels, axis=0, return_index=True)[1])
        )

    def part(self, keep: Index | Flags) -> _Case:
        """The same with some of the rows only."""
        picked = self.rows[keep], self.members[keep], self.weights[keep]
        return replace(self, rows=picked[0], members=picked[1], weights=picked[2])

    def inside(self, known: Flags) -> tuple[Flags, Floats]:
        """(rows that mix only these records; their weights)."""
        rows = np.asarray(known[self.members].all(axis=1))
        return rows, self.W[self.rows[rows]][:, np.flatnonzero(known)].toarray()


def _with_public(
    Y: Floats,
    vectors: Floats,
    weights: sparse.csr_array,
    public: NDArray[np.floating],
    supports: Index,
    kept: bool,
) -> tuple[Floats, sparse.csr_array]:
    """Records and weights with the public vectors that `supports` names; their weights by least
    squares against what the records leave, with the signs that the claim itself gives."""
    used, P = np.unique(supports[supports >= 0]), np.asarray(public, np.float64)
    total, rest = weights @ vectors, 1 - np.asarray(weights.sum(axis=1)).ravel()
    extra = sparse.lil_array((len(Y), len(used)))
    for i, names in enumerate(supports):
        mine = names[names >= 0]
        if not len(mine):
            continue
        # Hidden signs are those of the claim; where public ones dominate, of their own mean.
        z, share = total[i] + rest[i] * P[mine].mean(axis=0), np.zeros(len(mine))
        for _ in range(1 if kept else 5):
            y = Y[i] if kept else np.copysign(Y[i], z)
            share = nnls(P[mine].T, y - total[i])[0]
            z = total[i] + share @ P[mine]
        extra[i, np.searchsorted(used, mine)] = share
    return np.concatenate([vectors, P[used]]), sparse.csr_array(sparse.hstack([weights, extra]))


def _certain(case: _Case, *, hidden: bool = False) -> tuple[Flags, str]:
    """Which records are in every reading, signs kept; and a doubt about all, in words. Where signs
    are `hidden` two more rows are asked for, since weights are known to fewer digits."""
    (n, d), k = case.x.shape, case.members.shape[1]
    none, many = np.zeros(n, bool), case.x / np.maximum(case.x.std(axis=0), 1e-30)
    if k < 2:
        return none, "an encoding of one record is the record: nothing is unmixed"
    core = _core(case.members, n, 2 if hidden else 0)
    if not core.any():
        return none, "too few encodings share records to exclude another reading"
    if d < max(4, k + 1):
        return none, f"{d} values are too few to tell mixtures of {k} records from chance"
    if n > d + 1:
        return none, "more records than values: that no other reading holds is not proved"
    if not _independent(np.column_stack([many, np.full(n, float(np.sqrt(np.mean(many**2))))])):
        return none, "records that are combinations of others: encodings can be read in another way"
    # Magnitudes that are all the same say nothing.
    size = np.abs(case.x[np.ptp(np.abs(case.x), axis=1) > 1e-4 * np.abs(case.x).max(axis=1)])
    if same_values(size, np.zeros(size.shape, bool), 1e-3 * size.std(axis=0)).any():
        return none, "records that differ in signs alone: one behind two sign masks"
    rows, W = case.inside(core)
    if not _independent(W.T):
        return none, "the encodings do not determine the records they mix"
    weights = case.weights[rows]
    if _in_levels(weights[:, :-1].reshape(-1, 1), 1e-5) or _additive(
        case.members[rows], weights, n
    ):
        return none, "weights in few levels, or tied to records: other readings are not excluded"
    if hidden:
        return core, ""
    return grown(case.members, core, lambda _i, _own, others: not len(common(others))), ""


def _certain_hidden(case: _Case) -> tuple[Flags, str, Flags]:
    """The same where signs are hidden; and (d,) columns whose parts have signs of their own.

    Signs are proved by the columns in general position: no value is 0 or, signs aside, that of
    another record. With weights in general position records that are not 0 and share rows then have
    one sign at every other column, too."""
    (n, d), cut = case.x.shape, np.zeros(case.x.shape[1], bool)
    none = np.zeros(n, bool)
    if d <= n:
        return none, f"{d} values for {n} records: too few to rule out other signs", cut
    unit = np.abs(case.x) / np.maximum(np.sqrt(np.mean(case.x**2, axis=0)), 1e-30)
    if not _independent(np.copysign(unit, case.x)):
        why = "records that are combinations of others: encodings can be read in another way"
        return none, why, cut
    sizes = np.vstack([np.zeros(d), np.sort(unit, axis=0)])
    plain = np.flatnonzero((np.diff(sizes, axis=0) > 1e-5).all(axis=0))
    some = sizes[:, plain[:: -(-max(len(plain), 1) // 200)]]
    shares = case.weights[:, :-1].reshape(-1, 1)
    levels = any(_in_levels(some, w) or _in_levels(shares, w) for w in (1e-5, 1e-4, 1e-3))
    if len(plain) <= n or levels:
        return none, "values or weights in few levels: other readings are not excluded", cut
    known, whole = _certain(case, hidden=True)
    if known.any():
        rows, W = case.inside(known)
        basis = qr(W.T, mode="r", pivoting=True)[1][: W.shape[1]].astype(np.int64)
        if len(W) <= W.shape[1] or not connected_matroid(W, basis, none=1e-4):
            return none, "encodings fall into parts whose signs are their own", cut
        mixed, zero = incidence(case.members[rows], n), unit <= 1e-3
        for p in np.flatnonzero(zero[known].any(axis=0)):
            B = mixed[:, known & ~zero[:, p]]
            cut[p] = connected_components(B.T @ B, directed=False)[0] > 1
    return known, whole, cut


def _behind_masks(case: _Case, Y: Floats, total: Floats) -> tuple[Flags, str, Flags]:
    """Which records are certain, a doubt about all, and records certain up to signs of their own.

    Rows have one mask if they agree with the claim in the same signs wherever values are clear.
    """
    n = len(case.x)
    sure = np.abs(Y[case.rows]) > 1e-3 * np.abs(Y).mean()
    signs = np.where(sure, np.sign(Y[case.rows] * total[case.rows]), 0.0)
    group = np.full(len(signs), -1)
    while (group < 0).any():
        first = int(np.flatnonzero(group < 0)[0])
        group[(group < 0) & ~((signs * signs[first]) < 0).any(axis=1)] = group.max() + 1
    part = np.full(n, -1)  # behind which masks a record is certain; tied masks have one number
    whole = "no mask has encodings enough to exclude another reading"
    for g in np.argsort(-np.bincount(group, minlength=1), kind="stable"):
        known, doubt = _certain(case.part(group == g))
        if known.any():
            tied = np.unique(part[known & (part >= 0)])
            part[known | np.isin(part, tied)] = int(tied[0]) if len(tied) else int(g)
        elif part.max() < 0 and "too few" not in doubt:
            whole = doubt
    found = part >= 0
    largest = found & (part == np.bincount(part[found], minlength=1).argmax())
    return largest, "" if found.any() else whole, found & ~largest


def _core(members: Index, n: int, spare: int) -> Flags:
    """The largest set of records, each with enough rows inside it without i, for every other i."""
    need = members.shape[1] + (1 if members.shape[1] == 2 else 2) + spare
    core = np.ones(n, bool)
    while core.any():
        B = incidence(members[core[members].all(axis=1)], n)
        together = (B.T @ B).toarray()
        uses = together.diagonal().copy()
        np.fill_diagonal(together, 0)
        enough = core & (uses - together.max(axis=1) >= need)
        if (enough == core).all():
            break
        core = enough
    return core


def _independent(M: Floats) -> bool:
    """Whether rows are independent, clearly beyond rounding."""
    sizes = np.linalg.svd(M, compute_uv=False)
    return bool(len(M) <= M.shape[1] and sizes[-1] >= 1e-5 * sizes[0])


def _in_levels(values: Floats, near: float, *, wider: int = 16, often: float = 3.0) -> bool:
    """Whether values of a column (n, columns) are the same within `near` more often than chance: a
    window `wider` times as wide holds as many times the chance pairs; `often` times more than that,
    and ten, are levels."""

    def pairs(width: float) -> int:
        ordered = (np.sort(v) for v in values.T)
        return sum(int((np.searchsorted(v, v + width, "right")).sum()) for v in ordered)

    alone = values.size + values.shape[1] * len(values) * (len(values) - 1) // 2
    return bool(pairs(near) - alone > often * (pairs(wider * near) - alone) / wider + 10)


def _additive(members: Index, weights: Floats, n: int, *, near: float = 1e-4) -> bool:
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
