"""Is a recovery the only one? Vector by vector, from the design W alone. Theorem and proof:
`docs/certificate.md`.

Rows of W (m, n) have k ones, x is generic, y = |Wx| or, signs kept, y = Wx. A reading is any (W',
x') with at most n vectors, k per row, that gives the same y. A vector x_i is certain if every
reading holds it, up to one sign per pixel, the same for all.

  1. rank     W has full column rank: then W' = D·W·T with signs D, an invertible T, and x_i is
              certain if row i of T is ±1 once
  2. classes  vectors whose entries in every possible column of T differ by integers
              (`uniqueness_lattice`)
  3. core     in a class: vectors whose columns are the lightest (`certify.core`; pairs:
              `certify.pairs`)
  4. growth   one by one: rows of i whose other members are certain have no member in common; signs
              hidden: and together at least 2k−1 other members. Then row i of T is a difference of
              0/1 vectors, not negative, and sums to 1
  5. few      at most `SMALL` vectors: all columns are enumerated (`certify.small`), and growth
              is tried again

Whatever is not proved is in doubt. Doubt about one vector leaves the others as they are, except by
rank: a null vector frees a vector to be used elsewhere (`own_rows` tells what that leaves).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.certify.core import DENSE, core
from unveil.certify.lattice import alike
from unveil.certify.pairs import odd_components
from unveil.certify.public import public_fixed
from unveil.certify.rows import connected_rows, gram, linked
from unveil.certify.small import SMALL, small_design

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOT_DETERMINED = "its encodings do not determine it, even with all signs known"

ZERO = 1e-8
"""Eigenvalues of WᵀW below this count as zero. That can only add doubt."""


@dataclass(frozen=True, eq=False)
class Doubts:
    """doubt (n,): not proved to be in every reading; reasons: for each vector in doubt why, else
    ""; core: how many vectors were proved together, before the others were added one by one; few
    (n,): in doubt only because few encodings speak for it, all of whose other members are certain.
    The other readings of these are known, and their size may rule them out."""

    doubt: Flags
    reasons: tuple[str, ...]
    core: int
    few: Flags


def in_doubt(
    members: Index,
    n: int,
    *,
    signed: bool,
    public: Index | None = None,
    repeats: bool = False,
    own_rows: bool = False,
) -> Doubts:
    """Which of the n vectors may be absent from another reading of the rows `members` (rows, k)?

    signed: y = Wx; else y = |Wx|, and vectors are certain up to one sign per pixel, the same for
    all
    public: names (rows, k_public) of the public vectors in the same rows. Their values are known
    and generic, too; another reading may place them otherwise
    repeats: a row may hold a vector twice. Such rows are left out, and other readings may have them
    anywhere
    own_rows: where W lacks rank, say what the rows of the other vectors prove on their own, against
    readings of those rows with at most as many vectors as they use. Without it a null vector puts
    all in doubt: it frees a vector for use elsewhere
    """
    # 1. Rows that say something: distinct members, each row once.
    members = np.sort(np.asarray(members, dtype=np.int64), axis=1)
    k = members.shape[1]
    single = (np.diff(members, axis=1) > 0).all(axis=1)
    keys = (
        members
        if public is None
        else np.concatenate([members, np.sort(np.asarray(public, np.int64), axis=1)], axis=1)
    )
    keys = np.unique(keys[single], axis=0)
    members, public = keys[:, :k], (None if public is None else keys[:, k:])
    plain = np.unique(members, axis=0)
    reasons = np.full(n, "", dtype=object)
    certain = np.zeros(n, bool)
    if k == 1:
        return _singles(plain, n, signed and public is None)

    # 2. Full column rank, of all vectors that are used, or of what is left without those that a
    # null vector touches.
    uses = np.bincount(plain.ravel(), minlength=n)
    reasons[uses == 0] = "no encoding uses it"
    free, deficient = _with_rank(plain, n, uses > 0, reasons)
    if deficient and not own_rows:
        reasons[(uses > 0) & (reasons == "")] = (
            "other vectors are not determined, and one saved there could be used here"
        )
        return Doubts(np.ones(n, bool), tuple(reasons), 0, np.zeros(n, bool))
    inside = free[plain].all(axis=1)
    plain = plain[inside]
    keep = free[members].all(axis=1)
    members, public = members[keep], (None if public is None else public[keep])

    # 3. Each part that hangs together by itself. Signs hidden: only the largest, since each has a
    # sign of its own.
    label = linked(plain, n) if len(plain) else np.zeros(n, np.int64)
    sizes = np.bincount(label[free], minlength=n)
    parts = [int(g) for g in np.argsort(-sizes, kind="stable") if sizes[g] > 0]
    total = 0
    for g in parts if signed else parts[:1]:
        part = free & (label == g)
        seed = _certain_in(plain, n, part, members, public, signed=signed, repeats=repeats)
        certain |= seed[0]
        total += seed[1]
    for g in parts[1:] if not signed else []:
        reasons[free & (label == g)] = (
            f"linked with only {sizes[g] - 1} others, whose sign per pixel is their own"
        )

    # 4. Why the others are not.
    for i in np.flatnonzero(~certain & (reasons == "")):
        reasons[i] = _reason(plain, certain, int(i), signed)
    reasons[certain] = ""
    return Doubts(~certain, tuple(str(r) for r in reasons), total, _few(plain, certain))


def _singles(members: Index, n: int, known: bool) -> Doubts:
    """k = 1: every row is a vector. Signs hidden, each has signs of its own."""
    used = np.bincount(members.ravel(), minlength=n) > 0
    certain = used & (known | (used.sum() == 1))
    why = np.where(used, "its sign per pixel is its own", "no encoding uses it")
    return Doubts(
        ~certain, tuple(np.where(certain, "", why).tolist()), int(certain.sum()), np.zeros(n, bool)
    )


def _few(members: Index, certain: Flags) -> Flags:
    """Vectors in doubt with two rows or more whose other members are certain."""
    n, k = len(certain), members.shape[1]
    rows = members[(~certain[members]).sum(axis=1) == 1]
    speaking = np.bincount(rows[~certain[rows]], minlength=n)
    return np.asarray(~certain & (speaking >= 2)) if k > 1 else np.zeros(n, bool)


def _with_rank(
    members: Index, n: int, used: Flags, reasons: NDArray[np.object_]
) -> tuple[Flags, bool]:
    """Vectors that are left when all that null vectors touch are dropped, with their rows, until
    none is; was there any?"""
    free, first = used.copy(), True
    while True:
        rows = members[free[members].all(axis=1)]
        touched = free & (np.bincount(rows.ravel(), minlength=n) == 0)
        if not touched.any():
            touched = free & _touched(rows, n, free)
        if not touched.any():
            return free, not first
        reasons[touched] = (
            NOT_DETERMINED if first else "its encodings need vectors that are not determined"
        )
        free, first = free & ~touched, False


def _touched(members: Index, n: int, free: Flags) -> Flags:
    """Vectors that a null vector of W touches."""
    out = np.zeros(n, bool)
    if not free.any():
        return out
    names = np.flatnonzero(free)
    number = np.zeros(n, np.int64)
    number[names] = np.arange(len(names))
    local = number[members]
    if members.shape[1] == 2:
        out[names] = ~odd_components(local, len(names))[1]
    elif len(names) > DENSE:
        out[names] = True
    else:
        values, vectors = eigh(gram(local, len(names)))
        out[names] = (np.abs(vectors[:, values < ZERO * max(1.0, float(values[-1]))]) > ZERO).any(
            axis=1
        )
    return out


def _certain_in(
    plain: Index,
    n: int,
    part: Flags,
    members: Index,
    public: Index | None,
    *,
    signed: bool,
    repeats: bool,
) -> tuple[Flags, int]:
    """Certain vectors of one linked part, and how many of them came at once."""
    rows = plain[part[plain[:, 0]]]
    names = np.flatnonzero(part)
    number = np.zeros(n, np.int64)
    number[names] = np.arange(len(names))
    local, count = number[rows], len(names)
    # 1. The largest class; for pairs with an odd cycle all are alike.
    group = (
        np.zeros(count, np.int64)
        if rows.shape[1] == 2
        else alike(local, count, np.random.default_rng(0))
    )
    found = core(local, count, group == np.bincount(group).argmax(), repeats=repeats)
    size = int(found.sum())
    out = np.zeros(n, bool)
    for attempt in range(2):
        # 2. Few vectors: all of them at once.
        if attempt == 1:
            if out[part].all() or count > SMALL or repeats:
                break
            # With signs of their own per pixel, parts could also change names from pixel to pixel.
            if not (signed or connected_rows(local, count)):
                break
            found = small_design(local, count, signed=signed)
            size = max(size, int(found.sum()))
        seed = out.copy()
        seed[names[found]] = True
        if public is not None:
            seed &= public_fixed(members, public, seed)
        out |= _grown(members, public, seed, signed)
    return out, size


def _grown(members: Index, public: Index | None, known: Flags, signed: bool) -> Flags:
    """Step 4, until nothing is added. O(rows·k) per round."""
    n, k = len(known), members.shape[1]
    known = known.copy()
    if not known.any():
        return known
    while True:
        # 1. Rows with one member that is not known yet, and their other members.
        unknown = ~known[members]
        one = unknown.sum(axis=1) == 1
        new = members[one][unknown[one]]
        others = members[one][~unknown[one]].reshape(-1, k - 1)
        rows_of = np.bincount(new, minlength=n)
        # 2. A member, private or public, that all of these rows share.
        shared = _in_all(new, others, rows_of, n)
        if public is not None:
            shared |= _in_all(new, public[one], rows_of, n)
        good = (rows_of > 0) & ~shared
        # 3. Signs hidden: all of these rows could be those of −(x_i + the sum of 2k−2 others),
        # unless there are more.
        if not signed:
            pairs = np.unique(np.repeat(new, k - 1) * n + others.ravel())
            good &= np.bincount(pairs // n, minlength=n) >= 2 * k - 1
        if not good.any():
            return known
        known |= good


def _in_all(new: Index, others: Index, rows_of: Index, n: int) -> Flags:
    """Vectors all of whose rows share one of the others."""
    width = int(others.max()) + 1 if others.size else 1
    key, count = np.unique(
        np.repeat(new, others.shape[1]) * width + others.ravel(), return_counts=True
    )
    out = np.zeros(n, bool)
    out[(key // width)[count >= rows_of[key // width]]] = True
    return out


def _reason(members: Index, certain: Flags, i: int, signed: bool) -> str:
    """In plain words; of what was tried last."""
    k = members.shape[1]
    mine = members[(members == i).any(axis=1)]
    if len(mine) == 1:
        return "appears in one encoding only"
    rows = mine[(certain[mine] | (mine == i)).all(axis=1)]
    if not certain.any():
        return "no set of vectors could be shown to be in every reading of these encodings"
    if not len(rows):
        return "all of its encodings hold other vectors in doubt"
    others, count = np.unique(rows[rows != i], return_counts=True)
    if (count == len(rows)).any():
        always = int(others[count.argmax()])
        return (
            f"all encodings that speak for it also hold vector {always}: the two could share the "
            "sum in another way"
        )
    if not signed and len(others) < 2 * k - 1:
        return (
            f"it is mixed with only {len(others)} others: with opposite signs another vector fits "
            "as well"
        )
    return "its encodings may have another reading"
