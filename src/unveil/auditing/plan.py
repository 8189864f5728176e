"""Before running: which attack, what holds, how many seconds, how much memory, how many encodings would be needed.

Seconds of a stage = Σ coefficient · operations · (seconds per operation on this machine). Operations are counted from the loops
of the stages; seconds per operation come from a probe of a few hundredths of a second, a matrix product and elementwise
arithmetic. Coefficients were fitted to measured stages, relative errors weighted by a stage's share of the whole
(`python -m benchmarks.plan --fit` prints them anew). They hold for data like the Gaussian model; on other data the solver
tries again and again, and `HARD` times longer is typical. Kernels are compiled once per machine: `COMPILE` seconds more.

Encodings needed. All vectors: each must be used twice or more, and the factorisation must lock in; runs of
`benchmarks/full_attack.py` give `PER_VECTOR` encodings per private vector, with the pixels of `PIXELS_FOR`. The paper's
attack: where one floral is to be expected (`factor.expectation`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from unveil.attacks.full import LARGEST
from unveil.attacks.full import PIXELS as FEEDBACK_PIXELS
from unveil.auditing.result import Guarantee, Stage
from unveil.factor.expectation import encodings_needed, expected_florals
from unveil.parallel import free_memory, one_blas_thread
from unveil.records import InputError, Scheme

PER_VECTOR = 7.0
HARD = 15.0
COMPILE = 30.0
ROUNDS = 3
BASE = 230 << 20
"""Bytes of the interpreter with everything loaded."""
PAPER = "enough encodings for the paper's attack"
PIXELS_FOR = {2: 120, 3: 300, 4: 600, 5: 1000, 6: 1400}
"""Pixels from which on all 100 vectors came back from 700 encodings in 9 or 10 of 10 seeds (`benchmarks/full_attack.py`)."""


@dataclass(frozen=True)
class Machine:
    """Seconds per multiply-add of a float32 product, and per value of elementwise float32 arithmetic; one BLAS thread."""

    product: float
    value: float


NOMINAL = Machine(1.5e-11, 1.3e-9)
"""The machine by whose seconds effort is counted: one core of about 2020."""

COEFFICIENTS: dict[str, dict[str, float]] = {
    "learn public": {"rows": 230.0, "scores": 8.0},
    "similarity": {"features": 5.8, "pairs": 1.4},
    "factor": {"grow": 17.0, "refine": 0.7},
    "feedback": {"inverse": 14.0, "pairs": 1.2, "steps": 0.23},
    "pixels": {"inverse": 4.0, "steps": 0.33},
    "certificate": {"vectors": 50.0},
    "overlaps": {"features": 6.0, "pairs": 1.4},
}


@dataclass(frozen=True)
class Plan:
    """What a call of `unveil.recover` would do. `str(plan)` says it in words.

    seconds: all stages, without compiling; memory: peak bytes of the process; needed: encodings for all vectors
    """

    attack: str
    scheme: Scheme
    n_private: int
    m: int
    d: int
    n_public: int
    seconds: float
    compile_seconds: float
    memory: int
    stages: tuple[Stage, ...]
    preconditions: tuple[Guarantee, ...]
    needed: int
    needed_by_paper: int
    advice: str

    @property
    def feasible(self) -> bool:
        """Whether all that the chosen attack needs holds."""
        return all(item.holds for item in self.preconditions if item.what != PAPER or self.attack == "paper")

    def facts(self) -> dict[str, Any]:
        out = {name: value for name, value in vars(self).items() if name not in ("scheme", "stages", "preconditions")}
        out["scheme"] = dict(vars(self.scheme))
        out["stages"] = {stage.name: stage.seconds for stage in self.stages}
        out["preconditions"] = [dict(vars(item)) for item in self.preconditions]
        return {**out, "feasible": self.feasible}

    def __str__(self) -> str:
        return self.advice


def plan(
    scheme: Scheme | None = None,
    n_private: int = 100,
    m: int | None = None,
    d: int = 3072,
    *,
    n_public: int = 0,
    noise: float = 0.0,
    machine: Machine | None = None,
) -> Plan:
    """Forecast for m encodings (None: as many as are needed) of n_private vectors with d pixels, on this machine."""
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    counts_given = (("n_private", n_private, 1), ("m", 1 if m is None else m, 1), ("d", d, 1), ("n_public", n_public, 0))
    for name, value, least in counts_given:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
    k = scheme.k_private
    if k > n_private:
        raise InputError(f"k_private={k} of only {n_private} private vectors: lower k_private or raise n_private")
    if scheme.k_public > n_public:
        raise InputError(f"k_public={scheme.k_public} of only {n_public} public vectors: lower k_public or raise n_public")
    if k < 2:
        raise InputError(f"k_private={k}: the attacks of this package need k_private of 2 or more")
    needed = encodings_for_all(scheme, n_private)
    m = needed if m is None else int(m)
    attack = "full" if m <= LARGEST else "paper"
    counts = _operations(scheme, n_private, m, d, n_public, attack)
    stages = tuple(Stage(name, seconds) for name, seconds in _seconds(counts, machine or this_machine()).items())
    memory = _memory(scheme, n_private, m, d, n_public, attack)
    by_paper = encodings_needed(n_private, k) if n_private >= k + 2 else 0
    conditions = _preconditions(scheme, n_private, m, d, needed, memory, noise, attack)
    seconds = sum(stage.seconds for stage in stages)
    return Plan(
        attack=attack,
        scheme=scheme,
        n_private=n_private,
        m=m,
        d=d,
        n_public=n_public,
        seconds=seconds,
        compile_seconds=COMPILE,
        memory=memory,
        stages=stages,
        preconditions=conditions,
        needed=needed,
        needed_by_paper=by_paper,
        advice=_advice(attack, n_private, m, needed, conditions),
    )


def encodings_for_all(scheme: Scheme, n: int) -> int:
    """From about how many encodings on all n private vectors come back.

    Every vector must be in two different encodings at least: m·k/n of Poisson uses, n·P(fewer than 2) below 1/10.
    """
    k = max(1, scheme.k_private)
    uses = 1.0
    while n * (1 + uses) * np.exp(-uses) > 0.1:
        uses += 0.1
    return int(min(LARGEST, max(ceil(PER_VECTOR * n), ceil(uses * n / k), k + 10)))


def nominal_seconds(scheme: Scheme, n: int, m: int, d: int, n_public: int, *, hard: bool) -> float:
    """Forecast on the nominal machine: the same everywhere, so that decisions that rest on it are."""
    attack = "full" if m <= LARGEST else "paper"
    total = sum(_seconds(_operations(scheme, n, m, d, n_public, attack), NOMINAL).values())
    return total * (HARD if hard else 1.0)


@cache
def this_machine() -> Machine:
    """Measured once per process."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((512, 512)).astype(np.float32)
    B = np.abs(A)
    with one_blas_thread():
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


