"""Attackers: what each of them knows, and the attacks that follow from it.

    blind      the encodings, and how they are made
    public     also the public pool
    told       also which encodings share a record (published attacks on images learn it from the
               encodings); so which unknowns stand in which equation, under noise too
    insider    also every second record

Each knows what those before know. An attack is a name and a function that returns a `Recovery`;
nothing here looks at the truth, but for what the attacker is said to know. Attacks are those of
`unveil.recover`; some are only of use where somebody holds the truth and asks how much shows:

    copies         an encoding may be a record as it is, or nearly, where one weight outweighs the
                   others: every encoding is claimed to be a record
    roots          of encodings of an unknown make, which may be squares
    known members  least squares for records, and for weights that were drawn anew
    substitution   of an encoding whose records are known but one, |c + x| is left: one of two
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil import attacks
from unveil.checks import InputError
from unveil.encode.simulate import selection_matrix
from unveil.encodings import Encodings
from unveil.mixing.model import least_squares, mixed, rms, simplex_weights, weight_matrix
from unveil.records import UNRESOLVED, Overlaps, Progress, Recovery
from unveil.scheme import Scheme

if TYPE_CHECKING:
    from unveil.auditing.trial import Trial

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Attacker:
    """One kind of attacker.

    Attributes
    ----------
    key : str
        A word for programs.
    knows : str
        What is known, after "an attacker who …".
    once : str
        What a headline adds: " once …".
    released : bool
        Whether nothing is known but what is released or public.
    """

    key: Literal["blind", "public", "told", "insider"]
    knows: str
    once: str = ""
    released: bool = False


BLIND = Attacker("blind", "sees the encodings only", released=True)
PUBLIC = Attacker("public", "also knows the public vectors", released=True)
TOLD = Attacker(
    "told",
    "also knows which encodings share a record",
    " once it is known which encodings share a record",
)
INSIDER = Attacker(
    "insider", "also knows every second record", " once every second record is known"
)
ATTACKERS = (BLIND, PUBLIC, TOLD, INSIDER)
"""Those who know least first."""


class OutOfTime(Exception):
    """Raised in an attack that reports to a clock that has run down."""


class Clock:
    """Seconds that are left, and what attacks report to.

    seconds : None is without end. progress : called with stage, done and total. working : count the
    seconds that this process works, so that the answer does not depend on what else the machine
    does.
    """

    def __init__(
        self, seconds: float | None = None, progress: Progress | None = None, working: bool = False
    ) -> None:
        self._working, self._progress = working, progress
        self._now = time.process_time if working else time.monotonic
        self._end = None if seconds is None else self._now() + seconds

    @property
    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - self._now())

    @property
    def over(self) -> bool:
        return self.left == 0.0

    @property
    def for_an_attack(self) -> float | None:
        """Seconds by the clock on the wall for an attack that minds them; the rest is for the
        certificate, so that what was found is judged and not lost."""
        return None if self.left is None or self._working else 0.8 * self.left

    def report(self, stage: str, done: int, total: int) -> None:
        """The callback of an attack, which it ends once time is over."""
        if self.over:
            raise OutOfTime
        if self._progress is not None:
            self._progress(stage, done, total)


@dataclass(frozen=True)
class Attack:
    """An attack that can be run; `free`: weights are not known, so that results have no scale of
    their own."""

    name: str
    run: Callable[[], Recovery]
    free: bool = False


def attacks_of(trial: Trial, clock: Clock) -> Iterable[Attack] | str:
    """The attacks of the trial's attacker, the most promising first, or why there are none."""
    scheme, key = trial.release.scheme, trial.attacker.key
    if key == "blind":
        return _blind(trial, clock)
    knows_more = key in ("told", "insider")
    hidden = scheme.signs != "kept" and not scheme.fixed_weights
    few = len(trial.vectors) < 3
    reasons = (
        (key == "public" and not scheme.k_public, "there is no public part"),
        (knows_more and trial.members is None, "which records are mixed is not known to the audit"),
        (key == "insider" and scheme.k_public, "the public part of an encoding is not known"),
        (knows_more and hidden, "weights are drawn anew and signs are hidden"),
        (key == "insider" and few, "there are too few records to know some of them"),
    )
    if why_not := next((why for there, why in reasons if there), ""):
        return why_not
    free, known = not trial.release.stated, trial.known
    if key == "public":
        return [Attack("recover", partial(_recover, trial, clock, trial.encodings(), True))]
    # Who knows records without a negative value expects no other: then no sign was hidden.
    positive = key == "insider" and bool((trial.vectors[known] >= 0).all())
    if (scheme.signs == "kept" or positive) and not scheme.k_public:
        return [Attack("known members", partial(fit_weights, trial, clock), free)]
    if key == "told":
        return [Attack("known members", partial(_known_members, trial, clock), free)]
    return [Attack("substitution", partial(substitution, trial))]


