"""One file per published attack, all with one signature: attack(encodings, public, rng=…) →
Recovery.

A file of this room is an attack when it says so, by `NAME` and `ATTACK`; the others are what
several attacks share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any

from scipy import sparse

from unveil.attacks.choose import LAST, situation_of, usual
from unveil.attacks.full import full
from unveil.attacks.learn_private_image import learn_private_image
from unveil.attacks.natural import natural
from unveil.checks import DataLike, InputError, as_array
from unveil.encodings import Encodings
from unveil.logs import logger
from unveil.records import Overlaps, Progress, Recovery
from unveil.seeds import Rng

__all__ = ["ATTACKS", "full", "learn_private_image", "natural", "recover"]


def _found() -> dict[str, Callable[..., Recovery]]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return {module.NAME: module.ATTACK for module in modules if hasattr(module, "ATTACK")}


ENOUGH = 0.99
"""The share of encodings that an attack must explain to have the last word; the rest may use
vectors that no other does."""
_log = logger(__name__)
ATTACKS: Mapping[str, Callable[..., Recovery]] = _found()


def recover(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    attack: str | None = None,
    overlaps: Overlaps | None = None,
    similarity: DataLike | None = None,
    like: DataLike | None = None,
    private_like: DataLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack by name; None: the strongest that applies (`attacks.choose`).

    That is `natural` for images with weights of the released kind, `phase-retrieval` without a
    private part, `mixup` where signs are kept and weights fixed, `unmix` where signs are kept and
    weights are not, `unhidden` where taking absolute values changed nothing, then `relations`,
    which asks nothing of the data. Where that does not explain all encodings `full`, and where it
    verifies nothing `tensor`, which needs fewer encodings and more pixels, and then the paper's.

    Parameters
    ----------
    encodings : Encodings
        What was released, with the scheme that made it.
    public : array of shape (n_public, d), tensor, frame or path
        The public vectors, where the scheme mixes some.
    attack : str
        The name of one attack; None: what works best on these data.
    overlaps : Overlaps
        To start from, where they are known from elsewhere (attacks that read overlaps).
    similarity : array of shape (m, m)
        How alike encodings are by whatever means, to start from (`cliques`).
    like : array
        Images like the public ones (`natural`).
    private_like : array
        Other images of the kind of the private ones, such as other faces (`natural`).
    n_private : int
        How many private images there are (`natural`).
    flips : bool
        Whether images were mirrored at random before they were mixed (`natural`).
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
    if attack is not None and attack not in ATTACKS:
        raise InputError(f"attack={attack!r}: choose one of {', '.join(ATTACKS)}")
    # What may come as a tensor, a frame or a path is read once, before several attacks use it.
    known = _as_given(public, "public")
    given = {
        "overlaps": overlaps,
        "similarity": _as_given(similarity, "similarity"),
        "like": _as_given(like, "like"),
        "private_like": _as_given(private_like, "private_like"),
        "n_private": n_private,
        "flips": flips or None,
    }
    options = {option: value for option, value in given.items() if value is not None}

    def run(name: str) -> Recovery:
        takes = signature(ATTACKS[name]).parameters
        for option in options:
            if option not in takes:
                raise InputError(
                    f"{option}= says nothing to attack={name!r}: leave it out, "
                    "or choose another attack"
                )
        found = ATTACKS[name](
            encodings, known, **options, rng=rng, memory_limit=memory_limit, progress=progress
        )
        _log.info("%s: %s (%.1f s)", name, found.explanation, sum(found.seconds.values()))
        return found.about(encodings)

    if attack is not None:
        return run(attack)
    best: Recovery | None = None
    tried: list[str] = []
    exact = False
    for name in usual(situation_of(encodings, known, told=bool(options))):
        if best is not None and (_complete(best) or (name in LAST and best.verified.any())):
            break
        if name == "noisy-relations" and exact:
            continue  # one relation to seven digits, and there is no noise to allow for
        try:
            recovery = run(name)
        except InputError:
            if best is None or not len(best):
                raise
            break  # a later attack does not fit into memory: what an earlier one found stands
        exact |= recovery.exact
        tried.append(f"{name}: {recovery.explanation}")
        best = recovery if best is None or _worth(recovery) > _worth(best) else best
    assert best is not None
    # Where nothing came back, say what was tried.
    return best if len(best) or len(tried) == 1 else replace(best, explanation="; ".join(tried))


def _as_given(values: Any, name: str) -> Any:
    return values if values is None or sparse.issparse(values) else as_array(values, name)


def _complete(recovery: Recovery) -> bool:
    """Nothing is left for another attack: nearly all encodings are explained, and the certificate
    is the same for all."""
    return bool(len(recovery) and recovery.explained >= ENOUGH * recovery.members.shape[0])


def _worth(recovery: Recovery) -> tuple[int, int, int]:
    """What counts between two recoveries: vectors verified, encodings explained, vectors
    returned."""
    return int(recovery.verified.sum()), recovery.explained, len(recovery)
