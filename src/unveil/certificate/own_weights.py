"""Weights drawn anew for every encoding: Y = WX, or |WX|, or WX behind one of a few sign masks.

Rows of W have k entries above 0 that sum to 1. Let X have independent rows. Every other reading is
W' = WT, X = TX', and x_i is in it if row i of T is a unit vector. Proofs: docs/certificate.md,
Theorems 5 to 7.

  core     nnz(Wt) ≥ nnz(We_i) for every t with t_i ≠ 0, with equality for multiples of e_i only:
           then T is a permutation. It holds for weights in general position if every record has
           more than k + 1 rows without i (pairs: k), for every other record i
  growth   z joins, if in the rows that mix it with known records only no record is always there
  signs    hidden, k ≥ 3: columns of S∘(WX) lie in a space of dimension n < d. In general position
           that makes S = abᵀ if the rows of W are a connected matroid. k = 2: a count of equations
  masks    rows behind one mask are rows with signs kept; masks are tied by records that are certain
           behind both

Weights in few levels or tied to records are not in general position: nothing is verified then.
Weights below `faint` are known to few digits, and rows with one prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import kstest

from unveil.certificate.few_records import connected_matroid
from unveil.encodings import Encodings

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OwnWeights:
    """certain (n,): proved; reasons: why, or why not; exact (m,): rows that are reproduced;
    residual (n,): largest miss in the rows of a record, by the rms of the encodings."""

    certain: Flags
    reasons: list[str]
    exact: Flags
    residual: Floats


def judge_own_weights(
    encodings: Encodings,
    X: Floats,
    W: sparse.csr_array,
    public: NDArray[np.float32] | None,
    *,
    faint: float = 1e-2,
) -> OwnWeights:
    """Re-encode W·X, then ask which records every reading of the reproduced rows holds.

    X (n, d), W (m, n): claimed records, public ones included where the scheme mixes some, and
    weights; rows that do not sum to 1 are not claimed
    """
    # 1. Rows that are reproduced at every value.
    scheme, Y = encodings.scheme, encodings.values.astype(np.float64)
    k, n = scheme.k_private + scheme.k_public, len(X)
    hidden = scheme.signs in ("absolute", "random")
    W = sparse.csr_array(W, dtype=np.float64)
    W.eliminate_zeros()
    count, total = np.diff(W.indptr), np.asarray(W.sum(axis=1)).ravel()
    near = (1e-3 if hidden else 1e-4) * float(np.sqrt(np.mean(Y**2)))
    Z = W @ X
    miss = np.abs(Z - Y) if scheme.signs == "kept" else np.abs(np.abs(Z) - np.abs(Y))
    sums = np.abs(total - 1) <= 1e-3
    exact = (count > 0) & (count <= k) & sums & (W.data.min(initial=1.0) > 0)
    exact &= (miss <= near).all(axis=1)
    worst = sparse.csr_array(W.astype(bool).multiply(miss.max(axis=1)[:, None]))
    residual = np.asarray(worst.max(axis=0).todense()).ravel()
    residual = residual / max(float(np.sqrt(np.mean(Y**2))), 1e-30)
    # 2. Rows that prove something: reproduced, k clear weights, each once.
    smallest = sparse.csr_array((1 / W.data, W.indices, W.indptr), shape=W.shape).max(axis=1)
    clear = np.asarray(smallest.todense()).ravel() < 1 / faint
    rows = np.flatnonzero(exact & clear & (count == k))
    members = W[rows].indices.reshape(-1, k).astype(np.int64)
    weights = W[rows].data.reshape(-1, k)
    order = np.argsort(members, axis=1)
    members, weights = (np.take_along_axis(a, order, 1) for a in (members, weights))
    keys = np.column_stack([members, np.rint(weights / 1e-5)])
    first = np.sort(np.unique(keys, axis=0, return_index=True)[1])
    rows, members, weights = rows[first], members[first], weights[first]
    # 3. By kind of signs.
    if 2 * exact.sum() < len(Y):
        certain = np.zeros(n, bool)
        why = f"only {int(exact.sum())} of {len(Y)} encodings are reproduced by these weights"
    elif scheme.signs == "masked":
        certain, why = _behind_masks(Y[rows] * Z[rows], X, members, weights)
    else:
        certain, why = _certain(X, members, weights, hidden=hidden, grow=not hidden)
        if hidden and k == 2 and not why:
            why = _law(weights) if scheme.weighting == "half-normal" else ""
    if why:
        certain = np.zeros(n, bool)
    # 4. How sharply rounding lets them be known; and which may be public vectors.
    uses, seen = np.bincount(members.ravel(), minlength=n), np.bincount(W.indices, minlength=n)
    error = _errors(X, W, exact, certain, float(miss[exact].max(initial=0.0)))
    private = _private(X, W, public, scheme.k_public, faint, signed=scheme.signs == "kept")
    reasons = []
    for i in range(n):
        if not seen[i]:
            reasons.append("no encoding uses it")
        elif seen[i] == 1:
            reasons.append("appears in one encoding only: a mixture, or a damaged encoding")
        elif not certain[i]:
            reasons.append(why or f"its {uses[i]} encodings do not exclude another reading")
        elif not error[i] <= 1e-3 and not hidden:
            reasons.append(f"its encodings determine it to about {error[i]:.1g} of its size only")
        elif not private[i]:
            reasons.append(
                "it may be a public vector: no encoding of it holds as many vectors of the public "
                f"list as the scheme says ({scheme.k_public})"
            )
        else:
            reasons.append(
                f"{uses[i]} different encodings reproduced at all {X.shape[1]} values, {k} records "
                "each, by one solution only"
            )
    good = certain & (seen > 1) & private & ((error <= 1e-3) | hidden)
    return OwnWeights(good, reasons, exact, residual)


def _certain(
    X: Floats, members: Index, weights: Floats, *, hidden: bool, grow: bool
) -> tuple[Flags, str]:
    """(records that every reading of these rows holds, a doubt about all in words)."""
    (n, d), k = X.shape, members.shape[1]
    spare = 3 if hidden and k == 2 else 1 if k == 2 else 2
    core = _core(members, n, k + spare)
    inside = np.flatnonzero(core[members].all(axis=1))
    if k < 2:
        return core, "an encoding of one record is the record: nothing is unmixed"
    if not core.any():
        return core, "too few encodings share records to exclude another reading"
    if d < max(4, k + 1) or (hidden and d <= n):
        return core, f"{d} values are too few to tell mixtures of {k} of {n} records from chance"
    rms = float(np.sqrt(np.mean(X**2)))
    lifted = X if hidden else np.column_stack([X, np.full(n, rms)])
    sizes = np.linalg.svd(lifted, compute_uv=False)
    if len(sizes) < n or sizes[-1] < 1e-5 * sizes[0]:
        return core, "records that are combinations of others: encodings have another reading"
    if _under_two_masks(X):
        return core, "records that differ in signs alone: one behind two sign masks"
    W = np.zeros((len(inside), n))
    np.put_along_axis(W, members[inside], weights[inside], axis=1)
    W = W[:, core]
    sizes = np.linalg.svd(W, compute_uv=False)
    if len(W) < W.shape[1] or sizes[-1] < 1e-5 * sizes[0]:
        return core, "the encodings do not determine the records they mix"
    levels = (1e-5, 1e-4, 1e-3) if hidden else (1e-5,)
    if any(_in_levels(weights[inside, :-1], near) for near in levels):
        return core, "weights in few levels: other readings are not excluded"
    if _additive(members[inside], weights[inside], n):
        return core, "weights tied to records: other readings are not excluded"
    if hidden:
        some = np.abs(X[:, :: -(-d // 200)]) / max(rms, 1e-300)
        if any(_in_levels(some, near) for near in levels):
            return core, "values in few levels: other readings are not excluded"
        if not connected_matroid(W, _basis(W)):
            return core, "encodings fall into parts whose signs are their own"
    return (_grown(members, core) if grow else core), ""


def _basis(W: Floats) -> Index:
    from scipy.linalg import qr

    return np.asarray(qr(W.T, mode="r", pivoting=True)[1][: W.shape[1]], np.int64)


def _behind_masks(agree: Floats, X: Floats, members: Index, weights: Floats) -> tuple[Flags, str]:
    """Rows behind one mask are certified by themselves; parts that share a certain record have one
    sign per column, and only the largest part counts. agree (rows, d): encoding times mixture."""
    n, k = len(X), members.shape[1]
    group, masks = np.full(len(agree), -1), list[Floats]()
    clear = np.abs(agree) > 1e-6 * np.abs(agree).max(initial=0.0)
    for r, signs in enumerate(np.sign(agree)):
        same = [g for g, mask in enumerate(masks) if (signs * mask >= 0)[clear[r]].all()]
        if not same:
            masks.append(np.zeros(X.shape[1]))
            same = [len(masks) - 1]
        group[r] = same[0]
        masks[same[0]] = np.where(clear[r], signs, masks[same[0]])
    if n > X.shape[1] + 1 or 2 * k * len(masks) > len(agree):
        return np.zeros(n, bool), "more masks or records than the encodings can prove"
    part = np.full(n, -1)
    for g in np.argsort(-np.bincount(group, minlength=len(masks)), kind="stable"):
        own = group == g
        if own.sum() <= k or (part >= 0).all():
            break
        certain, why = _certain(X, members[own], weights[own], hidden=False, grow=True)
        if why or not certain.any():
            continue
        tied = np.unique(part[certain & (part >= 0)])
        part[certain | np.isin(part, tied)] = int(tied[0]) if len(tied) else int(g)
    if not (part >= 0).any():
        return np.zeros(n, bool), "no mask has encodings enough to exclude another reading"
    return part == np.bincount(part[part >= 0]).argmax(), ""


def _core(members: Index, n: int, need: int) -> Flags:
    """The largest set of records, each with `need` rows inside it and without i, for every i."""
    core = np.ones(n, bool)
    while True:
        rows = members[core[members].all(axis=1)]
        at = np.repeat(np.arange(len(rows)), members.shape[1]), rows.ravel()
        B = sparse.csr_array((np.ones(rows.size), at), shape=(len(rows), n))
        together = sparse.csr_array(B.T @ B)
        uses = together.diagonal()
        together.setdiag(0)
        most = np.asarray(together.max(axis=1).todense()).ravel()
        enough = core & (uses - most >= need)
        if (enough == core).all():
            return core
        core = enough


def _grown(members: Index, core: Flags) -> Flags:
    known, joined = core.copy(), bool(core.any())
    while joined:
        joined = False
        fresh = ~known[members]
        rows = np.flatnonzero(fresh.sum(axis=1) == 1)
        names = members[rows][fresh[rows]]
        for z in np.unique(names):
            others = [set(members[r].tolist()) - {int(z)} for r in rows[names == z]]
            if len(others) > 1 and not set.intersection(*others):
                known[z] = joined = True
    return known


def _under_two_masks(X: Floats) -> bool:
    """Whether two records differ in signs alone. Magnitudes that are all the same say nothing."""
    size = np.abs(X)
    size = size[np.ptp(size, axis=1) > 1e-4 * size.max(axis=1)]
    size = size[np.argsort(size.sum(axis=1))]
    apart = np.linalg.norm(np.diff(size, axis=0), axis=1)
    return bool((apart <= 1e-4 * np.linalg.norm(size[1:], axis=1)).any())


def _in_levels(values: Floats, near: float, *, wider: int = 16) -> bool:
    """Whether values agree within `near` three times as often as chance: a wider window tells how
    often that is."""
    v = np.sort(values.ravel())
    pairs = [
        int((np.searchsorted(v, v + width, "right") - np.arange(len(v)) - 1).sum())
        for width in (near, wider * near)
    ]
    return pairs[0] > 3 * pairs[1] / wider + 10


def _additive(members: Index, weights: Floats, n: int) -> bool:
    """Whether log λ is a sum of a term per row and one per record in more rows than records, by
    reweighted least squares."""
    m, k = members.shape
    logs = np.log(weights)
    logs -= logs.mean(axis=1, keepdims=True)
    B = sparse.csr_array((np.ones(m * k), (np.arange(m * k), members.ravel())), shape=(m * k, n))
    mean = sparse.kron(sparse.eye_array(m), np.full((k, k), 1 / k), format="csr")
    A, strength = sparse.csr_array(B - mean @ B), np.ones(m)
    rest = np.zeros((m, k))
    for _ in range(12):
        heavy = np.repeat(strength, k)
        gram = (A.T @ A.multiply(heavy[:, None])).toarray()
        gram[np.diag_indices(n)] += 1e-9 * np.trace(gram) / n
        terms = np.linalg.solve(gram, A.T @ (heavy * logs.ravel()))
        rest = (logs.ravel() - A @ terms).reshape(m, k)
        strength = 1 / np.maximum(np.abs(rest).max(axis=1), 1e-5)
    return int((np.abs(rest).max(axis=1) < 1e-4).sum()) > n + 10


def _law(weights: Floats) -> str:
    """Two half-normal weights are cos and sin of a uniform angle; names may depend on weights."""
    angle = np.arctan2(weights.min(axis=1), weights.max(axis=1)) / (np.pi / 4)
    if kstest(angle, "uniform").pvalue < 1e-5:
        return "recovered weights do not follow the half-normal law: check weighting and k_private"
    return ""


def _errors(X: Floats, W: sparse.csr_array, exact: Flags, known: Flags, noise: float) -> Floats:
    """(n,) six standard errors of a value, as if the largest residual were the noise, in units of
    the rms of the records; infinite for those that are not known."""
    out = np.full(len(X), np.inf)
    if known.any():
        A = W[np.flatnonzero(exact)][:, np.flatnonzero(known)].toarray()
        spread = np.sqrt(np.diag(np.linalg.pinv(A.T @ A)))
        out[known] = 6 * noise * spread / max(float(np.sqrt(np.mean(X**2))), 1e-30)
    return out


def _private(
    X: Floats,
    W: sparse.csr_array,
    public: NDArray[np.float32] | None,
    k_public: int,
    faint: float,
    *,
    signed: bool,
) -> Flags:
    """(n,) records that are not in the public list, with a row in which k_public others are: no
    other can be a public vector that is not listed."""
    if not k_public:
        return np.ones(len(X), bool)
    if public is None:
        return np.zeros(len(X), bool)
    P, V = (public, X) if signed else (np.abs(public), np.abs(X))
    near = np.array([np.linalg.norm(P - v, axis=1).min() for v in V])
    listed = near <= 1e-3 * np.linalg.norm(V, axis=1)
    clear = sparse.csr_array((W.data > faint, W.indices, W.indptr), shape=W.shape)
    clear.eliminate_zeros()
    full = np.asarray(clear[:, np.flatnonzero(listed)].sum(axis=1)).ravel() >= k_public
    private = np.asarray(clear[np.flatnonzero(full)].sum(axis=0)).ravel() > 0
    return np.asarray(private | listed)
