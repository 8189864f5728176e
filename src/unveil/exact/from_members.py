"""From subsets to vectors: what every attack has left to do that finds out, by whatever means, who
mixes whom.

    1  x ← every value, from the subsets given (`exact.values`)
    2  where few of them hold exactly: x ← most likely under noise (`exact.noise`)
    3  status ← certificate

No subset is looked for here: encodings without one stay unexplained, so that what comes out is the
merit of the attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.certificate import certify
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch
from unveil.exact.noise import fit_noisy
from unveil.exact.problem import as_problem
from unveil.exact.values import solve_values
from unveil.records import Overlaps, Progress, Recovery, Supports


def from_subsets(
    encodings: Encodings,
    name: str,
    rows: NDArray[np.int64],
    members: NDArray[np.int64],
    rng: np.random.Generator,
    clock: Stopwatch,
    *,
    public: NDArray[np.float32] | None = None,
    supports: Supports | None = None,
    facts: Mapping[str, Any] | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    enough: float = 0.5,
) -> Recovery:
    """Vectors of the subsets `members` (len(rows), k) of the encodings `rows`, with the
    certificate.

    enough : the share of the subsets that must hold exactly; below it noise is assumed."""
    chosen = None if supports is None or public is None else supports.indices
    if chosen is not None:
        known = (chosen[rows] >= 0).all(axis=1)
        rows, members = rows[known], members[known]
    part = replace(encodings, values=encodings.values[rows], labels=None)
    with clock("pixels"):
        problem = as_problem(part, public, None if chosen is None else chosen[rows])
        claim = solve_values(
            problem, members, rng=rng, progress=progress, memory_limit=memory_limit
        )
        vectors, mixed, doubt = claim.vectors, claim.members, claim.open
        if claim.explained < enough:
            fit = fit_noisy(
                problem, members=members, rng=rng, progress=progress, memory_limit=memory_limit
            )
            if fit.explained > claim.explained:
                vectors, mixed = fit.vectors, fit.members
                doubt = np.zeros(vectors.shape, bool)
    whole = np.full((encodings.m, problem.k), -1)
    whole[rows] = mixed
    with clock("certificate"):
        recovery = certify(encodings, vectors, whole, public, chosen, doubt, progress=progress)
    return replace(
        recovery,
        attack=name,
        seconds=clock.seconds,
        evidence={**recovery.evidence, **(facts or {})},
    ).about(encodings)


def read_overlaps(
    encodings: Encodings, public: Any, given: Overlaps | None, how: dict[str, Any]
) -> tuple[Overlaps, dict[str, Any]]:
    """(overlaps, {public, supports}): LearnPublic, where the scheme has a public part, and
    GramExtract, where overlaps are not given."""
    from unveil.paper.gram_extract import gram_extract
    from unveil.paper.learn_public import learn_public

    P = as_public(public, encodings) if encodings.scheme.k_public else None
    S = None if P is None else learn_public(encodings, P, **how)
    M = None if given is None else given.of(encodings)
    found = M or gram_extract(encodings, P, supports=S, **how)
    return found, {"public": P, "supports": S}
