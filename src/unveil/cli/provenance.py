"""Where an audit comes from: when it was made, of which files, and by which command."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unveil._version import __version__


def digest(path: Path) -> str:
    """The SHA-256 of a file as `sha256sum` gives it; of a folder that of the names and digests of
    its files."""
    if path.is_dir():
        # Names are part of it: a folder whose files changed places is another one.
        lines = [f"{digest(f)}  {f.name}\n" for f in sorted(path.iterdir()) if f.is_file()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(
    known: Mapping[str, Any], args: Sequence[str], files: Sequence[Path]
) -> dict[str, Any]:
    """What the audit itself says (`known`) wins, but for the command, which it cannot know."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    sums = {f"SHA-256 of {path.name}": digest(path) for path in files}
    command = {"command": shlex.join(["unveil", *args])} if args else {}
    return {"date": now, "version": f"unveil {__version__}", **sums, **known, **command}
