"""One small audit per kind of data, filled by hand: every part is there."""

import numpy as np
import pytest

from unveil.auditing.result import (
    Attempt,
    Audit,
    Column,
    CurvePoint,
    Finding,
    Meaning,
    Pictures,
    RecordRisk,
    Threat,
    Verdict,
    WhatIf,
)

OUTCOMES = ("exact", "approximate", "in part", "not recovered")


def record(i, name=None):
    outcome = OUTCOMES[i % 4]
    back = outcome in ("exact", "approximate")
    known = outcome != "not recovered"
    return RecordRisk(
        i,
        name or f"image-{i}.png",
        outcome,
        values=9 if outcome == "exact" else 3,
        open=i % 2,
        error=0.001 if known else None,
        correlation=0.99 if known else None,
        encodings=7,
        from_m=50 + i if back else None,
        status="verified" if outcome == "exact" else "",
        reason="all equations hold" if known else "appears in one encoding only",
    )


def threat(key, knows, level, attack="full"):
    tried = (Attempt(attack, 2, 2, 0.5, 1.5, "explained", False),)
    return Threat(key, knows, level, 2, 2, 2, 8, 0.2, 0.8, 5, 0.5, 0.1, False, False, tried)


@pytest.fixture
def make_audit():
    def make(count=8, kind="images", level="leaks", names=(), attack="full", **parts):
        rng = np.random.default_rng(0)
        named = (*names, *(None for _ in range(count - len(names))))
        records = tuple(record(i, name) for i, name in zip(range(count), named, strict=True))
        images = rng.random((min(count, 12), 8, 8)).astype(np.float32)
        captions = tuple(one.name for one in records[:12])
        fields = {
            "verdict": Verdict(
                level, "Do not release: half came back.", "All were attacked.", ("So.",)
            ),
            "scheme": {"k_private": 2, "signs": "absolute", "noise": 0.0},
            "data": {"kind": kind, "records": count, "source": "here"},
            "m": 80,
            "attack": attack,
            "explanation": "what it says",
            "records": records,
            "columns": ()
            if kind == "images"
            else (
                Column("age", 6, 1, 8, 2, 0.4, 0.93, 0.1, 0.72, True),
                Column("sex", 4, 0, 8, 8, 0.2, 0.8, 0.5, 0.0, False),
            ),
            "threats": (
                threat("blind", "sees the encodings only", level, attack),
                threat("told", "also knows which encodings share a record", level, attack),
            ),
            "curve": (
                CurvePoint(10, 0.0, 0.0, 0.0, 0.3, 0.01, 1),
                CurvePoint(80, 0.25, 0.25, 0.2, 0.8, 0.5, 3),
            ),
            "what_if": tuple(
                WhatIf(
                    "noise", value, key, 1 - value, 0.0, 1.0, 1 - value, 0.4, 5.0 if value else None
                )
                for value in (0.0, 0.3)
                for key in ("told", "blind")
            ),
            "meanings": (Meaning("singling out", "half", 0.5, 0.2, 0.8, 0.0),),
            "findings": (Finding("Weights are the same.", "low", "Easy.", "Draw anew."),),
            "assumed": {"k_private": 2, "signs": "absolute", "m": 80},
            "run": {"seed": 0, "peak_bytes": 1 << 20},
            "provenance": {"date": "2026-01-02T03:04:05+00:00", "command": "unveil audit"},
            "pictures": Pictures(images, images, images, captions)
            if kind == "images"
            else Pictures(),
        }
        return Audit(**{**fields, **parts})

    return make


@pytest.fixture
def whole_audit(make_audit):
    return lambda kind="images", **parts: make_audit(kind=kind, **parts)


@pytest.fixture
def hostile_names():
    return (
        "<script>window.pwned = 1</script>",
        '"><img src=x onerror="window.pwned = 1">',
        "</template></table><h1>taken over</h1>",
        "{{ 7 * 7 }}",
        "javascript:alert(1)",
        "&lt;b&gt;",
        "\u202egnp.exe",
        "' onmouseover='window.pwned = 1",
        "--><!--",
        "]]>",
    )
