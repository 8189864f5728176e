"""`unveil audit` and `unveil plan` from outside: one command for every kind of data, one sentence
for what cannot be."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result

from unveil import cli
from unveil.auditing.result import Attempt, Audit, Finding, Meaning, Threat, Verdict, WhatIf
from unveil.report.schema import audit_schema

GAUSS = np.random.default_rng(0).standard_normal((20, 200)).astype(np.float32)
QUICK = ["--m", 140, "--seeds", 1, "--effort", 0]


def call(*args: object) -> Result:
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def report() -> None:
    """The page is written by its own room; without it there is no audit on the command line."""
    pytest.importorskip("unveil.report.page")


def one_sentence(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"Error: [^\n]+\n", result.stderr), result.stderr
    for word in words:
        assert word in result.stderr


def save_npy() -> str:
    np.save("mine.npy", GAUSS)
    return "mine.npy"


def save_npz() -> str:
    np.savez("mine.npz", GAUSS)
    return "mine.npz"


def save_csv() -> str:
    np.savetxt(
        "mine.csv",
        GAUSS * np.logspace(-5, 5, 200),
        delimiter=",",
        header=",".join(map(str, range(200))) + "x",
    )
    return "mine.csv"


@pytest.mark.usefixtures("report")
class TestAudit:
    @pytest.mark.parametrize("save", [save_npy, save_npz, save_csv])
    def test_the_users_own_data_in_one_command(self, save) -> None:
        result = call("audit", "--private", save(), *QUICK, "--out", "here")
        assert result.exit_code == 0, result.output
        flat = " ".join(result.stdout.replace("│", " ").split())
        assert "20 of 20 records come back exactly from 140 encodings" in flat
        assert "Report: here/report.html" in flat
        assert {p.name for p in Path("here").iterdir()} == {"report.html", "audit.json", "trials"}

    def test_an_image_folder_in_one_command(self) -> None:
        image = pytest.importorskip("PIL.Image")
        Path("pictures").mkdir()
        for i, pixels in enumerate(
            np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
        ):
            image.fromarray(pixels).save(f"pictures/{i:02}.png")
        result = call(
            "audit", "--private", "pictures", "--m", 90, "--seeds", 1, "--effort", 0, "--json"
        )
        assert result.exit_code == 0, result.output
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert facts["data"]["kind"] == "images"
        assert facts["records"][3]["name"] == "03.png"

    def test_the_same_again_writes_the_same_report(self) -> None:
        first = call("audit", "--private", save_npy(), *QUICK, "--json")
        again = call("audit", "--private", "mine.npy", *QUICK, "--json")
        drop = {"seconds", "peak_memory_bytes"}
        one, two = (json.loads(r.stdout) for r in (first, again))
        for facts in (one, two):
            facts["run"] = {key: value for key, value in facts["run"].items() if key not in drop}
            facts["provenance"].pop("date")
        assert one == two

    def test_a_range_and_a_config(self) -> None:
        Path("conf").mkdir()
        np.save("conf/x.npy", GAUSS)
        Path("conf/a.toml").write_text(
            'private = "x.npy"\nm = "40:140"\nseeds = 1\neffort = 1.0\nout = "./o"\njson = true\n'
        )
        result = call("audit", "--config", "conf/a.toml")
        assert result.exit_code == 0, result.output
        facts = json.loads(result.stdout)
        assert facts["curve"][0]["m"] == 40
        assert facts["m"] == 140
        assert Path("conf/o/report.html").exists()
        other = call("audit", "--config", "conf/a.toml", "--m", 120, "--effort", 0, "--out", "p")
        assert json.loads(other.stdout)["m"] == 120

    def test_without_arguments_both_embedded_sets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tiny = {
            "gaussian": {"n_private": 15, "d": 64, "effort": 0.0},
            "fashion-mnist": {"n_private": 10, "effort": 0.0},
        }
        monkeypatch.setattr(cli.audit, "DEFAULT", tiny)
        result = call("audit")
        assert result.exit_code == 0, result.output
        assert re.findall(r"Report: (\S+)", result.stdout) == [
            "unveil-audit/gaussian/report.html",
            "unveil-audit/fashion-mnist/report.html",
        ]

    def test_the_users_encoder_is_linted(self) -> None:
        Path("enc.py").write_text(
            "import numpy as np\n"
            "def encode(private, public, rng):\n"
            "    draw = np.random.default_rng(42)\n"
            "    return np.abs(private[[draw.choice(len(private), 2, replace=False) for _ in range(30)]].sum(axis=1))\n"
        )
        result = call(
            "audit", "--private", save_npy(), *QUICK, "--encoder", "enc.py:encode", "--json"
        )
        assert result.exit_code == 0, result.output
        assert any("seed is fixed" in f["what"] for f in json.loads(result.stdout)["findings"])

    def test_an_encoder_in_a_file_does_not_run_by_itself(self) -> None:
        Path("enc.py").write_text(
            "from pathlib import Path\nPath('ran').touch()\nraise RuntimeError('it ran')\n"
        )
        Path("a.toml").write_text('encoder = "enc.py:encode"\n')
        args = ["audit", "--private", save_npy(), "--config", "a.toml"]
        one_sentence(call(*args), "would run that code", "command line")
        assert not Path("ran").exists()
        one_sentence(call(*args, "--encoder", "enc.py:encode"), "it ran")
        assert Path("ran").exists()
        assert not Path("unveil-audit").exists()

    def test_bad_input_leaves_nothing(self) -> None:
        Path("no.npy").write_text("this is no array")
        Path("many.csv").write_text("1.0,2.0,3.0\n" * 300_000)
        np.save("other.npy", np.ones((4, 3), np.float32))
        Path("bad.toml").write_text("k_privat = 2\n")
        Path("run").mkdir()
        Path("run/mine.txt").write_text("mine")
        before = sorted(map(str, Path().rglob("*")))
        one_sentence(call("audit", "--private", "no.npy"), ".npy")
        one_sentence(call("audit", "--private", "nowhere"), "check the path")
        one_sentence(call("audit", "--private", "many.csv"), "about 300,000 records", "sample=")
        one_sentence(call("audit", "--config", "bad.toml"), "did you mean k_private")
        one_sentence(call("audit", "--out", "run"), "choose another name")
        one_sentence(call("audit", "--k-private", 9, "--n-private", 8), "lower k_private")
        one_sentence(call("audit", "--m", "few"), "100:2000")
        one_sentence(call("audit", "--m", "50:20"), "smaller number first")
        one_sentence(call("audit", "--k-public", 1, "--private", "other.npy"), "no public vectors")
        one_sentence(call("audit", "--encoder", "enc.py"), "FILE.py:NAME")
        assert sorted(map(str, Path().rglob("*"))) == before

    def test_bad_images_leave_nothing(self) -> None:
        image = pytest.importorskip("PIL.Image")
        Path("corrupt").mkdir()
        Path("sizes").mkdir()
        for i in range(4):
            image.new("L", (8, 8), i).save(f"corrupt/{i}.png")
            image.new("L", (8, 8 + (i == 2)), i).save(f"sizes/{i}.png")
        Path("corrupt/2.png").write_bytes(Path("corrupt/2.png").read_bytes()[:40])
        one_sentence(call("audit", "--private", "corrupt"), "2.png is not a readable image")
        one_sentence(call("audit", "--private", "sizes"), "2.png", "one size")
        assert not Path("unveil-audit").exists()

    def test_a_large_table_is_sampled(self) -> None:
        rng = np.random.default_rng(0)
        with Path("many.csv").open("w") as file:
            for _ in range(20):
                np.savetxt(file, rng.standard_normal((1000, 40)), delimiter=",", fmt="%.4f")
        result = call("audit", "--private", "many.csv", "--sample", 20, *QUICK, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["data"]["records"] == 20


class TestPlan:
    def test_words_and_numbers(self) -> None:
        result = call("plan", "--n-private", 50, "--d", 784)
        assert result.exit_code == 0
        assert result.stdout.startswith(
            "All 50 private vectors should come back from 350 encodings by exact relations."
        )

    def test_json_and_config(self) -> None:
        Path("p.toml").write_text("n-private = 60\nm = 100\nd = 300\n")
        facts = json.loads(
            call("plan", "--config", "p.toml", "--json").stdout, parse_constant=pytest.fail
        )
        assert (facts["n_private"], facts["m"], facts["needed"], facts["feasible"]) == (
            60,
            100,
            420,
            False,
        )
        one_sentence(call("plan", "--config", "nowhere.toml"), "check the path")


class TestAttackWithoutTruth:
    def test_what_was_recovered_with_what_evidence_and_what_not(self) -> None:
        from unveil import Scheme, simulate

        sim = simulate(Scheme(2), private=GAUSS, m=45, rng=3)
        np.save("y.npy", sim.encodings.values)
        result = call("attack", "y.npy", "--out", "out", "--json")
        facts = json.loads(result.stdout, parse_constant=pytest.fail)
        assert facts["summary"] or not facts["status"]
        assert {f["severity"] for f in facts["findings"]} <= {"fine", "low", "medium", "high"}
        many = simulate(Scheme(2, signs="kept"), private=GAUSS, m=140, rng=3)
        np.save("z.npy", many.encodings.values)
        shown = call("attack", "z.npy", "--signs", "kept", "--out", "out2")
        flat = " ".join(shown.stdout.split())
        assert shown.exit_code == 0
        assert flat.startswith("20 private vectors recovered and verified")
        assert (
            "140 of 140 encodings are reproduced by the vectors found: 28,000 equations for 4,000 unknowns."
            in flat
        )
        assert "Values are for weights of 0.707 each (--weighting equal)" in flat
        assert "The encoder: Signs are kept, as in MixUp." in flat


def told(level: str = "nothing", **parts: object) -> Audit:
    """An audit of three records, for what the command does with it."""
    return Audit(
        Verdict(level, "A headline."),  # type: ignore[arg-type]
        scheme={},
        data={"source": "x", "kind": "features", "records": 3, "pixels": 5},
        m=10,
        attack="full",
        explanation="",
        records=(),
        **parts,  # type: ignore[arg-type]
    )


def threat(residual_low: float) -> Threat:
    return Threat("blind", "sees the encodings only", 0, 0, 3, 0, 0.5, 0, 0.1, residual_low, 0.5)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In the place of the audit itself: it notes what it was asked and gives `answer`."""
    noted = SimpleNamespace(answer=told(), options={}, private=None, scheme=None)

    def run(private: object, scheme: object, **options: object) -> Audit:
        noted.private, noted.scheme, noted.options = private, scheme, options
        return noted.answer

    monkeypatch.setattr("unveil.auditing.audit.audit", run)
    return noted


