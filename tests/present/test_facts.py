"""JSON that every parser takes, and an audit's in the published form."""

import json

import numpy as np
import pytest

import unveil
from unveil.report.schema import audit_schema


def refuse(text):
    raise AssertionError(f"{text} is no JSON")


def test_it_is_strict_json(result):
    content = json.loads(result.to_json(), parse_constant=refuse)
    assert content["schema"] == 2
    assert len(content) > 1


def test_a_recovery_says_what_it_found(results):
    recovery = results["recovery"]
    content = json.loads(recovery.to_json())
    assert content["verified"] == int(recovery.verified.sum())
    assert content["columns"] == list("abcdef")
    assert np.allclose(content["vectors"], recovery.vectors)


def test_scores_have_their_counts(results):
    content = json.loads(results["scores"].to_json())
    assert (content["exact"], content["wrong"]) == (results["scores"].exact, 0)


def test_an_audit_is_in_the_form_of_the_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    private = np.random.default_rng(0).standard_normal((12, 8))
    audit = unveil.audit(private, m=60, seeds=1, rng=0)
    jsonschema.validate(json.loads(audit.to_json()), audit_schema())
    saved = json.loads(audit.save(tmp_path / "audit.json").read_text())
    jsonschema.validate(saved, audit_schema())
