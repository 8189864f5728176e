"""Relations under noise for data whose columns go together, as in most tables. Pairs only.

    1  signs ← a folded normal law        fitted to the encodings alone (`gram.folded_normal`)
    2  pairs ← who shares a vector        the likelihood of two signed encodings
                                          (`relations.signed`)
    3  Q ← relations among these pairs    by likely signs (`relations.signed`)
    4  W ← FactorOverlaps                 what relations say of pairs, then step 2
                                          (`factor.all_vectors`)
    5  W, x ← most likely ones            for one number of vectors after the other
                                          (`solve.grow.noisy_start`)
    6  W, x ← encodings left over         and vectors that were missed (`solve.grow.noisy_growth`)

Relations at every sign (`relations.noisy`) have no use for what columns say of each other, and take
chance for less than it is. Here both count, so that more noise can be stood.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.by_patches import outstanding
from unveil.factor.all_vectors import factor_overlaps
from unveil.gram.folded_normal import Floats, likely_signs
from unveil.gram.patches import nearest_relative
from unveil.parallel import Stopwatch, one_blas_thread
from unveil.records import Progress
from unveil.relations.copies import different
from unveil.relations.signed import Index, find_signed, shared_nats
from unveil.relations.sketch import sketch
from unveil.seeds import child
from unveil.solve.grow.noisy_growth import hold_noisy, on_all_pixels
from unveil.solve.grow.noisy_missing import with_missing
from unveil.solve.grow.noisy_start import noisy_start
from unveil.solve.pixels.noisy import NoisySolution

COLUMNS = 64
"""Columns that are looked at: signs are searched one column after the other, and 30 are plenty."""
FEWEST = 6
"""Columns below which signs say too little of each other."""
ALIKE = 0.4
"""Correlation of a typical column's magnitudes with those of its nearest relative. Breast cancer
has 0.76; of the digits, with 0.37, signs come out by chance, and independent columns of 100 records
have below 0.3."""
PER_ROW = 20
"""Pairs for each encoding: of 40 that share a vector a quarter are among the 20 likeliest, and
relations among those are plenty."""
MOST_PAIRS = 30_000
"""Every two of them are compared: half a minute."""
MORE = 1.5
"""The nearest copies differ by less than noise makes the others, and by more than 1/1.5 of it."""
VOTES = 2
"""Relations of a pair that leave no doubt that it shares a vector."""
PRIOR = np.log(25.0)
"""Pairs that share nothing, to one that does, of 100 vectors: it need not be exact."""
BELIEF = 0.6
"""What a pair counts that is likely by its two encodings alone, to one that two relations
support."""
TRIED = (1.8, 1.3, 2.4)
"""Numbers of vectors that are tried, relative to the eigenvalues that stand out: with ten encodings
for each vector 60 of 100 do. Too many cost little."""
ENOUGH = 0.99
"""The share of encodings that must be explained for no other number of vectors to be tried."""


def by_likely_signs(
    y: NDArray[np.float32],
    apart: Floats,
    copies: list[float],
    seed: np.random.SeedSequence,
    clock: Stopwatch,
    progress: Progress | None,
) -> tuple[NoisySolution, dict[str, int]] | None:
    """(solution, what was found on the way) for y (m, d) = |x_a + x_b| up to noise, unit weights.

    apart, copies: of `relations.copies`. None: columns do not go together, or nothing holds
    """
    m = len(y)
    if nearest_relative(y, FEWEST) < ALIKE:
        return None
    # 1. Signs, and the noise: the sum of columns that varies least has little else.
    telling = sketch(y, None, 0.0, child(seed, "columns"), COLUMNS).pixels
    if len(telling) < 2:  # all columns say the same, or nothing
        return None
    some = np.ascontiguousarray(y[:, telling])
    with clock("signs"), one_blas_thread():
        patterns = likely_signs(some)
        noise = float(np.sqrt(np.linalg.eigvalsh(patterns.C)[0]))
        noise = float(np.clip(noise, copies[0], MORE * copies[0])) if copies else noise
    # 2–3. Pairs, and relations among them.
    with clock("relations"), one_blas_thread():
        nats, opposite = shared_nats(patterns, noise)
        once = different(apart, noise)
        pairs = _likeliest(nats, once)
        quads = find_signed(patterns, noise, pairs, opposite[pairs[:, 0], pairs[:, 1]])
    if len(quads) < len(once):
        return None
    S = _overlaps(nats, quads)
    # 4–6. Subsets and values, for one number of vectors after the other.
    best: NoisySolution | None = None
    least = outstanding(S)
    for share in TRIED:
        n = round(share * least)
        if not 4 <= n < m:
            continue
        with clock("factor"), one_blas_thread():
            W = factor_overlaps(S, 2, n, rounds=1).W
        # Overlaps of wild data may show a single cluster: nobody has a partner then.
        if W.shape[1] < 2:
            continue
        with clock("pixels"):
            x, members, miss = noisy_start(some, patterns, W, noise)
            rows = np.flatnonzero(miss <= (2 * noise) ** 2)
            draw = child(seed, f"noise {n}")
            noisy = hold_noisy(some, rows, members[rows], noise, draw, start=x, progress=progress)
        if noisy is not None and 2 * len(noisy.rows) >= m:
            with clock("growth"), one_blas_thread():
                noisy = with_missing(some, patterns, S, noisy, draw, progress)
        if noisy is not None and (best is None or len(noisy.rows) > len(best.rows)):
            best = noisy
        if best is not None and len(best.rows) >= ENOUGH * m:
            break
    with clock("pixels"):
        best = on_all_pixels(y, telling, best, child(seed, "pixels"), progress)
    facts = {"relations": len(quads), "different_encodings": len(once)}
    return None if best is None else (best, facts)


def _likeliest(nats: Floats, once: Index) -> Index:
    """(p, 2) the pairs of `once` that most probably share a vector."""
    i, j = (once[side] for side in np.triu_indices(len(once), 1))
    most = min(PER_ROW * len(once), MOST_PAIRS, len(i))
    best = np.argpartition(-nats[i, j], most - 1)[:most] if most else np.empty(0, np.int64)
    return np.column_stack([i[best], j[best]])


def _overlaps(nats: Floats, quads: Index) -> Floats:
    """S (m, m), from 0 for nothing shared to 1: by votes of relations, or else by how likely it is.

    The encodings of a relation go round in a circle, so that next to the two pairs by which it was
    found two others share a vector, those that are likelier."""
    a, b, c, d = quads.T
    straight = nats[a, c] + nats[b, d] > nats[a, d] + nats[b, c]
    e, f = np.where(straight, c, d), np.where(straight, d, c)
    votes = np.zeros(nats.shape)
    for one, two in ((a, b), (c, d), (a, e), (b, f)):
        np.add.at(votes, (one, two), 1.0)
    votes = np.minimum(votes + votes.T, VOTES) / VOTES
    # e^50 to one is zero all the same, and larger powers would overflow.
    likely = 1 / (1 + np.exp(np.minimum(PRIOR - nats, 50.0)))
    S = np.maximum(votes, BELIEF * likely)
    np.fill_diagonal(S, 0.0)
    return np.asarray(S)
