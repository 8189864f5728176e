"""May a recovered vector be called verified? Every doubt about a solution for all vectors at once,
vector by vector.

Re-encoding is exact by construction. What is left is uniqueness, of values and of subsets:

  unexplained   fewer than half of the encodings are explained: then k_private or the weighting may
                be wrong, and what fits may fit for the wrong reason; nothing is verified
  rank          the encodings do not determine the vector even with all signs known
                (`certify.determined`)
  one solution  independent solves disagree (`solve.pixels.pixels`)
  group         it hangs together with only a few others: the sign per pixel of such a group is its
                own
  complement    n = 2k in a group: x'_i = Σ x/k − x_i with complements taken inside gives the same
                encodings
  design        another reading of the subsets cannot be ruled out (`certify.design`: a theorem,
                from W alone). Where the size of a private pixel is known, it decides between the
                readings of a vector of few encodings
  alias         it is a combination of others, public ones included (`certify.aliases`)
  relabelling   all of its encodings can be read without it, as those of another vector with other
                labels, private or public, and its size does not tell the two apart
                (`certify.relabelling`)
  against       half as many encodings as speak for it are nearly reproduced with it, and contradict
                it
  apart         encodings are contradicted, and it shares with most others one vector only: two
                vectors with the same magnitudes may stand behind that one, and the signs of either
                part be its own
  list          its values hang on a public vector whose other encodings are not explained
                (`certify.wrong_list`)
  moved         the public vectors of its encodings are listed again, all moved by one difference
                (`certify.moved_list`)
  surplus       fewer than two different encodings more than unknowns in its group
  pixels        an alternative hides from two solves with probability ½ per pixel: `FEWEST_PIXELS`
                leave one in a million. And pixels of few levels are reproduced by chance: what they
                say must exceed the choices there are
  scale         recovered pixels are not of the size they are expected to have, or vectors not
                independent: a part c that all encodings share looks like x + c/k, and n = k + k'
                vectors mixed k' at a time like n others mixed k at a time
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.certify.aliases import BLANK, blanks, dependent, made_of_public
from unveil.certify.blocks import largest_block
from unveil.certify.design import in_doubt
from unveil.certify.determined import undetermined_by
from unveil.certify.moved_list import moved
from unveil.certify.relabelling import relabelled
from unveil.certify.wrong_list import taking_in
from unveil.encodings import Encodings
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED
from unveil.solve.model import (
    PublicPart,
    size_in_doubt,
    uses,
)
from unveil.solve.pixels.chance import needed_nats
from unveil.solve.pixels.pixels import PixelSolution

FEWEST_PIXELS = 20
"""An alternative hides from two solves with probability ½ per pixel: so many leave one in a
million."""
SURPLUS = 2
"""Different encodings beyond the unknowns of a group: one could be met by chance, since each
brings a choice of sign with it."""
SHARED = 0.15
"""The smallest correlation that must show: that of vectors to which a common part of two fifths of
their size was added. Where pixels are too few to see it, nothing is verified."""
SIGMAS = 6
"""Standard deviations of a χ² beyond which correlations are no chance."""


def certify(
    encodings: Encodings,
    members: NDArray[np.int64],
    explained: int,
    solution: PixelSolution,
    *,
    public: PublicPart | None = None,
    signed: bool = False,
    nats: NDArray[np.float64] | None = None,
    doubtful: NDArray[np.bool_] | None = None,
    searched: bool = False,
    against: NDArray[np.int64] | None = None,
    left: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.str_], list[str]]:
    """Status and reason of each vector; `members` (rows, k) of the explained encodings, all
    reproduced at solved pixels.

    public: the public part of the same rows
    nats (d,): what each pixel says against chance (`solve.pixels.chance`), where that was measured:
    then evidence counts, not pixels
    doubtful (n, d): values that are known to be open; a vector is judged by the others
    searched: all solutions of a pixel were searched for, so that its number of pixels says nothing
    against (n,): encodings left over that contradict the vector (`certify.contradictions`)
    left (others, k_public): public vectors of the encodings that are not explained
    signed: signs are known, by a public part or because they were kept, so that groups need not
    hang together. Another solution of Wx = y is one of |Wx| = |y| as well: what rules out all of
    the latter rules out all of the former
    """
    # 1. What speaks against each vector: other readings, null vectors, aliases, other designs.
    n, d = solution.values.shape
    k = members.shape[1]
    kept = encodings.scheme.signs == "kept"
    other = relabelled(members, solution.values, public, encodings.pixel_rms, kept=kept)
    all_members = members
    # An encoding drawn twice says nothing new.
    members = np.unique(np.sort(members, axis=1), axis=0)
    degree = uses(members, n)
    undetermined = undetermined_by(members, n)
    # 2. What speaks against all of them, and how much the pixels of each say.
    whole = doubt_about_all(
        encodings,
        explained,
        solution,
        ~undetermined & (solution.differs == 0),
        nats,
        doubtful,
        searched,
    )
    need = needed_nats(n, k, encodings.m)
    sure = np.ones((n, d), bool) if doubtful is None else ~doubtful
    said = np.full(n, np.inf) if nats is None else nats @ sure.T
    open_values = np.zeros(n, int) if doubtful is None else doubtful.sum(axis=1)
    # 3. Groups, aliases and the design.
    main = int(np.bincount(solution.group).argmax())
    sizes = np.bincount(solution.group)
    rows_of_group = np.bincount(solution.group[members[:, 0]], minlength=len(sizes))
    alias = dependent(members, solution.values, (solution.group == main) | signed, solution.misfit)
    if public is not None:
        alias |= made_of_public(solution.values, public.vectors)
    apart = np.zeros(n, bool)
    if against is not None and against.any() and not signed:
        apart = ~largest_block(members, n)
    twice = np.zeros(n, bool)
    if public is not None:
        twice = moved(all_members, n, public, kept=kept)
    listed = np.zeros(n, bool)
    if public is not None and left is not None:
        listed = taking_in(all_members, n, public.names, left)
    # Where the size of a private pixel is known, it tells a vector from the other readings of its
    # few encodings, and from those with other public vectors (`relabelled`).
    sized = encodings.pixel_rms is not None
    names = None if public is None or sized else public.names
    unsolved = int((~solution.solved).sum())
    # The theorem asks for independent vectors: rows of others prove nothing. And it costs the most,
    # so that it is not asked where all are in doubt anyway.
    rows = np.flatnonzero(~alias[all_members].any(axis=1))[: 0 if unsolved or whole else None]
    design = in_doubt(
        all_members[rows],
        n,
        signed=signed,
        public=None if names is None else names[rows],
        own_rows=True,
    )
    # 4. The first doubt decides.
    blank = blanks(solution.values)
    status, reasons = np.full(n, VERIFIED, dtype="<U10"), []
    for i in range(n):
        g = int(solution.group[i])
        if unsolved:
            what, why = UNRESOLVED, f"{unsolved} of {d} pixels were not solved"
        elif whole:
            what, why = AMBIGUOUS, whole
        elif blank[i]:
            what, why = AMBIGUOUS, BLANK
        elif degree[i] == 1:
            what, why = AMBIGUOUS, "appears in one encoding only"
        elif undetermined[i]:
            what, why = AMBIGUOUS, f"the {degree[i]} encodings that use it do not determine it"
        elif solution.differs[i]:
            what, why = (
                AMBIGUOUS,
                f"another value fits as well at {int(solution.differs[i])} of {d} pixels",
            )
        elif said[i] < need or (not searched and d - open_values[i] < FEWEST_PIXELS):
            what, why = (
                AMBIGUOUS,
                f"{open_values[i]} of {d} values are open, and the others say too little",
            )
        elif g != main and not signed:
            what, why = (
                AMBIGUOUS,
                f"linked with only {sizes[g] - 1} others, whose sign per pixel is their own",
            )
        elif rows_of_group[g] < sizes[g] + SURPLUS:
            what, why = AMBIGUOUS, "hardly more encodings than unknowns"
        elif alias[i]:
            what, why = (
                AMBIGUOUS,
                "a combination of other vectors: its encodings can be explained in another way",
            )
        elif sizes[g] == 2 * k:
            what, why = (
                AMBIGUOUS,
                "there are n = 2·k_private vectors: their complements fit as well",
            )
        elif design.doubt[i] and not (design.few[i] and sized):
            what, why = AMBIGUOUS, design.reasons[i]
        elif against is not None and 2 * against[i] >= degree[i]:
            what, why = (
                AMBIGUOUS,
                f"{degree[i]} encodings speak for it, and {against[i]} that it nearly fits "
                "against it",
            )
        elif apart[i]:
            what, why = (
                AMBIGUOUS,
                "one vector alone joins it with most others, and encodings contradict that",
            )
        elif twice[i]:
            what, why = (
                AMBIGUOUS,
                "the public vectors of its encodings are listed again, moved: with those another "
                "vector fits",
            )
        elif listed[i]:
            what, why = (
                AMBIGUOUS,
                "its values hang on one public vector, which other encodings contradict: it may be "
                "listed wrongly",
            )
        elif other[i]:
            what, why = (
                AMBIGUOUS,
                "all encodings that use it can be explained by another vector, with other labels",
            )
        else:
            what, why = (
                VERIFIED,
                f"{degree[i]} different encodings reproduced at all {d} pixels by one solution "
                "only",
            )
            if open_values[i]:
                why += f", up to {open_values[i]} values that are open"
        status[i] = what
        reasons.append(why)
    return status, reasons


def doubt_about_all(
    encodings: Encodings,
    explained: int,
    solution: PixelSolution,
    sure: NDArray[np.bool_],
    nats: NDArray[np.float64] | None = None,
    doubtful: NDArray[np.bool_] | None = None,
    searched: bool = False,
) -> str:
    """A doubt about all vectors at once, in words; empty where there is none. `sure`: the vectors
    whose size and correlations are looked at."""
    d = encodings.d
    # 1. Too little is explained, or it says too little.
    if 2 * explained < encodings.m:
        return (
            f"only {explained} of {encodings.m} encodings are explained: are k_private and the "
            "weighting right?"
        )
    if not searched and d < FEWEST_PIXELS:
        return f"{d} pixels are too few to rule out another solution: {FEWEST_PIXELS} are needed"
    need = needed_nats(len(solution.values), encodings.scheme.k_private, encodings.m)
    if nats is not None and nats.sum() < need:
        return (
            f"the {d} pixels take too few values: an encoding says {nats.sum():.0f} nats against "
            f"chance, {need:.0f} are needed"
        )
    # 2. Pixels have the wrong size.
    expected = encodings.pixel_rms
    if expected is None:
        return ""
    X = solution.values[sure]
    if doubtful is not None:
        X = np.where(doubtful[sure], 0, X)
    n = len(X)
    if not n:
        return "no vector is determined by these encodings"
    rms = float(np.sqrt(np.mean(X**2)))
    if size_in_doubt(rms / expected, n * d):
        return (
            f"the scale is in doubt: recovered pixels have rms {rms:.2f}, expected {expected} "
            "(check weighting and k_private, or set pixel_rms; None if unknown)"
        )
    # 3. Correlations of independent vectors are N(0, 1/d): their squares, times d, sum to a χ² with
    # one degree per pair.
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = n * (n - 1) / 2
    total = d * (_sum_of_squared_products(unit) - n) / 2
    chance = SIGMAS * np.sqrt(2 * pairs) + SIGMAS
    if d * pairs * SHARED**2 < chance:
        return f"{d} pixels of {n} vectors are too few to rule out a part that all encodings share"
    if total > pairs + chance:
        rms = float(np.sqrt(total / pairs / d))
        return (
            f"recovered vectors are correlated ({rms:.2f} rms), and pixel_rms={expected:g} says "
            "that they are not: give pixel_rms=None for records that are not independent and "
            "Gaussian; else, is there a common part, or is k_private wrong?"
        )
    return ""


def _sum_of_squared_products(unit: NDArray[np.float64]) -> float:
    """‖UUᵀ‖² = ‖UᵀU‖²: the smaller of the two, in blocks of rows."""
    small = unit if len(unit) <= unit.shape[1] else np.ascontiguousarray(unit.T)
    return sum(
        float(((small[s : s + 1024] @ small.T) ** 2).sum()) for s in range(0, len(small), 1024)
    )
