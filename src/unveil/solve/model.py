"""What "explained", "the same vector" and "says nothing" mean: every threshold of the solvers, in
one table, with its reason.

The model: y = |Σ x + c|, the sum of an encoding's k private vectors and of its public part c. A
residual is ||Σ x + c| − y|, always held against the rms of y, so that no threshold knows the unit
of the data. Three questions come up at every stage:

  explained        do these vectors reproduce this encoding? (`Bar`: how near, at how many pixels)
  the same vector  is this one vector under two names?
  says nothing     would this encoding fit whatever it holds, so that it is no evidence?

The answers differ from stage to stage for one reason only: how well x is known there. Early on x
comes from subsets of which half are wrong, and a sharp bar would let nothing pass; at the end x is
exact, and a wide bar would let chance pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.checks import row_blocks

Values = NDArray[np.float32]
Members = NDArray[np.int64]
Real = NDArray[Any]
"""Single precision while subsets are looked for, double once they are known."""


class Bar(NamedTuple):
    """An encoding is explained when its residual is at most `near`, relative to the rms of y, at
    `share` of the pixels or more."""

    near: float
    share: float


# --- Explained: one row each, from the roughest x to the sharpest ---------------------------------
#
# What chance does, to compare with: the magnitudes of two unrelated Gaussian sums are within ε·rms
# of each other at 1.13·ε of the pixels (∫ of the squared half-normal density). That is 2% of them
# for ε = 0.02, and 0.1% for ε = 0.001.

FEEDBACK = Bar(0.02, 0.35)
"""`subsets.feedback`. Half of the subsets behind x may be wrong, so a right row misses by some
percent, and by whole vectors at pixels where a sign went wrong. A wrong row is that near at 2% of
the pixels only, also when it has one of two members right: 35% is far from both."""
FEEDBACK_UNEQUAL = Bar(2e-3, 0.35)
"""`weights.unequal`: as `FEEDBACK`, ten times as near. A wrong member moves the fit by no more than
its weight, and would pass for right within 0.02: of two half-normal weights the smaller is below a
hundredth in one encoding of 80."""
SHORT_FEEDBACK = Bar(1e-2, 0.5)
"""`pairs.short_feedback`: nearly all subsets are right from the start, and x is better for it."""
GROWTH = Bar(1e-3, 0.9)
"""`pairs.growth`: values are carried exactly from one encoding to the next. A coincidence spoils
single pixels, and then all that follows from them: a tenth is left for that."""
SETTLED = Bar(1e-3, 0.95)
"""`pixels.settle`, `weights.unequal_pixels`: x is solved at every pixel, but a wrong row still
pulls on the rows it shares vectors with. Right rows then miss by a little at few pixels, the wrong
one at most of them."""
COMPLETED = 0.99
"""`subsets.completion`: share of pixels for rows left over. x is exact by then, and the pixels that
a right row misses are single ones; how near is for the caller to say."""
ROW = 1e-3
"""`certify.contradictions`, `attacks.alone`, `attacks.finish`, `floral.sign_system`: how near one
encoding must come at one pixel, where x rests on a few encodings only, and their rounding adds
up."""
PIXEL = 1e-4
"""`pixels.pixels`, `pairs.peeling`, `solve.linear`, `attacks.finish`: a pixel is solved when no
encoding misses it by more. x is then least squares of many rows in double precision, and rounding
of y in single precision leaves 5e-7; a wrong sign leaves twice the value of an encoding."""
FLORAL_NOISE, FLORAL_LEAST = 100.0, 1e-5
"""`floral.solve_floral`: a further encoding may miss by so many times the typical residual of the
floral itself, and by the second where that is nothing. Errors of k+2 vectors from few equations add
up in an encoding that was not fitted."""
TWICE_THE_NOISE = 2.0
"""`pixels.noisy`: median of a row's residual over that of |N(0, 1)|, in units of the noise. Over
hundreds of pixels it is within a tenth or two of 1 for a right row; a wrong one misses by whole
vectors."""
LOUDEST = 0.1
"""`subsets.feedback`: noise, relative to the rms of the private part, beyond which right and wrong
subsets are not told apart by their residuals."""
NOISY = Bar(1.5, 0.65)
"""`subsets.feedback` under noise, `near` in units of it: |N(0, 1)| is below 1.5 at 87% of the
pixels, and a wrong row under the loudest noise at 17%."""

# --- Two values of one pixel ----------------------------------------------------------------------

APART = 1e-2
"""Two values of a pixel are different when they are further apart than this, relative to the rms of
y: a hundred times what a solved pixel may miss by."""
TIE = 1e-5
"""Another value fits as well when its residual is below this, relative to the rms of y: ten times
what rounding leaves."""
SAME_CANDIDATE = 1e-3
"""`floral.sign_system`: two candidates closer than this are one. Both come from one exact inverse,
so that no room is needed for what a solver leaves."""

# --- The same vector ------------------------------------------------------------------------------

SAME = 0.98
"""Cosine of two columns that are one vector, once pixels are solved (`merged`): under noise two
copies may each be off by a seventh of their size. Different images can be as close. Of pairs of
CIFAR-10 pictures one in 8,000 is, none once they are centred; such a pair is merged, does not hold,
and its encodings stay unexplained. Without noise 0.999 does as well."""
NEARLY_SAME = 0.9
"""The same while half of the subsets are wrong (`subsets.feedback`): two halves of one vector's
rows give two noisy copies of it. A merge that was wrong can be undone in the next round."""
SAME_LINEAR = 0.05
"""`solve.linear`: ‖x_i − x_j‖/‖x_i‖ of vectors that are one. Length counts as well here: signs are
kept, so that x and 2x are different vectors."""

# --- Says nothing ---------------------------------------------------------------------------------

LEAST_USES = 2
"""A column that one row alone uses explains that row whatever it holds (`needed`)."""
LEAST_USES_SHORT = 3
"""`pairs.short_feedback`: a vector of two rows can be read in two ways. It is left to the end,
where all pixels speak."""
LEAST_USES_UNEQUAL = 5
"""`certify.unequal_certificate`: with weights free, five encodings of every vector make more
equations than another labelling has unknowns (the count is in that file's docstring)."""

# --- Numbers that are zero ------------------------------------------------------------------------

NULL, TOUCHED = 1e-8, 1e-6
"""An eigenvalue of WᵀW is zero below `NULL` times the largest, and a vector is not determined where
a null vector has an entry above `TOUCHED`. Of 200 random designs with one to four encodings per
vector the smallest eigenvalue that was not zero came to 1e-3 of the largest for k = 2, 1e-4 for k =
3, 2e-7 for k = 6: one taken for zero costs a vector that was determined, never the reverse."""
DEPENDENT = 1e-7
"""Unit vectors depend on each other where their Gram matrix has an eigenvalue below this: rounding
in single precision leaves 1e-14, independent vectors 1e-2 and more, images that are alike less."""
PART = 1e-2
"""A vector takes part in a linear dependence where its share of the eigenvectors of the Gram matrix
that belong to zero is above this: rounding leaves 1e-6."""
MEDIAN = 0.6745
"""The median of |N(0, 1)|: a median residual divided by it is the size of Gaussian noise."""


@dataclass(frozen=True, eq=False)
class PublicPart:
    """names (rows, k_public): the public vectors of each encoding; `vectors` (n_public, d), times
    `weight`, are in units in which private ones have weight 1."""

    names: NDArray[np.int64]
    vectors: Values
    weight: float

    def total(self, rows: NDArray[np.int64]) -> Values:
        """c of these rows."""
        both = self.weight * self.vectors[self.names[rows]].sum(axis=1, dtype=np.float64)
        return np.asarray(both, dtype=np.float32)


def rms(y: Real) -> float:
    """What residuals are held against; 1 where all is zero."""
    power = sum(float(np.square(part, dtype=np.float64).sum()) for _, part in row_blocks(y))
    return float(np.sqrt(power / max(y.size, 1))) or 1.0


def residual(y: Real, c: Real | None, x: Real, members: Members) -> Real:
    """(rows, pixels): ||Σ x + c| − y|."""
    total = x[members].sum(axis=1)
    return np.asarray(np.abs(np.abs(total if c is None else total + c) - y))


def reproduced(miss: Real, near: float, share: float) -> NDArray[np.bool_]:
    """(rows,): whose residual `miss` (rows, pixels) is small at enough pixels."""
    return np.asarray((miss <= near).mean(axis=1) >= share)


def uses(members: Members, columns: int) -> NDArray[np.int64]:
    """In how many *different* subsets each column occurs: an encoding drawn twice says nothing
    new."""
    distinct = np.unique(np.sort(members, axis=1), axis=0)
    return np.bincount(distinct.ravel(), minlength=columns)


def incidence(members: Members, columns: int) -> NDArray[np.float64]:
    """W (rows, columns): 1 at the members of each row."""
    W = np.zeros((len(members), columns))
    np.put_along_axis(W, members, 1.0, axis=1)
    return W


def all_different(members: Members) -> NDArray[np.bool_]:
    """Rows that hold no vector twice."""
    return np.asarray((np.diff(np.sort(members, axis=1), axis=1) > 0).all(axis=1))


def needed(members: Members, least: int = LEAST_USES) -> NDArray[np.bool_]:
    """Rows that are evidence. Drop encodings with a vector that fewer than `least` of the others
    use: that unknown absorbs anything. Then look again, since the rest may have lost a partner."""
    keep = np.ones(len(members), bool)
    columns = int(members.max(initial=0)) + 1
    while True:
        lonely = keep & (uses(members[keep], columns)[members] < least).any(axis=1)
        if not lonely.any():
            return keep
        keep &= ~lonely


def merged(x: Real, members: Members) -> Members:
    """Columns that are one vector get one name. Columns not solved yet are NaN and stay apart."""
    length = np.linalg.norm(x, axis=1) + 1e-30
    alike = np.triu((x @ x.T) / np.outer(length, length), 1) > SAME
    name = np.arange(len(x))
    for i, j in np.argwhere(alike):
        name[name == name[j]] = name[i]
    return np.asarray(name[members])


def renamed(members: Members) -> tuple[NDArray[np.int64], Members]:
    """(the names in use, members with names 0, 1, … in their order)."""
    used, names = np.unique(members, return_inverse=True)
    return used, names.reshape(members.shape).astype(np.int64)


def touched_by_null(gram: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Vectors that some null vector of W touches, from WᵀW: Wx does not determine them."""
    values, vectors = eigh(gram)
    null = vectors[:, values < NULL * max(1.0, float(values[-1]))]
    return np.asarray((np.abs(null) > TOUCHED).any(axis=1))


def combinations_of_others(
    gram: NDArray[np.float64], nothing: float = DEPENDENT
) -> NDArray[np.bool_]:
    """Unit vectors that take part in a linear dependence, from their Gram matrix; `nothing`: up to
    which an eigenvalue counts as zero."""
    values, vectors = eigh(gram)
    return np.asarray(np.linalg.norm(vectors[:, values < nothing], axis=1) > PART)


def size_in_doubt(ratio: float, numbers: int) -> bool:
    """Whether recovered pixels are not of the expected size: `ratio` of their rms to it.

    Such an rms is off by five standard errors less than once in a million times.
    """
    # At least 2%, since pixels need not be quite Gaussian; at most 20%, since the next k_private or
    # weighting is off by more.
    return bool(abs(ratio - 1) > min(max(0.02, 5 / np.sqrt(2 * numbers)), 0.2))
