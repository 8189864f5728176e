"""The form of an audit as JSON, in the words of JSON Schema (draft 2020-12).

It is derived from the records in `auditing.result`, so that it cannot fall behind them, and
describes what `unveil audit --json` prints, an error included, and the file audit.json. Its number
is that of the field `schema` in both; it grows when a field changes its meaning or goes away.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from unveil._version import SCHEMA
from unveil.auditing.result import Audit

PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def audit_schema() -> dict[str, Any]:
    """The schema of this version, for any validator."""
    defs: dict[str, Any] = {}
    audit = dict(_object(Audit, defs))
    text = {"type": "string"}
    audit["properties"] = {
        "schema": {"const": SCHEMA},
        **audit["properties"],
        "pictures": {"type": "object", "description": "In audit.json only: PNG in base64."},
        "report": {**text, "description": "Path of the report; on stdout only."},
        "gate": {
            "type": "object",
            "description": "On stdout only, where --fail-on was given.",
            "properties": {"fail_on": text, "passed": {"type": "boolean"}, "why": text},
            "required": ["fail_on", "passed", "why"],
        },
    }
    error = {
        "type": "object",
        "properties": {"message": text, "exit_code": {"type": "integer"}},
        "required": ["message", "exit_code"],
    }
    several = {"type": "array", "items": {"$ref": "#/$defs/Audit"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:unveil:audit:{SCHEMA}",
        "title": "What `unveil audit --json` prints, and audit.json",
        "type": "object",
        "required": ["schema"],
        "properties": {"schema": {"const": SCHEMA}},
        "oneOf": [
            {"$ref": "#/$defs/Audit"},
            {"type": "object", "required": ["audits"], "properties": {"audits": several}},
            {"type": "object", "required": ["error"], "properties": {"error": error}},
        ],
        "$defs": {"Audit": audit, **defs},
    }


def _object(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """A record: its fields, all of which are there."""
    hints = get_type_hints(kind)
    names = [item.name for item in fields(kind) if item.name != "pictures"]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {name: _schema(hints[name], defs) for name in names},
        "required": names,
    }


def _schema(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """What a field may hold."""
    if is_dataclass(hint):
        name = getattr(hint, "__name__", "")
        if name not in defs:
            defs[name] = {}
            defs[name] = _object(hint, defs)
        return {"$ref": f"#/$defs/{name}"}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg, defs) for arg in args]}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], defs)}
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    assert origin is Mapping, hint
    return {"type": "object"}
