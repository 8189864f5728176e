"""Results as JSON. Of an audit it is what `unveil audit --json` prints (`report.schema`); of others
a verdict in words where there is one, and every number."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import singledispatch
from typing import Any

import numpy as np

from unveil._version import SCHEMA
from unveil.auditing.plan import Plan
from unveil.auditing.result import Audit
from unveil.encodings import Encodings, Simulation
from unveil.present.tables import table
from unveil.records import Overlaps, Recovery, Scores, Supports
from unveil.scoring.images import ChallengeScores, ImageScores
from unveil.verdict import challenge_facts, image_facts, plain, recovery_facts


def to_json(result: Any) -> str:
    """The facts of a result as text, with the number of the form they are in."""
    # The number first: a program can refuse a form it does not know before it reads on.
    content = {"schema": SCHEMA, **facts(result)}
    return json.dumps(plain(content), indent=2, default=_number)


@singledispatch
def facts(result: Any) -> dict[str, Any]:
    """Plain facts: text, numbers, lists. The table, where a result is no more than that."""
    return dict(table(result))


@facts.register
def _(result: Audit) -> dict[str, Any]:
    return result.facts()


@facts.register
def _(result: Plan) -> dict[str, Any]:
    return result.facts()


@facts.register
def _(result: Recovery) -> dict[str, Any]:
    # Values come with their doubts: without these an open value looks like any other.
    open_values = None if result.doubtful is None else result.doubtful.tolist()
    return {
        **recovery_facts(result),
        "vectors": result.vectors.tolist(),
        "doubtful": open_values,
        "columns": list(result.columns),
        "image_shape": result.image_shape,
    }


@facts.register
def _(result: Scores) -> dict[str, Any]:
    # The tolerance belongs to the counts: another one gives other counts.
    counts = {name: getattr(result, name) for name in ("exact", "wrong", "missing", "tolerance")}
    return {**counts, **table(result)}


@facts.register
def _(result: ImageScores) -> dict[str, Any]:
    return image_facts(result)


@facts.register
def _(result: ChallengeScores) -> dict[str, Any]:
    return challenge_facts(result)


@facts.register
def _(result: Supports) -> dict[str, Any]:
    return {"method": result.method, "warning": result.warning, **table(result)}


@facts.register
def _(result: Overlaps) -> dict[str, Any]:
    about = {"m": result.m, "k_private": result.k_private}
    return {**about, "expected_errors": result.expected_errors, **table(result)}


@facts.register
def _(result: Encodings) -> dict[str, Any]:
    """Without the values: `save("….npy")` keeps those."""
    return {
        "m": result.m,
        "d": result.d,
        "scheme": asdict(result.scheme),
        "pixel_rms": result.pixel_rms,
        "image_shape": result.image_shape,
        "columns": list(result.columns),
    }


@facts.register
def _(result: Simulation) -> dict[str, Any]:
    # Counts alone: who prints a simulation does not want to publish its records.
    public = 0 if result.public is None else len(result.public)
    counts = {"n_private": len(result.private), "n_public": public}
    return {**facts(result.encodings), **counts, **table(result)}


def _number(value: Any) -> Any:
    """NumPy's numbers and arrays, which JSON does not know."""
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON")
