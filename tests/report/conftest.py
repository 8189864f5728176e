"""Audits to report on: small, complete, and with names that try to be markup."""

import numpy as np
import pytest

from unveil.auditing.result import (
    Audit,
    CurvePoint,
    Finding,
    Guarantee,
    Pictures,
    RecordRisk,
    Stage,
    Verdict,
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
            verdict=Verdict(
                level, "Do not release: half came back.", ("From 300 encodings on.", *names)
            ),
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


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE
