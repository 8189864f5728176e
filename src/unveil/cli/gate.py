"""The gate of a pipeline: does this audit pass, and if not, why? `unveil audit --fail-on …`.

    leaks         values come back exactly from what is released and public: the verdict is red
    approximate   also where few do, only approximately, or to an attacker who knows more: amber
    any           also where a column, a link or a record is known better than by a guess, or where
                  a slip of the encoder is "high"

Each one fails wherever those above it fail, and where time ran out before anything was known. It
reads what terminal and report show, and counts nothing of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.auditing.result import Audit

GATES = ("leaks", "approximate", "any")
FAILED = 1
"""The exit code; 0, 2 and 3 have their meanings in every command."""


def why_not(audit: Audit, gate: str) -> str:
    """Why the audit does not pass, in words; "" where it passes."""
    level = audit.verdict.level
    # From the hardest gate to the softest: each question is asked only where those before it found
    # nothing.
    if level == "leaks":
        return "values leak"
    # Nothing is known then, and what is not known does not pass.
    if any(threat.stopped and threat.level == "nothing" for threat in audit.threats):
        return "time ran out before all attacks had ended: give them more, as --time 10m"
    if gate == "leaks":
        return ""
    if level == "partly":
        return "values leak in part"
    if gate == "approximate":
        return ""
    for threat in audit.threats:
        if threat.level != "nothing" or threat.exact + threat.approximate:
            return f"an attacker who {threat.knows} gets records back"
    for column in audit.columns:
        if column.leaks:
            return f"column {column.name} is known better than by a guess"
    for meaning in audit.meanings:
        if meaning.low > meaning.control:
            return f"{meaning.kind} works better than a guess"
    for finding in audit.findings:
        if finding.severity == "high":
            return f"the encoder: {finding.what.rstrip('.')}"
    return ""
