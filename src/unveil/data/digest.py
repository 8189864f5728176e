"""Which data was it? The SHA-256 of a file as `sha256sum` gives it, or of all files of a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

BLOCK = 1 << 20
"""Bytes read at a time: files may be larger than memory."""


def digest(path: str | Path) -> str:
    """Of a folder: of the names and the digests of its files, in the order of the names."""
    path = Path(path)
    if path.is_dir():
        # Names are part of it: a folder whose files changed places is another one.
        lines = [f"{digest(f)}  {f.name}\n" for f in sorted(path.iterdir()) if f.is_file()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            total.update(block)
    return total.hexdigest()
