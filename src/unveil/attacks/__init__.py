"""One file per published attack, all with one signature: attack(encodings, public, rng=…) → Recovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from unveil.attacks.full import applies, full
from unveil.attacks.learn_private_image import learn_private_image
from unveil.attacks.natural import is_natural, natural
from unveil.records import Encodings, InputError, Overlaps, Progress, Recovery
from unveil.seeds import Rng

__all__ = ["ATTACKS", "full", "learn_private_image", "natural", "recover"]

ATTACKS: Mapping[str, Callable[..., Recovery]] = {"full": full, "natural": natural, "paper": learn_private_image}


def recover(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    attack: str | None = None,
    overlaps: Overlaps | None = None,
    like: ArrayLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack by name; None: the strongest that applies. That is `natural` for images with weights of the released kind,
    else `full`, and the paper's where `full` verifies nothing.

    overlaps: to start from, where they are known from elsewhere (full, paper)
    like, n_private, flips: images like the public ones, how many private images there are, and whether images were mirrored at
    random before they were mixed (natural)
    """
    if attack is not None and attack not in ATTACKS:
        raise InputError(f"attack={attack!r}: choose one of {', '.join(ATTACKS)}")

    def run(name: str) -> Recovery:
        options: dict[str, Any] = {"like": like, "n_private": n_private, "flips": flips}
        if name != "natural":
            options = {"overlaps": overlaps}
        given = {"like": like is not None, "n_private": n_private is not None, "flips": flips, "overlaps": overlaps is not None}
        for option, there in given.items():
            if there and option not in options:
                raise InputError(f"{option}= says nothing to attack={name!r}: leave it out, or choose another attack")
        return ATTACKS[name](encodings, public, **options, rng=rng, memory_limit=memory_limit, progress=progress)

    if attack is not None:
        return run(attack)
    if is_natural(encodings):
        return run("natural")
    if not applies(encodings):
        return run("paper")
    recovery = run("full")
    if recovery.verified.any() or not encodings.scheme.fixed_weights:
        return recovery
    second = run("paper")
    return second if second.verified.any() or not len(recovery) else recovery
