"""What an audit found: one record that terminal, JSON and report all show, and nothing that has to
be computed again.

Every part can be read by itself; pictures are arrays, everything else turns into JSON as it is
(`Audit.facts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError
from unveil.shown import Shown, new_figure, room

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Level = Literal["leaks", "partly", "nothing"]
Outcome = Literal["exact", "approximate", "not recovered"]


@dataclass(frozen=True)
class Verdict:
    """level "leaks": records came back; "partly": only approximately, or a few; "nothing": no
    attack got anything."""

    level: Level
    headline: str
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordRisk:
    """One private record: error is the largest pixel difference, correlation that of all pixels
    (signs aligned);
    from_m: the smallest number of encodings with which it came back, None when it never did."""

    index: int
    name: str
    outcome: Outcome
    status: str
    error: float | None
    correlation: float | None
    encodings: int
    from_m: int | None
    reason: str


@dataclass(frozen=True)
class CurvePoint:
    """Fraction of records recovered from m encodings: mean over seeds, with a confidence band
    low..high."""

    m: int
    exact: float
    low: float
    high: float
    approximate: float
    runs: int


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """Something an encoder gives away, or a guarantee that does not hold: what, with what
    consequence, and the cure."""

    what: str
    severity: Literal["high", "medium", "low", "fine"]
    consequence: str
    cure: str = ""


@dataclass(frozen=True)
class Guarantee:
    what: str
    holds: bool
    why: str


@dataclass(frozen=True)
class Attempt:
    """One attack that was run: what it got of the distinct records, in how many seconds."""

    attack: str
    exact: int
    approximate: int
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Threat:
    """One kind of attacker, and the strongest attack it has.

    key: "blind", "public", "told" or "insider"; knows: the same in words, for the table
    exact, approximate, records: counts of distinct records, of the best attempt
    low, high: interval of the share recovered, over records and draws
    control: share that guessing without the encodings gets; residual: risk above it, with interval
    values: share of all single values that came back right; None where it was not measured
    guessed_values: share of them that a guess has right
    tried: attacks that ran, best first; not_tried: attack and why
    """

    key: str
    knows: str
    exact: int
    approximate: int
    records: int
    low: float
    high: float
    control: float
    residual: float
    residual_low: float
    residual_high: float
    values: float | None = None
    guessed_values: float = 0.0
    tried: tuple[Attempt, ...] = ()
    not_tried: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Meaning:
    """What it means to those who decide. kind: "singling out", "linkability" or "inference"; rate
    with its interval beside what a guess without the encodings gets."""

    kind: str
    words: str
    rate: float
    low: float
    high: float
    control: float


@dataclass(frozen=True)
class WhatIf:
    """One point of "what if": the share of records that comes back when `axis` ("noise", "k", "m")
    has this value, and what the encodings are still worth.

    utility: accuracy of a plain classifier trained on them where labels are given, else one minus
    the relative error of the data; None where not measured
    epsilon: of the Gaussian mechanism with this noise, where `axis` is "noise"
    """

    axis: str
    value: float
    recovered: float
    low: float
    high: float
    utility: float | None = None
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class Pictures:
    """What people would rather see than read. Images are (count, height, width) or (count, height,
    width, 3) in [0, 1].

    images: originals, encodings (one that uses it) and recoveries of some records, `names` their
    captions; None for data that are no images. overlaps: a small matrix of shared private vectors,
    encodings sorted so that its structure shows.
    """

    originals: NDArray[np.float32] | None = None
    encodings: NDArray[np.float32] | None = None
    recoveries: NDArray[np.float32] | None = None
    names: tuple[str, ...] = ()
    overlaps: NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """The whole of it. `scheme`, `data`, `model`, `run`, `assumed` and `provenance` are plain facts
    (strings, numbers, lists, dicts).

    threats: one per kind of attacker, the weakest that knows least first
    assumed: k, weights, signs, m as they were taken to be; provenance: date, hash of the data, and
    the command that repeats the audit
    """

    verdict: Verdict
    scheme: Mapping[str, Any]
    data: Mapping[str, Any]
    m: int
    attack: str
    explanation: str
    records: tuple[RecordRisk, ...]
    curve: tuple[CurvePoint, ...] = ()
    stages: tuple[Stage, ...] = ()
    findings: tuple[Finding, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    threats: tuple[Threat, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    what_if: tuple[WhatIf, ...] = ()
    assumed: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    pictures: Pictures = field(default_factory=Pictures)

    def facts(self) -> dict[str, Any]:
        """Everything but the pictures, as JSON takes it."""
        return {
            item.name: _plain(getattr(self, item.name))
            for item in fields(self)
            if item.name != "pictures"
        }

    def _sentence(self) -> str:
        return " ".join((self.verdict.headline, *self.verdict.sentences))

    def plot(self) -> Figure:
        """The leakage curve: the share of records that come back, as encodings become more."""
        if not self.curve:
            raise InputError("no leakage curve in this audit: run it with effort above 0")
        # The curve was measured by bisection, in no order.
        points = sorted(self.curve, key=lambda point: point.m)
        m = [point.m for point in points]
        figure = new_figure(8, 4)
        axis = figure.add_subplot()
        band = [point.low for point in points], [point.high for point in points]
        axis.fill_between(m, *band, alpha=0.2, color="#D55E00", label="95% interval")
        axis.plot(m, [point.exact for point in points], "o-", color="#D55E00", label="exactly")
        axis.axvline(self.m, color="black", linestyle="--", linewidth=1, label="this release")
        axis.set(xlabel="encodings released", ylabel="records that come back", ylim=(-0.02, 1.02))
        axis.set_title(self.verdict.headline, wrap=True, fontsize=10)
        axis.legend()
        return figure

    def save(self, path: str | PathLike[str]) -> Path:
        """As every result; .html is the report, .json what `unveil audit --json` prints."""
        page, target = room("report.page"), Path(path)
        if target.suffix == ".html" and target.parent.is_dir():
            page.write_report(self, target)
        elif target.suffix == ".json" and target.parent.is_dir():
            page.write_json(self, target)
        else:
            return super().save(target)
        return target


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
