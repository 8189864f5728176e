"""The page holds everything, asks the network for nothing, and takes no markup from names."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from unveil.auditing.result import Audit, Guarantee, Pictures, Stage, Verdict
from unveil.checks import InputError
from unveil.report import page, write_json, write_report

VOID = {
    "meta",
    "link",
    "img",
    "input",
    "br",
    "line",
    "path",
    "rect",
    "circle",
    "polyline",
    "polygon",
}


class Reader(HTMLParser):
    """Tags with attributes, visible text, and whether every element is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.open, self.balanced = [], [], [], True
        self.feed(text)
        self.close()
        self.balanced &= not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            self.balanced &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]


def minimal(**parts):
    verdict = Verdict("nothing", "Nothing came back.")
    return Audit(
        verdict, scheme={}, data={}, m=10, attack="full", explanation="", records=(), **parts
    )


def test_the_verdict_comes_first_and_everything_is_there(make_audit):
    audit = make_audit()
    reader = Reader(page.render(audit))
    text = "".join(reader.text)
    assert reader.balanced
    assert (
        text.index("Do not release")
        < text.index("How many records")
        < text.index("To repeat this audit")
    )
    for record in audit.records:
        assert record.name in text
    expected = (
        "signs are reused",
        "fresh ones",
        "pixels are Gaussian",
        "does not hold",
        "12 rounds",
        "250 ms",
        "1 min 15 s",
    )
    expected += (
        "k_private",
        "0.5, –",
        "versions · numpy",
        "1,073,741,824 (1,024 MiB)",
        "yes",
        "-0.4",
        "700",
        "as many as could be",
    )
    assert [part for part in expected if part not in text] == []
    assert text.index("signs are reused") < text.index("all is fine")


