"""The certificate: claims that are wrong in one thing, an exhaustive oracle, and what it costs.

`python -m benchmarks.certificate [cases]`. Right claims of a dozen kinds are broken in one value,
one member, one row, one sign, by adding a multiple of another record, by a duplicate record and in
other ways: nothing that is wrong may be verified, unless the value that is wrong is listed as open.
Seeds are fixed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from benchmarks.readings import compare
from benchmarks.table import Row, show
from scipy import sparse

import unveil
from unveil.certificate import certify

KINDS = (
    "pairs",
    "triples",
    "fours",
    "few records",
    "zeros",
    "few levels",
    "table",
    "real table",
    "signs kept",
    "public part",
    "one private",
    "half precision",
    "eight bits",
    "eight-bit table",
    "own weights",
    "masks",
)
SMALL = ((4, 2), (5, 2), (6, 2), (7, 2), (5, 3), (6, 3), (7, 3))
"""(n, k) of which all other readings are enumerated."""
SEED = 61000


@dataclass(frozen=True, eq=False)
class Claim:
    """What `certify` is given, and the truth X."""

    encodings: unveil.Encodings
    X: Any
    vectors: Any
    members: Any
    public: Any = None
    supports: Any = None
    weights: Any = None
    tolerance: float = 1e-2

    def certified(self) -> unveil.Recovery:
        given = self.vectors, self.members, self.public, self.supports
        return certify(self.encodings, *given, weights=self.weights)


def right_claim(kind: str, seed: int) -> Claim:
    """The truth itself, of a random instance of this kind."""
    r = np.random.default_rng([SEED, KINDS.index(kind), seed])
    k = {"pairs": 2, "triples": 3, "fours": 4, "one private": 1, "few records": 3}.get(kind, 2)
    k = 3 if kind == "few levels" and seed % 2 else k
    n = 11 if kind == "few records" else int(r.integers(20, 36))
    m, d = int(n * r.integers(4, 7)), int(r.choice([40, 80]))
    m = 8 * n if kind == "eight-bit table" else m
    X = r.standard_normal((n, d)).astype(np.float32)
    if kind == "zeros":
        X *= r.random((n, d)) > 0.05
    if kind == "few levels":
        X[:, :5] = r.choice([-1, 0, 1], (n, 5))
    if "table" in kind:
        X = _table(n, r) if kind == "table" else _real_table(n, r, wide="eight" in kind)
        n, d = X.shape
    rows = np.array([np.sort(r.choice(n, k, False)) for _ in range(m)])
    if kind in ("own weights", "masks"):
        return _own_weights(kind, X, np.array([r.choice(n, 2, False) for _ in range(12 * n)]), r)
    kept, k_public = kind == "signs kept", 2 if kind in ("public part", "one private") else 0
    scheme = unveil.Scheme(k, k_public, "equal", "kept" if kept else "absolute")
    Z = X[rows].sum(axis=1) * np.float32(scheme.private_weight)
    public = supports = None
    if k_public:
        public = r.standard_normal((40, d)).astype(np.float32)
        supports = np.array([r.choice(40, 2, False) for _ in range(m)])
        Z = Z + public[supports].sum(axis=1) * np.float32(scheme.public_weight)
    Y = Z if kept else np.abs(Z)
    tolerance = 1e-2
    if kind == "half precision":
        Y = Y.astype(np.float16).astype(np.float32)
    if "eight" in kind:
        step = np.float32(Y.max() / 255)
        Y, tolerance = np.rint(Y / step) * step, 2 * float(step)
    encodings = unveil.Encodings(Y, scheme, pixel_rms=None)
    return Claim(encodings, X, X.copy(), rows, public, supports, None, tolerance)


def _table(n: int, r: np.random.Generator) -> Any:
    """Standardised columns of very different laws: counts, two levels, skewed, heavy tails."""
    columns = [r.poisson(3, n), r.integers(0, 2, n), r.exponential(1, n), r.standard_t(2, n)]
    columns += [r.standard_normal(n) for _ in range(12)] + [np.round(r.uniform(0, 90, n))]
    X = np.stack(columns, axis=1).astype(np.float64)
    return ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)).astype(np.float32)


def _real_table(n: int, r: np.random.Generator, *, wide: bool) -> Any:
    """Different records, standardised: diabetes patients (ten columns) or tumours (thirty)."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    data = load_breast_cancer().data if wide else load_diabetes().data
    X = r.permutation(np.unique(data, axis=0))[:n]
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)


