"""Words that depend on the data: who audits a table is told of columns, never of images; and what
was assumed, in words for someone who never heard of the scheme."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from unveil.auditing.judgement import level_of
from unveil.auditing.result import Audit, Level, Threat, Verdict

ASSUMED = {
    "k_private": "private records in each encoding",
    "k_public": "public records in each encoding",
    "weighting": "weights of the mixture",
    "weights": "weights of the mixture",
    "signs": "signs of the numbers",
    "pairing": "how records are paired",
    "m": "encodings released",
    "noise": "noise added to every number",
    "as": "encodings taken as",
    "delta": "delta of differential privacy",
}
"""What stands beside the headline for each fact that was assumed."""
SAID = {
    ("signs", "absolute"): "hidden, absolute values only",
    ("signs", "random"): "random",
    ("signs", "kept"): "kept",
    ("signs", "masked"): "hidden by masks of a pool",
    ("weights", "equal"): "equal",
    ("weights", "unknown"): "not known",
    ("pairing", "independent"): "at random, anew for each encoding",
}
"""Settings of a scheme in plain words; others stand as they are."""
KINDS = {
    "singling out": "Can one person's record be taken out of what is released?",
    "linkability": "Can an encoding be linked to a record, or to others of the same record?",
    "inference": "Can a single sensitive value of a record be inferred?",
}
"""The questions of decision makers (those of the Article 29 Working Party's opinion 05/2014 on
anonymisation) behind the kinds of meanings."""


def is_images(audit: Audit) -> bool:
    """Whether the records are pictures: said by the data, or shown by the audit."""
    return audit.data.get("kind") == "images" or audit.pictures.originals is not None


def noun(audit: Audit, *, one: bool = False) -> str:
    """What a record is made of: pixels, columns, or plainly values."""
    word = "pixel" if is_images(audit) else "value"
    if audit.data.get("kind") == "features":
        word = "column"
    return word if one else f"{word}s"


def worded(audit: Audit) -> Callable[[str], str]:
    """A sentence of the audit in the words of its data: “pixel” becomes what they are made of."""
    one = noun(audit, one=True)

    def say(text: str) -> str:
        return re.sub(r"\bpixel(s?)\b", rf"{one}\1", text)

    return say


def tone(verdict: Verdict) -> Level:
    """The colour of the page. Who is told not to release sees red, whatever else is said."""
    return "leaks" if verdict.headline.startswith("Do not release") else verdict.level


def hue(threat: Threat) -> str:
    """The class of an attacker's row: red, amber or grey by the rule of the verdict."""
    return {"leaks": "exact", "partly": "approximate", "nothing": "not-recovered"}[
        level_of([threat])
    ]


def why_untried(threat: Threat) -> str:
    """Why an attacker had no attack to run: the reason that most of them have, "" where none is
    given."""
    reasons = Counter(why for _, why in threat.not_tried)
    return reasons.most_common(1)[0][0] if reasons else ""


def day(text: str) -> str:
    """2026-01-02T03:04:05+00:00 as people write it; other texts as they are."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\+00:00|Z)", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def assumed(audit: Audit) -> Iterator[tuple[str, str]]:
    """What the audit took for granted, in words; from the scheme where the audit does not say."""
    facts: dict[str, Any] = dict(audit.assumed)
    if not facts:
        facts = {key: audit.scheme[key] for key in ASSUMED if key in audit.scheme}
        facts["m"] = audit.m
    for key, value in facts.items():
        if value is None or (key in ("k_public", "noise") and not value):
            continue
        setting = "weights" if key == "weighting" else key
        text = SAID.get((setting, str(value)), f"{value:,}" if isinstance(value, int) else value)
        shown = f"{text:.4g}" if isinstance(text, float) else str(text)
        yield ASSUMED.get(key, key.replace("_", " ")), shown
