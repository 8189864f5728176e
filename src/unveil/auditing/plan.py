"""Before running: which attack, what holds, how many seconds, how much memory, how many encodings
would be needed.

Seconds and bytes come from `auditing.costs`; kernels are compiled once per machine, `COMPILE`
seconds more.

Encodings needed. All vectors: each must be used twice or more, and the factorisation must lock in;
runs of `benchmarks/full_attack.py` give `costs.PER_VECTOR` encodings per private vector, with the
pixels of `PIXELS_FOR`. The paper's attack: where one floral is to be expected
(`factor.floral.expectation`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb
from typing import Any

import numpy as np

from unveil.attacks.choose import Situation, usual
from unveil.attacks.full import LARGEST
from unveil.auditing.costs import (
    NOMINAL,
    PER_VECTOR,
    Machine,
    attack_seconds,
    memory_needed,
    operations,
    relation_seconds,
    route,
    stage_seconds,
    this_machine,
)
from unveil.auditing.result import Guarantee, Stage
from unveil.checks import InputError
from unveil.factor.floral.expectation import encodings_needed, expected_florals
from unveil.parallel import free_memory
from unveil.relations.expected import expected_relations
from unveil.scheme import EXACT_WEIGHTINGS, Scheme
from unveil.shown import Shown

COMPILE = 30.0
"""Seconds to compile all kernels, a rough figure: told beside the forecast, never added to it."""
PAPER = "enough encodings for the paper's attack"
PIXELS_FOR = {2: 120, 3: 300, 4: 600, 5: 1000, 6: 1400}
"""Pixels from which on all 100 vectors came back from 700 encodings in 9 or 10 of 10 seeds
(`benchmarks/full_attack.py`)."""

FEWEST_PIXELS = 4
"""Continuous pixels with which exact relations are told from chance (`docs/exact_relations.md`)."""
SELDOM = 0.1
"""Vectors used less than twice that are to be expected: in nine of ten releases there is none."""
STEP = 0.1
"""Uses per vector from one guess at what is needed to the next."""


@dataclass(frozen=True)
class Plan(Shown):
    """What a call of `unveil.recover` would do on data of any distribution: those that look
    Gaussian are left to `full` first, and take less. `str(plan)` says it in words.

    seconds: all stages of `attack`, without compiling; tried, most_seconds: the attacks that follow
    each other where the one before does not get through, and what all of them take on data that are
    not Gaussian; memory: peak bytes of the process; needed: encodings for all vectors
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
    tried: tuple[str, ...] = ()
    most_seconds: float = 0.0

    @property
    def feasible(self) -> bool:
        """Whether all that the chosen attack needs holds."""
        return all(
            item.holds
            for item in self.preconditions
            if item.what != PAPER or self.attack == "paper"
        )

    def facts(self) -> dict[str, Any]:
        out = {
            name: value
            for name, value in vars(self).items()
            if name not in ("scheme", "stages", "preconditions")
        }
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
    """Forecast an attack: which one, how long, how much memory, and whether it should succeed.

    Parameters
    ----------
    scheme : Scheme
        How encodings are made; None: `Scheme()`.
    n_private : int
        Private vectors behind the encodings.
    m : int
        Encodings; None: as many as all vectors need.
    d : int
        Pixels of a vector.
    n_public : int
        Public vectors to choose from.
    noise : float
        Standard deviation added to every pixel.
    machine : Machine
        Seconds per operation; None: measured here, in a few hundredths of a second.

    Returns
    -------
    Plan
        Attack, seconds, bytes, what must hold and what is missing; `str(plan)` says it in words.

    Examples
    --------
    >>> import unveil
    >>> found = unveil.plan(unveil.Scheme(k_private=2), n_private=100, m=700, d=512)
    >>> found.attack, found.feasible
    ('relations', True)
    >>> print(found)
    All 100 private vectors should come back from 700 encodings by exact relations.
    >>> unveil.plan(n_private=100, m=50).feasible
    False
    """
    # 1. Numbers that can be.
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    counts_given = (
        ("n_private", n_private, 1),
        ("m", 1 if m is None else m, 1),
        ("d", d, 1),
        ("n_public", n_public, 0),
    )
    for name, value, least in counts_given:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
    k = scheme.k_private
    if k > n_private:
        raise InputError(
            f"k_private={k} of only {n_private} private vectors: lower k_private or raise n_private"
        )
    if scheme.k_public > n_public:
        raise InputError(
            f"k_public={scheme.k_public} of only {n_public} public vectors: lower k_public or "
            "raise n_public"
        )
    if k < 2:
        raise InputError(f"k_private={k}: forecasts are for k_private of 2 or more")
    scheme.require_weighting(*EXACT_WEIGHTINGS)
    # 2. How many encodings, and which attack.
    needed = encodings_for_all(scheme, n_private)
    m = needed if m is None else int(m)
    way = route(scheme, n_private, m, d)
    attack = _attack(scheme, n_private, m, d)
    # 3. What it costs, stage by stage.
    counts = operations(scheme, n_private, m, d, n_public, way)
    speed = machine or this_machine()
    times = stage_seconds(counts, speed)
    slower = speed.value / NOMINAL.value
    if attack == "relations":
        times = {name: slower * seconds for name, seconds in relation_seconds(m, d).items()}
    stages = tuple(Stage(name, seconds) for name, seconds in times.items())
    memory = memory_needed(scheme, n_private, m, d, n_public, way)
    by_paper = encodings_needed(n_private, k) if n_private >= k + 2 else 0
    # 4. What must hold.
    conditions = _preconditions(scheme, n_private, m, d, needed, memory, noise, attack)
    seconds = sum(stage.seconds for stage in stages)
    # 5. And what it costs where the first attack does not get through.
    tried = usual(Situation(scheme, m))
    each = (attack_seconds(name, scheme, n_private, m, d, n_public, hard=True) for name in tried)
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
        tried=tried,
        most_seconds=max(seconds, slower * sum(each)),
    )


