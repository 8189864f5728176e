"""Is a recovered vector a combination of others? Then its encodings can be read without it.

With z = a + b − p the encodings {p, q, z} are {a, b, q} under another name. An alias z shares some
p with all of its encodings, or is −Σ of its at most 2k−1 partners (for k = 2 the triangle ab, bc,
ca is also the star za, zb, zc); with fewer pixels than vectors these are looked for alone. Public
vectors count among the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky

from unveil.certify.determined import DENSE, incidence
from unveil.checks import row_blocks
from unveil.solve.model import (
    PIXEL,
    combinations_of_others,
    rms,
)

SAME_AS_PUBLIC = 1e-6
"""1 − |cosine| of a multiple of a public vector: rounding in single precision."""
NEARLY = 1e-3
"""1 − |cosine| below which it is computed in double precision: single precision errs by 1e-5 at
most."""
BLUR = 30.0
"""How much more than the residuals the errors of values may be: W blows up rounding by a few times,
more with few rows."""
NOTHING = 1e-11, 1e-7
"""What counts as eigenvalue 0 of unit vectors, least and most. Rounding in float32 leaves 1e-14,
residuals that are
tolerated 1e-8."""


BLANK = "all of its values are 0: encodings that mix one record fewer look the same"


def blanks(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) vectors of zeros, up to rounding."""
    return np.asarray(np.abs(values).max(axis=1, initial=0.0) <= PIXEL * rms(values))


def dependent(
    members: NDArray[np.int64],
    x: NDArray[np.float64],
    among: NDArray[np.bool_],
    misfit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Vectors of a group that are combinations of others; with fewer pixels than vectors, those
    that a few encodings allow.

    misfit (d,): the largest residual of each pixel, relative to the rms of y"""
    out = np.zeros(len(x), bool)
    chosen = np.flatnonzero(among)
    if len(chosen) <= x.shape[1]:
        # Pixels of very different sizes would make all vectors look alike: dependence does not ask
        # for units.
        size = np.sqrt(np.mean(x[chosen] ** 2, axis=0))
        unit = x[chosen] / np.maximum(size, 1e-30)
        unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
        # A combination leaves what is wrong with the pixels, squared. Vectors that are alike are no
        # combinations.
        error = misfit * np.sqrt(np.mean(size**2) * members.shape[1]) / np.maximum(size, 1e-30)
        nothing = float(np.clip((BLUR * error[size > 0].max(initial=0.0)) ** 2, *NOTHING))
        gram = unit @ unit.T
        if len(chosen) > DENSE // 4 and _all_eigenvalues_above(gram, 2 * nothing):
            return out
        out[chosen] = combinations_of_others(gram, nothing)
        return out
    k, W = members.shape[1], incidence(members, len(x))
    rows_of = sparse.csr_array(W.T)
    for i in chosen:
        rows = members[rows_of.indices[rows_of.indptr[i] : rows_of.indptr[i + 1]]]
        partners, shared = np.unique(rows, return_counts=True)
        total = np.abs(x[partners].sum(axis=0)).max() if len(partners) <= 2 * k else np.inf
        out[i] = np.count_nonzero(shared == len(rows)) > 1 or total < PIXEL * np.abs(x[i]).max()
    return out


def made_of_public(x: NDArray[np.float64], public: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Vectors that are combinations of public ones and each other; with fewer pixels than vectors,
    multiples of a public one.

    A private vector that is in the public list trades places with the public part: {x; p} is {p;
    x}."""
    unit = _of_length_one(x)
    if len(x) + len(public) > min(x.shape[1], DENSE):
        return _multiples(unit, public)
    P = _of_length_one(public)
    # What the public vectors leave of each, and whether that depends.
    _, spectrum, axes = np.linalg.svd(P, full_matrices=False)
    axes = axes[spectrum > SAME_AS_PUBLIC * spectrum.max(initial=1.0)]
    rest = unit - (unit @ axes.T) @ axes
    return combinations_of_others(rest @ rest.T)


def _of_length_one(x: NDArray[Any]) -> NDArray[np.float64]:
    size = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64))
    return np.asarray(x / np.maximum(size, 1e-30)[:, None], np.float64)


def _multiples(unit: NDArray[np.float64], public: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(n,) vectors of length one that are multiples of a public one."""
    out = np.zeros(len(unit), bool)
    single = unit.astype(np.float32)
    for _, block in row_blocks(public):
        size = np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64))
        near = np.abs(single @ block.T) >= (1 - NEARLY) * size
        i, j = np.nonzero(near & (size > 0))
        cosine = np.einsum("ij,ij->i", unit[i], block[j], dtype=np.float64) / size[j]
        out[i[np.abs(cosine) > 1 - SAME_AS_PUBLIC]] = True
    return out


def _all_eigenvalues_above(gram: NDArray[np.float64], bound: float) -> bool:
    """By Cholesky, at a small part of the cost of the eigenvalues."""
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] -= bound
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