def test_a_paragraph_under_every_figure_says_how_to_read_it(make_audit):
    html = page.render(make_audit())
    figures = re.findall(r"<figure>.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) == 6
    assert all(
        re.search(r"<figcaption>How to read it: (?s:.){80,}</figcaption>", figure)
        for figure in figures
    )


def test_every_image_has_words(make_audit):
    reader = Reader(page.render(make_audit()))
    assert (
        len(reader.all("img")) == 8 * 3 - 2 + 1
    )  # two recoveries are missing; the matrix is one more
    assert all(image["alt"] for image in reader.all("img"))
    assert all(
        svg.get("aria-hidden") == "true" or (svg["role"] == "img" and svg["aria-label"])
        for svg in reader.all("svg")
    )
    tags = {tag for tag, _ in reader.tags}
    assert {"header", "main", "footer"} <= tags
    assert reader.all("html")[0]["lang"] == "en"


def test_nothing_in_the_page_asks_the_network(make_audit):
    html = page.render(make_audit())
    assert "http:" not in html
    assert "https:" not in html
    assert "//" not in re.sub(r"base64,[\w+/=]+|^\s*//.*$", "", html, flags=re.MULTILINE)
    reader = Reader(html)
    for _, attrs in reader.tags:
        assert all(attrs[key].startswith(("data:", "#")) for key in ("src", "href") if key in attrs)
        assert "style" not in attrs
        assert not [key for key in attrs if key.startswith("on")]
    policy = next(
        meta["content"]
        for meta in reader.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_names_stay_text(make_audit, hostile_names):
    plain, hostile = (
        Reader(page.render(make_audit(12))),
        Reader(page.render(make_audit(12, names=hostile_names))),
    )
    assert hostile.balanced
    # Each is a sentence of the verdict as well, those beyond the second in a fold of two tags.
    extra = len(hostile_names) + 2
    assert len(hostile.tags) == len(plain.tags) + extra
    text = "".join(hostile.text)
    assert [name for name in hostile_names if name not in text] == []


def test_a_name_that_is_no_text_can_be_written(make_audit, tmp_path):
    audit = make_audit(names=("bad\udcff\x00.png", "ok", "ok"))
    written = write_report(audit, tmp_path / "report.html").read_text()
    assert "bad\\udcff" in written
    assert (
        json.loads(write_json(audit, tmp_path / "report.json").read_text())["records"][0]["name"]
        == "bad\udcff\x00.png"
    )


@pytest.mark.parametrize("level", ["leaks", "partly", "nothing"])
def test_every_level_has_its_word_and_no_page_promises_safety(make_audit, level):
    text = "".join(Reader(page.render(make_audit(level=level))).text)
    assert page.LEVELS[level] in text
    assert "not proven safe" in text


def test_what_is_missing_is_left_out(tmp_path):
    reader = Reader(page.render(minimal()))
    assert reader.balanced
    text = "".join(reader.text)
    assert "Nothing came back." in text
    assert "not proven safe" in text
    assert not [tag for tag, _ in reader.tags if tag in ("figure", "table", "img")]
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page.render(minimal()))
    assert titles == ["What was assumed"]
    assert (
        json.loads(write_json(minimal(), tmp_path / "a.json").read_text())["pictures"]["overlaps"]
        is None
    )


@pytest.mark.parametrize(
    "part", ["curve", "stages", "findings", "guarantees", "model", "run", "pictures", "records"]
)
def test_each_part_can_be_missing_alone(make_audit, part):
    empty = {"pictures": Pictures(), "model": {}, "run": {}}.get(part, ())
    reader = Reader(page.render(replace(make_audit(), **{part: empty})))
    assert reader.balanced
    assert "Do not release" in "".join(reader.text)


def test_the_most_endangered_come_first_and_the_rest_is_counted(make_audit, monkeypatch):
    monkeypatch.setattr(page, "MOST_ROWS", 6)
    audit = make_audit(12)
    reader = Reader(page.render(audit))
    outcomes = [attrs["data-outcome"] for attrs in reader.all("tr") if "data-outcome" in attrs]
    assert outcomes == ["exact"] * 6
    assert "Of 12 records the 6 most endangered are shown" in "".join(reader.text)


def test_one_hundred_colour_images_stay_below_five_megabytes(make_audit, tmp_path):
    audit = make_audit(100, shape=(64, 64, 3))
    assert write_report(audit, tmp_path / "report.html").stat().st_size < 5_000_000


def test_json_has_every_fact_of_the_audit_and_the_pictures(make_audit, tmp_path):
    audit = make_audit()
    content = json.loads(write_json(audit, tmp_path / "report.json").read_text())
    pictures = content.pop("pictures")
    assert content.pop("schema") == 1
    assert content == audit.facts()
    assert pictures["overlaps"] == audit.pictures.overlaps.tolist()
    assert pictures["names"] == [record.name for record in audit.records]
    assert pictures["recoveries"][3] == ""
    html = page.render(audit)
    assert all(
        image in html
        for image in pictures["originals"] + pictures["encodings"] + pictures["recoveries"]
    )


def test_the_same_audit_gives_the_same_bytes(make_audit):
    assert page.render(make_audit()) == page.render(make_audit())


@pytest.mark.parametrize("write", [write_report, write_json])
def test_a_place_that_is_none_is_refused_in_one_sentence(make_audit, tmp_path, write):
    with pytest.raises(InputError, match="is a folder"):
        write(make_audit(), tmp_path)
    with pytest.raises(InputError, match="make it first"):
        write(make_audit(), tmp_path / "no" / "report.html")
    assert write(make_audit(), str(tmp_path / "report")) == tmp_path / "report"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (12345, "12345"),
        (0.123456, "0.1235"),
        (True, "yes"),
        ([1, 2.5], "1, 2.5"),
        ("a", "a"),
    ],
)
def test_facts_are_short(value, text):
    assert page._shown(value) == text


def test_long_lists_are_cut():
    assert page._shown(list(range(5000))).endswith("11, … (5,000 in all)")


def test_numpy_numbers_are_shown_as_numbers():
    assert "np." not in page.render(minimal(run={"seed": np.int64(3), "share": np.float32(0.5)}))


def text_of(audit):
    reader = Reader(page.render(audit))
    assert reader.balanced
    return " ".join(" ".join(reader.text).split())


def test_attackers_are_listed_with_their_best_attack_and_what_guessing_gets(whole_audit):
    text = text_of(whole_audit())
    assert "sees the encodings only full 59 of 60 58 exactly, 1 nearly 97% of all pixels" in text
    assert "90% to 99% 2% 95% 87% to 98%" in text
    assert "-2% to 6%, at chance" in text
    assert "no attack was run: no public vectors are mixed in" in text
    assert "natural was not tried: these are no images" in text
    assert "over records and over independent draws" in text


