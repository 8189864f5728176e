"""`reproduce` writes what it says; the committed page is made from the committed numbers."""

import csv
import json
from pathlib import Path

import pytest
from experiments.paper import gram_accuracy
from experiments.reproduce import ITEMS, item, page, reproduce, rows

DOCS = Path(__file__).resolve().parents[3] / "docs"


CALLS = []


def made_up(k, steps, repeats, seed):
    """Errors that fall exponentially in d/k⁴, as measured ones do."""
    CALLS.append(k)
    wrong = {
        how: [round(5000 * 2.0 ** (-step / rate)) for step in steps]
        for how, rate in (("paper", 16), ("balanced", 4))
    }
    return {"d": [step * k**4 for step in steps], "pairs": 10_000 + seed, **wrong}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(gram_accuracy, "_cell", made_up)


@pytest.mark.usefixtures("small")
def test_numbers_rows_figures_and_page(tmp_path):
    found = reproduce("gram-accuracy", tmp_path, seed=2)
    names = {path.relative_to(tmp_path).as_posix() for path in found.files}
    assert names == {
        f"figures/reproduce-gram-accuracy.{kind}" for kind in ("json", "csv", "svg", "png")
    } | {"reproduce.md"}
    assert all(path.is_file() for path in found.files)
    facts = json.loads((tmp_path / "figures/reproduce-gram-accuracy.json").read_text())
    assert (facts["seed"], facts["full"]) == (2, False)
    with (tmp_path / "figures/reproduce-gram-accuracy.csv").open() as file:
        assert [int(row["paper"]) for row in csv.DictReader(file)] == [
            w for c in facts["curves"] for w in c["paper"]
        ]
    text = (tmp_path / "reproduce.md").read_text()
    assert found.section.verdict in text
    assert "(figures/reproduce-gram-accuracy.svg)" in text
    assert "Utility" not in text


@pytest.mark.usefixtures("small")
def test_a_second_run_writes_the_same_bytes_without_measuring(tmp_path):
    first = {path: path.read_bytes() for path in reproduce("gram-accuracy", tmp_path).files}
    CALLS.clear()
    again = reproduce("gram-accuracy", tmp_path)
    assert {path: path.read_bytes() for path in again.files} == first
    assert not CALLS


def test_the_committed_page_is_made_from_the_committed_numbers():
    assert (DOCS / "reproduce.md").read_text() == page(DOCS / "figures")


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_committed_in_full(name):
    facts = json.loads((DOCS / "figures" / f"reproduce-{name}.json").read_text())
    assert facts["full"]
    for suffix in item(name).draw(facts):
        for kind in ("svg", "png"):
            assert (DOCS / "figures" / f"reproduce-{name}{suffix}.{kind}").is_file()
    with (DOCS / "figures" / f"reproduce-{name}.csv").open() as file:
        assert [{key: str(value) for key, value in row.items()} for row in rows(facts)] == list(
            csv.DictReader(file)
        )