def _blind(trial: Trial, clock: Clock) -> Iterator[Attack]:
    release, values, scheme = trial.release, trial.values, trial.release.scheme
    stated, least = release.stated, float(values.min())

    def recovered(what: str, *how: Any, **known: Any) -> Attack:
        return Attack(f"recover{what}", partial(_recover, trial, clock, *how, **known), not stated)

    if not stated or not scheme.fixed_weights:
        yield Attack("copies", partial(copies, trial), not stated)
    if not stated and values.shape[1] >= 8:
        yield Attack("copies, scaled", partial(scaled_copies, trial))
    if scheme.k_public and scheme.fixed_weights and scheme.public_weight == scheme.private_weight:
        # Who does not know the pool can take public vectors for private ones, where they weigh the
        # same: more unknowns, the same equations.
        k = scheme.k_private + scheme.k_public
        whole = replace(scheme, k_private=k, k_public=0, weighting="equal", alpha=1.0)
        yield recovered("", trial.encodings(whole))
    elif not scheme.k_public or release.shape is not None:
        yield recovered("", trial.encodings())
    if scheme.signs == "kept" and scheme.fixed_weights and not scheme.k_public:
        # Magnitudes of few columns say who is mixed with whom where sums do not.
        bare = trial.encodings(replace(scheme, signs="absolute"), np.abs(values))
        yield recovered(", signs dropped", bare)
    if stated:
        return
    # What was stated may be wrong: the scheme is also found out from the values. Last, own weights
    # are tried where that claims nothing: some records may come back where most encodings fit no
    # scheme.
    find = partial(attacks.recover, values, rng=release.seed, progress=clock.report)
    yield Attack("recover, scheme found out", find, True)
    if least >= 0:
        yield recovered(", roots drawn", trial.encodings(values=np.sqrt(values)))
    own = [Scheme(k, weighting="unknown", signs="kept") for k in (2, 3, 4)]
    own += [Scheme(2, weighting="unknown", signs="masked")] if least < 0 else []
    for law in own:
        what = f", own weights, k = {law.k_private}, signs {law.signs}"
        yield recovered(what, trial.encodings(law), attack="mixing")


def _recover(
    trial: Trial, clock: Clock, encodings: Encodings, pool: bool = False, **known: Any
) -> Recovery:
    """`unveil.recover`, with as much time as is left where it takes a limit, and without asking
    whether the scheme is right, which the audit knows. A law of weights that no attack takes is
    tried as half-normal, a law that is as vague.

    pool : whether the public vectors are known; known : what else is, or the name of an attack.
    """
    scheme, public = encodings.scheme, trial.release.public if pool else None
    limits = {"memory_limit": None, "time_limit": clock.for_an_attack}
    how: dict[str, Any] = {"rng": trial.release.seed, "progress": clock.report, **limits}
    if "attack" in known:
        return attacks.recover(encodings, public, **known, **how)
    if encodings.image_shape and not scheme.fixed_weights:
        known["n_private"] = len(trial.vectors)
    try:
        return attacks.in_turn(encodings, public, known, how)
    except InputError:
        if scheme.fixed_weights or scheme.k_public or scheme.weighting == "half-normal":
            raise
        vague = replace(scheme, weighting="half-normal", alpha=1.0)
        return attacks.in_turn(replace(encodings, scheme=vague), public, {}, how)


def _known_members(trial: Trial, clock: Clock) -> Recovery:
    """Values of records whose encodings are known: the overlaps say who is in which equation."""
    scheme, W = trial.release.scheme, trial.incidence
    assert W is not None
    counts = W.astype(np.int64)
    overlaps = Overlaps.from_array(counts @ counts.T, scheme.k_private)
    return _recover(trial, clock, trial.encodings(), scheme.k_public > 0, overlaps=overlaps)


def copies(trial: Trial) -> Recovery:
    """Every encoding, claimed to be a record."""
    each = sparse.eye_array(trial.m)
    return _claim(trial.shown, each, "copies", "encodings taken for records")


def scaled_copies(trial: Trial) -> Recovery:
    """For each record the encoding that correlates most with it, claimed on the record's own scale
    and level, which the encoder may have taken off. Two numbers of each record are given away by
    that, so that a record of few columns says nothing."""
    y, t = (np.asarray(part, np.float64) for part in (trial.values, trial.vectors))
    y, level = y - y.mean(axis=1, keepdims=True), t.mean(axis=1, keepdims=True)
    t = t - level
    size, rows = np.maximum(np.linalg.norm(y, axis=1), 1e-30), np.arange(len(t))
    product = t @ y.T
    best = (product / size).argmax(axis=1)
    factor = product[rows, best] / size[best] ** 2
    uses = selection_matrix(best[:, None], len(y)).T
    said = "encodings taken for records, each on its own scale"
    return _claim(factor[:, None] * y[best] + level, uses, "copies, scaled", said)


