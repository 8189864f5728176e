"""Every result as one table: names of columns, and their values, one row per item.

The same table becomes a frame (`frames`), a CSV file (`saving`) and the rows that a notebook shows
(`notebook`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np

from unveil.auditing.plan import Need, Plan
from unveil.auditing.result import Audit, RecordRisk
from unveil.encodings import Encodings, Simulation
from unveil.records import Floral, Overlaps, Recovery, Scores, Supports
from unveil.scoring.images import ChallengeScores, ImageScores

Table = dict[str, Sequence[Any]]
"""Columns by name, all of the same length."""


@singledispatch
def table(result: Any) -> Table:
    """The table of a result."""
    raise TypeError(f"a {type(result).__name__} is no result that can be shown as a table")


@table.register
def _(result: Recovery) -> Table:
    """Evidence first, then the values; an open value is not a number."""
    # A copy: the recovery keeps what was found there.
    values = result.vectors.astype(np.float64)
    if result.doubtful is not None:
        values[result.doubtful] = np.nan
    return {
        "status": result.status.tolist(),
        "encodings": np.diff(result.members.tocsc().indptr).tolist(),
        "residual": result.residual.tolist(),
        "reason": list(result.reasons),
        **_columns(values, result.columns),
    }


@table.register
def _(result: Scores) -> Table:
    names = ("matches", "nearest", "error")
    return {name: getattr(result, name).tolist() for name in names}


@table.register
def _(result: ImageScores) -> Table:
    return {name: getattr(result, name).tolist() for name in ("matches", "ssim", "psnr")}


@table.register
def _(result: ChallengeScores) -> Table:
    return {name: [value] for name, value in vars(result).items()}


@table.register
def _(result: Supports) -> Table:
    # People count from one; the indices themselves are those of the arrays, from zero.
    out: Table = {
        f"public {place + 1}": column.tolist() for place, column in enumerate(result.indices.T)
    }
    out["confidence"] = result.confidence.tolist()
    if result.certain is not None:
        out["certain"] = result.certain.tolist()
    return out


@table.register
def _(result: Overlaps) -> Table:
    """Pairs of encodings that share something, each once."""
    entries = result.matrix.tocoo()
    once = entries.row < entries.col
    return {
        "encoding": entries.row[once].tolist(),
        "other": entries.col[once].tolist(),
        "shared": entries.data[once].tolist(),
    }


@table.register
def _(result: Floral) -> Table:
    out: Table = {"encoding": result.rows.tolist()}
    for place, column in enumerate(result.labels.T):
        out[f"vector {place + 1}"] = column.tolist()
    return out


@table.register
def _(result: Encodings) -> Table:
    return _columns(result.values, result.columns)


@table.register
def _(result: Simulation) -> Table:
    """What each encoding mixes: the truth behind it."""
    out: Table = {}
    for kind in ("private", "public"):
        for place, column in enumerate(getattr(result.selection, kind).T):
            out[f"{kind} {place + 1}"] = column.tolist()
    return out


@table.register
def _(result: Plan) -> Table:
    names = [item.name for item in fields(Need)]
    return {name: [getattr(need, name) for need in result.needs] for name in names}


@table.register
def _(result: Audit) -> Table:
    """The risk of every record."""
    # By the fields of the record: a new one is a new column, and nothing is forgotten here.
    names = [item.name for item in fields(RecordRisk)]
    return {name: [getattr(record, name) for record in result.records] for name in names}


def _columns(values: Any, names: Sequence[str]) -> Table:
    """A column of the table per value, under its own name or "value 1", "value 2", …, numbered
    as `--sensitive` does.

    A name that is taken, by evidence or by another column, gets its place behind it.
    """
    # Data may have a column of that name: two of one name would lose one in a frame.
    taken = {"status", "encodings", "residual", "reason"}
    out: Table = {}
    for place, column in enumerate(values.T):
        name = names[place] if names else f"value {place + 1}"
        name = f"{name} ({place + 1})" if name in taken else name
        taken.add(name)
        out[name] = column.tolist()
    return out
