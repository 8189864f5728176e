"""`certify`: which claimed vectors are private vectors? For vectors from any source.

The order of work: re-encode (`claim`), measure what columns say against chance, prove who mixes
whom (`design`, `few_records`, `public_part`), prove values column by column (`columns`). Then every
doubt in `DOUBTS` is asked, in the order of that table; the first that a vector raises decides its
status, and a vector that raises none is verified. docs/certificate.md lists the same table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, log, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.certificate.claim import (
    Claim,
    as_members,
    copies,
    dependent,
    held_against,
    resolution,
)
from unveil.certificate.columns import determined
from unveil.certificate.design import Effort, core, grown, possible
from unveil.certificate.few_records import certain_by_columns
from unveil.certificate.own_weights import judge_own_weights
from unveil.certificate.public_part import (
    fixed_choice,
    made_of_public,
    misled,
    moved,
    only_mixture,
    turned,
)
from unveil.checks import DataLike, InputError, as_vectors
from unveil.encodings import Encodings, as_public
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Progress, Recovery

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def certify(
    encodings: Encodings,
    vectors: DataLike,
    members: Any,
    public: DataLike | None = None,
    supports: Any = None,
    doubtful: NDArray[np.bool_] | None = None,
    *,
    weights: sparse.csr_array | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Which of these vectors are private vectors, and why?

    Re-encodes every row at every value and proves, vector by vector, that no other reading of the
    encodings exists. Believes nothing but the encodings with their scheme, and the public vectors.

    Parameters
    ----------
    encodings : Encodings
        What was released, and how it was made.
    vectors : array of shape (r, d)
        Claimed private vectors, from any source. Values that are not finite are open.
    members : array of int of shape (m, k_private), or boolean matrix of shape (m, r)
        Which of them each encoding is claimed to mix; −1 where unknown.
    public : array of shape (n_public, d), optional
        The public vectors.
    supports : array of int of shape (m, k_public), or Supports, optional
        Which public vectors each encoding is claimed to mix; −1 where unknown.
    doubtful : array of bool of shape (r, d), optional
        Values that the claim itself leaves open.
    weights : sparse array of shape (m, r), optional
        Claimed weights, for schemes that draw them anew, and for public vectors alone.
    progress : callable, optional
        progress(stage, done, total).

    Returns
    -------
    Recovery
        The same vectors with status, reasons, open values (`doubtful`) and residuals.

    Raises
    ------
    InputError
        Where arrays do not belong together.

    References
    ----------
    `remark:ambiguity` of the paper; docs/certificate.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=100, d=200, rng=0)
    >>> claim = sim.private.copy()
    >>> claim[0, 0] += 1
    >>> unveil.certify(sim.encodings, claim, sim.selection.private).status[:2].tolist()
    ['unresolved', 'verified']
    """
    # 1. What is given, checked against each other.
    began, scheme, m = time.perf_counter(), encodings.scheme, encodings.m
    X = np.asarray(vectors) if not hasattr(vectors, "__array__") else np.array(vectors)
    if X.dtype.kind not in "fiu" or X.ndim != 2:
        X = as_vectors(vectors, "vectors")
    if X.shape[1] != encodings.d:
        raise InputError(
            f"vectors have {X.shape[1]} values, encodings {encodings.d}: certify vectors of the "
            "same space"
        )
    needed = scheme.k_public and (scheme.fixed_weights or not scheme.k_private)
    P = as_public(public, encodings) if needed or public is not None else None
    unsure = np.zeros(X.shape, bool) if doubtful is None else np.asarray(doubtful, bool)
    if unsure.shape != X.shape:
        raise InputError(f"doubtful of shape {unsure.shape}: give one flag per value {X.shape}")
    W = as_members(members, m, len(X), scheme.k_private)
    if progress:
        progress("certificate", 0, 1)
    # 2. By kind of scheme.
    if not len(X):
        out = Recovery.empty(encodings, "certify", "no vectors are claimed", {})
    elif not scheme.k_private:
        out = _public_alone(encodings, X, W, P, weights)
    elif not scheme.fixed_weights or weights is not None:
        out = _own_weights(encodings, X, P, supports, unsure, weights)
    else:
        Q = _as_supports(supports, m, scheme.k_public, 0 if P is None else len(P))
        out = _fixed_weights(encodings, X, W, P if scheme.k_public else None, Q, unsure)
    if progress:
        progress("certificate", 1, 1)
    seconds = {"certificate": time.perf_counter() - began}
    return replace(out, seconds=seconds).about(encodings)


