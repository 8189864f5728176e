"""What an attack costs: operations of every stage, seconds per operation on this machine, bytes.

Seconds of a stage = Σ coefficient · operations · (seconds per operation). Operations are counted
from the loops of the stages; seconds per operation come from a probe of a few hundredths of a
second, a matrix product and elementwise arithmetic. Coefficients were fitted to measured stages,
relative errors weighted by a stage's share of the whole; how well they hold shows `python -m
benchmarks.plan`. They are for data like the Gaussian model; on other data the solver tries again
and again, and `HARD` times longer is typical. Time to compile kernels, once per machine, is not in
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from unveil.attacks.choose import Situation, why_not
from unveil.attacks.dense import PIXELS as FEEDBACK_PIXELS
from unveil.attacks.full import LARGEST, SPARSE_FROM
from unveil.gram.engine.plan import FLOOR as DOUBT
from unveil.gram.engine.plan import OverlapPlan, make_plan
from unveil.gram.levels import folded_levels
from unveil.parallel import one_blas_thread
from unveil.scheme import Scheme

PER_VECTOR = 7.0
"""Encodings per private vector from which on all of them come back
(`benchmarks/full_attack.py`)."""
HARD, SHORT, ENOUGH = 15.0, 2.5, 0.7
"""How much longer it takes on data that are not Gaussian, and with fewer encodings than the share
ENOUGH of PER_VECTOR."""
NATURAL = 4e-6
"""Seconds of the natural-image attack on the nominal machine, per encoding and pixel (`python -m
benchmarks.images`)."""
ABSOLUTE = 30
"""Times longer than `natural` per encoding takes the attack on single encodings, `absolute`."""
RELATION_SECONDS = {"relations": (5e-7, 2, 0), "subsets": (5e-10, 3, 0), "pixels": (1e-6, 1, 1)}
"""Seconds of `attack="relations"` on the nominal machine: a·m^b·d^c for each (a, b, c), measured on
m = 280 to 1,050: pairs, an eigenproblem, signs."""
RIVAL_SECONDS = {"tensor": 5e-6, "line-graph": 5e-6, "cliques": 5e-6, "paper": 5e-5}
"""Seconds per pair of encodings of attacks that read single overlaps, beside the product that
gives them; measured on m = 210."""
ROUNDS = 3
"""Rounds of the feedback that are reckoned with: a first one, and two that put the rest right."""
MOST_PIXELS = 1 << 15
"""Pixels with which the engine's plan is asked for: more change nothing it decides."""
DENSEST = 0.9
"""Share of pairs that share a vector, at most: k²/n is meant for many vectors, and passes 1 for
few."""
READABLE, READABLE_PAIRS = 0.3, 1.5
"""Wrong overlaps per true one up to which single overlaps are read; the second for k_private = 2,
where an encoding is an edge and its neighbours show which overlaps are wrong."""
STARTS = 0.7
"""Share of the pairs a factorisation may grow from that are left when each is taken once."""
CHECKS, CHECKS_GROW = 1e4, 2.5
"""Values the certificate looks at per vector for k_private = 2, and the power of k_private with
which they grow; the coefficients were fitted with these."""
PER_ROW = 1e3
"""Values that cliques and their growth look at per encoding: a unit for the fitted coefficients."""
BASE = 250 << 20
"""Bytes of the interpreter with everything loaded."""


@dataclass(frozen=True)
class Machine:
    """Seconds per multiply-add of a float32 product, and per value of elementwise float32
    arithmetic; one BLAS thread."""

    product: float
    value: float


NOMINAL = Machine(1.5e-11, 1.3e-9)
"""The machine by whose seconds effort is counted: one core of about 2020."""

FLOOR = 2e-3
"""Seconds of any stage, however small."""
COEFFICIENTS: dict[str, dict[str, float]] = {
    "learn public": {"rows": 230.0, "scores": 8.0},
    "similarity": {"features": 5.8, "pairs": 1.4},
    "factor": {"grow": 12.0, "refine": 0.5},
    "feedback": {"inverse": 10.0, "pairs": 0.9, "steps": 0.2},
    "pixels": {"inverse": 3.0, "steps": 0.26, "peel": 40.0},
    "certificate": {"vectors": 22.0},
    "overlaps": {"work": 1.7, "doubt": 1.0, "features": 6.0},
    "cliques": {"rows": 6.0},
    "growth": {"rows": 6.0},
    "unequal": {"rows": 2e3, "pairs": 2.0},
}
"""stage → term → how many operations of the probe one of the stage is worth, as fitted to measured
stages (`python -m benchmarks.plan --stages` shows them)."""


