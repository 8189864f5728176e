"""`unveil audit` and `unveil plan` from outside: one command for every kind of data, one sentence
for what cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from unveil import cli

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
        one_sentence(call("audit", "--private", "many.csv"), "about 300,000 records", "--sample")
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
        assert "MiB" in result.stdout
        assert "enough pixels" in result.stdout

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
        assert "The encoder: Signs are kept, as in MixUp." in flat
