"""`recover`: whichever attack applies, by name or by the table below.

`TABLE` is the order of choice, each row with its reason; the attacks that apply are tried in turn
until one explains nearly all encodings. Where no scheme is stated, `unveil.identify` finds one.
Every attack has the signature attack(encodings, public, rng=…, memory_limit=…, progress=…) and
ends in the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from logging import getLogger as logger
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import DataLike, InputError, Rng, as_array, as_vectors
from unveil.encodings import Encodings
from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.identify import contradiction, identify, signs_of
from unveil.records import AMBIGUOUS, Overlaps, Progress, Recovery
from unveil.scheme import EXACT_WEIGHTINGS, Scheme

_log = logger(__name__)

_HOMES = {
    "exact": "unveil.exact:recover_exact",
    "mixing": "unveil.mixing:recover_mixture",
    "natural": "unveil.images:recover_images",
    "phase-retrieval": "unveil.rivals.phase_retrieval:phase_retrieval",
    "paper": "unveil.paper:learn_private_image",
    "line-graph": "unveil.rivals.line_graph:line_graph",
    "tensor": "unveil.rivals.tensor:tensor",
    "cliques": "unveil.rivals.cliques:cliques_and_flow",
    "absolute": "unveil.rivals.absolute:absolute",
}
_OLDER_NAMES = {
    **dict.fromkeys(("full", "relations", "unhidden", "noisy-relations"), "exact"),
    **dict.fromkeys(("mixup", "unmix", "unmask"), "mixing"),
}
_DATA = ("like", "private_like", "similarity")
ATTACKS = tuple(_HOMES)
"""Names that `recover(attack=…)` knows."""


def attack_called(name: str) -> Callable[..., Recovery]:
    """The function of an attack; its room is loaded when it is first asked for."""
    home = _HOMES.get(_OLDER_NAMES.get(name, name))
    if home is None:
        raise InputError(f"attack={name!r}: choose one of {', '.join(ATTACKS)}")
    module, function = home.split(":")
    found: Callable[..., Recovery] = getattr(import_module(module), function)
    return found


@dataclass(frozen=True)
class Choice:
    """A row of the table: an attack, when it applies, and why it is taken then."""

    attack: str
    applies: Callable[[Encodings, bool], bool]
    reason: str


TABLE: tuple[Choice, ...] = (
    Choice(
        "line-graph",
        lambda e, overlaps: overlaps and e.scheme.k_private == 2 and e.scheme.fixed_weights,
        "Overlaps are given and pairs are mixed: the root of their line graph says who.",
    ),
    Choice(
        "tensor",
        lambda e, overlaps: overlaps and e.scheme.k_private > 2 and e.scheme.fixed_weights,
        "Overlaps are given: their factors say who is mixed with whom.",
    ),
    Choice(
        "phase-retrieval",
        lambda e, overlaps: not overlaps and not e.scheme.k_private,
        "Nothing private is mixed: which public vectors, and how much of each, is the question.",
    ),
    Choice(
        "mixing",
        lambda e, overlaps: not overlaps and e.scheme.is_mixture,
        "Signs are kept or come from a pool, or weights are drawn anew: linear algebra.",
    ),
    Choice(
        "natural",
        lambda e, overlaps: (
            e.image_shape is not None and e.scheme.weighting not in EXACT_WEIGHTINGS
        ),
        "Images with weights of their own: what neighbouring pixels have in common helps.",
    ),
    Choice(
        "exact",
        lambda e, overlaps: not overlaps and e.scheme.fixed_weights and e.scheme.k_private > 0,
        "One weight for all and signs hidden: equations between encodings, then similarities.",
    ),
)
"""Tried in this order."""


def choose(encodings: Encodings, *, overlaps: bool = False) -> tuple[str, ...]:
    """The attacks that `recover` tries on these encodings; overlaps: whether they are given."""
    names = tuple(row.attack for row in TABLE if row.applies(encodings, overlaps))
    if names:
        return names
    scheme = encodings.scheme
    raise InputError(
        f"weighting={scheme.weighting!r}, signs={scheme.signs!r}, k_private={scheme.k_private}: no "
        "attack is made for this; if encodings are images, give Encodings(image_shape=), else "
        f"name an attack: {', '.join(ATTACKS)}"
    )


def recover(
    encodings: Encodings | DataLike,
    public: DataLike | None = None,
    *,
    attack: str | None = None,
    scheme: Scheme | None = None,
    overlaps: Overlaps | None = None,
    n_private: int | None = None,
    time_limit: float | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Private vectors out of encodings, by the attack that works best on them, or by name.

    What helps with images alone (images like the public ones, crops, units) goes to
    `unveil.recover_images`.

    Parameters
    ----------
    encodings : Encodings; or array of shape (m, d), tensor, frame or path
        What was released, with the scheme that made it; or the values alone.
    public : array of shape (n_public, d), tensor, frame or path
        The public vectors, where the scheme mixes some.
    attack : str
        The name of one attack; None: those of `attacks.TABLE` that apply, in turn.
    scheme : Scheme
        The scheme of an array. None: the scheme that explains the array best is taken
        (`unveil.identify`), and `Recovery.evidence["scheme"]` says why.
    overlaps : Overlaps
        How many private vectors each two encodings share, where that is known.
    n_private : int
        How many private vectors there are, where the attack asks for it.
    time_limit : float
        Seconds after which `exact` returns the best it has.
    rng : int, Generator or None
        The same number gives the same bytes.
    memory_limit : int
        Bytes that may be used; None: half of what is free.
    progress : function
        Called with stage, done and total.

    Returns
    -------
    Recovery
        Private vectors, each with its status and the reason; `explanation` says what was found, or
        what every attack that was tried ended with.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=20, m=140, d=30, rng=0)
    >>> recovery = unveil.recover(sim.encodings, rng=0)
    >>> unveil.score(recovery, sim.private).exact
    20
    """
    options = {"overlaps": overlaps, "n_private": n_private}
    how: dict[str, Any] = {
        "rng": rng,
        "memory_limit": memory_limit,
        "progress": progress,
        "time_limit": time_limit,
    }
    # Values alone: their scheme is given beside, or found out.
    if not isinstance(encodings, Encodings):
        values = as_vectors(encodings, "encodings")
        if scheme is None:
            if any(one is not None for one in (public, attack, *options.values())):
                raise InputError(
                    "encodings without a scheme take no other arguments: give scheme= too"
                )
            return identify_and_recover(values, **how)[1]
        encodings = Encodings(values, scheme, None)
    elif scheme is not None and scheme != encodings.scheme:
        raise InputError(
            "scheme= beside Encodings, which have a scheme: give the array, or leave scheme= out"
        )
    return recover_told(encodings, public, attack, options, how)


