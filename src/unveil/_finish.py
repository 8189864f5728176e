"""Where values and statuses come from, for `paper` and `rivals`: no attack of these rooms judges
its own vectors.

    solved_floral      k+2 vectors of one floral with their status
    solved_members     every vector behind given memberships, with its status
    read_overlaps      the first step of attacks that read overlaps

The rooms that solve and judge lie above these, so they are imported when called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.encodings import Encodings, as_public
from unveil.records import Overlaps, Recovery

if TYPE_CHECKING:
    from unveil.paper.judge_floral import FloralSolution


def solved_floral(*claim: Any) -> FloralSolution:
    """The solution of a floral's sign system, judged by all encodings; claim: encodings, public
    vectors, supports, overlaps, floral, reading, signs."""
    from unveil.paper.judge_floral import judge_floral

    return judge_floral(*claim)


def solved_members(*claim: Any, **options: Any) -> Recovery:
    """The recovery when some encodings mix given private vectors; claim: encodings, name of the
    attack, rows (r,), members (r, k), Generator, Stopwatch."""
    from unveil.exact.from_members import from_subsets

    return from_subsets(*claim, **options)


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
