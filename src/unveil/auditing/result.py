"""What an audit found: one record that terminal, JSON and report all show, with nothing that has to
be computed again.

Every part can be read by itself; pictures are arrays, everything else turns into JSON as it is
(`Audit.facts`). Counts are of distinct records; what they mean is said in `auditing.outcome`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.shown import Shown, new_figure, plain, room

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Level = Literal["leaks", "partly", "nothing"]
RecordState = Literal["exact", "approximate", "in part", "not recovered"]


@dataclass(frozen=True)
class Verdict:
    """What to do, in one line, and what belongs to it.

    level : "leaks": values come back exactly to whoever has what is released and public; "partly":
    few of them, approximately, or to somebody who knows more; "nothing": no attack got anything.
    attacked : what was attacked, and what that means for the rest; on the first screen.
    """

    level: Level
    headline: str
    attacked: str = ""
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column of a table, over the records that were attacked.

    exact, approximate : values back exactly, and besides approximately; of `records`.
    open : values that the equations leave open, and the attack guessed; right ones count.
    low, high : interval of the share that is back exactly, over records and draws.
    guess : share that one guess for all records has right; lift : the share of wrong guesses that
    the recovery mends.
    leaks : more values are back, exactly or approximately, than chance explains.
    """

    name: str
    exact: int
    approximate: int
    records: int
    open: int
    low: float
    high: float
    guess: float
    lift: float
    leaks: bool


@dataclass(frozen=True)
class RecordRisk:
    """One private record.

    values, open : how many of its values are back exactly, and how many are open.
    error : largest difference of a determined value; correlation : of all values with the record.
    encodings : how many mix it in; from_m : the fewest encodings with which it came back.
    status, reason : the attack's own word, found without the truth.
    """

    index: int
    name: str
    outcome: RecordState
    values: int
    open: int
    error: float | None
    correlation: float | None
    encodings: int
    from_m: int | None
    status: str
    reason: str


@dataclass(frozen=True)
class Attempt:
    """One attack that was run: what it got of the records, and of all values, in how many
    seconds."""

    attack: str
    exact: int
    approximate: int
    values: float
    seconds: float
    note: str = ""
    stopped: bool = False


@dataclass(frozen=True)
class Threat:
    """One kind of attacker, and the most it got.

    key, knows : "blind", "public", "told" or "insider"; the same in words.
    level : what it would be called by itself.
    exact, approximate, in_part, records : counts of records; low, high : interval of the share that
    is back exactly or approximately.
    columns : how many columns leak; values, guess : share of all values back exactly, and what one
    guess per column has.
    sampled : the records were a sample of all; stopped : an attack was ended by the clock.
    tried : attacks that ran, best first; why_not : why none did, where none did.
    """

    key: str
    knows: str
    level: Level
    exact: int
    approximate: int
    in_part: int
    records: int
    low: float
    high: float
    columns: int
    values: float
    guess: float
    sampled: bool = False
    stopped: bool = False
    tried: tuple[Attempt, ...] = ()
    why_not: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """Shares of records back from m encodings in the draw that is shown: exactly, and besides
    approximately; low, high: interval of both together, over `runs` draws."""

    m: int
    exact: float
    approximate: float
    low: float
    high: float
    values: float
    runs: int


@dataclass(frozen=True)
class WhatIf:
    """The same records with another noise, k or m, and one attacker: share of records back exactly
    or approximately, with its interval, and of values back exactly. utility: what encodings are
    then worth; epsilon: of differential privacy."""

    axis: str
    value: float
    attacker: str
    recovered: float
    low: float
    high: float
    values: float
    utility: float | None = None
    epsilon: float | None = None


@dataclass(frozen=True)
class Meaning:
    """An answer for those who decide: singling out, linkability, inference; `rate` beside what a
    guess gets (`control`)."""

    kind: str
    words: str
    rate: float
    low: float
    high: float
    control: float


@dataclass(frozen=True)
class Finding:
    """Something an encoder gives away: what, with what consequence, and the cure."""

    what: str
    severity: Literal["high", "medium", "low", "fine"]
    consequence: str
    cure: str = ""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images (count, height, width[, 3]) in [0, 1]: originals, one encoding that uses each, and
    recoveries, `names` their captions; None for data that are no images."""

    originals: NDArray[np.float32] | None = None
    encodings: NDArray[np.float32] | None = None
    recoveries: NDArray[np.float32] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """The whole of it. `scheme`, `data`, `assumed`, `run` and `provenance` are plain facts.

    columns : one per column, of tables; () for images.
    threats : one per kind of attacker, who knows least first.
    attack, explanation : the attack of the headline, and what it says of itself.
    assumed : k, weights, signs, m as they were taken to be; provenance : date, hash of the data,
    and the command that repeats the audit.
    """

    verdict: Verdict
    scheme: Mapping[str, Any]
    data: Mapping[str, Any]
    m: int
    attack: str
    explanation: str
    records: tuple[RecordRisk, ...]
    columns: tuple[Column, ...] = ()
    threats: tuple[Threat, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    what_if: tuple[WhatIf, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    findings: tuple[Finding, ...] = ()
    assumed: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    pictures: Pictures = field(default_factory=Pictures)

    def facts(self) -> dict[str, Any]:
        """Everything but the pictures, as JSON takes it."""
        facts = asdict(replace(self, pictures=Pictures()))
        del facts["pictures"]
        return {name: plain(value) for name, value in facts.items()}

    def __str__(self) -> str:
        return "\n".join((self.verdict.headline, self.verdict.attacked, *self.verdict.sentences))

    def _sentence(self) -> str:
        return " ".join((self.verdict.headline, *self.verdict.sentences))

    def plot(self) -> Figure:
        """The leakage curve: the share of records that come back, as encodings become more."""
        if not self.curve:
            raise InputError(
                "this audit has no leakage curve: audit records and a scheme, not encodings"
            )
        m, low, high = ([getattr(p, name) for p in self.curve] for name in ("m", "low", "high"))
        figure = new_figure(8, 4)
        axis = figure.add_subplot()
        axis.fill_between(m, low, high, alpha=0.2, color="#D55E00", label="95% interval")
        axis.plot(m, [p.exact for p in self.curve], "o-", color="#D55E00", label="exactly")
        axis.axvline(self.m, color="black", linestyle="--", linewidth=1, label="this release")
        axis.set(xlabel="encodings released", ylabel="records that come back", ylim=(-0.02, 1.02))
        axis.set_title(self.verdict.headline, wrap=True, fontsize=10)
        axis.legend()
        return figure

    def save(self, path: str | PathLike[str]) -> Path:
        """As every result; .html is the report, .json what `unveil audit --json` prints."""
        target = Path(path)
        kind = {".html": "write_report", ".json": "write_json"}.get(target.suffix)
        if kind is None or not target.parent.is_dir():
            return super().save(target)
        getattr(room("report.page"), kind)(self, target)
        return target
