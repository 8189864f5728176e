"""What `unveil audit` shows on the terminal: verdict, what was attacked, columns, attackers."""

from __future__ import annotations

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
    _columns(terminal, found, rows)
    for sentence in verdict.sentences:
        terminal.print(escape(sentence))
    _threats(terminal, found)
    for meaning in found.meanings:
        terminal.print(f"[bold]{escape(meaning.kind.capitalize())}[/]: {escape(meaning.words)}")
    _curve(terminal, found)
    _what_if(terminal, found)
    for finding in found.findings:
        # What is well is in the report; a terminal is for what needs doing.
        if finding.severity != "fine":
            said = f"{escape(finding.what)} {escape(finding.cure)}"
            terminal.print(f"[bold]{finding.severity}[/]: {said}")
    terminal.print(f"Report: {escape(str(report))}", soft_wrap=True)


def _range(shares: Any) -> str:
    return f"{percent(shares.low)} to {percent(shares.high)}"


def _columns(terminal: Console, found: Audit, rows: int) -> None:
    if not found.columns:
        return
    titles = ("column", "exactly", "nearly", "of", "95%", "guess", "lift")
    table = Table(*titles, box=box.SIMPLE)
    table.columns[0].overflow = "fold"
    for column in found.columns[:rows]:
        opened = f" ({column.open} open)" if column.open else ""
        table.add_row(
            escape(column.name) + ("" if column.leaks else " [dim](no more than by chance)[/]"),
            f"{column.exact}{opened}",
            str(column.approximate),
            str(column.records),
            _range(column),
            percent(column.guess),
            percent(column.lift),
        )
    terminal.print(table)
    if len(found.columns) > rows:
        terminal.print(f"… and {len(found.columns) - rows} more columns in the report.")


def _threats(terminal: Console, found: Audit) -> None:
    if not found.threats:
        return
    titles = ("the attacker", "best attack", "records back (95%)", "values back", "guessing")
    table = Table(*titles, box=box.SIMPLE)
    for threat in found.threats:
        best = threat.tried[0].attack if threat.tried else "–"
        back = f"{threat.exact}"
        if threat.approximate:
            back += f" + {threat.approximate} nearly"
        if threat.in_part:
            back += f" + {threat.in_part} in part"
        back += f" of {threat.records}{' of a sample' if threat.sampled else ''}"
        back += f" ({_range(threat)})"
        if threat.stopped:
            back += ", stopped by the clock"
        if not threat.tried and threat.why_not:
            best = f"not tried: {threat.why_not}"
        table.add_row(
            escape(threat.knows), escape(best), back, percent(threat.values), percent(threat.guess)
        )
    terminal.print(table)


def _curve(terminal: Console, found: Audit) -> None:
    # One point is no curve, and the table above has it.
    if len(found.curve) < 2:
        return
    titles = ("encodings", "records exactly", "approximately", "95%", "values", "draws")
    table = Table(*titles, box=box.SIMPLE)
    for p in found.curve:
        table.add_row(
            f"{p.m:,}",
            percent(p.exact),
            percent(p.approximate),
            _range(p),
            percent(p.values),
            str(p.runs),
        )
    terminal.print(table)


def _what_if(terminal: Console, found: Audit) -> None:
    if not found.what_if:
        return
    tried = {point.attacker for point in found.what_if}
    who = [key for key in ("insider", "told", "public", "blind") if key in tried]
    titles = (f"{key}: values, records" for key in who)
    table = Table("what if", *titles, "use left", "epsilon", box=box.SIMPLE)
    for axis, value in dict.fromkeys((p.axis, p.value) for p in found.what_if):
        points = {p.attacker: p for p in found.what_if if (p.axis, p.value) == (axis, value)}
        cells = [
            f"{percent(points[key].values)}, {percent(points[key].recovered)}"
            if key in points
            else "–"
            for key in who
        ]
        any_point = next(iter(points.values()))
        table.add_row(
            escape(f"{axis} = {value:g}"),
            *cells,
            "–" if any_point.utility is None else percent(any_point.utility),
            "–" if any_point.epsilon is None else f"{any_point.epsilon:.3g}",
        )
    terminal.print(table)
    terminal.print("A cure must hold against every attacker: read the strongest, first.")
