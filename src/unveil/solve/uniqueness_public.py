"""Could public vectors change places between encodings? See `docs/certificate.md`, step 6.

y = Wx + w·QP with public vectors P known and Q, where they stand, found. Another reading has Q' and x' = x + w·BP, on vectors that
are certain otherwise: W·b = Q_h − Q'_h for the column b of public vector h. Columns b of all h sum to 0. Rows with h allow
Wb ∈ {0, 1}, rows without it {0, −1}. So if h can only lose, Σ_r (Wb)_r < 0 unless b = 0, nothing changes: a vector z < 1 with
Σ_(r with h) W_r = Σ_(r without h) z_r W_r shows just that. The same z excludes the opposite sign for all, W·b = Q_h + Q'_h:
h would stand in more rows than before, every h.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsqr

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

SLACK = 1e-3
"""z stays this far below 1: what the iteration leaves over is a millionth of it."""


def public_fixed(members: Index, public: Index, known: Flags) -> Flags:
    """The `known` vectors, if all public vectors in the rows among them stay where they are; none, if not shown."""
    inside = known[members].all(axis=1)
    rows, names = members[inside], public[inside]
    m, k = rows.shape
    if not m:
        return np.zeros(len(known), bool)
    W = sparse.csr_array((np.ones(m * k), (np.repeat(np.arange(m), k), rows.ravel())), shape=(m, len(known)))
    for h in np.unique(names):
        here = (names == h).any(axis=1)
        wanted = W[here].sum(axis=0)
        z = lsqr(W[~here].T.tocsr(), wanted, atol=1e-12, btol=1e-12, iter_lim=1000)[0]
        left = np.abs(W[~here].T @ z - wanted).sum()
        if z.max(initial=0.0) > 1 - SLACK or left > SLACK**3:
            return np.zeros(len(known), bool)
    return known