def _own_weights(kind: str, X: Any, rows: Any, r: np.random.Generator) -> Claim:
    m, n = len(rows), len(X)
    weights = r.dirichlet([1.0, 1.0], m)
    W = sparse.csr_array((weights.ravel(), (np.repeat(np.arange(m), 2), rows.ravel())), (m, n))
    Y, signs = (W @ X).astype(np.float32), "kept"
    if kind == "masks":
        Y = Y * r.choice([-1, 1], (2, X.shape[1]))[r.integers(0, 2, m)]
        signs = "masked"
    scheme = unveil.Scheme(2, 0, "dirichlet", signs)
    encodings = unveil.Encodings(Y, scheme, pixel_rms=None)
    return Claim(encodings, X, X.copy(), rows, weights=W)


def broken(claim: Claim, r: np.random.Generator) -> Iterator[tuple[str, Claim]]:
    """The same with one thing wrong, in one way after the other."""
    V, rows, (n, d) = claim.vectors, claim.members, claim.X.shape
    (m, k), (i, j), (p, q) = rows.shape, r.choice(n, 2, False), r.choice(d, 2, False)
    row, size = int(r.integers(m)), float(V.std())

    def vectors(A: Any) -> Claim:
        return replace(claim, vectors=A.astype(np.float32))

    def members(B: Any) -> Claim:
        if claim.weights is None:
            return replace(claim, members=B)
        at = np.repeat(np.arange(m), k), B.ravel()
        values = claim.weights.toarray()[np.arange(m)[:, None], rows].ravel()
        W = sparse.csr_array((values, at), shape=(m, max(n, int(B.max()) + 1)))
        return replace(claim, members=B, weights=W)

    A = V.copy()
    A[i, p] += 0.5 * size
    yield "one value", vectors(A)
    A = V.copy()
    A[i, p] *= -1
    yield "one sign", vectors(A)
    A = V.copy()
    A[[i, j], p] *= -1
    A[[i, j], q] *= -1
    yield "signs of two records", vectors(A)
    A = V.copy()
    A[:, p] *= -1
    A[i, p] *= -1
    yield "a column turned but one", vectors(A)
    B = rows.copy()
    B[row, 0] = r.choice(np.setdiff1d(np.arange(n), rows[row]))
    yield "one member", members(B)
    B = rows.copy()
    B[row] = r.choice(np.setdiff1d(np.arange(n), rows[row]), k, False)
    yield "one row", members(B)
    B = np.where(rows == i, j, np.where(rows == j, i, rows))
    yield "two records trade rows", members(B)
    A = V.copy()
    A[i] += 0.5 * V[j]
    yield "a multiple of another added", vectors(A)
    B = rows.copy()
    own = np.flatnonzero((rows == i).any(axis=1))
    half = own[: len(own) // 2]
    B[half] = np.where(rows[half] == i, n, rows[half])
    yield "a duplicate record", replace(members(B), vectors=np.vstack([V, V[[i]]]))
    if claim.weights is None and k > 1:
        B, A = one_too_many(claim, i, own)
        yield "a record too many", replace(claim, members=B, vectors=A)
        B = np.where(r.random((m, 1)) < 0.15, -1, B)
        yield "a record too many, and rows left over", replace(claim, members=B, vectors=A)
    A = V.copy()
    A[i] = r.standard_normal(d) * size
    yield "noise", vectors(A)
    yield "all values moved", vectors(V + 0.3 * size)
    A = V.copy()
    A[i] = -(V[i] + V[j])
    yield "minus the sum of two", vectors(A)
    A = V.copy()
    A[i] += 5 * claim.tolerance * size * r.standard_normal(d)
    yield "a little off", vectors(A)


def one_too_many(claim: Claim, i: int, own: Any) -> tuple[Any, Any]:
    """Members and vectors of a claim in which record i has a second name in some of its rows:
    those whose other members have one sum at some value, where the second is read otherwise."""
    V, rows, n = claim.vectors, claim.members, len(claim.vectors)
    sums = V[rows[own]].sum(axis=1) - V[i]
    if claim.supports is not None:
        factor = claim.encodings.scheme.public_weight / claim.encodings.scheme.private_weight
        sums = sums + np.float32(factor) * claim.public[claim.supports[own]].sum(axis=1)
    tied = [(np.abs(column[:, None] - column) < 1e-5).sum(axis=1) for column in sums.T]
    p = int(np.argmax([count.max() for count in tied]))
    at = np.flatnonzero(np.abs(sums[:, p] - sums[tied[p].argmax(), p]) < 1e-5)
    at = at if len(at) > 2 else np.arange(len(own))[: len(own) // 2]
    # Either sign of the sum reproduces a value if all of these rows have the same other part.
    free = (np.ptp(sums[at], axis=0) < 1e-5) & (claim.encodings.scheme.signs != "kept")
    second = np.where(free, -V[i] - 2 * sums[at[0]], V[i])
    B = rows.copy()
    B[own[at]] = np.where(rows[own[at]] == i, n, rows[own[at]])
    return B, np.vstack([V, second]).astype(np.float32)


def wrong(recovery: unveil.Recovery, X: Any, tolerance: float, budget: int = 20_000) -> list[int]:
    """Verified vectors for which there is no private record of their own, one sign per column for
    all of them (none where signs are known), open values left out. By search."""
    X, V, near = X.astype(float), recovery.vectors.astype(float), tolerance * float(X.std())
    opened = np.zeros(V.shape, bool) if recovery.doubtful is None else recovery.doubtful
    may = {}
    for i in np.flatnonzero(recovery.verified).tolist():
        off = np.abs(V[i] - X) if recovery.signed else np.abs(np.abs(V[i]) - np.abs(X))
        may[i] = np.flatnonzero(np.where(opened[i], 0, off).max(axis=1) <= near).tolist()
    out = [i for i in may if not may[i]]
    todo = sorted((i for i in may if may[i]), key=lambda i: len(may[i]))
    best: list[Any] = [len(todo) + 1, []]

    def go(place: int, signs: Any, taken: frozenset[int], missed: list[int]) -> None:
        nonlocal budget
        if len(missed) >= best[0] or budget <= 0:
            return
        if place == len(todo):
            best[:] = [len(missed), missed]
            return
        budget -= 1
        i = todo[place]
        for j in may[i]:
            want = np.where(opened[i] | (np.abs(X[j]) <= near), 0, np.sign(V[i] * X[j]))
            if j not in taken and not (want * signs < 0).any():
                go(place + 1, np.where(signs != 0, signs, want), taken | {j}, missed)
            if best[0] == 0:
                return
        go(place + 1, signs, taken, [*missed, i])

    go(0, np.full(X.shape[1], float(recovery.signed)), frozenset(), [])
    return out + list(best[1])


def mutated(cases: int, kinds: tuple[str, ...] = KINDS) -> dict[str, list[int]]:
    """By kind: right claims, of which records, verified of them; broken claims, wrong ones."""
    table: dict[str, list[int]] = {kind: [0] * 5 for kind in kinds}
    done = seed = 0
    while done < cases:
        for kind in kinds:
            claim, counts = right_claim(kind, seed), table[kind]
            recovery = claim.certified()
            counts[0] += 1
            counts[1] += len(recovery)
            counts[2] += int(recovery.verified.sum())
            counts[4] += bool(wrong(recovery, claim.X, claim.tolerance))
            for _, other in broken(claim, np.random.default_rng([SEED, seed])):
                done += 1
                counts[3] += 1
                counts[4] += bool(wrong(other.certified(), claim.X, claim.tolerance))
        seed += 1
    return table


def rows(count: int = 1000) -> list[Row]:
    out: list[Row] = []
    for kind, (claims, records, verified, changed, bad) in mutated(count).items():
        what = f"{kind}: {claims} right claims, {changed} broken ones"
        measured = f"{verified} of {records} right vectors verified, {bad} claims with wrong ones"
        out.append((what, "0 wrong", measured, not bad))
    out += [_oracle(max(2, count // 100), signed) for signed in (True, False)]
    return [*out, _cost(1000, 7000, 3072), _cost(10_000, 70_000, 100)]


def _oracle(count: int, signed: bool) -> Row:
    """Designs from m = n to m = 3n + 2, as far as there are different rows."""
    missed = unique = refused = designs = 0
    for n, k in SMALL:
        for seed in range(count):
            m = n + (2 * n + 2) * seed // max(1, count - 1)
            done = compare(n, m, k, signed, [SEED, n, k, seed])
            if done is None:
                continue
            designs, missed = designs + 1, missed + done[0]
            if m >= 3 * n:
                unique, refused = unique + done[1], refused + done[2]
    what = f"n ≤ 7, k ≤ 3, signs {'kept' if signed else 'hidden'}: {designs} designs"
    measured = f"{missed} missed; m ≥ 3n: {unique - refused} of {unique} unique vectors verified"
    return what, "0 readings missed", measured, not missed


def _cost(n: int, m: int, d: int) -> Row:
    """CPU seconds of one certificate, pairs of Gaussian vectors."""
    sim = unveil.simulate(unveil.Scheme(2), n, m=m, d=d, rng=SEED)
    began = time.process_time()
    found = certify(sim.encodings, sim.private, sim.selection.private)
    seconds = time.process_time() - began
    measured = f"{int(found.verified.sum())} verified in {seconds:.1f} CPU s"
    return f"n = {n:,}, m = {m:,}, d = {d:,}", "most verified", measured, None


if __name__ == "__main__":
    show("certificate", rows(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
