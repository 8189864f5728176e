"""What a notebook shows of a result: what it is in a sentence, its images where it has some, and
the first rows of its table.

All text is escaped: names of columns and reasons may come from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from html import escape
from itertools import islice
from typing import Any

from unveil.auditing.plan import Plan
from unveil.auditing.result import Audit
from unveil.encodings import Encodings, Simulation
from unveil.present.pixels import as_bytes
from unveil.present.tables import table
from unveil.records import Floral, Overlaps, Recovery, Scores, Supports
from unveil.report.png import data_uri, png
from unveil.scoring.images import ChallengeScores, ImageScores
from unveil.verdict import challenge_facts, image_facts, summary

ROWS, COLUMNS, IMAGES = 10, 10, 12
"""Shown of a table and of its images: what fits a screen without scrolling."""


def html(result: Any) -> str:
    """A fragment of HTML without script or style sheet."""
    # 1. As much of the table as fits a screen; zip stops early, so that long ones cost nothing.
    columns = table(result)
    count = len(next(iter(columns.values()), ()))
    names = list(columns)[:COLUMNS]
    rows = islice(zip(*(columns[name] for name in names), strict=True), ROWS)
    # 2. What is not shown is counted: nobody should take ten rows for all.
    more = []
    if count > ROWS:
        more.append(f"{count - ROWS:,} more rows")
    if len(columns) > COLUMNS:
        more.append(f"{len(columns) - COLUMNS:,} more columns")
    rest = f"<p>… {escape(' and '.join(more))}</p>" if more else ""
    return (
        f"<div><p><b>{escape(_sentence(result))}</b></p>{_pictures(result)}"
        f"{_table(names, [list(row) for row in rows])}{rest}</div>"
    )


@singledispatch
def _sentence(result: Any) -> str:
    return type(result).__name__


@_sentence.register
def _(result: Recovery) -> str:
    return " ".join([f"{result.attack}: {result.explanation}.", *summary(result)])


@_sentence.register
def _(result: Scores) -> str:
    return f"exact {result.exact}, wrong {result.wrong}, missing {result.missing}"


@_sentence.register
def _(result: ImageScores) -> str:
    return str(image_facts(result)["verdict"])


@_sentence.register
def _(result: ChallengeScores) -> str:
    return str(challenge_facts(result)["verdict"])


@_sentence.register
def _(result: Supports) -> str:
    text = f"public vectors of {len(result.indices)} encodings, by {result.method}"
    return text + (f"; {result.warning}" if result.warning else "")


@_sentence.register
def _(result: Overlaps) -> str:
    return f"overlaps of {result.m} encodings, k_private = {result.k_private}"


@_sentence.register
def _(result: Floral) -> str:
    vectors = result.labels.shape[1] + 2
    return f"a floral: {len(result.rows)} encodings of {vectors} private vectors"


@_sentence.register
def _(result: Encodings) -> str:
    return f"{result.m} encodings of {result.d} values, {result.scheme}"


@_sentence.register
def _(result: Simulation) -> str:
    return (
        f"{_sentence(result.encodings)}, of {len(result.private)} private vectors; who mixes whom"
    )


@_sentence.register
def _(result: Plan) -> str:
    return str(result)


@_sentence.register
def _(result: Audit) -> str:
    return " ".join((result.verdict.headline, *result.verdict.sentences))


def _pictures(result: Any) -> str:
    """The first recovered images, enlarged so that a small one can be seen."""
    shape = getattr(result, "image_shape", None)
    if not isinstance(result, Recovery) or shape is None or not len(result):
        return ""
    # PNG knows grey and colour: other stacks of channels have no picture.
    channels = shape[2] if len(shape) == 3 else 1
    if channels not in (1, 3):
        return ""
    pixels = as_bytes(result.vectors[:IMAGES]).reshape(-1, *shape)
    pixels = pixels[..., 0] if pixels.ndim == 4 and channels == 1 else pixels
    # Inside the page: a notebook is sent around as one file.
    return "".join(
        f'<img src="{data_uri(png(image))}" alt="recovered image {place}" width="64"> '
        for place, image in enumerate(pixels)
    )


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr><th>{place}</th>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>"
        for place, row in enumerate(rows)
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    # NaN is not equal to itself: a value that is open.
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
