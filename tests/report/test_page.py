"""The report says what the audit holds, in one file that asks nobody; JSON and schema keep step."""

import json
import re
from html.parser import HTMLParser

import jsonschema
import numpy as np
import pytest

from unveil import InputError
from unveil.auditing.result import Audit, Pictures, Verdict
from unveil.report import figures, write_json, write_report
from unveil.report.page import render
from unveil.report.schema import audit_schema


class Text(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self._skip = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._skip = tag in ("style", "script")

    def handle_data(self, data):
        if not self._skip:
            self.words.append(data)

    def __str__(self):
        return " ".join(" ".join(self.words).split())


def test_verdict_first_then_columns_of_a_table(whole_audit):
    text = str(Text(render(whole_audit("features"))))
    order = [
        "Do not release: half came back.",
        "All were attacked.",
        "Which columns leak",
        "How many records came back",
        "Who could do it",
        "What if it were done differently",
        "From how many encodings on",
        "Every record",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "pixel" not in text
    assert "6 of 8 2 open, guessed" in text
    assert "no more than chance" in text


def test_images_are_told_by_images(whole_audit):
    page = render(whole_audit("images"))
    text = str(Text(page))
    assert "How many images came back" in text
    assert "Which columns" not in text
    assert page.count("data:image/png") == 24


def test_counts_are_those_of_the_records(make_audit):
    text = str(Text(render(make_audit(10))))
    for count, words in ((3, "exactly"), (3, "approximately"), (2, "in part"), (2, "not at all")):
        assert re.search(rf"\b{count} {words} {10 * count}%", text)


def test_nothing_in_the_page_asks_the_network(whole_audit):
    page = render(whole_audit())
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert "default-src &#39;none&#39;" in page


def test_names_stay_text(make_audit, hostile_names):
    page = render(make_audit(12, names=hostile_names, attack=hostile_names[0]))
    tags = Text(page).tags
    assert tags.count("script") == 1
    assert tags.count("h1") == 1
    for name in hostile_names[:3]:
        assert name not in page


@pytest.mark.parametrize("part", ["records", "threats", "curve", "what_if", "meanings", "findings"])
def test_each_part_can_be_missing(whole_audit, part):
    assert "Do not release" in render(whole_audit("features", **{part: ()}))


def test_an_audit_with_a_verdict_alone():
    audit = Audit(Verdict("nothing", "Nothing recovered."), {}, {}, 5, "none", "", ())
    assert "Nothing recovered" in render(audit)


def test_the_same_audit_gives_the_same_bytes(whole_audit):
    assert render(whole_audit()) == render(whole_audit())


@pytest.mark.parametrize("kind", ["images", "features"])
def test_json_keeps_to_the_schema_and_a_missing_field_is_noticed(whole_audit, kind, tmp_path):
    schema = audit_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    content = json.loads(write_json(whole_audit(kind), tmp_path / "audit.json").read_text())
    jsonschema.validate(content, schema)
    jsonschema.validate({"schema": 2, "error": {"message": "no", "exit_code": 2}}, schema)
    for field in ("verdict", "columns", "threats"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({k: v for k, v in content.items() if k != field}, schema)


def test_a_place_that_is_none_is_refused(whole_audit, tmp_path):
    for path in (tmp_path, tmp_path / "no" / "report.html"):
        with pytest.raises(InputError):
            write_report(whole_audit(), path)


def test_the_curve_keeps_its_dots_inside_and_in_their_intervals(whole_audit):
    for width in (960, 340):
        drawn = figures.curve(whole_audit().curve, 80, width, 400)
        for dot in drawn.dots:
            assert drawn.left <= dot.x <= drawn.right
            assert dot.high <= dot.y <= dot.low
    assert figures.curve((), 80, 960, 400) is None


def test_many_large_images_are_shrunk_to_fit():
    images = np.random.default_rng(0).random((60, 200, 200, 3)).astype(np.float32)
    tiles, factor = figures.tiles(Pictures(images, images, images), ())
    assert factor > 1
    assert sum(len(image) for tile in tiles for _, image in tile.images) < 5_000_000


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (1, "100%"), (0.99999, "over 99.9%"), (0.125, "12.5%")]
)
def test_percent(share, text):
    assert figures.percent(share) == text