def test_what_it_means_is_said_beside_a_guess(whole_audit):
    text = text_of(whole_audit())
    assert "97% more than a guess, 2%" in text
    assert "30% no more than a guess, 31%" in text
    assert "Can a single sensitive value of a record be inferred?" in text


def test_beside_the_headline_what_was_assumed_and_how_to_repeat_it(whole_audit, make_audit):
    html = page.render(whole_audit())
    aside = " ".join(Reader(re.search(r"<aside.*?</aside>", html, re.DOTALL)[0]).text)
    for words in (
        "private records in each encoding 2",
        "signs of the numbers hidden, absolute values only",
        "encodings released 700",
        "made on 2026-01-02 03:04 UTC",
        "0123456789ab …",
        "unveil audit --private patients.csv --what-if all",
    ):
        assert words in " ".join(aside.split())
    assert "0123456789abcdef" * 4 in html
    older = text_of(make_audit())  # an audit that does not say what it assumed: its scheme does
    assert "weights of the mixture equal encodings released 700" in older


def test_a_table_is_never_told_of_images_or_pixels(whole_audit):
    sentences = ("Exact is up to one sign per pixel that all records share; pixels are few.",)
    verdict = Verdict("leaks", "Do not release: 58 of 60 records come back.", sentences)
    records = tuple(replace(r, name=f"row {r.index}") for r in whole_audit().records)
    guarantees = (Guarantee("rows are exact", True, "checked in every pixel"),)
    table = whole_audit(
        "features",
        verdict=verdict,
        records=records,
        guarantees=guarantees,
        stages=(Stage("pixels", 1.0),),
        model={"in words": "few pixels"},
    )
    table = replace(table, threats=tuple(replace(t, not_tried=()) for t in table.threats))
    text = text_of(table)
    assert "one sign per column that all records share; columns are few" in text
    assert "97% of all columns" in text
    assert not re.findall(r".{0,40}\b(?:pixel|image|picture)s?\b", text, flags=re.IGNORECASE)


@pytest.mark.parametrize(
    ("level", "headline", "tone", "word"),
    [
        ("leaks", "Do not release: all.", "leaks", "Leaks"),
        ("partly", "Do not release: some.", "leaks", "Leaks"),
        ("partly", "Do not rely on this: some.", "partly", "Leaks in part"),
        ("nothing", "Nothing recovered.", "nothing", "Nothing recovered"),
    ],
)
def test_who_is_told_not_to_release_sees_red(whole_audit, level, headline, tone, word):
    html = page.render(whole_audit(verdict=Verdict(level, headline)))
    assert f'<section class="verdict {tone}"' in html
    assert f"</svg>{word}</p>" in html


def test_what_if_has_a_mark_for_what_was_measured_and_none_for_what_was_not(whole_audit):
    html = page.render(whole_audit())
    figure = re.search(r'<div class="panels">.*?</figcaption>', html, re.DOTALL)[0]
    assert figure.count("<title>") == 8
    assert figure.count('<rect class="worth" x="') == 5 + 1  # and the legend's
    assert "ε 420" in figure
    assert "differential privacy, ε = 10" in figure
    assert figure.count(">now</text>") == 2  # no noise, k = 2; m = 700 was not among those tried
    assert "40 records of 768 values at most" in page.render(whole_audit())
    assert 'id="what-if-title"' not in page.render(whole_audit(what_if=()))


def test_a_column_of_notes_stands_only_where_there_are_some(whole_audit):
    assert "what came of it" in text_of(whole_audit())
    silent = whole_audit(stages=(Stage("similarity", 0.25), Stage("pixels", 1.0)))
    assert "what came of it" not in text_of(silent)
    assert "Notes say" not in text_of(silent)


def test_the_overlaps_are_called_the_true_ones(whole_audit):
    assert "this is the true pattern" in text_of(whole_audit())


def test_names_of_attackers_and_reasons_stay_text(whole_audit, hostile_names):
    bad = hostile_names[0]
    audit = whole_audit()
    threats = tuple(replace(t, knows=bad, not_tried=((bad, bad),)) for t in audit.threats)
    meanings = tuple(replace(m, kind=bad, words=bad) for m in audit.meanings)
    hostile = replace(
        audit,
        threats=threats,
        meanings=meanings,
        assumed={bad: bad},
        provenance={bad: bad, "command": bad},
    )
    assert "<script>window" not in page.render(hostile)
    assert Reader(page.render(hostile)).balanced