def encodings_for_all(scheme: Scheme, n: int) -> int:
    """From about how many encodings on all n private vectors come back.

    Every vector must be in two different encodings at least: m·k/n of Poisson uses, n·P(fewer than
    2) below 1/10.
    """
    k = max(1, scheme.k_private)
    # Uses of a vector are nearly Poisson: (1 + u)·e^−u is the chance of fewer than two.
    uses = 1.0
    while n * (1 + uses) * np.exp(-uses) > SELDOM:
        uses += STEP
    needed = max(ceil(PER_VECTOR * n), ceil(uses * n / k), k + 10)
    return needed if scheme.fixed_weights and not scheme.k_public else min(LARGEST, needed)


def _attack(scheme: Scheme, n: int, m: int, d: int) -> str:
    """The first of the usual attacks that should get through: relations only where there are
    enough of them."""
    # Two relations for each encoding connect all of them with room to spare.
    enough = _relations(scheme, n, m) >= 2 * m and d >= FEWEST_PIXELS
    names = usual(Situation(scheme, m))
    return next(name for name in names if name != "relations" or enough)


def _relations(scheme: Scheme, n: int, m: int) -> float:
    """Exact relations to be expected; none where weights differ, and with a public part they are
    not counted on."""
    if not scheme.fixed_weights or scheme.k_public:
        return 0.0
    return expected_relations(n, min(m, comb(n, scheme.k_private)), scheme.k_private)


def _preconditions(
    scheme: Scheme, n: int, m: int, d: int, needed: int, memory: int, noise: float, attack: str
) -> tuple[Guarantee, ...]:
    # 1. What there is of each: pixels needed grow with the square of what encodings are missing.
    k = scheme.k_private
    least = int(PIXELS_FOR.get(k, 1400 * (k / 6) ** 2) * max(1.0, 7 * n / max(m, 1)) ** 2)
    florals = expected_florals(n, k, m)
    uses = m * k / n
    # With two exact relations per encoding a handful of continuous pixels is enough, whatever their
    # distribution.
    relations = _relations(scheme, n, m)
    by_relations = relations >= 2 * m and d >= FEWEST_PIXELS
    # 2. Whether it is enough.
    return (
        Guarantee(
            "an attack on all vectors applies",
            attack != "paper",
            f"{m:,} encodings; full: with a public part up to {LARGEST:,}",
        ),
        Guarantee(
            "enough encodings",
            m >= needed,
            f"{m:,} of about {needed:,}, {uses:.1f} uses of each vector",
        ),
        Guarantee(
            "enough pixels",
            d >= least or by_relations,
            f"{d:,} of about {least:,} for k_private={k}; {relations:.2g} exact relations to be "
            "expected" + (", with which a few continuous ones are enough" if by_relations else ""),
        ),
        Guarantee(
            "more than 2·k_private vectors",
            n > 2 * k,
            f"{n} vectors; of 2·k_private two sets give the same encodings",
        ),
        Guarantee(PAPER, florals >= 1, f"{florals:.2g} florals to be expected"),
        Guarantee(
            "no noise",
            noise == 0,
            "exact values need exact encodings" if noise else "encodings are exact",
        ),
        Guarantee(
            "enough memory",
            memory < free_memory(),
            f"{memory / 2**30:.2f} GiB of {free_memory() / 2**30:.1f} free",
        ),
    )


def _advice(attack: str, n: int, m: int, needed: int, conditions: tuple[Guarantee, ...]) -> str:
    missing = [
        item.what
        for item in conditions
        if not item.holds and (item.what != PAPER or attack == "paper")
    ]
    who = {
        "relations": "exact relations",
        "full": "the full attack",
        "mixup": "the attack on mixtures with signs",
        "paper": "the paper's attack",
    }[attack]
    if not missing:
        return f"All {n} private vectors should come back from {m:,} encodings by {who}."
    return (
        f"By {who} not all of {n} private vectors should come back from {m:,} encodings: missing "
        f"are {', '.join(missing)}."
    )