@pytest.mark.usefixtures("report")
class TestGate:
    @pytest.mark.parametrize(
        ("answer", "codes"),
        [
            (told("leaks"), (1, 1, 1)),
            (told("partly"), (0, 1, 1)),
            (told(threats=(threat(0.02),)), (0, 0, 1)),
            (told(threats=(threat(-0.02),)), (0, 0, 0)),
            (told(meanings=(Meaning("inference", "w", 0.6, 0.5, 0.7, 0.4),)), (0, 0, 1)),
            (told(meanings=(Meaning("inference", "w", 0.6, 0.3, 0.7, 0.4),)), (0, 0, 0)),
            (told(findings=(Finding("A slip.", "high", "bad"),)), (0, 0, 1)),
            (told(findings=(Finding("A habit.", "medium", "so so"),)), (0, 0, 0)),
        ],
    )
    def test_each_gate_is_as_strict_as_it_says(self, engine, answer, codes) -> None:
        engine.answer = answer
        for gate, code in zip(("leaks", "approximate", "any"), codes, strict=True):
            result = call("audit", "--private", save_npy(), "--fail-on", gate, "--json")
            assert result.exit_code == code, gate
            facts = json.loads(result.stdout)
            assert facts["gate"]["passed"] is (code == 0)
            assert bool(facts["gate"]["why"]) is (code == 1)
            jsonschema.Draft202012Validator(audit_schema()).validate(facts)
        assert call("audit", "--private", "mine.npy").exit_code == 0
        shown = call("audit", "--private", "mine.npy", "--fail-on", "any").stdout
        assert ("Gate --fail-on any: failed" in shown) is (codes[2] == 1)

    def test_a_real_leak_closes_it(self) -> None:
        result = call("audit", "--private", save_npy(), *QUICK, "--fail-on", "leaks", "--json")
        assert result.exit_code == 1
        facts = json.loads(result.stdout)
        assert facts["gate"] == {"fail_on": "leaks", "passed": False, "why": "records leak"}
        jsonschema.Draft202012Validator(audit_schema()).validate(facts)
        written = json.loads(Path("unveil-audit/audit.json").read_text())
        jsonschema.Draft202012Validator(audit_schema()).validate(written)

    def test_bad_input_is_no_leak(self) -> None:
        result = call("audit", "--private", "nowhere.npy", "--fail-on", "any", "--json")
        assert result.exit_code == 2
        jsonschema.Draft202012Validator(audit_schema()).validate(json.loads(result.stdout))