def recover_told(
    encodings: Encodings,
    public: DataLike | None,
    attack: str | None,
    options: Mapping[str, Any],
    how: Mapping[str, Any],
) -> Recovery:
    """`recover` with whatever an attack can be told.

    options : of that attack by name, such as `like` or `similarity`; how : rng, memory_limit,
    progress and time_limit, as far as the attack takes them.
    """
    # Tensors, frames and paths are read once.
    options = {
        option: as_array(value, option) if option in _DATA else value
        for option, value in options.items()
        if value is not None
    }
    known = None if public is None else as_array(public, "public")
    limit, seconds = how.get("memory_limit"), how.get("time_limit")
    how = {**how, "memory_limit": None if limit is None else bytes_allowed(limit)}
    if attack is not None:
        return _run(attack, encodings, known, options, how)
    # One after the other; where the scheme is wrong, say that it is.
    began = time.monotonic()
    best = in_turn(encodings, known, options, how)
    late = seconds is not None and time.monotonic() - began >= seconds
    against = "" if options or late else contradiction(encodings, best)
    if not against:
        return best
    return replace(
        best,
        explanation=f"{best.explanation}; {against}",
        evidence={**best.evidence, "contradiction": against},
    )


def _run(
    name: str,
    encodings: Encodings,
    public: Any,
    options: Mapping[str, Any],
    how: Mapping[str, Any],
) -> Recovery:
    """One attack with what it is told; what it cannot be told is refused."""
    call = attack_called(name)
    takes = signature(call).parameters
    if unknown := [option for option in options if option not in takes]:
        raise InputError(
            f"attack={name!r} takes no {unknown[0]}=: choose another attack, or leave it out; of "
            "images say that they are some (image_shape=)"
        )
    ways = {key: value for key, value in how.items() if key in takes and value is not None}
    found = call(encodings, public, **options, **ways)
    _log.info("%s: %s (%.1f s)", name, found.explanation, sum(found.seconds.values()))
    return found.about(encodings)


