"""The schema is valid, every audit keeps to it, and it forgets no field."""

import json
from dataclasses import fields

import pytest

from unveil.auditing import result
from unveil.report import write_json
from unveil.report.schema import audit_schema

jsonschema = pytest.importorskip("jsonschema", reason="it validates: pip install 'unveil[dev]'")


def valid(content):
    jsonschema.Draft202012Validator(audit_schema()).validate(content)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(audit_schema())


@pytest.mark.parametrize("kind", ["images", "features"])
def test_what_is_written_keeps_to_it(whole_audit, make_audit, tmp_path, kind):
    valid(json.loads(write_json(whole_audit(kind), tmp_path / "a.json").read_text()))
    valid(json.loads(write_json(make_audit(), tmp_path / "b.json").read_text()))


def test_errors_and_several_audits_keep_to_it(whole_audit):
    valid({"schema": 1, "error": {"message": "no file: check the path", "exit_code": 2}})
    valid({"schema": 1, "audits": [whole_audit().facts(), whole_audit("features").facts()]})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.pop("schema"),
        lambda a: a.update(schema=2),
        lambda a: a.pop("verdict"),
        lambda a: a["verdict"].update(level="fine"),
        lambda a: a["threats"][0].update(low=1.5),
        lambda a: a["threats"][0].pop("control"),
        lambda a: a["records"][0].update(outcome="lost"),
        lambda a: a["what_if"][0].update(axis="d"),
    ],
)
def test_what_does_not_keep_to_it_is_noticed(whole_audit, spoil):
    content = {"schema": 1, **whole_audit().facts()}
    valid(content)
    spoil(content)
    with pytest.raises(jsonschema.ValidationError):
        valid(content)


def test_no_field_is_forgotten():
    known = audit_schema()["$defs"]
    names = {
        "audit": result.Audit,
        "verdict": result.Verdict,
        "record": result.RecordRisk,
        "curve_point": result.CurvePoint,
        "stage": result.Stage,
        "finding": result.Finding,
        "guarantee": result.Guarantee,
        "attempt": result.Attempt,
        "threat": result.Threat,
        "meaning": result.Meaning,
        "what_if": result.WhatIf,
    }
    for name, kind in names.items():
        missing = {field.name for field in fields(kind)} - set(known[name]["properties"])
        assert missing == set(), name
