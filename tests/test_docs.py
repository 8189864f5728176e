"""What the documents name is there, and what the paper names is in the map."""

import re
import sys
import types
from pathlib import Path

import pytest
from tools.draw_house import ROOMS, layers, svg
from tools.make_measured import PAGE as MEASURED
from tools.make_measured import page as measured_page

import unveil
from unveil import attacks
from unveil.attacks import ATTACKS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPER_TESTS = sorted((ROOT / "tests" / "paper").glob("test_*.py"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_file_a_document_names_exists(document):
    named = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", document.read_text())
    named += re.findall(r"(?<![\w./])((?:src|tests|benchmarks)/[\w/]+\.py)", document.read_text())
    links = re.findall(r"\]\(((?!http|#)[^)\s]+)\)", document.read_text())
    missing = [name for name in named if not (ROOT / name).exists()]
    missing += [link for link in links if not (document.parent / link.split("#")[0]).exists()]
    assert not missing


def test_every_file_of_the_walks_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    walks = text.partition("<!-- walks -->")[2].partition("<!-- end of walks -->")[0]
    files = set(re.findall(r"`([\w/]+\.py)`", walks))
    assert files
    missing = {file for file in files if not (ROOT / "src" / "unveil" / file).exists()}
    assert not missing, "stale: run `python -m tools.walks --write`"


def test_every_paper_test_is_in_the_map():
    text = (ROOT / "docs" / "paper_map.md").read_text()
    assert [p.name for p in PAPER_TESTS if f"tests/paper/{p.name}" not in text] == []


def test_every_algorithm_and_lemma_of_the_paper_is_in_the_map():
    text = (ROOT / "docs" / "paper_map.md").read_text()
    lemmas = ("population", "public", "kr17", "gramextract", "lip", "generic", "construct")
    lemmas += ("setsystemexist", "fewneighbors", "house", "findsetsystem")
    labels = {
        "alg": ("public_attack", "private_attack", "findsetsystem", "private_attack2"),
        "cor": ("kr17",),
        "defn": ("folded", "gaussian_images", "select_distribution", "multitask", "floral"),
        "example": ("floral",),
        "lem": lemmas,
        "problem": ("main",),
        "remark": ("ambiguity",),
        "thm": ("main",),
    }
    missing = [
        f"{kind}:{name}"
        for kind, names in labels.items()
        for name in names
        if f"`{kind}:{name}`" not in text
    ]
    assert missing == []


def test_the_picture_of_the_house_is_that_of_the_import_layers():
    assert (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8") == svg()


def test_the_page_on_the_house_has_every_room():
    rooms = {path.name for path in (ROOT / "src" / "unveil").iterdir() if path.is_dir()}
    named = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "architecture.md").read_text(), re.M)
    assert named == [room for room in layers() if room in ROOMS]
    assert set(named) == rooms - {"__pycache__"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_no_table_is_cut_by_a_blank_line(document):
    lines = document.read_text().splitlines()
    cut = [
        at + 1
        for at in range(2, len(lines))
        if lines[at].startswith("|")
        and not lines[at - 1].strip()
        and not (at + 1 < len(lines) and lines[at + 1].startswith("|--"))
        and not (at + 1 < len(lines) and re.match(r"\|[ :-]+\|", lines[at + 1]))
    ]
    assert cut == []


def test_every_attack_has_a_section():
    text = (ROOT / "docs" / "attacks.md").read_text()
    assert set(re.findall(r"^## `([\w-]+)`$", text, re.M)) == set(ATTACKS)
    assert set(re.findall(r"^\| \[`([\w-]+)`\]\(#[\w-]+\)", text, re.M)) == set(ATTACKS)


def test_every_top_level_name_is_in_the_api_page():
    named = set(
        re.findall(
            r"auto(?:class|function|exception):: unveil\.(\w+)$",
            (ROOT / "docs" / "api.md").read_text(),
            re.M,
        )
    )
    assert named == set(unveil.__all__) - {"__version__"}


def test_the_tables_of_what_was_measured_are_those_of_the_golden_table():
    assert measured_page() == MEASURED.read_text(), "stale: run `python -m tools.make_measured`"


@pytest.fixture
def whitney(monkeypatch):
    """The attack of the page on the house, named as the page says."""
    pytest.importorskip("networkx")
    text = (ROOT / "docs" / "architecture.md").read_text()
    (source,) = re.findall(r"```python\n(.*?)```", text, re.S)
    module = types.ModuleType("unveil.rivals.whitney")
    exec(compile(source, "whitney.py", "exec"), module.__dict__)
    (home,) = re.findall(r'`"whitney": "([\w.:]+)"`', text)
    monkeypatch.setitem(sys.modules, home.split(":")[0], module)
    monkeypatch.setitem(attacks._HOMES, "whitney", home)
    return module


def test_an_attack_that_is_added_as_the_page_says_is_known_by_name(whitney):
    sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=60, d=2000, rng=0)
    recovery = unveil.recover(sim.encodings, attack="whitney", rng=0)
    scores = unveil.score(recovery, sim.private)
    assert (recovery.attack, scores.wrong) == (whitney.NAME, 0)
    assert scores.exact >= 10


def test_the_added_attack_declines_and_refuses_in_words(whitney):
    few = unveil.simulate(unveil.Scheme(2), n_private=12, m=40, d=30, rng=0)
    assert not unveil.recover(few.encodings, attack="whitney", rng=0).verified.any()
    triples = unveil.simulate(unveil.Scheme(3), n_private=12, m=40, d=30, rng=0)
    with pytest.raises(unveil.InputError, match="use attack='exact'"):
        unveil.recover(triples.encodings, attack="whitney", rng=0)
