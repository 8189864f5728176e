"""Where an audit comes from: when it was made, of which files, and by which command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unveil._version import __version__


def provenance(
    known: Mapping[str, Any], args: Sequence[str], files: Sequence[Path]
) -> dict[str, Any]:
    """What the audit itself says (`known`) wins, but for the command, which it cannot know."""
    from unveil.data.digest import digest

    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": f"unveil {__version__}",
    }
    for path in files:
        found[f"SHA-256 of {path.name}"] = digest(path)
    # The audit knows its own date and data better than we do.
    found.update(known)
    if args:
        found["command"] = shlex.join(["unveil", *args])
    return found
