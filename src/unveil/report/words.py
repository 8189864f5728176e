"""Words that depend on the data: who audits a table is told of columns, never of images."""

from __future__ import annotations

from unveil.auditing.result import Audit


def is_images(audit: Audit) -> bool:
    """Whether the records are pictures: said by the data, or shown by the audit."""
    return audit.data.get("kind") == "images" or audit.pictures.originals is not None


def noun(audit: Audit, *, one: bool = False) -> str:
    """What a record is made of: pixels, columns, or plainly values."""
    word = "pixel" if is_images(audit) else "value"
    if audit.data.get("kind") == "features":
        word = "column"
    return word if one else f"{word}s"
