"""From subsets to vectors: what every attack has left to do that finds out, by whatever means, who
mixes whom.

    1  x ← every value, from the subsets given; where few hold exactly, the likeliest under noise
    2  status ← certificate

No subset is looked for here: encodings without one stay unexplained, so that what comes out is the
merit of the attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch, must_fit
from unveil.engine.blocks import memory_limit as limit
from unveil.exact import judged
from unveil.exact.noise import explain
from unveil.exact.problem import as_problem
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

    enough: under noise, the share of all encodings that must hold
    most_noise: what noise may be, in units of a private part: subsets of chance leave more
    """
    chosen = None if supports is None or public is None else supports.indices
    if chosen is not None:
        known = (chosen[rows] >= 0).all(axis=1)
        rows, members = rows[known], members[known]
    if len(np.unique(members)) <= members.shape[1] or len(rows) <= members.shape[1] + 2:
        why = f"subsets of {len(rows)} encodings were found: too few to solve for private vectors"
        return Recovery.empty(encodings, name, why, clock.seconds)
    n = int(members.max()) + 1
    must_fit(24 * n * n, f"least squares for {n:,} vectors", limit(memory_limit), "attack a part")
    # Magnitudes are all that was looked at: where signs were kept, ours are not theirs.
    encodings = replace(encodings, scheme=replace(encodings.scheme, signs="random"))
    part = replace(encodings, values=encodings.values[rows], labels=None)
    whole = np.full((encodings.m, encodings.scheme.k_private), -1)
    with clock("pixels"):
        problem = as_problem(part, public, None if chosen is None else chosen[rows])
        claim = explain(problem, members, rng=rng, progress=progress)
    size = np.sqrt(problem.k * np.mean(claim.vectors**2)) if len(claim.vectors) else 0.0
    few = claim.error is not None and claim.explained * len(rows) < enough * encodings.m
    if not size or few or claim.noise > most_noise * size:
        why = "the subsets that were found do not hold: overlaps were misread, or k_private is "
        return Recovery.empty(encodings, name, why + "another", clock.seconds)
    whole[rows] = claim.members
    with clock("certificate"):
        recovery = judged(encodings, claim, whole, public, chosen, progress)
    facts = {**recovery.evidence, "encodings_explained": recovery.explained, **(facts or {})}
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
