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

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.attacks.choose import LAST, situation_of, usual
from unveil.attacks.full import full
from unveil.attacks.learn_private_image import learn_private_image
from unveil.attacks.natural import natural
from unveil.checks import DataLike, InputError, as_array, as_vectors
from unveil.encodings import Encodings
from unveil.identify import contradiction, identify, signs_of
from unveil.logs import logger
from unveil.mixing import recover_mixture
from unveil.records import AMBIGUOUS, Overlaps, Progress, Recovery
from unveil.scheme import Scheme
from unveil.seeds import Rng

__all__ = ["ATTACKS", "full", "learn_private_image", "natural", "recover"]


def _found() -> dict[str, Callable[..., Recovery]]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    attacks = {module.NAME: module.ATTACK for module in modules if hasattr(module, "ATTACK")}
    return attacks | {"mixing": recover_mixture}


ENOUGH = 0.99
"""The share of encodings that an attack must explain to have the last word; the rest may use
vectors that no other does."""
_log = logger(__name__)
ATTACKS: Mapping[str, Callable[..., Recovery]] = _found()
OLDER_NAMES = dict.fromkeys(("mixup", "unmix", "unmask"), "mixing")
"""One attack undoes all mixtures; its older names still call it."""


def recover(
    encodings: Encodings | DataLike,
    public: DataLike | None = None,
    *,
    scheme: Scheme | None = None,
    attack: str | None = None,
    overlaps: Overlaps | None = None,
    similarity: DataLike | None = None,
    like: DataLike | None = None,
    private_like: DataLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    crops: int = 0,
    units: str | tuple[Any, Any] | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack by name; None: the strongest that applies (`attacks.choose`).

    That is `natural` for images with weights of the released kind, `phase-retrieval` without a
    private part, `mixing` where signs are kept or masked or weights are drawn anew, `unhidden`
    where taking absolute values changed nothing, then `relations`, which asks nothing of the data.
    Where that does not explain all encodings `full`, and where it verifies nothing `tensor`, which
    needs fewer encodings and more pixels, and then the paper's. Encodings that look like those of
    Gaussian vectors are left to `full` first, which is faster.

    Parameters
    ----------
    encodings : Encodings; or array of shape (m, d), tensor, frame or path
        What was released, with the scheme that made it; or the values alone.
    public : array of shape (n_public, d), tensor, frame or path
        The public vectors, where the scheme mixes some.
    scheme : Scheme
        The scheme of an array; None: it is found out (`unveil.identify`), with the evidence
        in `Recovery.evidence["scheme"]`.
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
    crops : int
        By how many black pixels images were padded before they were cut to size again at a random
        place (`natural`).
    units : str or tuple
        In which units pixels were mixed: [-1,1], [0,1], bytes, cifar10, imagenet, or (mean, std)
        of pixels from 0 to 1; None: found out (`natural`).
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
    # 1. Values alone: their scheme is given beside, or found out.
    if not isinstance(encodings, Encodings):
        values = as_vectors(encodings, "encodings")
        if scheme is None:
            asked = (public, attack, overlaps, similarity, like, private_like, n_private)
            if flips or crops or any(one is not None for one in asked):
                raise InputError("encodings without a scheme: say scheme= beside other arguments")
            return found_out(values, rng=rng, memory_limit=memory_limit, progress=progress)[1]
        encodings = Encodings(values, scheme, None)
    elif scheme is not None and scheme != encodings.scheme:
        raise InputError("scheme= beside Encodings, which have one: give the array itself")
    # 2. What each attack is told.
    attack = None if attack is None else OLDER_NAMES.get(attack, attack)
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
        "crops": crops or None,
        "units": units,
    }
    options = {option: value for option, value in given.items() if value is not None}

    how = {"rng": rng, "memory_limit": memory_limit, "progress": progress}
    if attack is not None:
        return _run(attack, encodings, known, options, how)
    # 3. One after the other; where the scheme is wrong, say that it is.
    best = _in_turn(encodings, known, options, how)[0]
    against = "" if options else contradiction(encodings, best)
    if not against:
        return best
    return replace(
        best,
        explanation=f"{best.explanation}; {against}",
        evidence={**best.evidence, "contradiction": against},
    )


