"""The distribution 𝓓 over selection vectors (`defn:select_distribution`).

Each encoding draws a uniform k_public-subset T₁ of the public and a uniform k_private-subset T₂ of the private
vectors. The printed entries 1/√k_public and 1/√k_private do not give a unit vector when both parts are present;
`Scheme.weighting` says which of three readings is meant, or that every encoding draws weights of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.records import InputError, Scheme, Selection


def draw_selection(
    scheme: Scheme,
    n_private: int,
    n_public: int,
    m: int,
    private_rng: np.random.Generator,
    public_rng: np.random.Generator,
    weight_rng: np.random.Generator | None = None,
) -> Selection:
    """m independent draws of (T₁, T₂), each sorted; and of weights, where the scheme does not fix them."""
    weights = None
    if not scheme.fixed_weights:
        if weight_rng is None:
            raise InputError(f"weighting={scheme.weighting!r}: drawing weights needs weight_rng=")
        weights = np.abs(weight_rng.standard_normal((m, scheme.k_private)))
        weights /= weights.sum(axis=1, keepdims=True)
    return Selection(
        private=_draw_subsets(n_private, scheme.k_private, m, private_rng, "private"),
        public=_draw_subsets(n_public, scheme.k_public, m, public_rng, "public"),
        weights=weights,
    )


def selection_matrix(indices: NDArray[np.int64], n: int, weight: float = 1.0) -> sparse.csr_array:
    """W: row i has `weight` at the chosen indices."""
    m, k = indices.shape
    data = np.full(m * k, weight, dtype=np.float64)
    return sparse.csr_array((data, indices.ravel(), np.arange(m + 1) * k), shape=(m, n))


def _draw_subsets(n: int, k: int, m: int, rng: np.random.Generator, part: str) -> NDArray[np.int64]:
    if k > n:
        raise InputError(f"k_{part}={k} of only {n} {part} vectors: lower k_{part} or raise n_{part}")
    chosen = np.empty((m, k), dtype=np.int64)
    # Draw with replacement, and redraw the rows that hold a repeat until none does: uniform over subsets, all rows at once.
    # When k is a large part of n almost every row holds a repeat; then rank random keys instead.
    if k * k > n:
        step = max(1, (1 << 24) // max(1, n))
        for start in range(0, m, step):
            keys = rng.random((min(step, m - start), n))
            chosen[start : start + step] = np.argpartition(keys, k - 1, axis=1)[:, :k] if k < n else np.arange(n)
    else:
        todo = np.arange(m)
        while todo.size:
            chosen[todo] = np.sort(rng.integers(0, n, size=(todo.size, k)), axis=1)
            todo = todo[(np.diff(chosen[todo], axis=1) == 0).any(axis=1)]
    return np.sort(chosen, axis=1)
