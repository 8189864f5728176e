"""MixUp (Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018): encodings that keep their signs, y = Σ a·x +
Σ b·p. Nothing is folded.

    0  c ← MatchingPursuit(Y)                the public part, where there is one
                                             (`supports.pursuit`)
    1  S ← plain Gram matrix YYᵀ, or UUᵀ     who shares how many vectors (`gram.whitened`)
    2  W ← Cliques(S), FactorOverlaps(S)     first guess at every subset (`factor.cliques`,
                                             `factor.all_vectors`); up to 20 vectors all columns of
                                             zeros and ones (`factor.binary_columns`)
    3  W, x ← LeastSquares, BestMembers      until encodings are reproduced, all pixels at once
                                             (`solve.linear`)
       c, W ← again for what is left over    with private vectors known nothing is noise
    4  status ← Certificate                  vector by vector, signs included
                                             (`certify.certificate`)

UUᵀ, the projector on the columns of Y, depends on W alone once the vectors are linearly independent
(n ≤ d): vectors may be images, alike, of any distribution. Guesses are tried from the cheapest on,
and what explains most encodings is kept. Under noise: least squares with its standard error, and
nothing is verified. Weights that differ from encoding to encoding are left to `full` and `natural`,
which ignore signs.

Cost: m²·d/2 for S, O(m·n·d) for each of a few rounds. FactorOverlaps, the last resort, is dense in
m: up to `LARGEST`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unveil.attacks.finish import certified
from unveil.attacks.finish_noisy import approximate
from unveil.attacks.mixup_public import Mixed, public_again
from unveil.attacks.mixup_subsets import subset_guesses
from unveil.attacks.units import column_offsets, column_units
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch, must_fit
from unveil.parallel import memory_limit as bytes_allowed
from unveil.records import Overlaps, Progress, Recovery
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng, child, root
from unveil.solve.determined import undetermined_by
from unveil.solve.linear import Floats, LinearFit, fit_linear, spread
from unveil.solve.model import PublicPart
from unveil.solve.pixels.chance import fit_nats
from unveil.solve.pixels.noisy import NoisySolution
from unveil.solve.pixels.pixels import PixelSolution
from unveil.solve.pixels.settle import Settled

NAME = "mixup"
ENOUGH = 0.95
"""Share of encodings from which on no further guess is tried."""
NOISIEST = 0.5
"""Noise, in units of a private pixel's rms, up to which what was found means something."""
SLIGHT = 0.05
"""Noise, in the same units, up to which a fit needs no rival. More may be a wrong guess: pictures
that are alike were fitted by 67 vectors for 100, with noise of a quarter."""
SHARPEST = 1e-3
"""Error of a pixel, in the same units, up to which a vector may be called exact."""
ALIKE = 16.0
"""Sizes of columns within such a factor are as good as one: exactness asks for 1e-4 of the rms of
all, float32 has 6e-8."""
BYTES = 40
"""Per value of the encodings, which are held in double precision with what is left of them."""