class Doubt(NamedTuple):
    """A doubt: what it is called, the status and the sentence of whom it touches, and whom it
    touches; `about` explains it in the documentation."""

    name: str
    status: str
    reason: str
    touches: Callable[[Case], Any]
    about: str


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that doubts are asked about; computed when first asked for, so that a claim that
    fails early costs little.

    copies (n,): vectors that are left out of the proof, since another one has their values
    sure: what rests on chance goes wrong once in e^sure times
    """

    encodings: Encodings
    claim: Claim
    supports: Index
    copies: Flags
    sure: float = 12.0

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0)

    @cached_property
    def evidence(self) -> tuple[Flags, Floats]:
        """(fine columns, bits of each column that all rows reproduce)."""
        fine, bits = resolution(self.claim, self.rng)
        return fine, bits * self.claim.whole

    @cached_property
    def need(self) -> float:
        """Bits for no wrong subset to fit one of m encodings, all but once in e^`sure` times."""
        choices = max(comb(self.claim.n, self.claim.k), 1)
        return log2(choices) + log2(max(self.encodings.m, 1)) + self.sure / log(2)

    @cached_property
    def degree(self) -> Index:
        return np.bincount(self.claim.rows.ravel(), minlength=self.claim.n)

    @cached_property
    def named(self) -> Index:
        return np.bincount(self.claim.members.indices, minlength=self.claim.n)

    @cached_property
    def dependent(self) -> Flags:
        return dependent(self.claim, (self.degree > 0) & ~self.copies, self.degree, self.rng)

    @cached_property
    def more_copies(self) -> Flags:
        """Vectors that have no value of their own where values are determined. One record may be
        behind two such vectors: the proof is then made again without the one of fewer rows."""
        return copies(self.claim, self.certain & ~self.copies, ~self.open_values, self.degree)

    @cached_property
    def sized(self) -> bool:
        return self.encodings.pixel_rms is not None

    @cached_property
    def unexplained(self) -> bool:
        return 2 * int(self.claim.exact.sum()) < self.encodings.m

    @cached_property
    def by_chance(self) -> bool:
        return float(self.evidence[1].sum()) < self.need

    @cached_property
    def measured(self) -> Floats:
        """The vectors that are proved, where their size is stated; open values count as 0."""
        used = self.certain & self.sized
        return np.where(self.open_values[used], 0.0, self.claim.X[used])

    @cached_property
    def sizes(self) -> Flags:
        """Vectors that are proved, and not of the size stated."""
        out = self.certain & self.sized
        if out.any():
            rms = float(self.encodings.pixel_rms or 1.0)
            size, count = np.square(self.measured).sum(axis=1), (~self.open_values[out]).sum(axis=1)
            out[out] = ~possible(size, count, rms, sure=self.sure)
        return out

    @cached_property
    def scale(self) -> bool:
        """Whether values are not of the stated size, by five standard errors: at least 2%, since
        they need not be quite Gaussian, at most 20%, since another k or weighting is off by more.
        """
        X = self.measured
        if not X.size:
            return False
        ratio = float(np.sqrt(np.mean(X**2))) / float(self.encodings.pixel_rms or 1.0)
        return bool(abs(ratio - 1) > min(max(0.02, 5 / np.sqrt(2 * X.size)), 0.2))

    @cached_property
    def correlated(self) -> bool:
        """Whether vectors that are stated to be independent are correlated, by six standard errors
        of a χ², or too few values would show it: a part that all share adds a correlation."""
        X = self.measured.astype(np.float32)
        n, d = X.shape
        if n < 2:
            return False
        U = X / np.maximum(np.linalg.norm(X, axis=1), 1e-30)[:, None]
        U = U if n <= d else np.ascontiguousarray(U.T)
        squares = sum(float(((U[s : s + 1024] @ U.T) ** 2).sum()) for s in range(0, len(U), 1024))
        pairs, chance = n * (n - 1) / 2, 6 * np.sqrt(n * (n - 1)) + 6
        return bool(d * (squares - n) / 2 > pairs + chance or d * pairs * 0.15**2 < chance)

    @cached_property
    def hopeless(self) -> bool:
        return self.unexplained or self.by_chance

    @cached_property
    def proved(self) -> tuple[Flags, Flags, bool]:
        """(the set proved together, all that are proved, whether by heavy columns)."""
        claim, effort = self.claim, Effort()
        none = np.zeros(claim.n, bool)
        public = bool(claim.names.shape[1])
        use = np.asarray(~(self.dependent | self.copies)[claim.rows].any(axis=1))
        if self.hopeless or not use.any() or (claim.k == 1 and not public):
            return none, none, True
        claim = replace(claim, rows=claim.rows[use], names=claim.names[use])
        rms = self.encodings.pixel_rms
        plain = np.unique(claim.rows, axis=0)
        inner, heavy = none, True
        if claim.k > 1:
            inside = ~none
            while inside.any():
                rows = plain[inside[plain].all(axis=1)]
                inner = core(rows, claim.n, claim.kept, effort)
                fixed = fixed_choice(claim, inner) if public and inner.any() else inner
                if (fixed == inner).all():
                    break
                inside, inner = fixed, none
        certain = grown(claim, inner, rms)
        used = np.flatnonzero(self.degree > 0)
        if claim.k > 1 and not certain[used].all() and len(used) <= effort.whole:
            few = self._few_records(plain, claim, public)
            more = grown(claim, few, rms)
            if more.sum() > certain.sum():
                return few, more, False
        return inner, certain, heavy

    def _few_records(self, plain: Index, claim: Claim, public: bool) -> Flags:
        """The largest part that hangs together and has full rank, by all of its columns."""
        out, inside = np.zeros(claim.n, bool), np.bincount(plain.ravel(), minlength=claim.n) > 1
        while True:
            rows = plain[inside[plain].all(axis=1)]
            few = inside & (np.bincount(rows.ravel(), minlength=claim.n) < 2)
            if not few.any():
                break
            inside &= ~few
        if not inside.any():
            return out
        names = np.cumsum(inside) - 1
        out[inside] = certain_by_columns(names[rows], int(inside.sum()), claim.kept)
        return fixed_choice(claim, out) if public and out.any() else out

    @cached_property
    def certain(self) -> Flags:
        return self.proved[1]

    @cached_property
    def open_values(self) -> Flags:
        """(n, d): values that are not determined, of those whose memberships are proved."""
        claim, (inner, certain, heavy) = self.claim, self.proved
        if not certain.any():
            return claim.unsure
        found = determined(claim, inner, certain, self.evidence[0], heavy)
        return np.where(certain[:, None], ~found | claim.unsure, claim.unsure)

    @cached_property
    def says_little(self) -> Flags:
        return np.asarray(~self.open_values @ self.evidence[1] < self.need)

    @cached_property
    def moved(self) -> Flags:
        return moved(self.claim) if self.certain.any() else self.certain

    @cached_property
    def misled(self) -> Flags:
        left = self.supports[~self.claim.exact]
        return misled(self.claim, left[(left >= 0).all(axis=1)])

    @cached_property
    def listed(self) -> Flags:
        public = self.claim.names.shape[1] and self.certain.any()
        return made_of_public(self.claim) if public else np.zeros(self.claim.n, bool)


DOUBTS = (
    Doubt(
        "unnamed",
        UNRESOLVED,
        "no encoding is said to mix it",
        lambda case: case.named == 0,
        "The claim names no encoding for the vector.",
    ),
    Doubt(
        "not reproduced",
        UNRESOLVED,
        "no encoding it is said to be in is reproduced at all {d} values",
        lambda case: case.degree == 0,
        "Re-encoding misses every encoding that the vector is said to be in: a value, a member or "
        "the public part is wrong, or there is noise.",
    ),
    Doubt(
        "unexplained",
        AMBIGUOUS,
        "only {explained} of {m} encodings are reproduced: are k_private and the weighting right?",
        lambda case: case.unexplained,
        "Fewer than half of the encodings are reproduced. Then the scheme may be another one, and "
        "what fits may fit for the wrong reason. Nothing is verified.",
    ),
    Doubt(
        "chance",
        AMBIGUOUS,
        "the {d} columns take too few values: an encoding says {bits:.0f} bits against chance, "
        "{need:.0f} are needed",
        lambda case: case.by_chance,
        "A wrong subset reproduces an encoding by chance: the bits of all columns must exceed the "
        "choices, log₂ C(n, k) + log₂ m, by 20.",
    ),
    Doubt(
        "single",
        AMBIGUOUS,
        "appears in one encoding only: each value is one of two or more",
        lambda case: (case.degree == 1) & (case.claim.k > 1),
        "One encoding alone holds the vector, and says nothing that it could contradict.",
    ),
    Doubt(
        "dependent",
        AMBIGUOUS,
        "zero, a combination of other records, or of the magnitudes of another: its encodings can "
        "be explained in another way",
        lambda case: case.dependent,
        "The vector is 0, a linear combination of others, or has the magnitudes of another one.",
    ),
    Doubt(
        "copy",
        AMBIGUOUS,
        "a copy of another vector, as far as values are determined: one record may be behind both",
        lambda case: case.copies,
        "Another vector, of as many encodings or more, has the same magnitudes (signs kept: the "
        "same values) wherever both are determined. The proof for the others does without it.",
    ),
    Doubt(
        "not proved",
        AMBIGUOUS,
        "not proved: another choice of subsets may give the same encodings",
        lambda case: ~case.certain,
        "No proof was found that every reading of the encodings holds the vector (Theorems 1 and "
        "2). Often there is another one: two records that are always together, fewer than 2k − 1 "
        "partners, few encodings.",
    ),
    Doubt(
        "scale",
        AMBIGUOUS,
        "the scale is in doubt: values have not the size that pixel_rms says (check weighting and "
        "k_private, or set pixel_rms=None)",
        lambda case: case.scale,
        "Where `pixel_rms` is stated, values must have that size: a wrong weighting shows in "
        "nothing else.",
    ),
    Doubt(
        "correlated",
        AMBIGUOUS,
        "vectors are correlated, or too few to tell, and pixel_rms says that they are independent: "
        "is there a common part, or is k_private wrong? (pixel_rms=None for other records)",
        lambda case: case.correlated,
        "Where `pixel_rms` is stated, vectors must be uncorrelated: a part that all share, or one "
        "record more in every encoding, correlates them.",
    ),
    Doubt(
        "size",
        AMBIGUOUS,
        "its size is not what pixel_rms says: it may hold a part of something else",
        lambda case: case.sizes,
        "Where `pixel_rms` is stated, each vector must have the size of so many independent "
        "Gaussian values.",
    ),
    Doubt(
        "moved list",
        AMBIGUOUS,
        "the public vectors of its encodings are listed again, moved: with those another vector "
        "fits",
        lambda case: case.moved,
        "The public list holds the vectors mixed with it a second time, all moved by one "
        "difference, or mirrored.",
    ),
    Doubt(
        "wrong list",
        AMBIGUOUS,
        "its values hang on one public vector, which other encodings contradict: it may be listed "
        "wrongly",
        lambda case: case.misled,
        "A public vector that was listed wrongly could be hidden in it, and other encodings with "
        "that public vector are not reproduced.",
    ),
    Doubt(
        "listed",
        AMBIGUOUS,
        "a combination of public vectors: they may have changed places with it",
        lambda case: case.listed,
        "The vector is itself a combination of public vectors.",
    ),
    Doubt(
        "open values",
        AMBIGUOUS,
        "{open} of {d} values are open, and the others say too little",
        lambda case: case.says_little,
        "The values that are determined say fewer bits than are needed against chance.",
    ),
)
"""The first doubt that touches a vector decides. Whom none touches is verified."""


def documented_doubts() -> str:
    """The table of doubts as docs/certificate.md holds it."""
    lines = ["| | doubt | status | when |", "|---|---|---|---|"]
    for place, doubt in enumerate(DOUBTS, 1):
        lines.append(f"| {place} | {doubt.name} | {doubt.status} | {doubt.about} |")
    return "\n".join(lines)


def _fixed_weights(
    encodings: Encodings,
    X: NDArray[Any],
    W: sparse.csr_array,
    P: NDArray[np.float32] | None,
    supports: Index,
    unsure: Flags,
) -> Recovery:
    claim = held_against(encodings, X, W, P, supports, unsure)
    n, degree = claim.n, np.bincount(claim.rows.ravel(), minlength=claim.n)
    shut = ~claim.unsure & claim.whole
    case = Case(encodings, claim, supports, copies(claim, degree > 0, shut, degree))
    while case.more_copies.any():
        case = replace(case, copies=case.copies | case.more_copies)
    # The first doubt decides.
    status, which = np.full(n, VERIFIED, "<U10"), np.full(n, -1)
    for place, doubt in enumerate(DOUBTS):
        touched = np.broadcast_to(doubt.touches(case), n) & (which < 0)
        status[touched], which[touched] = doubt.status, place
        if (which >= 0).all():
            break
    ok = which < 0
    shown = case.open_values if ok.any() else claim.unsure
    # In words.
    facts: dict[str, float] = {"d": claim.d, "m": encodings.m, "explained": int(claim.exact.sum())}
    facts |= {"bits": float(case.evidence[1].sum()), "need": case.need}
    rounding = f", up to rounding of the encodings by steps of {claim.step:.2g}"
    reasons = []
    for i in range(n):
        opened = int(shown[i].sum())
        if not ok[i]:
            reasons.append(DOUBTS[which[i]].reason.format(**facts, open=opened))
            continue
        words = f"{case.degree[i]} different encodings reproduced at all {claim.d} values by one "
        words += "solution only" + (f", up to {opened} values that are open" if opened else "")
        reasons.append(words + (rounding if claim.step else ""))
    negated = turned(claim, encodings, supports, ok) if claim.names.shape[1] and ok.any() else 0
    signed = claim.kept or (bool(claim.names.shape[1]) and not negated)
    opened_values = np.where(ok[:, None], shown, claim.unsure)
    found = _recovery(
        encodings,
        X,
        status,
        reasons,
        claim.members,
        claim.residual,
        claim.exact,
        signed=signed,
        doubtful=opened_values if opened_values.any() else None,
        evidence={"rounding_step": claim.step} if claim.step else {},
    )
    if not negated:
        return found
    words = f"{negated} encodings hold with their public vectors negated: the list contradicts "
    words += "itself, and signs are left open"
    return replace(found, explanation=f"{found.explanation}; {words}")


def _own_weights(
    encodings: Encodings,
    X: NDArray[Any],
    P: NDArray[np.float32] | None,
    supports: Any,
    unsure: Flags,
    weights: sparse.csr_array | None,
) -> Recovery:
    if weights is None:
        raise InputError(
            f"weighting={encodings.scheme.weighting!r} draws weights anew for every encoding: give "
            "weights=, a sparse (m, r) matrix"
        )
    A = _as_weights(weights, encodings.m, len(X))
    values = np.where(np.isfinite(X), X, 0).astype(np.float64)
    names = None if supports is None else np.asarray(getattr(supports, "indices", supports))
    judged = judge_own_weights(
        encodings, values, A, public=P, supports=names, doubtful=unsure | ~np.isfinite(X)
    )
    return _recovery(
        encodings,
        X,
        judged.status,
        judged.reasons,
        A.astype(bool),
        judged.residual,
        judged.exact,
        signed=encodings.scheme.signs == "kept",
        weights=A,
        doubtful=judged.open_values if judged.open_values.any() else None,
    )


def _public_alone(
    encodings: Encodings,
    X: NDArray[Any],
    W: sparse.csr_array,
    P: NDArray[np.float32] | None,
    weights: sparse.csr_array | None,
) -> Recovery:
    """Nothing private: vectors are claimed to be public ones, mixed with these weights."""
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if P is None:
        raise InputError("k_private=0: give public=, the vectors that are mixed")
    A = W * scheme.public_weight if weights is None else _as_weights(weights, m, len(X))
    V = X.astype(np.float64)
    # 1. Claimed vectors are listed ones, which do not depend on each other.
    place = np.array([int(np.abs(P - x).max(axis=1).argmin()) for x in X])
    listed = np.abs(P[place] - X).max(axis=1) <= 1e-6 * np.abs(P).max()
    usable = np.unique(P, axis=0)
    names = [int(np.abs(usable - x).max(axis=1).argmin()) for x in X]
    unit = usable / np.maximum(np.linalg.norm(usable, axis=1), 1e-30)[:, None].astype(np.float64)
    n = len(usable)
    independent = d >= n + 20 and np.linalg.eigvalsh(unit @ unit.T)[0] > 1e-10
    # 2. Re-encoding, and the only mixture.
    miss = np.abs(np.abs(A @ V) - encodings.magnitudes()).max(axis=1)
    size = np.sqrt(np.mean(np.square(encodings.values, dtype=np.float64), axis=1))
    exact = np.asarray((miss <= 1e-4 * size) & (np.diff(A.indptr) > 0))
    stated = exact & (np.diff(A.indptr) == scheme.k_public)
    full = np.zeros((m, n))
    full[:, names] = A.toarray()
    proved: Flags = np.zeros(n, bool)
    if independent and stated.any() and listed.all():
        by_row = only_mixture(usable.astype(np.float64), full[stated], miss[stated])
        proved = np.asarray(by_row.any(axis=0))
    # 3. In words.
    status, reasons = np.full(len(X), UNRESOLVED, "<U10"), []
    seen = np.asarray(A.astype(bool)[np.flatnonzero(exact)].sum(axis=0)).ravel()
    right = np.asarray(A.astype(bool)[np.flatnonzero(stated)].sum(axis=0)).ravel()
    for i in range(len(X)):
        why = f"public vector {place[i]}, mixed into {int(seen[i])} encodings that are reproduced"
        if not listed[i]:
            why = "no vector of the public list"
        elif not seen[i]:
            why = f"public vector {place[i]}: no encoding it is said to be in is reproduced"
        elif not independent:
            status[i], why = AMBIGUOUS, f"{why}; too few values, {n + 20} needed, or others depend"
        elif not right[i]:
            status[i] = AMBIGUOUS
            why += f", but with other than k_public={scheme.k_public} vectors"
        elif not proved[names[i]]:
            status[i], why = AMBIGUOUS, f"{why}; another mixture may have the same magnitudes"
        else:
            status[i] = VERIFIED
        reasons.append(why)
    residual = np.asarray(
        sparse.csr_array(A.astype(bool).multiply((miss / np.maximum(size, 1e-30))[:, None]))
        .max(axis=0)
        .todense()
    ).ravel()
    return _recovery(
        encodings, X, status, reasons, A.astype(bool), residual, exact, signed=True, weights=A
    )


def _recovery(
    encodings: Encodings,
    X: NDArray[Any],
    status: NDArray[np.str_],
    reasons: list[str],
    members: sparse.csr_array,
    residual: Floats,
    exact: Flags,
    *,
    signed: bool,
    weights: sparse.csr_array | None = None,
    doubtful: Flags | None = None,
    evidence: dict[str, Any] | None = None,
) -> Recovery:
    verified, explained = int((status == VERIFIED).sum()), int(exact.sum())
    text = f"{verified} of {len(X)} vectors verified; {explained} of {encodings.m} encodings "
    text += "reproduced"
    return Recovery(
        vectors=np.asarray(X, np.float32),
        status=np.asarray(status).astype("<U10"),
        signed=signed,
        members=members,
        residual=residual,
        reasons=tuple(reasons),
        attack="certify",
        explanation=text,
        evidence=evidence or {},
        weights=weights,
        doubtful=doubtful,
        explained=explained,
        exact=bool(exact.any()),
    )


def _as_supports(supports: Any, m: int, k_public: int, n_public: int) -> Index:
    if not k_public:
        return np.zeros((m, 0), np.int64)
    if supports is None:
        raise InputError(
            f"k_public={k_public}: give supports=, which public vectors each encoding mixes (see "
            "unveil.learn_public)"
        )
    names = np.asarray(getattr(supports, "indices", supports))
    if names.shape != (m, k_public) or names.dtype.kind not in "iu":
        raise InputError(
            f"supports of shape {names.shape}: give whole numbers of shape {(m, k_public)}"
        )
    if names.max(initial=-1) >= n_public:
        raise InputError(f"supports name public vectors beyond the {n_public} there are")
    names = names.astype(np.int64)
    # A public vector named twice is none of the scheme's readings.
    ordered = np.sort(names, axis=1)
    twice = (np.diff(ordered, axis=1) == 0).any(axis=1)
    return np.where(twice[:, None], -1, names)


def _as_weights(weights: Any, m: int, n: int) -> sparse.csr_array:
    A = sparse.csr_array(weights, dtype=np.float64, copy=True)
    if A.shape != (m, n):
        raise InputError(f"weights of shape {A.shape}: give one per encoding and vector {(m, n)}")
    A.sum_duplicates()
    A.eliminate_zeros()
    return A
