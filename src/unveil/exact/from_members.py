"""From subsets to vectors: what every attack has left to do that finds out, by whatever means, who
mixes whom.

    1  x ← every value, from the subsets given (`exact.values`)
    2  status ← certificate
    3  where few of them hold exactly: x ← most likely under noise (`exact.noise`)

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
from unveil.exact import up_to_noise
from unveil.exact.noise import fit_noisy
from unveil.exact.problem import Claim, as_problem
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
    most_noise: float = 0.3,
) -> Recovery:
    """Vectors of the subsets `members` (len(rows), k) of the encodings `rows`, with the
    certificate.

    enough: the share of the subsets, and of the values, that must hold exactly, below it noise is
        assumed; and then the share of all encodings that must hold up to noise
    most_noise: what noise may be, in units of a private part: subsets of chance leave more
    """
    facts = facts or {}
    chosen = None if supports is None or public is None else supports.indices
    if chosen is not None:
        known = (chosen[rows] >= 0).all(axis=1)
        rows, members = rows[known], members[known]
    if len(np.unique(members)) <= members.shape[1] or len(rows) <= members.shape[1] + 2:
        why = f"subsets of {len(rows)} encodings were found: too few to solve for private vectors"
        return Recovery.empty(encodings, name, why, clock.seconds)
    # Magnitudes are all that was looked at: where signs were kept, ours are not theirs.
    encodings = replace(encodings, scheme=replace(encodings.scheme, signs="random"))
    part = replace(encodings, values=encodings.values[rows], labels=None)
    whole = np.full((encodings.m, encodings.scheme.k_private), -1)
    with clock("pixels"):
        problem = as_problem(part, public, None if chosen is None else chosen[rows])
        means: dict[str, Any] = {"rng": rng, "progress": progress, "memory_limit": memory_limit}
        claim = solve_values(problem, members, **means)
        noisy = claim.explained < enough or claim.open.mean() > enough
        if noisy:
            fit = fit_noisy(problem, members=members, **means)
            # A fit to noise leaves wrong subsets out; without them the others may hold exactly.
            again = solve_values(problem, fit.members, **means)
            noisy = again.explained < enough or again.open.mean() > enough
            claim = claim if noisy else again
    if not noisy:
        whole[rows] = claim.members
        with clock("certificate"):
            recovery = certify(
                encodings, claim.vectors, whole, public, chosen, claim.open, progress=progress
            )
        facts = {**recovery.evidence, "encodings_explained": recovery.explained, **facts}
    else:
        size = float(np.sqrt(np.mean(fit.vectors**2, dtype=np.float64))) if fit.vectors.size else 0
        if (
            fit.explained * len(rows) < enough * encodings.m
            or fit.noise > most_noise * np.sqrt(problem.k) * size
        ):
            why = "the subsets that were found do not hold: overlaps were misread, or k_private is "
            return Recovery.empty(encodings, name, why + "another", clock.seconds)
        whole[rows] = fit.members
        claim = Claim(
            fit.vectors, fit.members, np.zeros(fit.vectors.shape, bool), "", fit.error, fit.noise
        )
        recovery = up_to_noise(encodings, claim, whole, public is not None, {})
        facts = {**recovery.evidence, **facts}
    return replace(recovery, attack=name, seconds=clock.seconds, evidence=facts).about(encodings)


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
