"""`unveil audit` and `unveil plan` from outside: one command for every kind of data, one sentence
for what cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result

from unveil import cli
from unveil.auditing.result import Audit, Column, Finding, Meaning, Threat, Verdict, WhatIf
from unveil.cli.gate import why_not
from unveil.report.schema import audit_schema

GAUSS = np.random.default_rng(0).standard_normal((20, 60)).astype(np.float32)
QUICK = ["--m", "140:140", "--seeds", 1]


def call(*args: object) -> Result:
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def one_sentence(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"Error: [^\n]+\n", result.stderr), result.stderr
    for word in words:
        assert word in result.stderr


def save(name: str) -> str:
    if name.endswith("csv"):
        np.savetxt(name, GAUSS[:, :8], delimiter=",", header=",".join("abcdefgh"), comments="")
    elif name.endswith("npz"):
        np.savez(name, GAUSS)
    else:
        np.save(name, GAUSS)
    return name


@pytest.mark.parametrize("name", ["mine.npy", "mine.npz", "mine.csv"])
def test_the_users_own_data_in_one_command(name) -> None:
    result = call("audit", "--private", save(name), *QUICK, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    jsonschema.validate(facts, audit_schema())
    jsonschema.validate(json.loads(Path("unveil-audit/audit.json").read_text()), audit_schema())
    assert facts["verdict"]["level"] == "leaks"
    assert Path(facts["report"]).read_text().startswith("<!doctype html>")


def test_the_terminal_shows_what_the_report_and_the_json_say() -> None:
    result = call("audit", "--private", save("mine.csv"), *QUICK, "--sensitive", "b")
    said = " ".join(result.stdout.replace("│", " ").split())
    facts = json.loads(Path("unveil-audit/audit.json").read_text())
    page = Path("unveil-audit/report.html").read_text()
    assert facts["verdict"]["headline"] in said
    assert facts["verdict"]["headline"] in page
    assert facts["verdict"]["attacked"] in said
    for column in facts["columns"]:
        assert re.search(rf"{column['name']} {column['exact']}\b", said)
    assert "Inference: b is known" in said
    # Again into the same folder: the report is replaced.
    assert call("audit", "--private", "mine.csv", *QUICK).exit_code == 0


def test_a_config_and_a_range() -> None:
    save("mine.csv")
    Path("audit.toml").write_text('private = "mine.csv"\nm = "100:120"\nseeds = 1\ntime = "1m"\n')
    facts = json.loads(call("audit", "--config", "audit.toml", "--json").stdout)
    assert facts["m"] == 120
    assert facts["run"]["time"] == 60


def test_the_users_encoder_is_attacked_and_linted() -> None:
    Path("own.py").write_text(
        "def encode(private, public, rng):\n    print('hello')\n    return private\n"
    )
    save("mine.csv")
    result = call(
        "audit",
        "--private",
        "mine.csv",
        "--encoder",
        "own.py:encode",
        "--seeds",
        1,
        "--time",
        "30s",
        "--json",
    )
    facts = json.loads(result.stdout)
    assert facts["verdict"]["level"] == "leaks"
    assert any("nothing is mixed" in finding["what"] for finding in facts["findings"])


def test_bad_input_leaves_nothing() -> None:
    save("mine.npy")
    one_sentence(call("audit", "--private", "nowhere.npy"), "nowhere.npy")
    one_sentence(call("audit", "--private", "mine.npy", "--m", "many"), "--m many")
    one_sentence(call("audit", "--private", "mine.npy", "--time", "soon"), "10m")
    one_sentence(call("audit", "--private", "mine.npy", "--weighting", "unknown"), "law of weights")
    one_sentence(call("audit", "--encodings", "mine.npy"), "--truth")
    one_sentence(call("audit", "--private", "mine.npy", "--n-public", 5), "--k-public")
    one_sentence(call("audit", "--labels", "mine.npy"), "--private")
    assert not Path("unveil-audit").exists()
    Path("taken").mkdir()
    Path("taken/letter.txt").write_text("mine")
    one_sentence(call("audit", "--private", "mine.npy", "--out", "taken"), "choose another name")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The audit itself, replaced by one that notes how it was called."""
    heard = SimpleNamespace(calls=[], answer=answer())

    def run(private: object, scheme: object, **options: object) -> Audit:
        heard.calls.append((private, scheme, options))
        return heard.answer

    monkeypatch.setattr("unveil.auditing.audit.audit", run)
    return heard