def _run(
    name: str, encodings: Encodings, public: Any, options: dict[str, Any], how: dict[str, Any]
) -> Recovery:
    """One attack with what it is told; what it cannot be told is refused."""
    takes = signature(ATTACKS[name]).parameters
    for option in options:
        if option not in takes:
            cure = "leave it out, or choose another attack"
            if option in signature(ATTACKS["natural"]).parameters:
                cure = "state the scheme that was used, or attack='natural'"
                if encodings.shape is None:
                    cure = "if encodings are images, say so: give Encodings(image_shape=)"
            raise InputError(f"{option}= says nothing to attack={name!r}: {cure}")
    found = ATTACKS[name](encodings, public, **options, **how)
    _log.info("%s: %s (%.1f s)", name, found.explanation, sum(found.seconds.values()))
    return found.about(encodings)


def _in_turn(
    encodings: Encodings, public: Any, options: dict[str, Any], how: dict[str, Any]
) -> tuple[Recovery, list[Recovery]]:
    """The usual attacks one after the other, until nothing is left: the best, and all."""
    best: Recovery | None = None
    tried: list[Recovery] = []
    exact = False
    for name in usual(situation_of(encodings, public, told=bool(options))):
        if best is not None and (_done(best, name) or (name in LAST and best.verified.any())):
            break
        if name == "noisy-relations" and exact:
            continue  # one relation to seven digits, and there is no noise to allow for
        try:
            recovery = _run(name, encodings, public, options, how)
        except InputError:
            if best is None or not len(best):
                raise
            break  # a later attack does not fit into memory: what an earlier one found stands
        exact |= recovery.exact
        tried.append(recovery)
        best = recovery if best is None or _worth(recovery) > _worth(best) else best
    assert best is not None
    # Where nothing came back, say what was tried.
    if not len(best) and len(tried) > 1:
        words = "; ".join(f"{one.attack}: {one.explanation}" for one in tried)
        best = replace(best, explanation=words)
    return best, tried


def found_out(
    values: NDArray[np.float32],
    image_shape: tuple[int, ...] | None = None,
    *,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[Encodings, Recovery]:
    """The values with the scheme that explains them, and what is recovered under it."""
    found = identify(values, rng=rng, memory_limit=memory_limit)
    scheme, evidence = Scheme(2, weighting="convex", signs=signs_of(values)), ""
    words = "the scheme was not found out: none that was tried explains the encodings better than "
    words += "their columns permuted, and two records each were assumed"
    if found:
        scheme, evidence = found[0]
        words = f"the scheme was found out: {evidence}"
    encodings = Encodings(values, scheme, None, image_shape)
    how = {"rng": rng, "memory_limit": memory_limit, "progress": progress}
    recovery = _without_complements(_in_turn(encodings, None, {}, how)[0], scheme)
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


def _as_given(values: Any, name: str) -> Any:
    return values if values is None or sparse.issparse(values) else as_array(values, name)


def _complete(recovery: Recovery) -> bool:
    """Nothing is left for another attack: nearly all encodings are explained, and the certificate
    is the same for all."""
    return bool(len(recovery) and recovery.explained >= ENOUGH * recovery.members.shape[0])


def _done(recovery: Recovery, following: str) -> bool:
    """Whether nothing is left for the attack that follows. Relations ask nothing of the data: what
    statistics did not prove of vectors that two encodings use is left to them."""
    if (recovery.attack, following) != ("full", "relations"):
        return _complete(recovery)
    uses = np.asarray(recovery.members.sum(axis=0)).ravel()
    return _complete(recovery) and bool(recovery.verified[uses >= 2].all())


def _worth(recovery: Recovery) -> tuple[int, int, int]:
    """What counts between two recoveries: vectors verified, encodings explained, vectors
    returned."""
    return int(recovery.verified.sum()), recovery.explained, len(recovery)
