"""One file per published attack, all with one signature: attack(encodings, public, rng=…) → Recovery.

A file of this room is an attack when it says so, by `NAME` and `ATTACK`; the others are what several attacks share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules

from numpy.typing import ArrayLike

from unveil.attacks.full import applies, full
from unveil.attacks.learn_private_image import learn_private_image
from unveil.attacks.mixup import keeps_signs
from unveil.attacks.natural import is_natural, natural
from unveil.records import Encodings, InputError, Overlaps, Progress, Recovery
from unveil.seeds import Rng

__all__ = ["ATTACKS", "full", "learn_private_image", "natural", "recover"]


def _found() -> dict[str, Callable[..., Recovery]]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return {module.NAME: module.ATTACK for module in modules if hasattr(module, "ATTACK")}


ATTACKS: Mapping[str, Callable[..., Recovery]] = _found()


def recover(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    attack: str | None = None,
    overlaps: Overlaps | None = None,
    similarity: ArrayLike | None = None,
    like: ArrayLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack by name; None: the strongest that applies. That is `natural` for images with weights of the released kind,
    `phase-retrieval` without a private part, `mixup` where signs are kept and weights fixed, else `full`; where it verifies
    nothing `tensor`, which needs fewer encodings and more pixels, and then the paper's.

    overlaps: to start from, where they are known from elsewhere (attacks that read overlaps)
    similarity: (m, m), how alike encodings are by whatever means, to start from (cliques)
    like, n_private, flips: images like the public ones, how many private images there are, and whether images were mirrored at
    random before they were mixed (natural)
    """
    if attack is not None and attack not in ATTACKS:
        raise InputError(f"attack={attack!r}: choose one of {', '.join(ATTACKS)}")
    given = {"overlaps": overlaps, "similarity": similarity, "like": like, "n_private": n_private, "flips": flips or None}
    options = {option: value for option, value in given.items() if value is not None}

    def run(name: str) -> Recovery:
        known = signature(ATTACKS[name]).parameters
        for option in options:
            if option not in known:
                raise InputError(f"{option}= says nothing to attack={name!r}: leave it out, or choose another attack")
        return ATTACKS[name](encodings, public, **options, rng=rng, memory_limit=memory_limit, progress=progress)

    if attack is not None:
        return run(attack)
    if is_natural(encodings):
        return run("natural")
    if not encodings.scheme.k_private:
        return run("phase-retrieval")
    if keeps_signs(encodings):
        return run("mixup")
    if not applies(encodings):
        return run("paper")
    recovery = run("full")
    if not encodings.scheme.fixed_weights or encodings.scheme.k_private < 2:
        return recovery
    for name in ("tensor", "paper"):
        if recovery.verified.any():
            break
        second = run(name)
        if second.verified.any() or not len(recovery):
            recovery = second
    return recovery
