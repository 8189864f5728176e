"""The report: one HTML file that works offline, verdict first; and the same content as JSON.

Everything is inside the file: style, script, figures. Text from outside (names of files, reasons)
passes Jinja's autoescape, and the page's Content-Security-Policy allows only the one script and the
one style sheet whose hashes it names, images as data, and no request at all: markup that slipped in
could still not run. The first hundred rows of the table read without scripts; the others wait in a
<template>, since laying out thousands takes seconds, and a hundred at a time does not.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from unveil import store
from unveil._version import SCHEMA
from unveil.auditing.result import Audit, Outcome, RecordRisk
from unveil.auditing.what_if import MOST_PIXELS, MOST_RECORDS
from unveil.checks import InputError
from unveil.report import figures, words
from unveil.report.what_if import PROMISE, panels

MOST_ROWS = 5000
"""Records listed in the page, a few megabytes of them; the JSON file holds all."""
LEVELS = {"leaks": "Leaks", "partly": "Leaks in part", "nothing": "Nothing recovered"}
OUTCOMES: tuple[Outcome, ...] = ("exact", "approximate", "not recovered")
PROVENANCE = {"data": "hash of the data (SHA-256)", "date": "made on"}
"""What is shown for the short names of where an audit comes from."""
LONG = 100
"""Characters of a headline from which on it is set smaller: four lines on a desk."""
SHA256, SHORT = 64, 12
"""Digits of a hash, and how many of them stand beside the headline; all stand at the end."""
PARTS = (
    ("Scheme", "scheme"),
    ("Data", "data"),
    ("Where it comes from", "provenance"),
    ("Run", "run"),
)
"""Facts for who repeats the audit: title and part."""
SEVERITIES = ("high", "medium", "low", "fine")


def write_report(audit: Audit, path: str | Path) -> Path:
    """Write the report to `path`, whole or not at all."""
    target = _target(path)
    store.write_text(target, render(audit))
    return target


def write_json(audit: Audit, path: str | Path) -> Path:
    """Write what the report shows as JSON: images as PNG in base64, the overlap matrix as
    numbers."""
    target = _target(path)
    shown = audit.pictures
    # Four digits: overlaps are small whole numbers, or estimates that are no better.
    overlaps = (
        None
        if shown.overlaps is None
        else [[round(float(value), 4) for value in row] for row in shown.overlaps]
    )
    kinds = {
        kind: figures.image_uris(getattr(shown, kind))
        for kind in ("originals", "encodings", "recoveries")
    }
    store.write_json(
        target,
        {
            "schema": SCHEMA,
            **audit.facts(),
            "pictures": {**kinds, "names": list(shown.names), "overlaps": overlaps},
        },
    )
    return target


def render(audit: Audit) -> str:
    """The page as text."""
    # 1. The template, and how numbers and words are written in it.
    style, script = _part("page.css"), _part("page.js")
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_part),
    )
    # Names that a template gets wrong are errors, and every text is escaped unless it says
    # otherwise.
    environment.filters |= {"number": _number, "percent": figures.percent, "duration": _duration}
    # 2. What the parts show, from the audit alone.
    tiles, shrunk = figures.tiles(audit.pictures, audit.records)
    counts = Counter(record.outcome for record in audit.records)
    longest = max((stage.seconds for stage in audit.stages), default=0)
    tone, say = words.tone(audit.verdict), words.worded(audit)
    plain = audit.facts()
    provenance = dict(plain["provenance"])
    command = provenance.pop("command", None)
    # 3. All of it in its place.
    return environment.get_template("page.html").render(
        audit=audit,
        tone=tone,
        long=len(audit.verdict.headline) > LONG,
        level=LEVELS[tone],
        say=say,
        why_untried=words.why_untried,
        hue=words.hue,
        noun=words.noun(audit, one=True),
        nouns=words.noun(audit),
        hidden={"signs": "absolute", **audit.scheme, **audit.assumed}["signs"] == "absolute",
        kinds=words.KINDS,
        assumed=list(words.assumed(audit)),
        provenance=[
            (
                PROVENANCE.get(name, name),
                f"{text[:SHORT]} …" if len(text) == SHA256 else words.day(text),
            )
            for name, text in _facts(provenance)
        ],
        command=command,
        panels=panels(audit.what_if, _now(audit)),
        promise=PROMISE,
        attacked=(MOST_RECORDS, MOST_PIXELS),
        counts=[
            (outcome, counts[outcome], counts[outcome] / max(1, len(audit.records)))
            for outcome in OUTCOMES
        ],
        curves=[figures.curve(audit.curve, audit.m, *size) for size in ((960, 400), (340, 300))]
        # One point is no curve, and the table of attackers has it.
        if len(audit.curve) > 1
        else [],
        tiles=tiles,
        shrunk=shrunk,
        matrix=figures.matrix(audit.pictures.overlaps),
        rows=sorted(audit.records, key=_risk)[:MOST_ROWS],
        stages=[(stage, stage.seconds / longest if longest else 0.0) for stage in audit.stages],
        notes=any(stage.note for stage in audit.stages),
        total=sum(stage.seconds for stage in audit.stages),
        findings=sorted(audit.findings, key=lambda finding: SEVERITIES.index(finding.severity)),
        guarantees=sorted(audit.guarantees, key=lambda guarantee: guarantee.holds),
        facts=[
            (title, [(say(name), text) for name, text in _facts(plain[part])])
            for title, part in PARTS
            if plain[part]
        ],
        model=[(say(name), say(text)) for name, text in _facts(plain["model"])],
        # 4. Our own style and script; the policy lets nothing else run.
        style=Markup(style),
        script=Markup(script),
        policy="; ".join(
            (
                "default-src 'none'",
                "img-src data:",
                f"style-src '{_hash(style)}'",
                f"script-src '{_hash(script)}'",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
    )


def _now(audit: Audit) -> dict[str, float]:
    """Where the release stands on the axes of “what if”. Noise is relative to the size of the data
    there, so that only none of it can be compared."""
    now = {"m": float(audit.m)}
    if "k_private" in audit.scheme:
        now["k"] = float(audit.scheme["k_private"])
    if not audit.scheme.get("noise"):
        now["noise"] = 0.0
    return now


def _target(path: str | Path) -> Path:
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder: give the name of a file in it")
    # Not made here: a folder by a mistyped name would hold the report that is looked for elsewhere.
    if not target.parent.is_dir():
        raise InputError(f"no folder {target.parent}: make it first")
    return target


def _part(name: str) -> str:
    """A part of the page as it will stand between its tags, every byte of it: the policy's hash is
    of this text."""
    return files("unveil.report").joinpath("template", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _risk(record: RecordRisk) -> tuple[int, float, int]:
    """The most endangered first: by outcome, then by how few encodings it takes."""
    return (
        OUTCOMES.index(record.outcome),
        inf if record.from_m is None else record.from_m,
        record.index,
    )


def _facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """(name, value) pairs; what is nested gets the names above it."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _facts(value, f"{above}{key} · ")
        else:
            # Bytes are for programs; a person wants mebibytes.
            size = key.endswith("_bytes") and isinstance(value, int)
            yield (
                f"{above}{key}",
                f"{value:,} ({value / 2**20:,.0f} MiB)" if size else _shown(value),
            )


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        text = ", ".join(_shown(item) for item in value[:12])
        return text + (f", … ({len(value):,} in all)" if len(value) > 12 else "")
    # Before numbers: True is one of them in Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if value is None or isinstance(value, float) else str(value)


def _number(value: float | None, digits: int = 4) -> str:
    """Short, and "–" for what is not known."""
    if value is None or value != value:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
