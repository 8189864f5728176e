"""What `unveil audit` shows on the terminal: verdict, attackers, what it means, curve, what if."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

if TYPE_CHECKING:
    from unveil.auditing.result import Audit

COLOURS = {"leaks": "red", "partly": "yellow", "nothing": "green"}


def show(terminal: Console, found: Audit, report: Path) -> None:
    """The whole of it, verdict first, the place of the report last."""
    from unveil.report.words import noun, worded

    # Verdict first: whoever reads one line reads that one.
    verdict, say = found.verdict, worded(found)
    terminal.print(
        Panel(escape(verdict.headline), border_style=COLOURS[verdict.level], style="bold")
    )
    source, records = found.data.get("source", ""), found.data.get("records", len(found.records))
    values = found.data.get("pixels", "")
    how = found.data.get("encoded as")
    terminal.print(
        f"{escape(str(source))}: {records} records of {values} {noun(found)}"
        f"{f', encoded with {how}' if how else ''}."
    )
    for sentence in verdict.sentences:
        terminal.print(escape(say(sentence)))
    _threats(terminal, found)
    for meaning in found.meanings:
        terminal.print(
            f"[bold]{escape(meaning.kind.capitalize())}[/]: {escape(say(meaning.words))}"
        )
    _curve(terminal, found)
    _what_if(terminal, found)
    for finding in found.findings:
        # What is well is in the report; a terminal is for what needs doing.
        if finding.severity != "fine":
            terminal.print(
                f"[bold]{finding.severity}[/]: {escape(say(finding.what))} "
                f"{escape(say(finding.cure))}"
            )
    terminal.print(f"Report: {escape(str(report))}", soft_wrap=True)


def _threats(terminal: Console, found: Audit) -> None:
    from unveil.report.words import hue, why_untried, worded

    if not found.threats:
        return
    table = Table(
        "the attacker",
        "best attack",
        "records back (95%, records and draws)",
        "guessing",
        box=box.SIMPLE,
    )
    for threat in found.threats:
        best = threat.tried[0].attack if threat.tried else "–"
        if threat.tried and hue(threat) == "not-recovered":
            best = f"none in {len(threat.tried)} run{'s' if len(threat.tried) > 1 else ''}"
        back = f"{threat.exact}"
        if threat.approximate:
            back += f" + {threat.approximate} nearly"
        back += f" of {threat.records} ({threat.low:.0%}–{threat.high:.0%})"
        guess = f"{threat.control:.0%}"
        # A dash and the reason: nothing recovered because nothing was tried is no result.
        if not threat.tried:
            why = worded(found)(why_untried(threat))
            back, guess = escape(f"not tried: {why}" if why else "not tried"), "–"
        table.add_row(escape(threat.knows), escape(best), back, guess)
    terminal.print(table)


def _curve(terminal: Console, found: Audit) -> None:
    # One point is no curve, and the table above has it.
    if len(found.curve) < 2:
        return
    table = Table(
        "encodings", "exactly", "95%, draws only", "approximately", "draws", box=box.SIMPLE
    )
    for p in found.curve:
        table.add_row(
            f"{p.m:,}",
            f"{p.exact:.0%}",
            f"{p.low:.0%}–{p.high:.0%}",
            f"{p.approximate:.0%}",
            str(p.runs),
        )
    terminal.print(table)


def _what_if(terminal: Console, found: Audit) -> None:
    if not found.what_if:
        return
    table = Table(
        "what if",
        "value",
        "records back (95%, records and draws)",
        "utility left",
        "epsilon",
        box=box.SIMPLE,
    )
    for p in found.what_if:
        table.add_row(
            escape(p.axis),
            f"{p.value:g}",
            f"{p.recovered:.0%} ({p.low:.0%}–{p.high:.0%})",
            "–" if p.utility is None else f"{p.utility:.0%}",
            "–" if p.epsilon is None else f"{p.epsilon:.3g}",
        )
    terminal.print(table)
