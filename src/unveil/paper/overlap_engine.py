"""The overlap engine: every pair of encodings once, in blocks, from product to rounded overlap.

A *feature* turns each encoding into a row, so that the product of two rows is an average over
pixels whose mean is a known function of p and q, the public and private vectors that the two share:

    folded     (|y| − mean)/rms       mean Ψ(z(p, q)): the paper's statistic (`alg:private_attack`)
    assisted   y·tanh(yμ/σ²) − μ      μ the known public part, σ² the variance of the private part:
                                      its posterior mean; nearly linear in q, no flat spot at q = 0

Mean, standard deviation and skewness of one pixel's term at every (p, q) decide everything else
(`Levels`); they are integrals over two normal variables. Two corrections that the printed analysis
leaves out show in the error counts: rows are divided by their own root mean square, which takes
noise away (at z = 1/2: 0.409 instead of 0.443 per pixel); and sums of skew terms have a heavier
upper tail than the normal law.

    plan     a pair is scored on a few pixels by a matrix product; survivors are scored on further
             pixels, stage by stage, and dropped as soon as they fall below the line that a pair
             with overlap 1 stays above but for the share `loss`. Of all numbers of screening pixels
             the cheapest is taken, in multiply-adds of a matrix product (`make_plan`)
    block    a pure function of (encodings, plan, i, j): product, compaction, further pixels for
             survivors, rounding (`OverlapEngine.block`)
    weigh    P(wrong) of an entry rounded to q with rival r is 1/(1 + (π_q/π_r)·e^margin), π the
             share of pairs at each overlap, by expectation–maximisation on a table of margins
             (`weigh_evidence`); the sum of P(wrong) is the number of errors to expect

BLAS has one thread inside a task and tasks run side by side, so that the bytes do not depend on the
number of workers. Cost: m²/2·(screening pixels) multiply-adds at the speed of BLAS, and little
more. Memory: a block, its features, and the sparse result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from unveil.checks import row_blocks
from unveil.encodings import Encodings
from unveil.engine.blocks import one_blas_thread
from unveil.engine.folded import signed
from unveil.paper.folded_search import mean_square
from unveil.scheme import Scheme

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Index = NDArray[np.integer[Any]]
Statistic = Literal["folded", "assisted"]


# --- The law of one pixel ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Levels:
    """Mean, standard deviation and skewness of one pixel's term at each (p, q), arrays of shape
    (k_public+1, k_private+1); raw: the same where rows are not divided by their own root mean
    square."""

    mean: Array
    sd: Array
    skew: Array
    raw_sd: Array
    raw_skew: Array

    def of_part(self, fraction: float) -> Levels:
        """For a sum over this fraction of the pixels where rows were normalised over all of them:
        so much less noise is taken away."""
        sd = np.sqrt(self.raw_sd**2 + fraction * (self.sd**2 - self.raw_sd**2))
        skew = self.raw_skew + fraction * (self.skew - self.raw_skew)
        return Levels(self.mean, sd, skew, self.raw_sd, self.raw_skew)

    def balanced(self) -> Array:
        """(k_public+1, k_private): where mistaking q for q+1 is as many standard deviations away as
        the reverse."""
        low, high = self.sd[:, :-1], self.sd[:, 1:]
        return np.asarray((self.mean[:, :-1] * high + self.mean[:, 1:] * low) / (low + high))

    def normal_scale(self, score: ArrayLike, p: Any, q: Any, d: int) -> Array:
        """An average over d pixels in standard deviations of a normal law: Cornish and Fisher's
        x − s·(x² − 1)/6, which stops half-way to where it would turn back."""
        x = (np.asarray(score, np.float64) - self.mean[p, q]) * (np.sqrt(d) / self.sd[p, q])
        s = self.skew[p, q] / np.sqrt(d)
        reach = 1.5 / np.maximum(np.abs(s), 1e-9)
        return np.asarray(x - s * (np.clip(x, -reach, reach) ** 2 - 1) / 6)

    def below(self, score: ArrayLike, p: int, q: int, d: int) -> float:
        """P(average over d pixels < score) at (p, q)."""
        return float(norm.cdf(self.normal_scale(score, p, q, d)))

    def quantile(self, probability: float, p: int, q: int, d: int) -> float:
        """The score that an average over d pixels stays below with this probability."""
        x = float(norm.ppf(probability))
        s = self.skew[p, q] / np.sqrt(d)
        wide = self.sd[p, q] / np.sqrt(d)
        return float(self.mean[p, q] + wide * (x + s * (min(x * x, 9) - 1) / 6))

    def rounded(self, score: Floats, p: Index, d: int) -> tuple[Index, Index, Floats]:
        """Overlap (N,), the neighbouring one that comes closest, and the log-likelihood ratio
        against it, of averages over d pixels; p (N,): shared public vectors."""
        top = self.mean.shape[1] - 1
        q = np.asarray((self.balanced()[p] <= score[:, None]).sum(axis=1), np.int8)

        def density(level: Index) -> Array:
            within = np.clip(level, 0, top)
            u = self.normal_scale(score, p, within, d)
            return np.where(within == level, -(u**2) / 2 - np.log(self.sd[p, within]), -np.inf)

        down, up = density(q - 1), density(q + 1)
        rival = np.where(up > down, q + 1, q - 1).astype(np.int8)
        return q, rival, (density(q) - np.maximum(down, up)).astype(np.float32)


def lattice(scheme: Scheme) -> Array:
    """The correlation z(p, q) = (p·a_pub² + q·a_priv²)/(k_pub·a_pub² + k_priv·a_priv²), shape
    (k_public+1, k_private+1)."""
    p = np.arange(scheme.k_public + 1)[:, None] * scheme.public_weight**2
    q = np.arange(scheme.k_private + 1)[None, :] * scheme.private_weight**2
    return np.minimum((p + q) / (scheme.public_variance + scheme.private_variance), 1.0)


@lru_cache(maxsize=64)
def folded_levels(scheme: Scheme) -> Levels:
    """The law of (|a| − E|a|)(|b| − E|b|), mean Ψ(z) (`lem:kr17`)."""
    z = lattice(scheme)
    rows = np.array([_folded_moments(float(value)) for value in z.ravel()])
    return Levels(*rows.T.reshape(5, *z.shape))


def _folded_moments(z: float, angles: int = 1024, radii: int = 64) -> list[float]:
    """Mean, sd, skewness of one pixel, and the last two without normalisation.

    The statistic is h(t) = (t₀ − t₁t₂)/√(t₃t₄) of the pixel means t of |ab|, |a|, |b|, a², b². To
    first order it moves by u = ∇h·t; Edgeworth's skewness is E[u³] + 3·∇hᵀΣHΣ∇h. Expectations by
    polar coordinates: kinks lie on angles, and f(−a, −b) = f(a, b) halves the circle; right to
    2e-6.
    """
    x, w = np.polynomial.legendre.leggauss(radii)
    r = 5.0 * (x + 1)[:, None]  # out to ten standard deviations
    # Midpoints: no node on an axis, where |a| has its kink.
    theta = np.pi * (np.arange(angles) + 0.5) / angles
    a = np.abs(r * np.cos(theta)).ravel()
    b = np.abs(r * (z * np.cos(theta) + np.sqrt(1 - z * z) * np.sin(theta))).ravel()
    weights = np.repeat(5.0 * w * r[:, 0] * np.exp(-(r[:, 0] ** 2) / 2) / angles, angles)
    T = np.stack([a * b, a, b, a * a, b * b])
    t = T @ weights
    T = T - t[:, None]
    covariance = (T * weights) @ T.T
    # Gradient and second derivatives of h at t₃ = t₄ = 1.
    mu, c = t[1], t[0] - t[1] * t[2]
    gradient = np.array([1, -mu, -mu, -c / 2, -c / 2])
    H = np.zeros((5, 5))
    H[0, 3:] = H[3:, 0] = -0.5
    H[1, 2] = H[2, 1] = -1
    H[1:3, 3:] = H[3:, 1:3] = mu / 2
    H[3:, 3:] = [[3 * c / 4, c / 4], [c / 4, 3 * c / 4]]
    u, v = gradient @ T, gradient[:3] @ T[:3]
    # At z = 1 the normalised statistic hardly varies: skewness must not divide by nothing.
    sd, raw = (max(float(np.sqrt(x * x @ weights)), 1e-6) for x in (u, v))
    bent = 3 * float(gradient @ covariance @ H @ covariance @ gradient)
    skew = np.clip([(u**3 @ weights + bent) / sd**3, v**3 @ weights / raw**3], -30, 30)
    return [float(c), sd, float(skew[0]), raw, float(skew[1])]


@lru_cache(maxsize=64)
def assisted_levels(
    k_private: int, k_public: int, ratio: float, nodes: int = 96, degree: int = 48
) -> Levels:
    """The law of r_i·r_j in units of σ², r = y·tanh(yμ/σ²) − μ, where ratio = E[μ²]/σ².

    r, r² and r³ are functions of (g, μ), private and public part. With Hermite coefficients c_nl of
    such a function Mehler's formula gives E[f_i·f_j] = Σ c_nl²·(q/k_private)^n·(p/k_public)^l.
    """
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    # Normalised Hermite polynomials by their recurrence, weights of the nodes included.
    H = np.empty((degree, nodes))
    H[0], H[1] = 1, x
    for n in range(1, degree - 1):
        H[n + 1] = (x * H[n] - np.sqrt(n) * H[n - 1]) / np.sqrt(n + 1)
    H *= weights / weights.sum()
    g, mu = x[:, None], np.sqrt(ratio) * x[None, :]
    r = signed(mu + g, mu) - mu
    private = (np.arange(k_private + 1) / k_private)[:, None] ** np.arange(degree)
    public = (np.arange(k_public + 1) / max(k_public, 1))[:, None] ** np.arange(degree)
    first, second, third = (
        public @ ((H @ r**power @ H.T) ** 2).T @ private.T for power in (1, 2, 3)
    )
    variance = np.maximum(second - first**2, 1e-12)
    sd, skew = np.sqrt(variance), (third - 3 * first * second + 2 * first**3) / variance**1.5
    return Levels(first, sd, skew, sd, skew)


# --- Features ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KnownPublic:
    """The public part: sorted `supports` (m, k_public), and for the assisted feature the vectors.
    `variance` is σ², that of the private part; `ratio` is E[μ²]/σ²."""

    supports: NDArray[np.int32]
    vectors: Floats | None
    weight: float
    variance: float
    ratio: float

    def shared(self, i: Index, j: Index) -> NDArray[np.int8]:
        """How many public vectors the encodings i (N,) and j (N,) share."""
        first, second = self.supports[i], self.supports[j]
        return sum(
            ((first == column[:, None]).any(axis=1).astype(np.int8) for column in second.T),
            np.zeros(len(i), np.int8),
        )


def public_part(
    encodings: Encodings, supports: NDArray[np.int64], vectors: Floats | None
) -> KnownPublic:
    """σ² from the scheme where the pixels' root mean square is known, else from what the public
    part leaves of E[y²]."""
    scheme = encodings.scheme
    ordered = np.ascontiguousarray(np.sort(supports, axis=1), dtype=np.int32)
    if vectors is None:
        return KnownPublic(ordered, None, scheme.public_weight, scheme.private_variance, 0.0)
    power = scheme.public_variance * mean_square(vectors)
    if encodings.pixel_rms is not None:
        variance = scheme.private_variance * encodings.pixel_rms**2
    else:
        variance = max(mean_square(encodings.values) - power, 1e-3 * power, 1e-30)
    return KnownPublic(ordered, vectors, scheme.public_weight, variance, power / variance)


def pixel_order(d: int, screen: int) -> Index:
    """All pixels, `screen` evenly spaced ones first: images are smooth, so that a corner of them
    would not stand for the rest."""
    first = np.arange(min(screen, d)) * d // min(screen, d)
    return np.concatenate([first, np.delete(np.arange(d), first)])


def feature_rows(
    values: Floats,
    statistic: Statistic,
    order: Index,
    public: KnownPublic | None = None,
    start: int = 0,
) -> Floats:
    """Features (rows, d) with pixels in `order`; `start`: the place of the first row among all
    encodings, which finds the supports.

    A row without contrast has zero features. Rows are divided by √d, so that products are averages.
    """
    out = np.empty(values.shape, np.float32)
    for at, rows in row_blocks(values, 1 << 18):
        y = np.abs(rows)
        if statistic == "folded":
            square = np.einsum("ij,ij->i", y, y, dtype=np.float64) / y.shape[1]
            mean = y.mean(axis=1, dtype=np.float64)
            r = y - mean[:, None].astype(np.float32)
            flat = square - mean**2 <= 1e-12 * square
        else:
            assert public is not None
            assert public.vectors is not None
            mu = np.zeros(y.shape, np.float32)
            for column in public.supports[start + at : start + at + len(y)].T:
                mu += public.vectors[column]
            mu *= np.float32(public.weight)
            r = signed(y, mu, np.float32(public.variance)) - mu
            square, flat = np.full(len(y), public.variance), y.min(axis=1) == y.max(axis=1)
        scale = np.where(flat, 0, 1 / np.sqrt(np.where(flat, 1, square) * y.shape[1]))
        r *= scale[:, None].astype(np.float32)
        np.take(r, order, axis=1, out=out[at : at + len(y)])
    return out


# --- Plan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OverlapPlan:
    """What the engine will do.

    edges, cuts   after edges[s] pixels a pair below cuts[s] is dropped; one entry: one pass
    block         rows of a block
    shared        share of pairs with 0, 1, … shared public vectors
    work          multiply-adds for all pairs
    """

    m: int
    d: int
    statistic: Statistic
    edges: tuple[int, ...]
    cuts: tuple[float, ...]
    block: int
    loss: float
    shared: tuple[float, ...]
    work: float

    @property
    def bytes_per_task(self) -> int:
        return 4 * self.block**2 + 12 * self.block * self.d

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Block pairs (i, j), i ≤ j; every second row backwards, so that features still in memory
        are used again."""
        n = -(-self.m // self.block)
        back = (range(n - 1, i - 1, -1) if i % 2 else range(i, n) for i in range(n))
        return [(i, j) for i, columns in enumerate(back) for j in columns]


def make_plan(
    levels: Levels,
    m: int,
    d: int,
    *,
    statistic: Statistic = "folded",
    occupancy: float,
    shared: tuple[float, ...] = (1.0,),
    limit: int = 8 << 30,
    loss: float = 1e-6,
    smallest_screened: int = 2048,
    growth: float = 1.25,
    pick: float = 36.0,
    score: float = 10.0,
) -> OverlapPlan:
    """The cheapest plan.

    occupancy           share of pairs with a private overlap
    loss                share of them that screening may lose, nine tenths of it at the first cut
    smallest_screened   fewer encodings are not worth a screen
    growth              pixels grow by this factor from stage to stage
    pick, score         what it costs to look at a score, and to score one pixel of a survivor, in
                        multiply-adds of a matrix product (`python -m benchmarks.overlaps`)
    """
    best: tuple[float, list[int], list[float]] | None = None
    for first in [d, *range(128, d, 64)] if m >= smallest_screened else [d]:
        # 1. Stages of whole vector registers; a last one of less than a tenth is not worth it.
        edges = [first]
        while edges[-1] * growth < 0.9 * d:
            edges.append(int(edges[-1] * growth) // 16 * 16)
        edges = [*edges, d] if edges[-1] < d else [d]
        # 2. Cuts, and how many pairs of overlap 0 pass each of them. A sum over e of d pixels is
        #    e/d times an average.
        work, alive, cuts = edges[0] + pick, 1.0, []
        for s, e in enumerate(edges[:-1]):
            part = levels.of_part(e / d)
            lost = 0.9 * loss if s == 0 else 0.1 * loss / max(len(edges) - 2, 1)
            cut = min(part.quantile(lost, p, 1, e) for p in range(len(levels.mean)))
            idle = sum(share * (1 - part.below(cut, p, 0, e)) for p, share in enumerate(shared))
            alive = min(alive, occupancy + (1 - occupancy) * idle)
            work += score * alive * (edges[s + 1] - e)
            cuts.append(cut * e / d)
        if best is None or work < best[0]:
            best = work, edges, cuts
    assert best is not None
    work, edges, cuts = best
    # 3. The last cut is the lowest threshold; blocks are the largest power of two that fits. The
    #    number of workers has no say in it: results must not depend on them.
    every = (*cuts, float(levels.balanced()[:, 0].min()))
    plan = OverlapPlan(
        m, d, statistic, tuple(edges), every, 1024, loss, shared, work * m * (m - 1) / 2
    )
    while plan.block < 8192 and plan.block * 64 < m:
        plan = replace(plan, block=2 * plan.block)
    while plan.block > 1 and plan.bytes_per_task > limit // 4:
        plan = replace(plan, block=plan.block // 2)
    return plan


# --- Blocks --------------------------------------------------------------------------------------


class OverlapEngine:
    """What a worker needs: encodings, plan, levels, public part. Picklable; features already made
    stay behind."""

    def __init__(
        self,
        values: Floats,
        plan: OverlapPlan,
        levels: Levels,
        public: KnownPublic | None = None,
        cache_bytes: int = 256 << 20,
    ) -> None:
        self.values, self.plan, self.levels, self.public = values, plan, levels, public
        self.cache_bytes = cache_bytes
        self._order = pixel_order(plan.d, plan.edges[0])
        kept = cache_bytes // (4 * plan.block * (plan.d + plan.edges[0]))
        self.features = lru_cache(maxsize=max(1, kept))(self._features)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.values, self.plan, self.levels, self.public, self.cache_bytes
        return OverlapEngine, parts

    def _features(self, index: int) -> tuple[Floats, Floats]:
        """(screening pixels, all pixels) of a block of rows."""
        start, first = index * self.plan.block, self.plan.edges[0]
        rows = self.values[start : start + self.plan.block]
        full = feature_rows(rows, self.plan.statistic, self._order, self.public, start)
        return np.ascontiguousarray(full[:, :first]) if first < self.plan.d else full, full

    def decided_by(self) -> tuple[list[str], list[NDArray[Any] | None]]:
        """All that decides the blocks, for a checkpoint."""
        law, public = self.levels, self.public
        facts = [repr(self.plan)]
        arrays: list[NDArray[Any] | None] = [self.values, law.mean, law.sd, law.skew]
        if public is not None:
            facts.append(repr((public.weight, public.variance)))
            arrays += [public.supports, public.vectors]
        return facts, arrays

    def block(self, i: int, j: int) -> dict[str, NDArray[Any]]:
        """The entries between row blocks i ≤ j, for i = j those above the diagonal: rows, columns,
        overlap, rival (one more or one less), and the log-likelihood ratio between the two."""
        plan, (A1, A), (B1, B) = self.plan, self.features(i), self.features(j)
        edges, cuts = np.array(plan.edges), np.array(plan.cuts, dtype=np.float32)
        r, c, score = _survivors(A1 @ B1.T, A, B, edges, cuts, i == j)
        r, c = r + np.int32(i * plan.block), c + np.int32(j * plan.block)
        shared = np.zeros(len(r), np.int8) if self.public is None else self.public.shared(r, c)
        q, rival, margin = self.levels.rounded(score, shared, plan.d)
        entries = {"rows": r, "columns": c, "overlap": q, "rival": rival, "margin": margin}
        return {name: values[q > 0] for name, values in entries.items()}


def score_rows(
    values: Floats, rows: Index, statistic: Statistic, public: KnownPublic | None
) -> tuple[Floats, NDArray[np.int8]]:
    """For every two of the given rows the score on all pixels, and the public vectors they
    share."""
    i, j = np.triu_indices(len(rows), 1)
    if public is not None:
        public = replace(public, supports=public.supports[rows])
    F = feature_rows(values[rows], statistic, np.arange(values.shape[1]), public)
    with one_blas_thread():
        C = F @ F.T
    return C[i, j], np.zeros(len(i), np.int8) if public is None else public.shared(i, j)


@njit(cache=True, nogil=True, fastmath=True)
def _survivors(C, A, B, edges, cuts, upper):  # type: ignore[no-untyped-def]
    """Pairs whose running score stays at or above every cut, with the score on all pixels; C holds
    the scores on the first edges[0] pixels. A row is compacted without branches: write, then move
    on if kept."""
    rows, columns = C.shape
    line = np.empty(columns, np.int32)
    value = np.empty(columns, np.float32)
    room = 1024
    r, c, s = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32)
    count = 0
    for i in range(rows):
        # 1. The screen: what passes the first cut.
        kept = 0
        for j in range(i + 1 if upper else 0, columns):
            line[kept] = j
            value[kept] = C[i, j]
            kept += C[i, j] >= cuts[0]
        # 2. Further pixels, stage by stage, for those still in.
        for stage in range(1, len(edges)):
            first, last, cut = edges[stage - 1], edges[stage], cuts[stage]
            before, kept = kept, 0
            a = A[i, first:last]
            for x in range(before):
                j = line[x]
                b = B[j, first:last]
                total = value[x]
                # Counting from 0 lets the compiler use vector instructions.
                for pixel in range(len(a)):
                    total += a[pixel] * b[pixel]
                line[kept] = j
                value[kept] = total
                kept += total >= cut
        # 3. What is left is noted; room is doubled where it runs out.
        if count + kept > room:
            room = 2 * (count + kept)
            r = np.concatenate((r[:count], np.empty(room - count, np.int32)))
            c = np.concatenate((c[:count], np.empty(room - count, np.int32)))
            s = np.concatenate((s[:count], np.empty(room - count, np.float32)))
        for x in range(kept):
            r[count], c[count], s[count] = i, line[x], value[x]
            count += 1
    return r[:count].copy(), c[:count].copy(), s[:count].copy()


# --- Evidence ------------------------------------------------------------------------------------


def weigh_evidence(
    overlap: Index,
    rival: Index,
    margin: Floats,
    plan: OverlapPlan,
    levels: Levels,
    rounds: int = 200,
) -> tuple[Array, float]:
    """(fractions (k+1,) of all pairs at each overlap, wrong pairs to expect), from all entries
    above 0."""
    pairs, k = plan.m * (plan.m - 1) / 2, levels.mean.shape[1] - 1
    if pairs == 0:
        return np.eye(k + 1)[0], 0.0
    # 1. Dropped unseen: those of overlap q below a cut, or in the end below their threshold.
    lost = np.zeros(k + 1)
    for p, share in enumerate(plan.shared):
        lines = [cut * plan.d / e for cut, e in zip(plan.cuts, plan.edges, strict=True)]
        lines[-1] = float(levels.balanced()[p, 0])
        for line, e in zip(lines, plan.edges, strict=True):
            part = levels.of_part(e / plan.d)
            for q in range(1, k + 1):
                lost[q] += share * part.below(line, p, q, e)
    lost = np.minimum(lost, 1.0)
    # 2. Entries by overlap, rival (0: one less, 1: one more) and margin, in quarters of a nat.
    #    Pairs that were never written down share nothing, as far as anybody knows.
    shape = k + 1, 2, 321
    bins = np.rint(4 * np.clip(margin, -30, 50)).astype(np.intp) + 120
    place = np.ravel_multi_index((overlap, (rival > overlap).astype(np.intp), bins), shape)
    table = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    nats = np.arange(321) / 4 - 30
    counts = table.sum(axis=(1, 2))
    counts[0] = pairs - counts[1:].sum()
    pi, moved = np.maximum(counts, 0.5) / pairs, np.zeros(shape)
    for _ in range(rounds):
        # 3. How many of those rounded to q belong to a neighbour, by their margins and π; move
        #    them, and add what was dropped unseen. The rest of the pairs share nothing.
        for q in range(1, k + 1):
            for side, r in ((0, q - 1), (1, min(q + 1, k))):
                odds = np.clip(np.log(pi[r] / pi[q]) - nats, -500, 500)
                moved[q, side] = table[q, side] / (1 + np.exp(-odds))
        new = counts - moved.sum(axis=(1, 2))
        new[1:] += moved[:-1, 1].sum(axis=1) + pairs * pi[1:] * lost[1:]
        new[:-1] += moved[1:, 0].sum(axis=1)
        new[0] = pairs - new[1:].sum()
        new = np.maximum(new, 1e-3) / pairs
        settled = np.abs(new - pi).max() < 1e-6 * pi.min() + 1e-15
        pi = new
        if settled:
            break
    return pi, float(moved.sum() + pairs * (pi[1:] * lost[1:]).sum())