def nominal_seconds(scheme: Scheme, n: int, m: int, d: int, n_public: int, *, hard: bool) -> float:
    """Forecast on the nominal machine: the same everywhere, so that decisions that rest on it are.

    `hard`: the data are not like the Gaussian model.
    """
    counts = operations(scheme, n, m, d, n_public, route(scheme, n, m, d))
    return sum(stage_seconds(counts, NOMINAL).values()) * (HARD if hard else 1.0)


def attack_seconds(
    attack: str, scheme: Scheme, n: int, m: int, d: int, n_public: int, *, hard: bool
) -> float:
    """Forecast of one attack on the nominal machine."""
    pairs = NOMINAL.product * m * m * d
    if attack in RIVAL_SECONDS:
        return 2 * pairs + RIVAL_SECONDS[attack] * m * m
    if attack in ("natural", "absolute"):
        return natural_seconds(m, d) * (1 if attack == "natural" else ABSOLUTE)
    if attack in ("relations", "noisy-relations"):
        return sum(relation_seconds(m, d).values())
    if attack in ("mixup", "unmix", "unmask", "unhidden"):
        return 4 * pairs
    return nominal_seconds(scheme, n, m, d, n_public, hard=hard)


def relation_seconds(m: int, d: int) -> dict[str, float]:
    """Seconds of the stages of `attack="relations"` on the nominal machine."""
    return {name: a * m**b * d**c for name, (a, b, c) in RELATION_SECONDS.items()}


def natural_seconds(m: int, d: int) -> float:
    """Of the natural-image attack, whose rounds are products of encodings with the prior's
    components."""
    return NATURAL * m * d


@cache
def this_machine() -> Machine:
    """Measured once per process."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((512, 512)).astype(np.float32)
    B = np.abs(A)
    with one_blas_thread():
        # The best of several: other work on the machine only ever makes it slower.
        product = _best(lambda: A @ A.T, 8) / 512**3
        value = _best(lambda: A + np.float32(0.5) * (np.copysign(B, 2 * B - A) - B), 8) / A.size
    return Machine(product, value)


def _best(work: Callable[[], object], times: int) -> float:
    best = np.inf
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def route(scheme: Scheme, n: int, m: int, d: int) -> str:
    """Which way `unveil.recover` should go: single overlaps readable → "sparse" (`attacks.large`),
    else "dense"."""
    if why_not("full", Situation(scheme, m)):
        return "paper"
    if scheme.k_private < 2 or not scheme.fixed_weights or m < SPARSE_FROM:
        return "dense"
    # Beside a public part single overlaps are read only where the dense way cannot follow.
    if scheme.k_public:
        return "sparse" if m > LARGEST else "dense"
    found = _overlap_plan(scheme, n, m, d)
    wrong = found.expected_errors / (found.occupancy * m * (m - 1) / 2)
    bound = READABLE_PAIRS if scheme.k_private == 2 else READABLE
    return "sparse" if m > LARGEST or wrong < bound else "dense"


def _overlap_plan(scheme: Scheme, n: int, m: int, d: int) -> OverlapPlan:
    """The engine's own plan."""
    # Few vectors would give a density above one, which the plan cannot read.
    density, d = min(DENSEST, scheme.k_private**2 / n), min(d, MOST_PIXELS)
    return make_plan(
        folded_levels(scheme),
        m,
        d,
        statistic="folded",
        doubt="affordable",
        occupancy=density,
        limit=8 << 30,
    )


Operations = dict[str, dict[str, tuple[str, float]]]