def substitution(trial: Trial) -> Recovery:
    """The records that follow from the known ones.

    Of an encoding all of whose records are known but x there is left |c + w·x| = y: two values of x
    at every column, of which a second encoding picks one. A record that was found is known from now
    on. Of a record that is in one such encoding only, the value that is more like those of the
    known records is taken, at every column; nothing else is built on it. Cost: one pass over the
    encodings per round.
    """
    members, known, W = trial.members, trial.known, trial.incidence
    assert members is not None
    assert W is not None
    x = np.where(known[:, None], trial.vectors, 0).astype(np.float64)
    y = np.abs(trial.values).astype(np.float64) / trial.release.scheme.private_weight
    usual, have = trial.vectors[known].astype(np.float64), known.copy()

    def follow(least: int) -> dict[int, Doubles]:
        """Records that are the only unknown ones of so many different encodings, or more."""
        missing, out = ~have[members], {}
        target = np.where(missing, members, -1).max(axis=1)
        # One unknown record, which may stand twice.
        usable = missing.any(axis=1) & ((members == target[:, None]) | ~missing).all(axis=1)
        for j in np.unique(target[usable]):
            rows = np.flatnonzero(usable & (target == j))
            own = members[rows] == j
            if len(np.unique(members[rows], axis=0)) >= least:
                others = np.where(own[:, :, None], 0.0, x[members[rows]]).sum(axis=1)
                out[int(j)] = _unfold(y[rows], others, own.sum(axis=1), usual)
        return out

    while sure := follow(2):
        x[[*sure]], have[[*sure]] = [*sure.values()], True
    likely = follow(1)
    if likely:
        x[[*likely]] = [*likely.values()]
    new = np.union1d(np.flatnonzero(have & ~known), [*likely]).astype(np.int64)
    said = (
        f"{len(new) - len(likely)} of {int((~known).sum())} records follow from "
        f"{int(known.sum())}, {len(likely)} more up to one choice of two per value"
    )
    return _claim(x[new], W[:, new], "substitution", said)


def _unfold(
    y: Doubles, c: Doubles, times: NDArray[np.int64], usual: Doubles, weight: float = 1e-4
) -> Doubles:
    """x of |c + times·x| = y at every column: the candidate that fits all rows best, then the mean
    of what the rows say with its signs.

    weight : float    Of how unlike the `usual` records a candidate is, against its misfit, both in
                      units of a column's spread: it decides where both candidates fit.
    """
    spread = usual.std(axis=0) + 1e-300
    options = np.stack([y[0] - c[0], -y[0] - c[0]]) / times[0]
    miss = np.abs(np.abs(c + times[:, None] * options[:, None, :]) - y).sum(axis=1) / spread
    miss += weight * np.abs(options - usual.mean(axis=0)) / spread
    best = options[miss.argmin(axis=0), np.arange(y.shape[1])]
    signed = np.copysign(y, c + times[:, None] * best)
    return np.asarray(((signed - c) / times[:, None]).mean(axis=0))


def fit_weights(
    trial: Trial, clock: Clock, rounds: int = 400, relaxation: float = 1.6, enough: float = 1e-13
) -> Recovery:
    """Records and weights of mixtures y = Σ λ_i·x_i, Σ λ_i = 1, whose members are known: least
    squares for the records and for the weights by turns. Each encoding has d equations and k − 1
    weights, so that m·(d − k + 1) equations determine n·d values; an insider's records are known.
    Where weights are fixed they are known, and the records follow at once.

    rounds : int          Alternations at most; a hundred are usual.
    relaxation : float    Weights go so many times as far as least squares says, from the sixth
                          round on: valleys are long.
    enough : float        Share of the power that is left unexplained, at which it stops.
    """
    members, known, scheme = trial.members, trial.known, trial.release.scheme
    assert members is not None
    assert trial.incidence is not None
    (m, k), fixed = members.shape, scheme.fixed_weights
    middle = 0.0 if fixed else trial.values.mean(axis=0, dtype=np.float64)
    y = np.asarray(trial.values - middle, np.float64)
    x = np.where(known[:, None], trial.vectors - middle, 0.0)
    weights = np.full((m, k), scheme.private_weight if fixed else 1 / k)
    left = 1.0
    for turn in range(1 if fixed else rounds):
        W = weight_matrix(members, weights, len(x))
        rest = y - W[:, known] @ x[known]
        found = least_squares(W[:, ~known].tocsr(), rest, ridge=1e-9)
        if found is None:
            break
        x[~known] = found
        if not fixed:
            step = relaxation if turn > 5 else 1.0
            weights += step * (simplex_weights(y, x, members) - weights)
            weights = weights.clip(0, 1)
            weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        left = (rms(y - mixed(x, members, weights)) / rms(y)) ** 2
        clock.report("known members", turn, rounds)
        if left <= enough:
            break
    said = (
        f"{int((~known).sum())} records fitted with their weights; {left:.0e} of the power is left"
    )
    return _claim((x + middle)[~known], trial.incidence[:, ~known], "known members", said)


def _claim(vectors: Any, members: Any, name: str, said: str) -> Recovery:
    """A recovery that claims no proof; members (m, r): the encodings that each vector is said to
    be in."""
    count = len(vectors)
    return Recovery(
        vectors=np.asarray(vectors, np.float32),
        status=np.full(count, UNRESOLVED, dtype="<U10"),
        signed=True,
        members=sparse.csr_array(members, dtype=bool),
        residual=np.zeros(count),
        reasons=(name,) * count,
        attack=name,
        explanation=said,
    )
