"""Which attacks apply, in which order, and why the others do not. The one place that knows.

An attack is asked by what is known before it runs: the scheme, how many encodings of how many
pixels, whether the public pool is at hand, whether it is told which encodings share a record.
Nothing is built to ask, so that forecasts (`auditing.plan`) ask the same questions as attacks.

    choose     every attack, best first, each with the reason why it cannot be used, if any
    usual      those that `unveil.recover` tries by itself, in its order

Best first means: those that need least of the data and give most back; what rounds single overlaps
comes last. With the overlaps told, the cheapest reading of them comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from unveil.attacks.full import LARGEST, takes
from unveil.attacks.tensor import MOST as MOST_IN_TENSOR
from unveil.attacks.unmask import takes as unmasked
from unveil.attacks.unmix import takes as unmixed
from unveil.encodings import Encodings
from unveil.scheme import EXACT_WEIGHTINGS, Scheme

LAST = ("tensor", "paper")
"""Tried where nothing is verified: fewer encodings and more pixels, then the paper's own."""
BLIND = (
    "natural",
    "phase-retrieval",
    "mixup",
    "unmix",
    "unmask",
    "full",
    *LAST,
    "line-graph",
    "cliques",
    "absolute",
)
"""Best first, where nothing is known but the release."""
TOLD = ("mixup", "cliques", "line-graph", *LAST[:1], "full", *LAST[1:])
"""Best first, where it is known which encodings share a record: those that can start from it."""


@dataclass(frozen=True)
class Situation:
    """What an attacker has.

    images: it is known where pixels lie; pool: the public vectors are at hand; told: so is how many
    records each two encodings share
    """

    scheme: Scheme
    m: int
    images: bool = False
    pool: bool = True
    told: bool = False

    @property
    def natural(self) -> bool:
        """Images whose weights only `natural` takes: of their own in every encoding, public ones
        among them."""
        return self.images and self.scheme.weighting not in EXACT_WEIGHTINGS

    @property
    def sums(self) -> bool:
        """Signs are there, and weights are known: encodings are plain sums."""
        scheme = self.scheme
        return scheme.signs == "kept" and scheme.fixed_weights and scheme.k_private >= 2


@dataclass(frozen=True)
class Choice:
    """An attack, and why it cannot be used; empty: it can."""

    attack: str
    why_not: str = ""

    @property
    def applies(self) -> bool:
        return not self.why_not


def situation_of(
    encodings: Encodings,
    public: ArrayLike | None,
    *,
    told: bool = False,
) -> Situation:
    """What an attacker with these arrays has."""
    scheme = encodings.scheme
    pool = public is not None or not scheme.k_public
    return Situation(scheme, encodings.m, images=encodings.shape is not None, pool=pool, told=told)


def choose(situation: Situation) -> tuple[Choice, ...]:
    """Every attack, best first; those that cannot be used with the reason."""
    order = TOLD if situation.told else BLIND
    rest = tuple(name for name in BLIND if name not in order)
    return tuple(Choice(name, why_not(name, situation)) for name in order + rest)


def usual(situation: Situation) -> tuple[str, ...]:
    """The attacks that `unveil.recover` tries, one after the other. The last one says what is
    wrong, where none applies."""
    if unmixed(situation.scheme):
        # Linear algebra first; then what ignores signs.
        if situation.natural:
            return "unmix", "natural"
        return ("unmix",) if situation.told or _full(situation) else ("unmix", "full")
    if unmasked(situation.scheme) and not situation.told:
        # What is below the masks; then what ignores signs.
        if situation.natural:
            return "unmask", "natural"
        return ("unmask",) if _full(situation) else ("unmask", "full")
    if situation.natural:
        return ("natural",)
    if not situation.scheme.k_private:
        return ("phase-retrieval",)
    if situation.sums:
        # Plain sums first; then what ignores signs.
        return "mixup", "full"
    # A missing pool is the attack's to complain about: it names the cure.
    return ("full",) if not why_not("full", replace(situation, pool=True)) else LAST[1:]


def why_not(attack: str, situation: Situation) -> str:
    """Why an attack cannot be used here, in words; empty where it can."""
    if situation.told and attack not in TOLD:
        return "has no use for being told which encodings share a record"
    if situation.scheme.k_public and not situation.pool and attack not in _WITHOUT_POOL:
        return "needs the public vectors"
    return _RULES[attack](situation)


def _natural(s: Situation) -> str:
    return "" if s.natural else "for images with weights of their own in every encoding"


def _phase_retrieval(s: Situation) -> str:
    return "for encodings without a private part" if s.scheme.k_private else ""


def _mixup(s: Situation) -> str:
    return "" if s.sums else "for plain sums: signs kept, two private vectors or more, one weight"


def _unmix(s: Situation) -> str:
    return "" if unmixed(s.scheme) else "for signs kept with weights of their own"


def _unmask(s: Situation) -> str:
    return "" if unmasked(s.scheme) else "for masks of a pool and weights of their own"


def _full(s: Situation) -> str:
    if s.scheme.k_private < 1:
        return "for encodings with a private part"
    if s.scheme.weighting not in EXACT_WEIGHTINGS:
        return "for weights that are fixed or half-normal"
    return "" if takes(s.scheme, s.m) else f"more than {LARGEST:,} encodings, or a public part"


def _tensor(s: Situation) -> str:
    if s.scheme.k_private > MOST_IN_TENSOR:
        return f"more than {MOST_IN_TENSOR} private vectors in an encoding"
    return _fixed(s, 2) or _full(s)


def _line_graph(s: Situation) -> str:
    return _fixed(s, 2) or ("" if s.scheme.k_private == 2 else "for two private vectors")


def _cliques(s: Situation) -> str:
    return "" if s.scheme.k_private >= 2 else "for two private vectors or more"


def _absolute(s: Situation) -> str:
    if not s.images:
        return "for images"
    if s.scheme.k_private != 2 or s.scheme.k_public:
        return "for two private images and no public one"
    return "signs were not hidden to begin with" if s.scheme.signs == "kept" else ""


def _paper(s: Situation) -> str:
    return _fixed(s, 2)


def _fixed(s: Situation, least: int) -> str:
    if s.scheme.k_private < least:
        return "for two private vectors or more"
    return "" if s.scheme.fixed_weights else "for weights that all encodings share"


_RULES: dict[str, Callable[[Situation], str]] = {
    "natural": _natural,
    "phase-retrieval": _phase_retrieval,
    "mixup": _mixup,
    "unmix": _unmix,
    "unmask": _unmask,
    "full": _full,
    "tensor": _tensor,
    "paper": _paper,
    "line-graph": _line_graph,
    "cliques": _cliques,
    "absolute": _absolute,
}
_WITHOUT_POOL = ("natural", "cliques", "unmix", "unmask")
"""Attacks that can do without the public vectors an encoding mixes."""
