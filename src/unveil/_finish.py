"""Where values and statuses come from, for `paper` and `rivals`: no attack of these rooms judges
its own vectors.

    solved_floral      k+2 vectors of one floral with their status
    solved_members     every vector behind given memberships, with its status
    mixture_statuses   public vectors that encodings without a private part mix
    read_overlaps      the first step of attacks that read overlaps

The rooms that solve and judge lie above these, so they are imported when called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.encodings import Encodings, as_public
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED, Overlaps, Recovery

if TYPE_CHECKING:
    from unveil.paper.folded_search import Public
    from unveil.solve.floral.solve_floral import FloralSolution


def solved_floral(*claim: Any) -> FloralSolution:
    """The solution of a floral's sign system, judged by all encodings; claim: encodings, public
    vectors, supports, overlaps, floral, reading, signs."""
    from unveil.solve.floral.solve_floral import judge_floral

    return judge_floral(*claim)


def solved_members(*claim: Any, **options: Any) -> Recovery:
    """The recovery when some encodings mix given private vectors; claim: encodings, name of the
    attack, rows (r,), members (r, k), Generator, Stopwatch."""
    from unveil.attacks.from_subsets import from_subsets

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


def mixture_statuses(
    encodings: Encodings,
    public: Public,
    used: NDArray[np.int64],
    W: sparse.csr_array,
    exact: NDArray[np.bool_],
) -> tuple[NDArray[np.str_], list[str]]:
    """(status, reason) of the public vectors `used`, W (m, used) who mixes which: verified where a
    proof says that no other mixture has the same magnitudes."""
    from unveil.certify.certificate import FEWEST_PIXELS
    from unveil.certify.mixtures import only_mixture

    usable, k = np.flatnonzero(public.usable), encodings.scheme.k_public
    n, d = len(usable), encodings.d
    # Another number of vectors than the scheme mixes is no mixture of it: a vector that is not in
    # the list may be a combination of those that are.
    full = np.zeros((encodings.m, n))
    full[:, np.searchsorted(usable, used)] = W.toarray()
    stated = exact & ((full != 0).sum(axis=1) == k)
    proved = np.zeros(n, bool)
    if stated.any() and d >= n + FEWEST_PIXELS:
        V = public.vectors[usable].astype(np.float64)
        size = np.linalg.norm(V, axis=1)
        if np.linalg.eigvalsh(V @ V.T / np.outer(size, size))[0] > 1e-8:
            miss = np.abs(np.abs(full[stated] @ V) - encodings.magnitudes(stated)).max(axis=1)
            proved = np.asarray(only_mixture(V, full[stated], miss).any(axis=0))
    status, reasons = np.full(len(used), UNRESOLVED, dtype="<U10"), []
    for j, v in enumerate(np.searchsorted(usable, used)):
        count, sure = int((full[:, v] != 0).sum()), bool((full[exact, v] != 0).any())
        words = f"mixed into {count} encodings, "
        if not sure:
            words += "reproduced up to noise only"
        elif proved[v]:
            status[j] = VERIFIED
            words += f"reproduced at all {d} pixels by one mixture only"
        else:
            status[j] = AMBIGUOUS
            words += f"reproduced at all {d} pixels, but another mixture may have the same "
            words += f"magnitudes, or k_public={k} is not right"
        reasons.append(words)
    return status, reasons