def answer(level: str = "leaks", **parts: object) -> Audit:
    fields = {"verdict": Verdict(level, "What to do."), "scheme": {}, "data": {"records": 2}}
    return Audit(**{**fields, "m": 9, "attack": "x", "explanation": "", "records": (), **parts})


def threat(level: str) -> Threat:
    return Threat("blind", "sees", level, 0, 0, 0, 5, 0.0, 0.4, 0, 0.0, 0.1)


COLUMN = Column("age", 3, 0, 9, 0, 0.1, 0.6, 0.1, 0.2, True)
ANSWERS = {
    "leaks": (answer(), (1, 1, 1)),
    "partly": (answer("partly"), (0, 1, 1)),
    "nothing": (answer("nothing", threats=(threat("nothing"),)), (0, 0, 0)),
    "a column": (answer("nothing", columns=(COLUMN,)), (0, 0, 1)),
    "a link": (answer("nothing", meanings=(Meaning("linkability", "", 0.5, 0.4, 0.6, 0.1),)), (0, 0, 1)),
    "a slip": (answer("nothing", findings=(Finding("Bad.", "high", "x", "y"),)), (0, 0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_each_gate_is_as_strict_as_it_says(engine, name) -> None:
    engine.answer, codes = ANSWERS[name]
    for gate, code in zip(("leaks", "approximate", "any"), codes, strict=True):
        result = call("audit", "--private", save("mine.npy"), "--fail-on", gate)
        assert result.exit_code == code, gate
        assert f"Gate --fail-on {gate}: {'failed' if code else 'passed'}" in result.stdout


def test_without_arguments_both_embedded_sets(engine) -> None:
    facts = json.loads(call("audit", "--json").stdout)
    assert len(facts["audits"]) == 2
    assert engine.calls[0][0].source.startswith("Gaussian")
    assert Path("unveil-audit/fashion-mnist/report.html").exists()


def test_what_is_not_given_is_not_passed(engine) -> None:
    call("audit", "--private", save("mine.npy"))
    assert set(engine.calls[0][2]) == {"noise", "seeds", "relative_tolerance", "rng", "progress"}
    call(
        "audit",
        "--private",
        "mine.npy",
        "--relative-tolerance",
        0.1,
        "--signs",
        "kept",
        "--time",
        "10m",
    )
    _, scheme, options = engine.calls[1]
    assert scheme.signs == "kept"
    assert (options["relative_tolerance"], options["time"]) == (0.1, "10m")


def test_drawn_records_and_a_drawn_pool(engine) -> None:
    sizes = ["--n-private", 7, "--d", 5, "--k-public", 1, "--n-public", 9]
    assert call("audit", "--private", "gaussian", *sizes).exit_code == 0
    records, _, options = engine.calls[0]
    assert records.values.shape == (7, 5)
    assert options["public"].shape == (9, 5)


def test_encodings_somebody_else_made(engine) -> None:
    save("mine.npy")
    np.save("made.npy", np.abs(GAUSS[:9]))
    call("audit", "--encodings", "made.npy", "--truth", "mine.npy", "--shape", "6x10")
    records, _, options = engine.calls[0]
    assert options["encodings"] == Path("made.npy")
    assert records.image_shape == (6, 10)


def test_what_if_names_every_attacker(engine) -> None:
    points = [
        WhatIf("noise", 0.01, key, 0.5, 0.1, 0.9, share, 0.3, 7.0)
        for key, share in (("told", 0.8), ("blind", 0.0))
    ]
    engine.answer = answer(what_if=tuple(points))
    said = call("audit", "--private", save("mine.npy"), "--what-if", "noise").stdout
    assert "80%, 50%" in said
    assert said.index("told") < said.index("blind")


def test_plan_says_how_many_encodings() -> None:
    result = call("plan", "--n-private", 100, "--m", 700)
    assert result.exit_code == 0
    assert "All 100 private vectors should come back" in result.stdout
    assert "seconds" not in result.stdout
    facts = json.loads(
        call("plan", "--weighting", "half-normal", "--signs", "kept", "--json").stdout
    )
    assert facts["needs"][0]["encodings"] > 0


@pytest.mark.parametrize("gate", ["leaks", "approximate", "any"])
def test_what_time_did_not_suffice_for_passes_no_gate(gate):
    def audit(**threat):
        threats = [SimpleNamespace(level="nothing", exact=0, approximate=0, **threat)]
        return SimpleNamespace(
            verdict=SimpleNamespace(level="nothing"), threats=threats, columns=[], meanings=[],
            findings=[],
        )  # fmt: skip

    assert "--time" in why_not(audit(stopped=True), gate)
    assert why_not(audit(stopped=False), gate) == ""
