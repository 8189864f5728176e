"""The record of an audit: as JSON it loses nothing but the pictures, and never holds a NaN."""

import json

import numpy as np

from unveil.auditing.result import Audit, CurvePoint, Pictures, RecordRisk, Verdict


def test_facts_are_json_with_every_part_and_no_nan():
    audit = Audit(
        verdict=Verdict("leaks", "all of it", ("so it is",)),
        scheme={"k_private": np.int64(2)},
        data={"n": 3, "spread": np.array([1.0, np.nan])},
        m=10,
        attack="full",
        explanation="why",
        records=(RecordRisk(0, "a<b>.png", "exact", "verified", float("nan"), 1.0, 4, 10, "ok"),),
        curve=(CurvePoint(10, 1.0, 0.9, 1.0, 0.0, 3),),
        pictures=Pictures(overlaps=np.ones((2, 2), np.float32)),
    )
    facts = json.loads(json.dumps(audit.facts(), allow_nan=False))
    assert facts["scheme"] == {"k_private": 2}
    assert facts["data"] == {"n": 3, "spread": [1.0, None]}
    assert facts["records"][0]["error"] is None
    assert facts["records"][0]["name"] == "a<b>.png"
    assert facts["curve"] == [
        {"m": 10, "exact": 1.0, "low": 0.9, "high": 1.0, "approximate": 0.0, "runs": 3}
    ]
    assert "pictures" not in facts