def _operations(scheme: Scheme, n: int, m: int, d: int, n_public: int, attack: str) -> dict[str, dict[str, tuple[str, float]]]:
    """stage → term → (unit, operations); units are the fields of `Machine`."""
    k = scheme.k_private
    rows, scores = float(m) * d * scheme.k_public, float(m) * d * n_public
    out = {"learn public": {"rows": ("value", rows), "scores": ("product", scores)}} if scheme.k_public else {}
    if attack == "paper":
        return {**out, "overlaps": {"pairs": ("product", 0.5 * float(m) ** 2 * d), "features": ("value", float(m) * d)}}
    p = min(d, FEEDBACK_PIXELS)
    columns = n + max(3, n // 10)
    partners = min(max(4000 // m, 2), 12)
    seeds = 0.7 * m * partners
    step_p, step_d = (float(m) * width * (6 + 2 * k) for width in (p, d))
    steps = 200 + 60 * (ROUNDS - 1)
    pairs = ROUNDS * columns**2 / 2 * float(m) * p
    search = {"pairs": ("product", pairs)} if k == 2 and not scheme.k_public else {}
    return {
        **out,
        "similarity": {"pairs": ("product", float(m) ** 2 * d), "features": ("value", float(m) * d)},
        "factor": {
            "grow": ("product", 12 * 2 * float(m) * n * seeds),
            "refine": ("product", 10 * 2 * n * float(m) ** 2),
        },
        "feedback": {"steps": ("value", steps * step_p), "inverse": ("product", steps * float(columns) ** 2 * p), **search},
        "pixels": {"steps": ("value", 200 * step_d), "inverse": ("product", 200 * float(n) ** 2 * d)},
        "certificate": {"vectors": ("value", 1e4 * n)},
    }


def _seconds(counts: dict[str, dict[str, tuple[str, float]]], machine: Machine) -> dict[str, float]:
    return {
        stage: FLOOR
        + sum(COEFFICIENTS[stage][term] * number * getattr(machine, unit) for term, (unit, number) in terms.items())
        for stage, terms in counts.items()
    }


FLOOR = 2e-3
"""Seconds of any stage, however small."""


def _memory(scheme: Scheme, n: int, m: int, d: int, n_public: int, attack: str) -> int:
    """Peak bytes: the process, the data with their copies, and the largest stage."""
    data = 4.0 * d * (m * (3 + 2 * (scheme.k_public > 0)) + n + 3 * n_public)
    if attack == "paper":
        return int(BASE + data + 64 * m + 2 * (4 * 1024**2 + 12 * 1024 * d))
    partners = min(max(4000 // m, 2), 12)
    seeds = 0.7 * m * partners
    factor = 8.0 * m * m * 4 + 4.0 * m * seeds * 4
    pixels = 4.0 * m * min(d, 1024) * 8 + 8.0 * m * min(d, 1024) * 5
    pairs = 8.0 * m * min(16384, n * n // 2) if scheme.k_private == 2 and not scheme.k_public else 0.0
    return int(BASE + data + max(factor, 8.0 * m * m + max(pixels, pairs)))


def _preconditions(
    scheme: Scheme, n: int, m: int, d: int, needed: int, memory: int, noise: float, attack: str
) -> tuple[Guarantee, ...]:
    k = scheme.k_private
    least = int(PIXELS_FOR.get(k, 1400 * (k / 6) ** 2) * max(1.0, 7 * n / max(m, 1)) ** 2)
    florals = expected_florals(n, k, m)
    uses = m * k / n
    return (
        Guarantee(f"up to {LARGEST:,} encodings, for the full attack", attack == "full", f"{m:,} encodings"),
        Guarantee("enough encodings", m >= needed, f"{m:,} of about {needed:,}, {uses:.1f} uses of each vector"),
        Guarantee("enough pixels", d >= least, f"{d:,} of about {least:,} for k_private={k}"),
        Guarantee("more than 2·k_private vectors", n > 2 * k, f"{n} vectors; of 2·k_private two sets give the same encodings"),
        Guarantee(PAPER, florals >= 1, f"{florals:.2g} florals to be expected"),
        Guarantee("no noise", noise == 0, "exact values need exact encodings" if noise else "encodings are exact"),
        Guarantee("enough memory", memory < free_memory(), f"{memory / 2**30:.2f} GiB of {free_memory() / 2**30:.1f} free"),
    )


def _advice(attack: str, n: int, m: int, needed: int, conditions: tuple[Guarantee, ...]) -> str:
    missing = [item.what for item in conditions if not item.holds and (item.what != PAPER or attack == "paper")]
    who = "the full attack" if attack == "full" else "the paper's attack"
    if not missing:
        return f"All {n} private vectors should come back from {m:,} encodings by {who}."
    return f"By {who} not all of {n} private vectors should come back from {m:,} encodings: missing are {', '.join(missing)}."
