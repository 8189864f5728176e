"""The report: one HTML file that works offline, verdict first; and the same content as JSON.

Everything is inside the file: style, script, figures. Text from outside (names of files, reasons)
passes Jinja's autoescape, and the page's Content-Security-Policy allows only the one script and the
one style sheet whose hashes it names, images as data, and no request at all: markup that slipped in
could still not run. The first hundred rows of the table read without scripts; the others wait in a
<template>, since laying out thousands takes seconds, and a hundred at a time does not.

The page shows what the audit holds and counts nothing itself, so that its numbers agree.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import resources
from math import inf
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from unveil._version import SCHEMA
from unveil.auditing.result import Audit
from unveil.checks import InputError
from unveil.engine import files
from unveil.report import figures

LEVELS = {"leaks": "Leaks", "partly": "Leaks in part", "nothing": "Nothing recovered"}
OUTCOMES = {
    "exact": "exactly",
    "approximate": "approximately",
    "in part": "in part",
    "not recovered": "not at all",
}
KINDS = {
    "singling out": "Can one person's record be taken out of what is released?",
    "linkability": "Can an encoding be linked to a record?",
    "inference": "Can a single sensitive value of a record be inferred?",
}
"""The questions of decision makers (those of the Article 29 Working Party's opinion 05/2014 on
anonymisation) behind the kinds of meanings."""
AXES = {
    "noise": "More noise, relative to the size of the data",
    "k": "More records in each encoding, k",
    "m": "Fewer or more encodings, m",
}
SAID = {
    "k_private": "private records in each encoding",
    "k_public": "public records in each encoding",
    "weighting": "weights of the mixture",
    "signs": "signs of the numbers",
    "pairing": "how records are paired",
    "m": "encodings released",
    "noise": "noise added to every number",
    "absolute": "hidden, absolute values only",
    "independent": "at random, anew for each encoding",
    "date": "made on",
    "data": "fingerprint of the data",
}
"""Plain words for names and settings of facts; others stand as they are."""


def write_report(audit: Audit, path: str | Path) -> Path:
    """Write the report to `path`, whole or not at all."""
    target = _target(path)
    files.write_text(target, render(audit))
    return target


def write_json(audit: Audit, path: str | Path) -> Path:
    """Write what the report shows as JSON, images as PNG in base64."""
    target = _target(path)
    shown = audit.pictures
    kinds = {
        kind: [figures.image(one) for one in found]
        for kind in ("originals", "encodings", "recoveries")
        if (found := getattr(shown, kind)) is not None
    }
    pictures = {**kinds, "names": list(shown.names)}
    files.write_json(target, {"schema": SCHEMA, **audit.facts(), "pictures": pictures})
    return target


def render(audit: Audit, most_rows: int = 5000) -> str:
    """The page as text; most_rows: records listed, a few megabytes of them; the JSON file holds
    all."""
    style, script = _part("page.css"), _part("page.js")
    # Names that a template gets wrong are errors, and every text is escaped.
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_part),
    )
    environment.filters |= {"number": _number, "percent": figures.percent, "duration": _duration}
    tiles, shrunk = figures.tiles(audit.pictures, audit.records)
    counts = Counter(str(record.outcome) for record in audit.records)
    plain = audit.facts()
    provenance = dict(plain["provenance"])
    images = audit.data.get("kind") == "images" or audit.pictures.originals is not None
    order = list(OUTCOMES)
    return environment.get_template("page.html").render(
        audit=audit,
        level=LEVELS[audit.verdict.level],
        long=len(audit.verdict.headline) > 100,
        record="image" if images else "record",
        noun="pixel" if images else "column" if audit.data.get("kind") == "features" else "value",
        hidden=audit.scheme.get("signs", "absolute") == "absolute",
        kinds=KINDS,
        command=provenance.pop("command", None),
        assumed=list(_facts({k: v for k, v in plain["assumed"].items() if v not in (0, None)})),
        provenance=[
            (name, f"{text[:12]} …" if re.fullmatch("[0-9a-f]{40,}", text) else _day(text))
            for name, text in _facts(provenance)
        ],
        counts=[
            (outcome, OUTCOMES[outcome], counts[outcome], counts[outcome] / len(audit.records))
            for outcome in order
            if audit.records
        ],
        what_if=_what_if(audit),
        curves=[
            drawn
            for size in ((960, 400), (340, 300))
            if (drawn := figures.curve(audit.curve, audit.m, *size)) is not None
        ],
        tiles=tiles,
        shrunk=shrunk,
        order=order,
        rows=sorted(
            audit.records,
            key=lambda r: (order.index(r.outcome), inf if r.from_m is None else r.from_m, r.index),
        )[:most_rows],
        findings=sorted(
            audit.findings, key=lambda f: ("high", "medium", "low", "fine").index(f.severity)
        ),
        facts=[
            (title, list(_facts(plain[part])))
            for title, part in (
                ("Scheme", "scheme"),
                ("Data", "data"),
                ("Where it comes from", "provenance"),
                ("Run", "run"),
            )
            if plain[part]
        ],
        # Our own style and script; the policy lets nothing else run.
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


def _what_if(audit: Audit) -> list[tuple[str, list[str], list[tuple[float, list[Any]]]]]:
    """(title, attackers, rows of (value, a point per attacker)) of each axis, the strongest
    attacker first."""
    knows = {threat.key: threat.knows for threat in audit.threats}
    out = []
    for axis in dict.fromkeys(point.axis for point in audit.what_if):
        points = [point for point in audit.what_if if point.axis == axis]
        who = list(dict.fromkeys(point.attacker for point in points))
        at = {(point.value, point.attacker): point for point in points}
        values = sorted({point.value for point in points})
        rows = [(value, [at.get((value, key)) for key in who]) for value in values]
        out.append((AXES.get(axis, axis), [knows.get(key, key) for key in who], rows))
    return out


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
    return resources.files("unveil.report").joinpath("template", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _day(text: str) -> str:
    """2026-01-02T03:04:05+00:00 as people write it; other texts as they are."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\+00:00|Z)", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def _facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """(name, value) pairs in plain words; what is nested gets the names above it."""
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _facts(value, f"{above}{key} · ")
            continue
        # Bytes are for programs; a person wants mebibytes.
        size = key.endswith("_bytes") and isinstance(value, int)
        shown = f"{value:,} ({value / 2**20:,.0f} MiB)" if size else _shown(value)
        # A seed is copied, not counted.
        shown = str(value) if key == "seed" else shown
        yield f"{above}{SAID.get(key, key.replace('_', ' '))}", SAID.get(shown, shown)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        text = ", ".join(_shown(item) for item in value[:12])
        return text + (f", … ({len(value):,} in all)" if len(value) > 12 else "")
    # Before numbers: True is one of them in Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    counted = value is None or isinstance(value, (int, float))
    return _number(value) if counted else str(value)


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
