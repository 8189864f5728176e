"""One file per published attack, all with one signature: attack(encodings, public, rng=…) → Recovery."""

from __future__ import annotations

from numpy.typing import ArrayLike

from unveil.attacks.full import applies, full
from unveil.attacks.learn_private_image import learn_private_image
from unveil.records import Encodings, InputError, Overlaps, Progress, Recovery
from unveil.seeds import Rng

__all__ = ["ATTACKS", "full", "learn_private_image", "recover"]

ATTACKS = {"full": full, "paper": learn_private_image}


def recover(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    attack: str | None = None,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack by name; None: `full` where it applies, and the paper's where that verifies nothing.

    `overlaps`: to start from, where they are known from elsewhere.
    """
    if attack is not None and attack not in ATTACKS:
        raise InputError(f"attack={attack!r}: choose one of {', '.join(ATTACKS)}")

    def run(name: str) -> Recovery:
        return ATTACKS[name](encodings, public, overlaps=overlaps, rng=rng, memory_limit=memory_limit, progress=progress)

    if attack is not None:
        return run(attack)
    if not applies(encodings):
        return run("paper")
    recovery = run("full")
    if recovery.verified.any() or not encodings.scheme.fixed_weights:
        return recovery
    second = run("paper")
    return second if second.verified.any() or not len(recovery) else recovery
