"""`certify`: which claimed vectors are private vectors? For vectors from any source.

The order of work: re-encode (`claim`), measure what columns say against chance, prove who mixes
whom (`design`, `few_records`, `public_part`), prove values column by column (`columns`). Then every
doubt in `DOUBTS` is asked, in the order of that table; the first that a vector raises decides its
status, and a vector that raises none is verified. docs/certificate.md lists the same table.
"""

from __future__ import annotations

import re
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
    Judgement,
    as_members,
    copies,
    dependent,
    first_doubts,
    held_against,
    resolution,
)
from unveil.certificate.columns import determined
from unveil.certificate.design import Readings, core, grown, possible
from unveil.certificate.few_records import certain_by_columns
from unveil.certificate.own_weights import judge_own_weights
from unveil.certificate.public_part import (
    fixed_choice,
    judge_public_alone,
    made_of_public,
    misled,
    moved,
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
    needed = scheme.k_public and scheme.k_private and scheme.fixed_weights
    P = as_public(public, encodings) if needed or public is not None else None
    unsure = np.zeros(X.shape, bool) if doubtful is None else np.asarray(doubtful, bool)
    if unsure.shape != X.shape:
        raise InputError(f"doubtful of shape {unsure.shape}: give one flag per value {X.shape}")
    W = as_members(members, m, len(X), scheme.k_private)
    if progress:
        progress("certificate", 0, 1)
    A = None if weights is None else _as_weights(weights, m, len(X))
    # 2. By kind of scheme.
    if not len(X):
        return Recovery.empty(encodings, "certify", "no vectors are claimed", {}).about(encodings)
    if not scheme.k_private:
        A = sparse.csr_array(W * scheme.public_weight) if A is None else A
        judged = judge_public_alone(encodings, X, A)
    elif not scheme.fixed_weights or A is not None:
        if A is None:
            raise InputError(
                f"weighting={scheme.weighting!r} draws weights anew for every encoding: give "
                "weights=, a sparse (m, r) matrix"
            )
        judged = judge_own_weights(encodings, X, A, public=P, supports=supports, doubtful=unsure)
    else:
        Q = _as_supports(supports, m, scheme.k_public, 0 if P is None else len(P))
        judged = _fixed_weights(encodings, X, W, P if scheme.k_public else None, Q, unsure)
    # 3. In words.
    if progress:
        progress("certificate", 1, 1)
    verified, explained = int((judged.status == VERIFIED).sum()), int(judged.exact.sum())
    text = f"{verified} of {len(X)} vectors verified; {explained} of {m} encodings reproduced"
    return Recovery(
        vectors=np.asarray(X, np.float32),
        status=judged.status,
        signed=judged.signed,
        members=(W if A is None else A).astype(bool),
        residual=judged.residual,
        reasons=tuple(judged.reasons),
        attack="certify",
        explanation=text + judged.note,
        evidence=judged.evidence,
        weights=A,
        doubtful=judged.open_values if judged.open_values.any() else None,
        explained=explained,
        exact=bool(explained),
        seconds={"certificate": time.perf_counter() - began},
    ).about(encodings)


class Doubt(NamedTuple):
    """A doubt: what it is called, the status and the sentence of whom it touches, and whom it
    touches."""

    name: str
    status: str
    reason: str
    touches: Callable[[Case], Any]


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that doubts are asked about; computed when first asked for, so that a claim that
    fails early costs little.

    copies (n,): vectors that are left out of the proof, since another one has their values
    sure: what rests on chance goes wrong once in e^sure times
    few: records up to which all columns of a reading are gone through
    """

    encodings: Encodings
    claim: Claim
    supports: Index
    copies: Flags
    sure: float = 12.0
    few: int = 20

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
    def unexplained(self) -> bool:
        return 2 * int(self.claim.exact.sum()) < self.encodings.m

    @cached_property
    def by_chance(self) -> bool:
        return float(self.evidence[1].sum()) < self.need

    @cached_property
    def measured(self) -> tuple[Floats, Floats]:
        """The vectors that are proved, where their size is stated, in units of that size, 0 where
        values are open; 1 where they are not."""
        used = self.certain & (self.encodings.pixel_rms is not None)
        closed = (~self.open_values[used]).astype(np.float64)
        return self.claim.X[used] * closed / (self.encodings.pixel_rms or 1.0), closed

    @cached_property
    def sizes(self) -> Flags:
        """Vectors that are proved, and not of the size stated."""
        X, closed = self.measured
        out = self.certain & (self.encodings.pixel_rms is not None)
        out[out] = ~possible(np.square(X).sum(axis=1), closed.sum(axis=1), 1.0, sure=self.sure)
        return out

    @cached_property
    def scale(self) -> bool:
        """Whether values are not of the stated size, by five standard errors: at least 2%, since
        they need not be quite Gaussian, at most 20%, since another k or weighting is off by more.
        """
        X, closed = self.measured
        count = max(float(closed.sum()), 1.0)
        error = min(max(0.02, 5 / np.sqrt(2 * count)), 0.2)
        return bool(len(X)) and not abs(float(np.sqrt(np.square(X).sum() / count)) - 1) <= error

    @cached_property
    def correlated(self) -> bool:
        """Whether vectors that are stated to be independent are correlated, by six standard errors
        of a χ², or too few values would show it: a part that all share adds a correlation."""
        X, closed = self.measured
        pairs, each = len(X) * (len(X) - 1), np.maximum(closed.sum(axis=1), 1.0)
        if not pairs:
            return False
        U = (X / np.maximum(np.linalg.norm(X, axis=1), 1e-30)[:, None]).astype(np.float32)
        U = U if len(U) <= len(U.T) else np.ascontiguousarray(U.T)
        squares = sum(float(((U[s : s + 1024] @ U.T) ** 2).sum()) for s in range(0, len(U), 1024))
        chance = np.square((closed / each[:, None]).sum(axis=0)).sum() - (1 / each).sum()
        spread = (12 * np.sqrt(pairs) + 12) / pairs
        return bool(squares - len(X) > chance * (1 + spread) or pairs * 0.15**2 < chance * spread)

    @cached_property
    def hopeless(self) -> bool:
        return self.unexplained or self.by_chance

    @cached_property
    def proved(self) -> tuple[Flags, Flags, Flags]:
        """(the set proved together, all that are proved, those that hold rows together)."""
        claim, none = self.claim, np.zeros(self.claim.n, bool)
        public = bool(claim.names.shape[1])
        use = np.asarray(~(self.dependent | self.copies)[claim.rows].any(axis=1))
        if self.hopeless or not use.any() or (claim.k == 1 and not public):
            return none, none, none
        claim = replace(claim, rows=claim.rows[use], names=claim.names[use])
        plain, inside, inner, holding = np.unique(claim.rows, axis=0), ~none, none, none
        found, binding = none, none
        while claim.k > 1 and inside.any():
            rows = plain[inside[plain].all(axis=1)]
            used = len(np.unique(rows))
            # Few records: by columns if that is cheap, else last.
            for work in (1e8, 0, 2e9):
                if work and used <= self.few:
                    found, binding = certain_by_columns(rows, claim.n, claim.kept, work=work)
                elif not work and not inner.any():
                    found = binding = core(rows, claim.n)
                if inner.sum() < found.sum():
                    inner, holding = found, binding
                if inner.sum() == used:
                    break
            fixed = fixed_choice(claim, inner) if public and inner.any() else inner
            if (fixed == inner).all():
                break
            inside, inner = fixed, none
        rms = self.encodings.pixel_rms
        if rms is not None:
            size = np.square(claim.X[inner]).sum(axis=1)
            rms = rms if possible(size, claim.d, rms).all() else None
        return inner, grown(claim.rows, inner, Readings(claim, rms).only), holding

    @cached_property
    def certain(self) -> Flags:
        return self.proved[1]

    @cached_property
    def open_values(self) -> Flags:
        """(n, d): values that are not determined, of those whose memberships are proved."""
        claim, (inner, certain, holding) = self.claim, self.proved
        if not certain.any():
            return claim.unsure
        found = determined(claim, inner, certain, self.evidence[0], holding)
        return np.where(certain[:, None], ~found | claim.unsure, claim.unsure)


DOUBTS = (
    Doubt("unnamed", UNRESOLVED, "no encoding is said to mix it", lambda case: case.named == 0),
    Doubt(
        "not reproduced",
        UNRESOLVED,
        "no encoding it is said to be in is reproduced at all {d} values",
        lambda case: case.degree == 0,
    ),
    Doubt(
        "unexplained",
        AMBIGUOUS,
        "only {explained} of {m} encodings are reproduced: are k_private and the weighting right?",
        lambda case: case.unexplained,
    ),
    Doubt(
        "chance",
        AMBIGUOUS,
        "the {d} columns take too few values: an encoding says {bits} bits against chance, {need} "
        "are needed",
        lambda case: case.by_chance,
    ),
    Doubt(
        "single",
        AMBIGUOUS,
        "appears in one encoding only: each value is one of two or more",
        lambda case: (case.degree == 1) & (case.claim.k > 1),
    ),
    Doubt(
        "dependent",
        AMBIGUOUS,
        "zero, a combination of other records, or of the magnitudes of another: its encodings can "
        "be explained in another way",
        lambda case: case.dependent,
    ),
    Doubt(
        "copy",
        AMBIGUOUS,
        "a copy of another vector, as far as values are determined: one record may be behind both",
        lambda case: case.copies,
    ),
    Doubt(
        "not proved",
        AMBIGUOUS,
        "not proved: another choice of subsets may give the same encodings",
        lambda case: ~case.certain,
    ),
    Doubt(
        "scale",
        AMBIGUOUS,
        "the scale is in doubt: values have not the size that pixel_rms says (check weighting and "
        "k_private, or set pixel_rms=None)",
        lambda case: case.scale,
    ),
    Doubt(
        "correlated",
        AMBIGUOUS,
        "vectors are correlated, or too few to tell, and pixel_rms says that they are independent: "
        "is there a common part, or is k_private wrong? (pixel_rms=None for other records)",
        lambda case: case.correlated,
    ),
    Doubt(
        "size",
        AMBIGUOUS,
        "its size is not what pixel_rms says: it may hold a part of something else",
        lambda case: case.sizes,
    ),
    Doubt(
        "moved list",
        AMBIGUOUS,
        "the public vectors of its encodings are listed again, moved: with those another vector "
        "fits",
        lambda case: case.certain & moved(case.claim),
    ),
    Doubt(
        "wrong list",
        AMBIGUOUS,
        "its values hang on one public vector, which other encodings contradict: it may be listed "
        "wrongly",
        lambda case: misled(case.claim, case.supports),
    ),
    Doubt(
        "listed",
        AMBIGUOUS,
        "a combination of public vectors: they may have changed places with it",
        lambda case: made_of_public(case.claim),
    ),
    Doubt(
        "open values",
        AMBIGUOUS,
        "{open} of {d} values are open, and the others say too little",
        lambda case: ~case.open_values @ case.evidence[1] < case.need,
    ),
)
"""The first doubt that touches a vector decides. Whom none touches is verified."""


def documented_doubts() -> str:
    """The table of doubts as docs/certificate.md holds it."""
    lines = ["| | doubt | status | what is said |", "|---|---|---|---|"]
    for place, doubt in enumerate(DOUBTS, 1):
        reason = re.sub(r"{\w+}", "…", doubt.reason)
        lines.append(f"| {place} | {doubt.name} | {doubt.status} | {reason} |")
    return "\n".join(lines)


def _fixed_weights(
    encodings: Encodings,
    X: NDArray[Any],
    W: sparse.csr_array,
    P: NDArray[np.float32] | None,
    supports: Index,
    unsure: Flags,
) -> Judgement:
    claim = held_against(encodings, X, W, P, supports, unsure)
    degree = np.bincount(claim.rows.ravel(), minlength=claim.n)
    shut = ~claim.unsure & claim.whole
    case = Case(encodings, claim, supports, copies(claim, degree > 0, shut, degree))
    while case.more_copies.any():
        case = replace(case, copies=case.copies | case.more_copies)
    facts: dict[str, Any] = {"d": claim.d, "m": encodings.m, "explained": int(claim.exact.sum())}
    facts |= {"bits": round(float(case.evidence[1].sum())), "need": round(case.need)}
    open_values = np.where(case.certain[:, None], case.open_values, claim.unsure)
    facts |= {"open": open_values.sum(axis=1), "degree": case.degree}
    proof = "{degree} different encodings reproduced at all {d} values by one solution only"
    if claim.step:
        proof += f", up to rounding of the encodings by steps of {claim.step:.2g}"
    doubts = ((doubt.status, doubt.reason, doubt.touches(case)) for doubt in DOUBTS)
    status, reasons = first_doubts(doubts, proof, facts, claim.n)
    ok = status == VERIFIED
    listed = bool(claim.names.shape[1]) and bool(ok.any())
    negated = turned(claim, encodings, supports, ok, case.certain) if listed else 0
    note = f"; {negated} encodings hold with their public vectors negated: the list contradicts "
    return Judgement(
        status,
        reasons,
        claim.exact,
        claim.residual,
        np.where(ok[:, None], open_values, claim.unsure),
        signed=claim.kept or (listed and not negated),
        note=note + "itself, and signs are left open" if negated else "",
        evidence={"rounding_step": claim.step} if claim.step else {},
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