def operations(scheme: Scheme, n: int, m: int, d: int, n_public: int, route: str) -> Operations:
    """stage → term → (unit, operations); units are the fields of `Machine`."""
    # 1. The public part.
    k = scheme.k_private
    rows = float(m) * d
    if not scheme.fixed_weights:
        return {"unequal": {"rows": ("value", rows), "pairs": ("product", float(m) * rows)}}
    learn: Operations = {}
    if scheme.k_public:
        learn["learn public"] = {
            "rows": ("value", rows * scheme.k_public),
            "scores": ("product", rows * n_public),
        }
    # 2. Single overlaps, where they are read; doubtful ones cost what the engine allows them.
    overlaps: Operations = {}
    if route in ("sparse", "paper") or (
        m >= SPARSE_FROM and not scheme.k_public and scheme.fixed_weights
    ):
        found = _overlap_plan(replace(scheme, weighting="equal", alpha=1.0), n, m, d)
        work = found.work * (1 + 1 / found.blocks)
        overlaps["overlaps"] = {
            "work": ("product", work),
            "doubt": ("product", DOUBT),
            "features": ("value", rows),
        }
    if route == "paper":
        return {**learn, **overlaps}
    # 3. Pixels and certificate, the same for both routes.
    p = min(d, FEEDBACK_PIXELS)
    columns = n + max(3, n // 10)
    step_p, step_d = (float(m) * width * (6 + 2 * k) for width in (p, d))
    pixels = {"steps": ("value", 200 * step_d), "inverse": ("product", 200 * float(n) ** 2 * d)}
    certificate = {"vectors": ("value", CHECKS * n * (k / 2) ** CHECKS_GROW)}
    # 4. The sparse route: cliques among the overlaps, grown.
    if route == "sparse":
        return {
            **learn,
            **overlaps,
            "cliques": {"rows": ("value", PER_ROW * m)},
            "growth": {"rows": ("value", PER_ROW * m)},
            "pixels": {"peel": ("value", rows)} if k == 2 else pixels,
            "certificate": certificate,
        }
    # 5. The dense route: all similarities, a factorisation, feedback.
    seeds = _starts(m)
    again = 1.0 if m >= ENOUGH * PER_VECTOR * n else SHORT
    steps = again * (200 + 60 * (ROUNDS - 1))
    feedback = {
        "steps": ("value", steps * step_p),
        "inverse": ("product", steps * float(columns) ** 2 * p),
    }
    if k == 2 and not scheme.k_public:
        feedback["pairs"] = ("product", ROUNDS * columns**2 / 2 * float(m) * p)
    return {
        **learn,
        **overlaps,
        "similarity": {"pairs": ("product", float(m) * rows), "features": ("value", rows)},
        "factor": {
            "grow": ("product", 12 * 2 * float(m) * n * seeds),
            "refine": ("product", 10 * 2 * n * float(m) ** 2),
        },
        "feedback": feedback,
        "pixels": {term: (unit, again * number) for term, (unit, number) in pixels.items()},
        "certificate": certificate,
    }


def _starts(m: int) -> float:
    """Pairs from which the factorisation grows clusters (`factor.all_vectors`)."""
    return STARTS * m * min(max(4000 // m, 2), 12)


def stage_seconds(counts: Operations, machine: Machine) -> dict[str, float]:
    return {
        stage: FLOOR
        + sum(
            COEFFICIENTS[stage][term] * number * getattr(machine, unit)
            for term, (unit, number) in terms.items()
        )
        for stage, terms in counts.items()
    }


def memory_needed(scheme: Scheme, n: int, m: int, d: int, n_public: int, route: str) -> int:
    """Peak bytes: the process, the data with their copies, and the largest stage."""
    data = 4.0 * d * (m * (3 + 2 * (scheme.k_public > 0)) + 3 * n + 3 * n_public)
    if route in ("paper", "sparse"):
        # Bytes of an overlap that is not zero: its value, its place, and copies on the way.
        overlaps = 30.0 * m * (m * min(DENSEST, scheme.k_private**2 / n))
        return int(BASE + data + overlaps + 2 * (4 * 1024**2 + 12 * 1024 * min(d, 1024)))
    seeds = _starts(m)
    factor = 8.0 * m * m * 4 + 4.0 * m * seeds * 4
    block = 2 * min(d, 256)
    pixels = 4.0 * m * block * 8 + 8.0 * m * block * 5
    pairs = (
        8.0 * m * min(16384, n * n // 2) if scheme.k_private == 2 and not scheme.k_public else 0.0
    )
    return int(BASE + data + max(factor, 8.0 * m * m + max(pixels, pairs)))
