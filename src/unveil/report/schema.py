"""The form of an audit as JSON, in the words of JSON Schema (draft 2020-12).

`schemas/audit-1.json` describes what `unveil audit --json` prints, an error included, and the file
audit.json. The number is that of the field `schema` in both.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from unveil._version import SCHEMA


def audit_schema() -> dict[str, Any]:
    """The schema of this version, for any validator."""
    text = files("unveil.report").joinpath("schemas", f"audit-{SCHEMA}.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
