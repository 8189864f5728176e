"""Audits to report on: small, complete, and with names that try to be markup."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.auditing.result import (
    Attempt,
    Audit,
    CurvePoint,
    Finding,
    Guarantee,
    Meaning,
    Pictures,
    RecordRisk,
    Stage,
    Threat,
    Verdict,
    WhatIf,
)

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '<img src="x" onerror="window.pwned = 3">',
    "\"'><svg onload=window.pwned=4>",
    "]]><!-- --><b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:window.pwned=5",
    "&lt;i&gt; &amp; …",
    "</template></table></style><h1>gone</h1>",
    "x" * 240,
)


HEADLINES = {
    "leaks": "Do not release: half came back.",
    "partly": "Do not rely on this: a few came back.",
    "nothing": "Nothing recovered: two attacks got none.",
}


def record(i, name=None):
    outcome = ("exact", "exact", "approximate", "not recovered")[i % 4]
    lost = outcome == "not recovered"
    return RecordRisk(
        index=i,
        name=name or f"image-{i}.png",
        outcome=outcome,
        status="verified" if outcome == "exact" else "ambiguous",
        error=None if lost else float("nan") if i == 2 else i / 1000,
        correlation=None if lost else 1 - i / 1e6,
        encodings=1 + i * 7 % 13,
        from_m=None if lost else 100 + i * 37 % 500,
        reason="in one encoding only" if lost else "re-encoding reproduces all",
    )


@pytest.fixture(scope="session")
def make_audit():
    def make(count=8, shape=(8, 8), level="leaks", names=(), images=None):
        rng = np.random.default_rng(0)
        records = tuple(record(i, names[i] if i < len(names) else None) for i in range(count))
        originals, encodings, recoveries = rng.random(
            (3, images or count, *shape), dtype=np.float32
        )
        recoveries[3::4] = np.nan
        return Audit(
            verdict=Verdict(level, HEADLINES[level], ("From 300 encodings on.", *names)),
            scheme={"k_private": np.int64(2), "weighting": "equal"},
            data={
                "source": names[0] if names else "gaussian",
                "n_private": count,
                "spread": np.array([0.5, np.nan]),
            },
            m=700,
            attack="full",
            explanation=names[1] if names else "as many as could be",
            records=records,
            curve=(
                CurvePoint(200, 0.0, 0.0, 0.05, 0.0, 3),
                CurvePoint(700, 0.5, 0.4, 0.6, 0.25, 3),
            ),
            stages=(
                Stage("similarity", 0.25),
                Stage("feedback", 75.0, names[2] if names else "12 rounds"),
            ),
            findings=(
                Finding("all is fine", "fine", "none"),
                Finding(names[0] if names else "signs are reused", "high", "bad", "fresh ones"),
            ),
            guarantees=(
                Guarantee("rows are exact", True, "checked"),
                Guarantee("pixels are Gaussian", False, "they are not"),
            ),
            model={"kurtosis": -0.4},
            run={
                "seed": 3,
                "versions": {"numpy": "2.0"},
                "cached": True,
                "peak_memory_bytes": 2**30,
            },
            pictures=Pictures(
                originals,
                encodings,
                recoveries,
                tuple(r.name for r in records),
                (np.arange(36) % 3).reshape(6, 6),
            ),
        )

    return make


def threats(name="full"):
    """Blind success, a told attacker with more, one with nothing, and one that was not tried."""
    tried = (Attempt(name, 58, 1, 3.25, "from 420 encodings"), Attempt("cliques", 12, 0, 0.4))
    blind = Threat(
        "blind",
        "sees the encodings only",
        exact=58,
        approximate=1,
        records=60,
        low=0.9,
        high=0.99,
        control=0.02,
        residual=0.95,
        residual_low=0.87,
        residual_high=0.98,
        values=0.97,
        tried=tried,
        not_tried=(("natural", "these are no images"), ("sdp", "too many encodings")),
    )
    told = replace(
        blind,
        key="told",
        knows="also knows which encodings share a record",
        exact=60,
        approximate=0,
        low=0.94,
        high=1.0,
        tried=tried[1:],
        not_tried=(),
    )
    nothing = {"exact": 0, "approximate": 0, "low": 0.0, "control": 0.0, "residual": 0.0}
    insider = replace(
        blind,
        **nothing,
        key="insider",
        knows="also knows some records",
        high=0.06,
        residual_low=-0.02,
        residual_high=0.06,
        values=None,
        tried=tried[1:],
        not_tried=(),
    )
    public = replace(
        insider,
        key="public",
        knows="also knows the public pool",
        high=1.0,
        tried=(),
        not_tried=(("public", "no public vectors are mixed in"),),
    )
    return blind, told, insider, public


def what_if():
    noise = ((0.0, 1.0, 0.9, None), (0.05, 0.9, 0.85, 420.0), (0.2, 0.3, 0.7, 31.0))
    return (
        *(WhatIf("noise", at, back, max(0, back - 0.1), min(1, back + 0.05), worth, eps)
          for at, back, worth, eps in (*noise, (0.5, 0.0, None, 4.5))),
        WhatIf("k", 2, 1.0, 0.94, 1.0, 0.9), WhatIf("k", 4, 0.2, 0.1, 0.3, 0.6),
        WhatIf("m", 100, 0.1, 0.0, 0.2), WhatIf("m", 1000, 1.0, 0.9, 1.0),
    )  # fmt: skip


@pytest.fixture(scope="session")
def whole_audit(make_audit):
    """An audit with every part there is, of images or of a table."""

    def whole(kind="images", level="leaks", **parts):
        audit = make_audit(60, level=level)
        pictures = audit.pictures
        if kind == "features":
            pictures = replace(pictures, originals=None, encodings=None, recoveries=None, names=())
        filled = {
            "data": {"source": "patients.csv", "kind": kind, "records": 60, "pixels": 64},
            "pictures": pictures,
            "threats": threats(),
            "meanings": (
                Meaning("singling out", "58 of 60 records came back.", 0.97, 0.89, 0.99, 0.02),
                Meaning("linkability", "Which encodings share a record.", 0.99, 0.9, 1.0, 0.1),
                Meaning("inference", "Column “age” within 1 year.", 0.3, 0.2, 0.4, 0.31),
            ),
            "what_if": what_if(),
            "assumed": {"k_private": 2, "weighting": "equal", "signs": "absolute", "m": 700},
            "provenance": {
                "date": "2026-01-02 03:04 UTC",
                "SHA-256 of patients.csv": "0123456789abcdef" * 4,
                "command": "unveil audit --private patients.csv --what-if all",
            },
        }
        return replace(audit, **{**filled, **parts})

    return whole


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE
