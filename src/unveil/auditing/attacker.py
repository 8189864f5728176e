"""Attackers: what each of them knows, and the attacks that follow from it.

    blind      the encodings, and how they are made
    public     also the public pool
    told       also which encodings share a record (published attacks on images learn it from the
               encodings); so which unknowns stand in which equation, under noise too
    insider    also every second record

Each knows what those before know. An attack is a name and a function that returns a `Recovery`;
nothing here looks at the truth, but for what the attacker is said to know. Attacks are those of
`unveil.recover`; three are only of use where somebody holds the truth and asks how much shows:

    copies        an encoding may be a record as it is, or nearly, where one weight outweighs the
                  others: every encoding is claimed to be a record
    views         encodings of an unknown make, their least value taken off, or roots drawn
    substitution  of an encoding whose records are known but one, c + x is left
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil import attacks
from unveil.auditing.release import Draw, Release
from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import UNRESOLVED, Overlaps, Progress, Recovery
from unveil.scheme import Scheme

Key = Literal["blind", "public", "told", "insider"]
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

    key: Key
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
    """Raised from the progress callback of an attack that outran the clock."""


class Clock:
    """Seconds that are left; None: without end. working: seconds that this process works, so that
    the answer does not depend on what else the machine does."""

    def __init__(self, seconds: float | None = None, *, working: bool = False) -> None:
        self._working = working
        self._now = time.process_time if working else time.monotonic
        self._end = None if seconds is None else self._now() + seconds

    @property
    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - self._now())

    @property
    def for_an_attack(self) -> float | None:
        """Seconds by the clock on the wall for an attack that minds them; the rest is for the
        certificate, so that what was found is judged and not lost."""
        return None if self.left is None or self._working else 0.8 * self.left

    @property
    def over(self) -> bool:
        return self.left == 0.0

    def bounding(self, progress: Progress | None) -> Progress:
        """The callback, which ends the attack that calls it once time is over."""

        def report(stage: str, done: int, total: int) -> None:
            if self.over:
                raise OutOfTime
            if progress is not None:
                progress(stage, done, total)

        return report


@dataclass(frozen=True, eq=False)
class Sight:
    """What is laid before an attacker.

    Attributes
    ----------
    release : Release
        The scheme, the pool, the shape of images; not its records.
    draw : Draw
        The encodings, and the distinct records that each of them mixes.
    records : array of shape (n, d)
        The distinct records, of which an insider knows some.
    known : bool array of shape (n,)
        Which these are.
    clock : Clock
        Time that is left.
    progress : function or None
        Called with stage, done and total.
    """

    release: Release
    draw: Draw
    records: Floats
    known: NDArray[np.bool_]
    clock: Clock = field(default_factory=Clock)
    progress: Progress | None = None

    def encodings(self, scheme: Scheme | None = None, values: Floats | None = None) -> Encodings:
        """The encodings, taken for those of a scheme."""
        shown = self.shown if values is None else values
        scheme = scheme or self.release.scheme
        if self.release.stated and scheme.signs == "random":
            scheme = replace(scheme, signs="absolute")
        return Encodings(shown, scheme, None, self.release.shape)

    @property
    def shown(self) -> Floats:
        """What is released, without signs that are known to be coins."""
        coins = self.release.stated and self.release.scheme.signs == "random"
        return np.abs(self.draw.values) if coins else self.draw.values


@dataclass(frozen=True)
class Attack:
    """An attack that can be run; `free`: weights are not known, so that results have no scale of
    their own."""

    name: str
    run: Callable[[], Recovery]
    free: bool = False


def attacks_of(attacker: Attacker, sight: Sight) -> list[Attack] | str:
    """The attacks of this attacker, the most promising first, or why there are none."""
    scheme = sight.release.scheme
    if attacker is BLIND:
        return list(_blind(sight))
    if attacker is PUBLIC:
        if not scheme.k_public:
            return "there is no public part"
        return [Attack("recover", lambda: _recover(sight, sight.encodings(), pool=True))]
    if sight.draw.members is None:
        return "which records an encoding mixes is not known to the audit"
    if attacker is TOLD:
        if scheme.signs == "kept" and not scheme.k_public:
            return [Attack("known members", lambda: fit_weights(sight))]
        if scheme.fixed_weights:
            return [Attack("known members", lambda: _known_members(sight))]
        return "weights are drawn anew and signs are hidden: no attack starts from that"
    if scheme.k_public:
        return "the public part of an encoding is not known"
    if not scheme.fixed_weights and scheme.signs != "kept":
        return "weights are drawn anew and signs are hidden: nothing can be taken off"
    if len(sight.records) < 3:
        return "there are too few records to know some of them"
    return [Attack("substitution", lambda: substitution(sight))]


def _blind(sight: Sight) -> Iterator[Attack]:
    release = sight.release
    scheme = release.scheme
    if not release.stated or not scheme.fixed_weights:
        yield Attack("copies", lambda: copies(sight), free=not release.stated)
    if not release.stated and sight.draw.values.shape[1] >= 8:
        yield Attack("copies, scaled", lambda: scaled_copies(sight))
    if scheme.k_public:
        # Who does not know the pool can take public vectors for private ones, where they weigh the
        # same: more unknowns, the same equations. Images do without the pool.
        whole = _all_private(scheme)
        if whole is not None:
            yield Attack("recover", lambda: _recover(sight, sight.encodings(whole)))
        elif release.shape is not None:
            yield Attack("recover", lambda: _recover(sight, sight.encodings()))
    else:
        free = not release.stated
        yield Attack("recover", lambda: _recover(sight, sight.encodings()), free=free)
        if scheme.signs == "kept" and scheme.fixed_weights:
            # Magnitudes of few columns say who is mixed with whom where sums do not.
            bare = sight.encodings(replace(scheme, signs="absolute"), np.abs(sight.draw.values))
            yield Attack("recover, signs dropped", lambda: _recover(sight, bare), free=free)
    if release.stated:
        return
    # What was stated may be wrong: the scheme is also found out from the values. Last, own weights
    # are tried where that claims nothing: some records may come back where most encodings fit no
    # scheme.
    yield Attack("recover, scheme found out", lambda: _found_out(sight), free=True)
    values = sight.draw.values
    views = {"least value taken off": _lowered(values), "roots drawn": _roots(values)}
    for name, seen in views.items():
        if seen is not None:
            attack = partial(_recover, sight, sight.encodings(values=seen))
            yield Attack(f"recover, {name}", attack, free=True)
    for own in _own_weights(values):
        what = f"recover, own weights, k = {own.k_private}, signs {own.signs}"
        yield Attack(
            what, partial(_recover, sight, sight.encodings(own), attack="mixing"), free=True
        )


def _own_weights(values: Floats) -> list[Scheme]:
    """Mixtures with weights drawn anew that values may be, whatever was stated."""
    schemes = [Scheme(k, weighting="unknown", signs="kept") for k in (2, 3, 4)]
    if (values < 0).any():
        schemes.append(Scheme(2, weighting="unknown", signs="masked"))
    return schemes


def _recover(
    sight: Sight,
    encodings: Encodings,
    *,
    pool: bool = False,
    attack: str | None = None,
    **known: Any,
) -> Recovery:
    """`unveil.recover`, with as much time as is left where it takes a limit, and without asking
    whether the scheme is right, which the audit knows. A law of weights that no attack takes is
    tried as half-normal, a law that is as vague."""
    scheme = encodings.scheme
    if scheme.weighting not in ("equal", "paper", "convex") and encodings.image_shape:
        known["n_private"] = len(sight.records)
    public = sight.release.public if pool else None
    how: dict[str, Any] = {
        "rng": sight.release.seed,
        "memory_limit": None,
        "progress": sight.progress,
        "time_limit": sight.clock.for_an_attack,
    }
    if attack is not None:
        return attacks.recover(encodings, public, attack=attack, **known, **how)
    try:
        return attacks.in_turn(encodings, public, known, how)
    except InputError:
        if scheme.fixed_weights or scheme.k_public or scheme.weighting == "half-normal":
            raise
        vague = replace(scheme, weighting="half-normal", alpha=1.0)
        known.pop("n_private", None)
        return attacks.in_turn(replace(encodings, scheme=vague), public, known, how)


def _found_out(sight: Sight) -> Recovery:
    """The scheme found out from the values, and what comes back under it."""
    return attacks.recover(sight.draw.values, rng=sight.release.seed, progress=sight.progress)


def _known_members(sight: Sight) -> Recovery:
    """Values of records whose encodings are known: the overlaps say who is in which equation."""
    members = sight.draw.members
    assert members is not None
    W = sight.draw.incidence(len(sight.records))
    assert W is not None
    shared = W.astype(np.int64) @ W.T.astype(np.int64)
    overlaps = Overlaps.from_array(shared, sight.release.scheme.k_private)
    pool = sight.release.scheme.k_public > 0
    return _recover(sight, sight.encodings(), pool=pool, overlaps=overlaps)


def _all_private(scheme: Scheme) -> Scheme | None:
    """The same encodings with the public vectors among the unknown ones; None where weights
    differ."""
    if not scheme.fixed_weights or scheme.public_weight != scheme.private_weight:
        return None
    k = scheme.k_private + scheme.k_public
    return replace(scheme, k_private=k, k_public=0, weighting="equal", alpha=1.0)


def _lowered(values: Floats) -> Floats | None:
    """Magnitudes of mixtures come near to zero: where none does, a number was added."""
    least = float(values.min())
    return values - np.float32(least) if least > 0.05 * float(values.std()) else None


def _roots(values: Floats) -> Floats | None:
    return np.sqrt(values) if float(values.min()) >= 0 else None


def copies(sight: Sight) -> Recovery:
    """Every encoding, claimed to be a record."""
    rows = np.arange(len(sight.shown))[:, None]
    return _claim(sight, sight.shown, rows, "copies", "encodings taken for records")


def scaled_copies(sight: Sight) -> Recovery:
    """For each record the encoding that correlates most with it, claimed on the record's own scale
    and level, which the encoder may have taken off. Two numbers of each record are given away by
    that, so that a record of few columns says nothing."""
    truth = sight.records
    y, t = (
        part - part.mean(axis=1, keepdims=True, dtype=np.float64)
        for part in (sight.draw.values, truth)
    )
    size = np.maximum(np.linalg.norm(y, axis=1), 1e-30)
    product = t @ y.T
    best = (product / size).argmax(axis=1)
    factor = product[np.arange(len(t)), best] / size[best] ** 2
    scaled = factor[:, None] * y[best] + truth.mean(axis=1, keepdims=True)
    said = "encodings taken for records, each on its own scale"
    return _claim(sight, scaled.astype(np.float32), best[:, None], "copies, scaled", said)


def substitution(sight: Sight) -> Recovery:
    """The records that follow from the known ones.

    Of an encoding all of whose records are known but x there is left

        |c + w·x| = y                  fixed weights: two values of x at every column, of which a
                                       second encoding picks one; with signs kept there is but one
        y = (1 − Σλ)·x + Σ λ_i·a_i     weights drawn anew, summing to one, signs kept: x lies in
                                       the flat through y and the a_i; two flats meet in x

    A record that was found is known from now on. Cost: one pass over the encodings per round.
    """
    scheme, members = sight.release.scheme, sight.draw.members
    assert members is not None
    known = sight.known
    x = np.where(known[:, None], sight.records, 0).astype(np.float64)
    # Who knows records without a negative value expects no other: then no sign was hidden.
    kept = scheme.signs == "kept" or bool((x[known] >= 0).all())
    y = (sight.draw.values if kept else np.abs(sight.draw.values)).astype(np.float64)
    if scheme.fixed_weights:
        y = y / scheme.private_weight
    have, before = known.copy(), -1
    while int(have.sum()) > before:
        before = int(have.sum())
        missing = ~have[members]
        target = np.where(missing, members, -1).max(axis=1)
        # One unknown record, which may stand twice.
        usable = missing.any(axis=1) & ((members == target[:, None]) | ~missing).all(axis=1)
        for j in np.unique(target[usable]):
            rows = np.flatnonzero(usable & (target == j))
            times = (members[rows] == j).sum(axis=1)
            others = np.where((members[rows] == j)[:, :, None], 0.0, x[members[rows]])
            different = len(np.unique(members[rows], axis=0))
            if not scheme.fixed_weights:
                if different > 1 and (times == 1).all():
                    x[j], have[j] = _meet(y[rows], members[rows], j, x), True
            elif kept or different > 1:
                x[j], have[j] = _unfold(y[rows], others.sum(axis=1), times, kept), True
    new = np.flatnonzero(have & ~known)
    uses = np.array([np.flatnonzero((members == j).any(axis=1))[:1] for j in new], np.int64)
    said = f"{len(new)} of {int((~known).sum())} records follow from {int(known.sum())}"
    return _claim(sight, x[new].astype(np.float32), uses.reshape(-1, 1), "substitution", said)


def _unfold(y: Doubles, c: Doubles, times: NDArray[np.int64], kept: bool) -> Doubles:
    """x of |c + times·x| = y at every column: the candidate that fits all rows best, then the mean
    of what the rows say with its signs."""
    if kept:
        return np.asarray(((y - c) / times[:, None]).mean(axis=0))
    options = np.stack([y[0] - c[0], -y[0] - c[0]]) / times[0]
    miss = np.abs(np.abs(c + times[:, None] * options[:, None, :]) - y).sum(axis=1)
    best = options[miss.argmin(axis=0), np.arange(y.shape[1])]
    signed = np.copysign(y, c + times[:, None] * best)
    return np.asarray(((signed - c) / times[:, None]).mean(axis=0))


def _meet(y: Doubles, members: NDArray[np.int64], j: int, x: Doubles) -> Doubles:
    """The point nearest to the flats through y_f and its known records: minimise
    Σ_f ‖P_f(z − y_f)‖², P_f = 1 − Q_f·Q_fᵀ, by the small system of all directions Q."""
    bases = []
    for row, own in zip(y, members, strict=True):
        spans = (x[own[own != j]] - row).T
        bases.append(np.linalg.qr(spans)[0])
    right = np.sum([row - q @ (q.T @ row) for row, q in zip(y, bases, strict=True)], axis=0)
    Q = np.concatenate(bases, axis=1)
    inner = len(y) * np.eye(Q.shape[1]) - Q.T @ Q
    lifted = np.linalg.lstsq(inner, Q.T @ right, rcond=None)[0]
    return np.asarray((right + Q @ lifted) / len(y))


def fit_weights(
    sight: Sight, *, rounds: int = 400, relaxation: float = 1.6, enough: float = 1e-13
) -> Recovery:
    """Records and weights of mixtures y = Σ λ_i·x_i, Σ λ_i = 1, whose members are known: least
    squares for the records and for the weights by turns. Each encoding has d equations and k − 1
    weights, so that m·(d − k + 1) equations determine n·d values. Where weights are fixed they are
    known, and the records follow at once.

    rounds : int          Alternations at most; a hundred are usual.
    relaxation : float    Weights go so many times as far as least squares says, from the sixth
                          round on: valleys are long.
    enough : float        Share of the power that is left unexplained, at which it stops.
    """
    members = sight.draw.members
    assert members is not None
    m, k = members.shape
    n, scheme = len(sight.records), sight.release.scheme
    fixed = scheme.fixed_weights
    middle = 0.0 if fixed else sight.draw.values.mean(axis=0, dtype=np.float64)
    y = np.asarray(sight.draw.values - middle, np.float64)
    rows = np.repeat(np.arange(m), k)
    weights = np.full((m, k), scheme.private_weight if fixed else 1 / k)
    power, left = max(float((y * y).sum()), 1e-300), 1.0
    for turn in range(rounds):
        W = sparse.csr_array((weights.ravel(), (rows, members.ravel())), (m, n))
        gram = (W.T @ W).toarray()
        gram[np.diag_indices(n)] += 1e-9
        x = np.linalg.solve(gram, W.T @ y)
        if fixed:
            break
        step = relaxation if turn > 5 else 1.0
        weights = (weights + step * (_weights(y, x[members]) - weights)).clip(0, 1)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        miss = y - np.einsum("mk,mkd->md", weights, x[members])
        left = float((miss * miss).sum()) / power
        if sight.progress is not None:
            sight.progress("known members", turn, rounds)
        if left <= enough:
            break
    weighed = "known weights" if fixed else f"their weights; {left:.0e} of the power is left"
    said = f"{n} records fitted with {weighed}"
    uses = [np.flatnonzero((members == j).any(axis=1)) for j in range(n)]
    return _claim(sight, (x + middle).astype(np.float32), uses, "known members", said)


def _weights(y: Doubles, x: Doubles) -> Doubles:
    """Weights (m, k) from 0 to 1 that sum to one, by least squares: x (m, k, d)."""
    base, directions = x[:, 0], x[:, 1:] - x[:, :1]
    gram = np.einsum("mid,mjd->mij", directions, directions)
    gram += 1e-9 * np.eye(gram.shape[1])
    rest = np.linalg.solve(gram, np.einsum("mid,md->mi", directions, y - base)[..., None])[..., 0]
    lam = np.concatenate([1 - rest.sum(axis=1, keepdims=True), rest], axis=1).clip(0, 1)
    return np.asarray(lam / np.maximum(lam.sum(axis=1, keepdims=True), 1e-300))


def _claim(sight: Sight, vectors: Floats, uses: Any, name: str, said: str) -> Recovery:
    """A recovery that claims no proof; uses: the encodings of each vector."""
    count = len(vectors)
    counts = [len(rows) for rows in uses]
    rows = np.concatenate([np.asarray(rows) for rows in uses]) if count else np.empty(0, np.int64)
    shape = (len(sight.draw.values), count)
    members = sparse.csr_array(
        (np.ones(len(rows), bool), (rows, np.repeat(np.arange(count), counts))), shape
    )
    return Recovery(
        vectors=vectors,
        status=np.full(count, UNRESOLVED, dtype="<U10"),
        signed=True,
        members=members,
        residual=np.zeros(count),
        reasons=(name,) * count,
        attack=name,
        explanation=said,
    )
