"""The command line: every command prints its verdict first, then the evidence, and returns its exit
code.

0: done; 1: records leak, where a gate was asked for (`audit --fail-on`); 2: bad input, said in one
sentence on stderr (with --json also as an object on stdout), nothing written; 3: it ran, but could
not recover. One command, one file. NumPy and all that stands on it load inside the commands, so
that `unveil --help` answers at once.
"""

from unveil.cli import attack, audit, certify, doctor, export, plan, score, simulate
from unveil.cli.group import main

__all__ = ["attack", "audit", "certify", "doctor", "export", "main", "plan", "score", "simulate"]
