"""Guesses at who mixes whom, for encodings that keep their signs: from the cheapest on.

cliques of rounded overlaps      each overlap is read by itself (`factor.cliques`)
the same of the projector UUᵀ    which depends on the subsets alone (`gram.whitened`)
columns of zeros and ones        all of them, up to 20 vectors (`factor.binary_columns`)
factorisation, not rounded       the last resort, dense in m (`factor.all_vectors`)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unveil.factor.all_vectors import factor_overlaps
from unveil.factor.binary_columns import binary_columns, choose_columns
from unveil.factor.cliques import find_cliques
from unveil.gram.similarity import estimate_vectors
from unveil.gram.whitened import (
    exact_rank,
    ones_in_span,
    plain_overlaps,
    plain_similarity,
    rank_of,
    rounded,
    spectrum,
    whitened_similarity,
)
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import Overlaps, Progress
from unveil.solve.linear import Floats
from unveil.solve.model import Members

LARGEST = 6000
"""Encodings up to which m×m matrices are worked with."""
BYTES_SQUARE = 48
"""Per pair of encodings in the factorisation."""


def subset_guesses(
    y: Floats,
    k: int,
    given: Overlaps | None,
    limit: int,
    clock: Stopwatch,
    progress: Progress | None,
) -> Iterator[Members]:
    """Members (m, k), −1 where none is found: by cliques of rounded overlaps, then by factorisation
    of what is not rounded."""
    # 1. Overlaps read one by one: cheap, and nearly always enough.
    m = len(y)
    Y = y.astype(np.float32)
    with clock("factor"):
        start = find_cliques(
            given if given is not None else plain_overlaps(Y, k, limit, progress)
        ).members
    yield start
    if m > LARGEST or BYTES_SQUARE * m * m > limit:
        return
    # 2. The projector on the columns of Y, which depends on the subsets alone.
    with clock("similarity"):
        values, vectors = spectrum(Y)
        n, rank = rank_of(values), exact_rank(values)
        if Y.shape[1] < m and ones_in_span(Y, values[:rank], vectors[:, :rank]):
            n = rank
        n = (
            None if n is not None and n < k + 2 else n
        )  # what all encodings have in common, no number of vectors
        if given is not None:
            S = given.toarray().astype(np.float64)
        else:
            S = plain_similarity(Y, k) if n is None else whitened_similarity(vectors, n, k)
        n = estimate_vectors(S, k, linear=True) if n is None or given is not None else n
    if not k + 2 <= n < m:
        return
    with clock("factor"):
        start = find_cliques(rounded(S, k)).members
    yield start
    # 3. Few vectors, all independent: every column of zeros and ones that there is.
    if given is None:
        with clock("factor"):
            columns = binary_columns(vectors[:, :n])
            members = None if columns is None else choose_columns(columns, n, k)
        if members is not None:
            yield members
    # 4. Not rounded at all.
    with clock("factor"), one_blas_thread():
        W = factor_overlaps(S, k, n).W
    if W.shape[1] > k:
        yield np.argsort(-W, axis=1, kind="stable")[:, :k].astype(np.int64)