def in_turn(
    encodings: Encodings,
    public: Any,
    options: Mapping[str, Any],
    how: Mapping[str, Any],
    *,
    enough: float = 0.99,
) -> Recovery:
    """The attacks that apply, one after the other, until one explains `enough` of the encodings:
    the best of them. The scheme is believed; `recover` also asks whether the encodings contradict
    it, where that may be why little came back.

    options : what attacks are told, as in `recover`; how : rng, memory_limit, progress and
    time_limit."""
    best: Recovery | None = None
    tried: list[Recovery] = []
    for name in choose(encodings, overlaps="overlaps" in options):
        try:
            recovery = _run(name, encodings, public, options, how)
        except InputError:
            if best is None or not len(best):
                raise
            break  # a later attack does not fit into memory: what an earlier one found stands
        tried.append(recovery)
        best = recovery if best is None or _worth(recovery) > _worth(best) else best
        if len(best) and best.explained >= enough * encodings.m:
            break
    assert best is not None
    # Where nothing came back, say what was tried.
    if not len(best) and len(tried) > 1:
        words = "; ".join(f"{one.attack}: {one.explanation}" for one in tried)
        best = replace(best, explanation=words)
    return best


def _worth(recovery: Recovery) -> tuple[int, int, int]:
    """What counts between two recoveries: vectors verified, encodings explained, vectors."""
    return int(recovery.verified.sum()), recovery.explained, len(recovery)


def identify_and_recover(
    values: NDArray[np.float32],
    image_shape: tuple[int, ...] | None = None,
    **how: Any,
) -> tuple[Encodings, Recovery]:
    """The values with the scheme that explains them best, and what is recovered under that scheme;
    how : as in `recover_told`.

    Where no scheme explains them, two records in each encoding are assumed, and the explanation
    says so."""
    found = identify(values, rng=how.get("rng"), memory_limit=how.get("memory_limit"))
    scheme, evidence = Scheme(2, weighting="convex", signs=signs_of(values)), ""
    words = "no scheme was found: none that was tried explains the encodings better than the same "
    words += "encodings with every column permuted; two records each were assumed"
    if found:
        scheme, evidence = found[0]
        words = f"scheme found: {evidence}"
    encodings = Encodings(values, scheme, None, image_shape)
    recovery = _without_complements(in_turn(encodings, None, {}, how), scheme)
    if not found and not recovery.verified.any():
        # What fits up to noise, under a scheme that permuted columns fit as well, fits noise.
        nothing = "nothing came back that noise would not give"
        recovery = Recovery.empty(encodings, recovery.attack, nothing, recovery.seconds)
    told = {**vars(scheme), "found": bool(found), "because": evidence}
    return encodings, replace(
        recovery,
        explanation=f"{recovery.explanation}; {words}",
        evidence={**recovery.evidence, "scheme": told},
    )


def _without_complements(recovery: Recovery, scheme: Scheme, *, most_mixed: int = 16) -> Recovery:
    """The recovery under a scheme that was found out, with nothing verified where every encoding
    may as well mix all the other vectors: n − k of them, if people mix as many as `most_mixed`."""
    n, k = len(recovery), scheme.k_private
    if not scheme.fixed_weights or k == 1 or n - k > most_mixed or not recovery.verified.any():
        return recovery
    why = f"means of {k} of {n} vectors are also means of {n - k} others, which are the records if "
    why += f"{n - k} were mixed: state k_private"
    return replace(
        recovery,
        status=np.where(recovery.verified, AMBIGUOUS, recovery.status).astype("<U10"),
        reasons=tuple(
            why if sure else reason
            for sure, reason in zip(recovery.verified, recovery.reasons, strict=True)
        ),
        explanation=f"{n} private vectors recovered, none verified; {recovery.explained} of "
        f"{recovery.members.shape[0]} encodings explained; {why}",
    )
