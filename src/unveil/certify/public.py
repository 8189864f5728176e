"""Could public vectors change places between encodings? See `docs/certificate.md`, step 6.

y = Wx + w·QP with public vectors P known and Q, where they stand, found. Another reading has Q' and
x' = x + w·BP, on vectors that are certain otherwise: W·b = Q_h − Q'_h for the column b of public
vector h. The columns of all h sum to 0. Rows with h allow Wb ∈ {0, 1}, rows without it {0, −1}. Let
Σ_(r with h) W_r = Σ_(r without h) z_r·W_r with |z| < 1. Then the ones are fewer than the minus
ones, unless b = 0; for all h together they are as many. So nothing changes. The same z excludes the
opposite sign for all, W·b = Q_h + Q'_h: each h would stand in more rows than before. O(rows) per
step and public vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsqr

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

SLACK = 1e-3
"""|z| stays this far below 1; what the iteration leaves over is a millionth of it."""


def public_fixed(members: Index, public: Index, known: Flags) -> Flags:
    """Those of the `known` vectors that keep their value whatever public vectors change places;
    none, if that is not shown.

    Vectors that meet one public vector in half of their rows are left out first. They may be added
    again one by one.
    """
    n, k = len(known), members.shape[1]
    known = known.copy()
    # 1. A vector that meets one public vector in half of its rows could trade with it: leave it
    # out, and look again at what is left.
    while True:
        inside = known[members].all(axis=1)
        rows, names = members[inside], public[inside]
        width = int(public.max(initial=0)) + 1
        pair, count = np.unique(
            np.repeat(rows, names.shape[1], axis=1) * width + np.tile(names, k), return_counts=True
        )
        often = pair[2 * count >= np.bincount(rows.ravel(), minlength=n)[pair // width]] // width
        known &= np.bincount(rows.ravel(), minlength=n) > 0
        if not known.any() or not len(often):
            break
        known[often] = False
    m = len(rows)
    if not m:
        return np.zeros(n, bool)
    # 2. For each public vector the z of this file's docstring.
    W = sparse.csr_array((np.ones(m * k), (np.repeat(np.arange(m), k), rows.ravel())), shape=(m, n))
    for h in np.unique(names):
        here = (names == h).any(axis=1)
        wanted = W[here].sum(axis=0)
        # To the last digit: what is left must be a millionth of `SLACK`.
        z = lsqr(W[~here].T.tocsr(), wanted, atol=1e-14, btol=1e-14, iter_lim=1000)[0]
        left = np.abs(W[~here].T @ z - wanted).sum()
        if np.abs(z).max(initial=0.0) > 1 - SLACK or left > SLACK**3:
            return np.zeros(n, bool)
    return known
