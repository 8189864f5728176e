"""`compare` from outside: attacks that are slow, crash, die, refuse or lie are results; table and
JSON agree; resume works."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from experiments.compare.families import FAMILIES
from experiments.compare.page import page, rows
from experiments.compare.run import PHASE, compare

import unveil
from experiments.compare import run as module
from unveil import cli
from unveil.attacks import ATTACKS

DOCS = Path(__file__).resolve().parents[3] / "docs"
FAKE = """
import os, time
from pathlib import Path
import numpy as np
from scipy import sparse
from unveil.records import InputError, Recovery

NAME = "{name}"

def attack(encodings, public=None, *, rng=None, memory_limit=None, progress=None):
    with Path(os.environ["TALLY"]).open("a") as file:
        file.write(NAME + chr(10))
    {body}

ATTACK = attack
"""
CLAIM = """from experiments.compare.families import FAMILIES, instance
    X = instance(FAMILIES["mixup"], rng).simulation.private[:{count}] + np.float32({off})
    members = sparse.csr_array((encodings.m, len(X)), dtype=bool)
    return Recovery(X, np.full(len(X), "verified"), True, members, np.zeros(len(X)), ("",) * len(X), NAME, "all", {{}})"""
BODIES = {
    "knows": CLAIM.format(count=12, off=0),
    "lies": CLAIM.format(count=24, off=1),
    "slow": "time.sleep(100)",
    "crashes": "print('on stdout'); raise ZeroDivisionError('one by zero')",
    "dies": "os._exit(7)",
    "refuses": "raise InputError('not for these encodings: use another attack')",
}


@pytest.fixture(scope="module")
def outcome(house, tmp_path_factory):
    """The fakes on one family with a limit of a second, then again with one of them changed."""
    folder = tmp_path_factory.mktemp("house")
    fakes = house(
        folder, {f"{name}.py": FAKE.format(name=name, body=body) for name, body in BODIES.items()}
    )
    tally = folder / "tally"
    command = [
        "compare",
        "--family",
        "mixup",
        "--limit",
        1,
        "--out",
        folder / "out",
        *(f"--attack={name}" for name in BODIES),
    ]
    first = fakes.run(*command, "--json", TALLY=str(tally))
    counted = tally.read_text().split()
    changed = fakes.attacks / "crashes.py"
    changed.write_text(changed.read_text() + "# changed\n")
    second = fakes.run(*command, TALLY=str(tally))
    return folder / "out", first, second, counted, tally.read_text().split()[len(counted) :]


def results(outcome):
    assert outcome[1].returncode == 0, outcome[1].stderr
    return {result["attack"]: result for result in json.loads(outcome[1].stdout)["results"]}


def test_whatever_an_attack_does_is_a_result(outcome):
    found = results(outcome)
    told = {name: (result["outcome"], result["reason"]) for name, result in found.items()}
    assert told == {
        "knows": ("ran", ""),
        "lies": ("ran", ""),
        "slow": ("limit", "over the limit of 1 s"),
        "crashes": ("crashed", "ZeroDivisionError: one by zero"),
        "dies": ("crashed", "the process ended with exit code 7"),
        "refuses": ("refused", "not for these encodings: use another attack"),
    }


def test_right_and_wrong_are_counted(outcome):
    found = results(outcome)
    assert (found["knows"]["share"], found["knows"]["wrong"]) == (0.5, 0)
    assert (found["lies"]["share"], found["lies"]["wrong"]) == (0, 48)
    assert json.loads(outcome[1].stdout)["verdict"].startswith("knows wins 1 of 1 families")


def test_json_rows_page_and_terminal_agree(outcome):
    out, first, second, *_ = outcome
    facts = json.loads((out / "figures" / "compare.json").read_text())
    told = json.loads(first.stdout)
    assert facts == {
        name: value for name, value in told.items() if name not in ("out", "verdict", "schema")
    }
    with (out / "figures" / "compare.csv").open() as file:
        assert list(csv.DictReader(file)) == [
            {name: str(value) for name, value in row.items()} for row in rows(facts)
        ]
    assert (out / "compare.md").read_text() == page(facts, "figures")
    shown = " ".join(second.stdout.split())
    assert " ".join(told["verdict"].split()) in shown
    for words in (
        "50%",
        "48 wrong",
        "over limit",
        "refuses does not apply: not for these encodings: use another attack (mixup)",
    ):
        assert words in shown


def test_a_second_run_measures_only_what_changed(outcome):
    *_, first, second = outcome
    assert set(first) == set(BODIES)
    assert set(second) == {"crashes"}


@pytest.mark.parametrize(
    ("option", "words"),
    [("--attack=fool", "no attack 'fool'"), ("--family=big", "no family 'big'")],
)
def test_an_unknown_name_is_one_sentence_and_writes_nothing(tmp_path, option, words):
    done = CliRunner().invoke(cli.main, ["compare", option, "--out", str(tmp_path / "a")])
    assert done.exit_code == 2
    assert words in done.stderr
    assert "choose of" in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_limit_must_be_positive(tmp_path):
    with pytest.raises(unveil.InputError, match="positive number of seconds"):
        compare(tmp_path / "a", limit=0)


def made_up(attack, trials, limit, *, stop=()):
    kinds = {
        "outcome": "ran",
        "exact": 0.5,
        "close": 0.5,
        "wrong": 0,
        "mib": 1.0,
        "explanation": "",
    }
    return [
        {**kinds, "share": 0.5, "seconds": 1.0 + (i == 0), "cold": i == 0}
        for i, _ in enumerate(trials)
    ]


def test_everything_is_the_default_and_the_cold_draw_is_not_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "run_trials", made_up)
    monkeypatch.setattr(module.phase, "run_trials", made_up)
    # Three stand for all there are: a diagram of each takes a second to draw.
    there = {name: ATTACKS[name] for name in ("full", "cliques", "paper")}
    monkeypatch.setattr(module, "ATTACKS", there)
    found = compare(tmp_path)
    assert found.facts["asked"] == {"attacks": list(there), "families": [*FAMILIES, PHASE]}
    assert len(found.facts["results"]) == len(there) * len(FAMILIES)
    assert {result["seconds"] for result in found.facts["results"]} == {1.0}
    assert all(path.is_file() for path in found.files)
    assert {path.suffix for path in found.files} == {".json", ".csv", ".svg", ".png", ".md"}
    links = {f"figures/{path.name}" for path in found.files if path.suffix == ".svg"}
    assert all(f"({link})" in (tmp_path / "compare.md").read_text() for link in links)


def test_the_committed_page_is_made_from_the_committed_numbers():
    facts = json.loads((DOCS / "figures" / "compare.json").read_text())
    assert (DOCS / "compare.md").read_text() == page(facts, "figures")
    # Masks of a pool belong to a scheme that no family has: docs/schemes.md measures them.
    assert set(ATTACKS) - set(facts["asked"]["attacks"]) == {"mixing"}
    assert facts["asked"]["families"] == [*FAMILIES, PHASE]
    with (DOCS / "figures" / "compare.csv").open() as file:
        assert list(csv.DictReader(file)) == [
            {name: str(value) for name, value in row.items()} for row in rows(facts)
        ]