@pytest.mark.usefixtures("report")
class TestOptions:
    def test_what_is_not_given_is_not_passed(self, engine) -> None:
        assert call("audit", "--private", save_npy()).exit_code == 0
        assert not {"encodings", "what_if", "sensitive", "labels", "encoder"} & set(engine.options)
        assert engine.private == "mine.npy"

    @pytest.mark.parametrize("name", ["relative-tolerance", "tolerance"])
    def test_the_relative_tolerance_by_either_name(self, engine, name: str) -> None:
        start = ["audit", "--private", save_npy()]
        assert call(*start, f"--{name}", 0.03).exit_code == 0
        assert engine.options["relative_tolerance"] == 0.03
        Path("a.toml").write_text(f"{name} = 0.04\n")
        assert call(*start, "--config", "a.toml", "--out", "b").exit_code == 0
        assert engine.options["relative_tolerance"] == 0.04
        assert "tolerance" not in engine.options

    def test_one_option_under_both_of_its_names_is_refused(self, engine) -> None:
        Path("a.toml").write_text("tolerance = 0.04\nrelative_tolerance = 0.03\n")
        one_sentence(call("audit", "--config", "a.toml"), "twice")

    def test_what_if_labels_and_a_sensitive_column(self, engine) -> None:
        Path("t.csv").write_text(
            "name,age,pay\n" + "".join(f"p{i},{i},{i * i}\n" for i in range(5))
        )
        Path("l.csv").write_text("well\nsick\nwell\nsick\nwell\n")
        more = ("--what-if", "noise", "--labels", "l.csv", "--sensitive")
        assert call("audit", "--private", "t.csv", *more, "pay").exit_code == 0
        assert engine.options["what_if"] == "noise"
        assert engine.options["labels"].tolist() == [1, 0, 1, 0, 1]
        assert engine.options["sensitive"] == 1
        assert call("audit", "--private", "t.csv", *more, "1").exit_code == 0
        assert engine.options["sensitive"] == 0
        one_sentence(call("audit", "--private", "t.csv", *more, "wage"), "one of age, pay")
        one_sentence(call("audit", "--private", "t.csv", *more, "3"), "one of age, pay")
        one_sentence(call("audit", "--private", "t.csv", "--what-if", "d"), "--what-if")
        one_sentence(call("audit", "--labels", "l.csv"), "--labels without --private")
        both = ("--labels", "l.csv", "--sample", 3)
        one_sentence(call("audit", "--private", "t.csv", *both), "take the sample of both")

    def test_encodings_somebody_else_made(self, engine) -> None:
        np.save("y.npy", np.abs(GAUSS[:9]))
        Path("t.csv").write_text("a,b\n1,10\n2,30\n3,20\n")
        given = ("audit", "--encodings", "y.npy")
        assert call(*given, "--truth", save_npy(), "--k-private", 3).exit_code == 0
        assert np.array_equal(engine.options["encodings"], np.abs(GAUSS[:9]))
        assert np.array_equal(engine.private.values, GAUSS)
        assert engine.scheme.k_private == 3
        assert call(*given, "--private", "mine.npy").exit_code == 0
        np.save("z.npy", np.ones((4, 2), np.float32))
        assert call("audit", "--encodings", "z.npy", "--truth", "t.csv").exit_code == 0
        assert engine.private.values.tolist() == [[1, 10], [2, 30], [3, 20]]
        one_sentence(call(*given), "--encodings without --truth", "unveil attack")
        one_sentence(call(*given, "--truth", "t.csv"), "same space")
        one_sentence(call(*given, "--truth", "mine.npy", "--m", 50), "made already")
        one_sentence(call("audit", "--truth", "mine.npy"), "--truth goes with --encodings")

    def test_a_shape_makes_rows_images(self, engine) -> None:
        assert call("audit", "--private", save_npy(), "--shape", "10x20").exit_code == 0
        assert engine.private.image_shape == (10, 20)
        np.save("y.npy", np.abs(GAUSS[:9]).reshape(9, 10, 20))
        assert call("audit", "--encodings", "y.npy", "--truth", "mine.npy").exit_code == 0
        assert engine.private.image_shape == (10, 20)
        one_sentence(call("audit", "--private", "mine.npy", "--shape", "10"), "28x28")
        one_sentence(call("audit", "--private", "mine.npy", "--shape", "3x3"), "pixels")

    def test_an_encoder_is_a_function_or_an_object(self, engine) -> None:
        Path("enc.py").write_text(
            "def plain(private, public, rng):\n    return 'plain'\n"
            "class Mine:\n"
            "    def encode(self, private, public, rng):\n        return 'object'\n"
            "ready = Mine()\n"
            "class Needs(Mine):\n    def __init__(self, k):\n        pass\n"
            "number = 3\n"
        )
        given = ("audit", "--private", save_npy(), "--encoder")
        for name, answer in (("plain", "plain"), ("ready", "object"), ("Mine", "object")):
            assert call(*given, f"enc.py:{name}").exit_code == 0
            assert engine.options["encoder"](None, None, None) == answer
        one_sentence(call(*given, "enc.py:number"), "no function number", "encode(")
        one_sentence(call(*given, "enc.py:nowhere"), "no function nowhere")
        one_sentence(call(*given, "enc.py:Needs"), "making a Needs failed", "ready")

    def test_the_report_says_where_it_comes_from(self, engine) -> None:
        engine.answer = told(provenance={"date": "some day", "seed": 3})
        result = call("audit", "--private", save_npy(), "--seed", 3, "--out", "a b", "--json")
        found = json.loads(result.stdout)["provenance"]
        assert found["command"] == "unveil audit --private mine.npy --seed 3 --out 'a b' --json"
        assert found["date"] == "some day"
        assert found["seed"] == 3
        digest = hashlib.sha256(Path("mine.npy").read_bytes()).hexdigest()
        assert found["SHA-256 of mine.npy"] == digest
        engine.answer = told()
        again = json.loads(call("audit", "--private", "mine.npy", "--json").stdout)["provenance"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", again["date"])

    def test_the_terminal_shows_attackers_and_what_if(self, engine) -> None:
        tried = (Attempt("cliques", 2, 1, 0.5),)
        engine.answer = told(
            "partly",
            threats=(
                replace(threat(0.1), exact=2, approximate=1, tried=tried),
                replace(
                    threat(0.0), knows="also knows the public pool", not_tried=(("x", "none"),)
                ),
            ),
            meanings=(Meaning("singling out", "Two of three came back.", 0.67, 0.2, 0.9, 0.0),),
            what_if=(WhatIf("noise", 0.1, 0.5, 0.2, 0.8, 0.75, 12.0), WhatIf("k", 4, 0, 0, 0.4)),
        )
        text = " ".join(call("audit", "--private", save_npy()).stdout.split())
        assert "3 records of 5 columns" in text
        assert "2 + 1 nearly of 3" in text
        assert "not tried: none" in text
        assert "Singling out: Two of three came back." in text
        assert "50% (20%–80%) 75% 12" in text
        assert "image" not in text
        assert "pixel" not in text

    def test_a_memory_limit_beyond_a_gigabyte(self, engine) -> None:
        result = call("audit", "--private", save_npy(), "--memory-limit", 8 * 10**9)
        assert result.exit_code == 0, result.output

    def test_files_without_anything_to_audit(self) -> None:
        Path("empty").mkdir()
        Path("header.csv").write_text("a,b,c\n")
        Path("row.csv").write_text("a,b,c\n1,2,3\n")
        np.save("none.npy", np.zeros((0, 5), np.float32))
        for name, words in (
            ("empty", "it is empty"),
            ("header.csv", "a header and no records"),
            ("row.csv", "one record only"),
            ("none.npy", "holds no values"),
        ):
            one_sentence(call("audit", "--private", name, *QUICK), words)
        assert not Path("unveil-audit").exists()


def test_bytes_beside_encodings_are_told_and_converted() -> None:
    from unveil import Scheme, simulate

    public = np.random.default_rng(1).integers(0, 256, (30, 400)).astype(np.uint8)
    scaled = (public / 127.5 - 1).astype(np.float32)
    private = np.random.default_rng(2).uniform(-1, 1, (10, 400)).astype(np.float32)
    sim = simulate(Scheme(2, 1), private=private, public=scaled, m=60, rng=0)
    np.save("y.npy", sim.encodings.values)
    np.save("bytes.npy", public)
    np.save("scaled.npy", scaled)
    found = {}
    for name in ("bytes", "scaled"):
        scheme = ("--k-private", 2, "--k-public", 1, "--public", f"{name}.npy")
        result = call("attack", "y.npy", *scheme, "--out", name, "--json")
        found[name] = json.loads(result.stdout)
        assert ("bytes from 0 to 255" in result.stderr) is (name == "bytes")
        assert bool(found[name]["notes"]) is (name == "bytes")
    assert found["bytes"]["verified"] == found["scaled"]["verified"]
    assert found["bytes"]["verdict"] == found["scaled"]["verdict"]
