"""What `unveil audit` shows on the terminal: verdict, what was attacked, columns, attackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from unveil.report.figures import percent

if TYPE_CHECKING:
    from unveil.auditing.result import Audit

COLOURS = {"leaks": "red", "partly": "yellow", "nothing": "green"}


def show(terminal: Console, found: Audit, report: Path, rows: int = 12) -> None:
    """The whole of it, verdict first, the place of the report last; rows: columns listed, those
    that leak most."""
    verdict = found.verdict
    panel = Panel(escape(verdict.headline), border_style=COLOURS[verdict.level], style="bold")
    terminal.print(panel)
    if verdict.attacked:
        terminal.print(escape(verdict.attacked))
    data = found.data
    how = f", encoded with {data['encoded as']}" if data.get("encoded as") else ""
    terminal.print(escape(f"{data.get('source', '')}: {data.get('records')} records{how}."))
    titles: tuple[str, ...] = ("column", "exactly", "nearly", "of", "95%", "guess", "lift")
    _print(terminal, titles, _columns(found, rows))
    if len(found.columns) > rows:
        terminal.print(f"… and {len(found.columns) - rows} more columns in the report.")
    for sentence in verdict.sentences:
        terminal.print(escape(sentence))
    titles = ("the attacker", "best attack", "records back (95%)", "values back", "guessing")
    _print(terminal, titles, _threats(found))
    for meaning in found.meanings:
        terminal.print(f"[bold]{escape(meaning.kind.capitalize())}[/]: {escape(meaning.words)}")
    titles = ("encodings", "records exactly", "approximately", "95%", "values", "draws")
    _print(terminal, titles, _curve(found))
    who = list(dict.fromkeys(point.attacker for point in found.what_if))
    titles = ("what if", *(f"{key}: values, records" for key in who), "use left", "epsilon")
    _print(terminal, titles, _what_if(found, who))
    if found.what_if:
        terminal.print("A cure must hold against every attacker: read the strongest, first.")
    for finding in found.findings:
        # What is well is in the report; a terminal is for what needs doing.
        if finding.severity != "fine":
            said = f"{escape(finding.what)} {escape(finding.cure)}"
            terminal.print(f"[bold]{finding.severity}[/]: {said}")
    terminal.print(f"Report: {escape(str(report))}", soft_wrap=True)


def _range(shares: Any) -> str:
    return f"{percent(shares.low)} to {percent(shares.high)}"


def _print(terminal: Console, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(*titles, box=box.SIMPLE)
    table.columns[0].overflow = "fold"
    for row in rows:
        table.add_row(*row)
    if table.rows:
        terminal.print(table)


def _columns(found: Audit, rows: int) -> Iterator[tuple[str, ...]]:
    for column in found.columns[:rows]:
        opened = f" ({column.open} open)" if column.open else ""
        yield (
            escape(column.name) + ("" if column.leaks else " [dim](no more than by chance)[/]"),
            f"{column.exact}{opened}",
            str(column.approximate),
            str(column.records),
            _range(column),
            percent(column.guess),
            percent(column.lift),
        )


def _threats(found: Audit) -> Iterator[tuple[str, ...]]:
    for threat in found.threats:
        best = threat.tried[0].attack if threat.tried else "–"
        if not threat.tried and threat.why_not:
            best = f"not tried: {threat.why_not}"
        back = str(threat.exact)
        back += f" + {threat.approximate} nearly" if threat.approximate else ""
        back += f" + {threat.in_part} in part" if threat.in_part else ""
        back += f" of {threat.records}{' of a sample' if threat.sampled else ''}"
        back += f" ({_range(threat)}){', stopped by the clock' if threat.stopped else ''}"
        values = percent(threat.values), percent(threat.guess)
        yield escape(threat.knows), escape(best), back, *values


def _curve(found: Audit) -> Iterator[tuple[str, ...]]:
    # One point is no curve, and the table above has it.
    for p in found.curve if len(found.curve) > 1 else ():
        shares = percent(p.exact), percent(p.approximate), _range(p), percent(p.values)
        yield f"{p.m:,}", *shares, str(p.runs)


def _what_if(found: Audit, who: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for axis, value in dict.fromkeys((p.axis, p.value) for p in found.what_if):
        points = {p.attacker: p for p in found.what_if if (p.axis, p.value) == (axis, value)}
        some = next(iter(points.values()))
        shares = (points.get(key) for key in who)
        yield (
            escape(f"{axis} = {value:g}"),
            *(f"{percent(p.values)}, {percent(p.recovered)}" if p else "–" for p in shares),
            "–" if some.utility is None else percent(some.utility),
            "–" if some.epsilon is None else f"{some.epsilon:.3g}",
        )
