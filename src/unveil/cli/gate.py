"""The gate of a pipeline: does this audit pass, and if not, why? `unveil audit --fail-on …`.

    leaks         records come back exactly, more than a few: the verdict is red
    approximate   also where records come back only in part or only nearly, or to an attacker who
                  knows more: the verdict is amber
    any           also where any attacker does better than a guess, where a column or a link can be
                  inferred better than by a guess, or where a slip of the encoder is "high"

Each one fails wherever those above it fail.
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
        return "records leak"
    if gate == "leaks":
        return ""
    if level == "partly" or any(record.outcome != "not recovered" for record in audit.records):
        return "records leak in part"
    if gate == "approximate":
        return ""
    # The lower end of the interval: a gate must not close by chance.
    for threat in audit.threats:
        if threat.residual_low > 0:
            return f"an attacker who {threat.knows} does better than a guess"
    for meaning in audit.meanings:
        if meaning.low > meaning.control:
            return f"{meaning.kind} works better than a guess"
    for finding in audit.findings:
        if finding.severity == "high":
            return f"the encoder: {finding.what.rstrip('.')}"
    return ""