def mixup(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector the encodings determine, with its signs.

    overlaps: to start from, where they are known from elsewhere; some may be wrong
    """
    scheme, m, k = encodings.scheme, encodings.m, encodings.scheme.k_private
    if scheme.signs != "kept":
        raise InputError(
            f"signs={scheme.signs!r}: attack='mixup' is for signs='kept'; use attack='full'"
        )
    if k < 2:
        raise InputError(
            f"k_private={k}: attack='mixup' undoes mixtures of 2 private vectors or more; "
            "use attack='full'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    limit = bytes_allowed(memory_limit)
    what = f"attack='mixup' on {m:,} encodings of {encodings.d:,} pixels"
    must_fit(BYTES * m * encodings.d, what, limit, "attack fewer of them")
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    given = None if overlaps is None else overlaps.of(encodings)
    seed = root(rng)
    # Columns in units of their own, without what all records have in common: a table's small ones
    # would say nothing beside the large ones, and differences nothing beside a large offset. Where
    # the size of a private pixel is known, or noise is the same in all columns, they have one unit.
    total = k * scheme.private_weight + scheme.k_public * scheme.public_weight
    offset = column_offsets(encodings.values, total)
    values = (encodings.values - total * offset).astype(np.float32)
    scale = column_units(values)
    if encodings.pixel_rms is None and (scale.max() > ALIKE * scale.min() or offset.any()):
        scaled = replace(encodings, values=values / scale)
        known = None if P is None else ((P - offset) / scale).astype(np.float32)
        recovery = _solved(scaled, known, given, seed, limit, progress)
        if recovery.verified.any():
            vectors = (recovery.vectors * scale + offset).astype(np.float32)
            return replace(recovery, vectors=vectors)
    return _solved(encodings, P, given, seed, limit, progress)


def _solved(
    encodings: Encodings,
    P: NDArray[np.float32] | None,
    given: Overlaps | None,
    seed: np.random.SeedSequence,
    limit: int,
    progress: Progress | None,
) -> Recovery:
    m, k, clock = encodings.m, encodings.scheme.k_private, Stopwatch()
    # 0. The public part.
    mixed = Mixed.of(encodings, P, limit, clock, progress)
    # 1–3. One guess at the subsets after the other, until one explains enough.
    best: LinearFit | None = None
    guesses = subset_guesses(mixed.private_part(), k, given, limit, clock, progress)
    for members in guesses:
        with clock("subsets"):
            fit = fit_linear(mixed.private_part(), members, np.ones(m, bool), progress=progress)
        best = _better(best, fit)
        if (
            best is not None
            and len(best.rows) >= ENOUGH * m
            and (best.exact or _noise(best) < SLIGHT * _size(best))
        ):
            break
    if best is not None and best.exact and P is not None:
        with clock("public again"):
            mixed, best = public_again(mixed, best, limit, progress)
    if best is None:
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    # 4. Exact, with a certificate; or under noise, with standard errors.
    facts = {"estimated_n_private": len(best.values)}
    with clock("certificate"):
        error = spread(best.members, len(best.values), child(seed, "spread"))
    if best.exact:
        settled = _settled(encodings, best, error / _size(best))
        part = None if mixed.public is None else PublicPart(mixed.names, mixed.public, mixed.weight)
        return certified(encodings, NAME, settled, 1.0, part, clock, facts)
    noise = _noise(best)
    if 2 * len(best.rows) < m or noise > NOISIEST * _size(best):
        return Recovery.empty(encodings, NAME, _nothing(m), clock.seconds)
    determined = ~undetermined_by(best.members, len(best.values))
    nats = fit_nats(
        mixed.private_part()[best.rows],
        best.values[best.members].sum(axis=1),
        noise,
        child(seed, "chance"),
    )
    noisy = NoisySolution(
        best.values, best.rows, best.members, noise, noise * error, determined, nats
    )
    return approximate(encodings, NAME, noisy, 1.0, True, clock, facts)


def _better(first: LinearFit | None, second: LinearFit | None) -> LinearFit | None:
    """The exact one, of two exact ones that with more rows, of two noisy ones that with less
    noise."""
    if first is None or second is None:
        return first or second
    if first.exact and second.exact:
        return second if len(second.rows) > len(first.rows) else first
    return second if second.exact or (not first.exact and _noise(second) < _noise(first)) else first


def _noise(fit: LinearFit) -> float:
    """Its standard deviation, by what least squares leaves; infinite where it leaves nothing to go
    by."""
    freedom = len(fit.rows) - len(fit.values)
    return float(np.sqrt(np.sum(fit.miss**2) / freedom)) if freedom > 0 else float("inf")


def _size(fit: LinearFit) -> float:
    """The rms of a private pixel."""
    return float(np.sqrt(np.mean(fit.values**2))) or 1.0


def _settled(encodings: Encodings, fit: LinearFit, error: Floats) -> Settled:
    """What the certificate looks at. Least squares has one solution: a pixel differs only where
    rounding is blown up."""
    n, d = fit.values.shape
    W = sparse.csr_array(
        (
            np.ones(fit.members.size),
            (np.repeat(np.arange(len(fit.rows)), fit.members.shape[1]), fit.members.ravel()),
        ),
        shape=(len(fit.rows), n),
    )
    group = connected_components(W.T @ W, directed=False)[1].astype(np.int64)
    # Six standard errors, as if the largest residual were the noise.
    uncertain = 6 * float(fit.miss.max(initial=0.0)) * error > SHARPEST
    solution = PixelSolution(
        fit.values,
        np.full(d, float(fit.miss.max())),
        np.ones(d, bool),
        d * uncertain.astype(int),
        group,
    )
    nothing = np.empty(0, np.int64), np.empty((0, fit.members.shape[1]), np.int64)
    return Settled(fit.rows, fit.members, solution, nothing, [])


def _nothing(m: int) -> str:
    return (
        f"no consistent explanation of the {m} encodings: more encodings or pixels are needed, or "
        "another k_private"
    )


ATTACK = mixup
