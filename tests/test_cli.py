"""The command line: verdicts, exit codes, JSON that parses, and bad input that leaves the disk as it
was."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from unveil import Scheme, cli, simulate
from unveil.cli import terminal
from unveil.cli.config import read_config
from unveil.engine import blocks

TINY = ["--n-private", "20", "--m", "120", "--d", "1024", "--seed", "1"]


def call(*args, **options):
    return CliRunner().invoke(cli.main, [str(arg) for arg in args], **options)


def facts_of(*args, code=0):
    result = call(*args, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail)


def listing(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


def one_sentence(result, *words):
    """Exit code 2, silence or an error as JSON on stdout, and one line on stderr that holds the
    words."""
    assert result.exit_code == 2, result.output
    if result.stdout:  # with --json a program finds the same sentence there
        assert result.stderr == f"Error: {json.loads(result.stdout)['error']['message']}\n"
    assert re.fullmatch(r"Error: [^\n]+\n", result.stderr), result.stderr
    for word in words:
        assert word in result.stderr


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    run = tmp_path_factory.mktemp("cli") / "run"
    assert call("simulate", run, *TINY).exit_code == 0
    return run


@pytest.fixture(scope="module")
def attacked(simulated, tmp_path_factory):
    run = shutil.copytree(simulated, tmp_path_factory.mktemp("cli") / "run")
    result = call("attack", run)
    assert result.exit_code == 0, result.output
    # The verdict first, then the evidence.
    assert result.stdout.startswith("20 private vectors recovered and verified, up to one sign per")
    for word in ("verified", "encodings", "reason", "Seconds:", "reproduced"):
        assert word in result.stdout
    return run


@pytest.fixture
def run(simulated, tmp_path):
    return Path(shutil.copytree(simulated, tmp_path / "run"))


@pytest.fixture
def done(attacked, tmp_path):
    return Path(shutil.copytree(attacked, tmp_path / "run"))


def test_simulate_writes_a_run_that_can_be_repeated(simulated, tmp_path):
    names = {path.name for path in simulated.iterdir()}
    assert names == {"encodings.npy", "scheme.json", "truth.npz", "manifest.json"}
    assert json.loads((simulated / "manifest.json").read_text())["seed"] == 1
    (tmp_path / "again").mkdir()  # an empty folder may be filled
    call("simulate", tmp_path / "again", *TINY)
    first, again = (folder / "encodings.npy" for folder in (simulated, tmp_path / "again"))
    assert first.read_bytes() == again.read_bytes()
    drawn = [facts_of("simulate", tmp_path / str(i), "--m", 3, "--d", 5) for i in range(2)]
    assert drawn[0]["seed"] != drawn[1]["seed"]


def test_every_option_reaches_the_scheme(tmp_path):
    args = "--k-private 1 --k-public 2 --weighting dirichlet --alpha 0.5 --signs masked --masks 3"
    args += " --pairing epochs --n-public 7 --m 4 --d 6 --noise 0.1"
    assert facts_of("simulate", tmp_path / "run", *args.split())["n_public"] == 7
    stored = json.loads((tmp_path / "run/scheme.json").read_text())
    expected = {"k_private": 1, "k_public": 2, "weighting": "dirichlet", "signs": "masked"}
    expected |= {"pairing": "epochs", "masks": 3, "alpha": 0.5}
    assert stored == {**expected, "pixel_rms": 1.0, "shape": None, "columns": []}
    assert np.load(tmp_path / "run/public.npy").shape == (7, 6)


def test_the_users_own_arrays_images_and_tables(tmp_path):
    images = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    np.save(tmp_path / "mine.npy", images)
    facts_of("simulate", tmp_path / "a", "--private", tmp_path / "mine.npy", "--m", 4)
    with np.load(tmp_path / "a/truth.npz") as truth:
        assert np.array_equal(truth["private"], images.reshape(5, 6))
    (tmp_path / "pictures").mkdir()
    for i in range(3):
        Image.new("L", (4, 2), i).save(tmp_path / f"pictures/{i}.png")
    facts = facts_of("simulate", tmp_path / "b", "--private", tmp_path / "pictures", "--m", 4)
    assert (facts["n_private"], facts["d"]) == (3, 8)
    table = ["city;pay;born"]
    rng = np.random.default_rng(0)
    table += [
        f"{'ab'[i % 2]};{pay:.3f}".replace(".", ",") + f";{day:02d}.03.1980"
        for i, (pay, day) in enumerate(zip(rng.random(20), rng.integers(1, 29, 20), strict=True))
    ]
    table[5] = "a;;03.03.1980"
    (tmp_path / "t.csv").write_text("\n".join(table))
    start = ("simulate", tmp_path / "c", "--private", tmp_path / "t.csv", "--m", 140, "--seed", 0)
    failed = call(*start)
    one_sentence(failed, "city (text", "pay (a gap", "add --text one-hot --missing mean")
    audit = call("audit", "--private", tmp_path / "t.csv", "--out", tmp_path / "audit")
    one_sentence(audit, "city (text", "pay (a gap", "add --text one-hot --missing mean")
    # Following the error is enough, and the names of columns come out at the other end.
    assert call(*start, "--text", "one-hot", "--missing", "mean").exit_code == 0
    call("attack", tmp_path / "c")
    facts_of("export", tmp_path / "c", tmp_path / "found.csv")
    header = (tmp_path / "found.csv").read_text().splitlines()[0]
    assert header.endswith("city=a,city=b,pay,born")


def test_attack_writes_what_it_found(attacked, done, tmp_path):
    manifest = json.loads((attacked / "manifest.json").read_text())
    assert (manifest["seed"], manifest["attack"]["verified"]) == (1, 20)
    with np.load(attacked / "recovery.npz", allow_pickle=False) as recovery:
        assert recovery["vectors"].shape == (20, 1024)
    before = listing(done)
    odd = tmp_path / "deep/[bold]odd[/red]"  # no markup
    result = call("attack", done, "--attack", "paper", "--out", odd)
    assert result.exit_code == 0
    assert "[bold]odd[/red]" in result.stdout
    assert listing(done) == before
    assert (odd / "recovery.npz").exists()
    # Scores of an older recovery go with it.
    assert call("score", done).exit_code == 0
    assert len(facts_of("attack", done, "--attack", "paper")["encodings_used"]) == 4
    assert not (done / "scores.json").exists()


def test_a_large_run_keeps_its_blocks_until_it_is_done(run, monkeypatch):
    paper = ("--attack", "paper")
    expected = facts_of("attack", run, *paper, "--workers", 1)
    monkeypatch.setattr(cli.attack, "WORTH_RESUMING", 1)
    with monkeypatch.context() as patch:
        patch.setattr("unveil.engine.runs.write_recovery", lambda *_: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            call("attack", run, *paper, catch_exceptions=False)
    assert list((run / "overlaps").rglob("block-*.npz"))
    again = facts_of("attack", run, *paper, "--workers", 2)
    assert not (run / "overlaps").exists()
    assert {**again, "seconds": 0} == {**expected, "seconds": 0}


def test_a_file_with_options_or_alone(run, tmp_path):
    result = facts_of(
        "attack", run / "encodings.npy", "--weighting", "equal", "--out", tmp_path / "out"
    )
    assert result["verified"] == 20
    names = {"recovery.npz", "scheme.json", "manifest.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    one_sentence(call("score", tmp_path / "out"), "--private")
    np.save(tmp_path / "truth.npy", np.load(run / "truth.npz")["private"])
    scored = facts_of("score", tmp_path / "out", "--private", tmp_path / "truth.npy")
    assert scored["exact"] == 20
    sim = simulate(Scheme(2, weighting="dirichlet", signs="kept"), 12, m=120, d=40, rng=0)
    np.save(tmp_path / "released.npy", sim.encodings.values)
    told = facts_of("attack", tmp_path / "released.npy")
    assert (told["verified"], told["evidence"]["scheme"]["k_private"]) == (12, 2)


def test_public_vectors_give_signs(tmp_path):
    options = [
        "--k-public",
        "1",
        "--n-public",
        "10",
        "--n-private",
        "12",
        "--m",
        "120",
        "--d",
        "4096",
        "--seed",
        "0",
    ]
    assert call("simulate", tmp_path / "run", *options).exit_code == 0
    public = ["--public", tmp_path / "run/public.npy", "--k-public", 1, "--out", tmp_path / "out"]
    assert facts_of("attack", tmp_path / "run/encodings.npy", *public)["signed"] is True


def test_nothing_recovered_is_3_and_says_why(tmp_path):
    call("simulate", tmp_path / "run", "--m", 30, "--d", 512, "--seed", 0)
    result = call("attack", tmp_path / "run")
    assert result.exit_code == 3
    assert result.stdout.startswith("No private vector verified: ")
    assert "unveil plan" in result.stdout
    assert facts_of("attack", tmp_path / "run", code=3)["verified"] == 0
    assert call("score", tmp_path / "run").exit_code == 3


def test_overlaps_and_similarities_from_elsewhere_are_handed_on(tmp_path):
    """Ninety pixels are too few to read overlaps: with those given, every vector comes back."""
    sim = simulate(Scheme(2), 12, m=90, d=90, rng=0)
    np.save(tmp_path / "y.npy", sim.encodings.values)
    W = np.zeros((90, 12), np.int64)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    np.save(tmp_path / "m.npy", W @ W.T)
    for name, option in (("line-graph", "--overlaps"), ("cliques", "--similarity")):
        given = ("--attack", name, option, tmp_path / "m.npy", "--out", tmp_path / name)
        assert facts_of("attack", tmp_path / "y.npy", *given)["verified"] == 12


def test_score_counts_and_is_loud_where_something_is_wrong(done):
    result = call("score", done)
    assert result.stdout.startswith("20 of 20 private vectors recovered exactly")
    scores = json.loads((done / "scores.json").read_text())
    assert (scores["exact"], scores["wrong"], scores["missing"]) == (20, 0, 0)
    assert facts_of("score", done)["matches"] == scores["matches"]
    with np.load(done / "truth.npz") as truth:
        arrays = dict(truth)
    arrays["private"] = np.random.default_rng(0).permuted(arrays["private"], axis=1)
    np.savez(done / "truth.npz", **arrays)
    result = call("score", done)
    assert result.exit_code == 3
    assert result.stdout.startswith("WRONG: 20 of 20")


def test_doctor(monkeypatch):
    facts = facts_of("doctor")
    assert facts["healthy"]
    names = {check["check"] for check in facts["checks"]}
    assert {"numpy", "BLAS", "free memory", "numba cache", "self-test"} <= names
    monkeypatch.setattr("unveil.engine.blocks.free_memory", lambda: 2**20)
    monkeypatch.setattr("unveil.cli.doctor._self_test", lambda: "skipped")
    result = call("doctor")
    assert result.exit_code == 3
    assert "close other programs" in " ".join(result.stdout.split())


def truncated(path):
    np.save(path, np.ones((4, 6), np.float32))
    path.write_bytes(path.read_bytes()[:-20])


BAD_ARRAYS = {
    "nan": (lambda p: np.save(p, np.array([[1.0, np.nan], [0.0, 1.0]])), "NaN"),
    "one dimension": (lambda p: np.save(p, np.ones(6)), "(items, pixels)"),
    "no items": (lambda p: np.save(p, np.ones((0, 6))), "empty"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps([[1.0, 2.0]])), "plain .npy"),
    "truncated": (truncated, "numpy.save"),
    "missing": (lambda p: None, "check the path"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_leave_the_disk_alone(name, run, tmp_path):
    make, cure = BAD_ARRAYS[name]
    bad = tmp_path / "bad.npy"
    make(bad)
    (run / "encodings.npy").unlink()
    if bad.exists():
        shutil.copy(bad, run / "encodings.npy")
    before = listing(tmp_path)
    for option in ("--private", "--public"):
        one_sentence(call("simulate", tmp_path / "new", option, bad, "--json"), cure)
    one_sentence(call("attack", bad, "--out", tmp_path / "out"), cure)
    one_sentence(call("attack", run), cure)
    assert listing(tmp_path) == before


def scheme_json(run, **content):
    (run / "scheme.json").write_text(json.dumps(content))


BAD_RUNS = {
    "invalid JSON": (lambda run: (run / "scheme.json").write_text("{"), "not valid JSON"),
    "unknown keys": (lambda run: scheme_json(run, k_private=2, colour="red"), "colour"),
    "k as text": (lambda run: scheme_json(run, k_private="2"), "whole number"),
    "pixel_rms as text": (lambda run: scheme_json(run, pixel_rms="one"), "positive number"),
    "no scheme": (lambda run: (run / "scheme.json").unlink(), "check the path"),
    "no public vectors": (lambda run: scheme_json(run, k_private=2, k_public=1), "pass public="),
    "other pixels": (lambda run: np.save(run / "public.npy", np.ones((3, 5))), "same space"),
    "manifest": (lambda run: (run / "manifest.json").write_text("nonsense"), "not valid JSON"),
}


@pytest.mark.parametrize("name", BAD_RUNS)
def test_bad_runs(name, run):
    spoil, cure = BAD_RUNS[name]
    spoil(run)
    before = listing(run)
    one_sentence(call("attack", run), cure)
    assert listing(run) == before


@pytest.mark.parametrize("name", ["truth.npz", "recovery.npz"])
def test_score_of_a_truncated_archive(name, done):
    (done / name).write_bytes((done / name).read_bytes()[:-40])
    before = listing(done)
    one_sentence(call("score", done), name)
    assert listing(done) == before


BAD_CALLS = {
    "simulate new --k-private 5 --n-private 4": "lower k_private",
    "simulate new --k-public 2 --n-public 1": "lower k_public",
    "simulate new --k-private 0": "at least one",
    "simulate new --m 0": "at least one encoding",
    "simulate new --m -3": "--m",
    "simulate new --m 1000000000000000000000000000": "--m",
    "simulate new --m many": "--help",
    "simulate new --weighting heavy": "equal, paper, convex",
    "simulate new --noise nan": "0 or more",
    "simulate new --seed -1": "0 or more",
    "simulate new --private run/encodings.npy --n-private 7": "contradict",
    "simulate new --private run/encodings.npy --public small.npy": "contradict",
    "simulate run": "choose another name",
    "simulate small.npy/run --m 2 --d 2": "check the path",
    "simulate new --private run": "no images",
    "attack run --attack magic": "choose one of",
    "attack nowhere --out new": "check the path",
    "attack run --out run": "choose another name",
    "attack run --k-private 3 --pixel-rms 2": "--k-private, --pixel-rms",
    "attack run/encodings.npy --public small.npy --out new": "--k-public",
    "attack run/encodings.npy --k-public 1 --out new": "k_public=0",
    "attack run/encodings.npy --pixel-rms big --out new": "unknown",
    "attack run/encodings.npy --similarity small.npy --out new": "similarity",
    "score nowhere": "unveil attack",
    "score run": "unveil attack",
    "plan --k-private 9 --n-private 8": "lower k_private",
    "plan --m 0": "m=0",
    "plan --config nowhere.toml": "check the path",
    "atack": "attack",
    "attack run --fast": "--help",
    "audit small.npy": "behind --private",
    "simulate": "unveil simulate --help",
}


@pytest.mark.parametrize("args", BAD_CALLS)
def test_bad_calls(args, run, tmp_path, monkeypatch):
    np.save(tmp_path / "small.npy", np.ones((3, 5), np.float32))
    monkeypatch.chdir(tmp_path)
    before = listing(tmp_path)
    one_sentence(call(*args.split()), BAD_CALLS[args])
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (PermissionError(13, "Permission denied", "/x"), 2, "/x: Permission denied; check"),
        (OSError(28, "No space left on device"), 2, "No space left"),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_trouble_becomes_one_sentence(error, code, words, run, monkeypatch):
    def fail(*_):
        raise error

    before = listing(run)
    monkeypatch.setattr("unveil.engine.runs.write_recovery", fail)
    for extra in ([], ["--out", run.parent / "out"]):
        result = call("attack", run, "--attack", "paper", *extra)
        assert result.exit_code == code
        assert words in result.stderr
        assert "Traceback" not in result.output
        assert listing(run) == before
        assert [path.name for path in run.parent.iterdir()] == ["run"]
    # A bug keeps its traceback.
    monkeypatch.setattr("unveil.attacks.recover_told", lambda *_: [][0])
    assert isinstance(call("attack", run).exception, IndexError)


def test_a_scheduler_that_is_not_there_is_one_sentence(run, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(blocks._client.__wrapped__, "__defaults__", (1,))
    args = ("attack", run, "--attack", "paper", "--scheduler", "tcp://127.0.0.1:9")
    one_sentence(call(*args), "does not answer")


def unveil(*args, **options):
    code = "from unveil.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_the_command_from_outside(done, tmp_path):
    shown = unveil("--help")
    assert shown.returncode == 0
    for command in ("simulate", "attack", "score", "audit", "plan", "export", "doctor"):
        assert command in shown.stdout
    assert re.fullmatch(r"unveil, version \S+\n", unveil("--version").stdout)
    scored = unveil("score", done, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert scored.returncode == 0
    assert "20 of 20" in scored.stdout
    assert unveil("score", done, "--no-such-option", "--json").returncode == 2


def test_the_score_decides_the_exit_code(done):
    assert call("score", done).exit_code == 0
    assert call("score", done, "--tolerance", 1e-30).exit_code == 3


def test_an_error_is_json_too_where_json_was_asked_for(done, tmp_path):
    (tmp_path / "o.toml").write_text('json = true\nprivate = "nowhere.npy"\n')
    for args in (
        ("score", done / "nowhere", "--json"),
        ("score", done, "--no-such-option", "--json"),
        ("audit", "--config", tmp_path / "o.toml"),
    ):
        failed = call(*args)
        assert failed.exit_code == 2
        fault = json.loads(failed.stdout)
        assert set(fault) == {"schema", "error"}
        assert failed.stderr == f"Error: {fault['error']['message']}\n"


@pytest.mark.parametrize("command", cli.main.commands)
def test_common_options_fit_a_screen_and_come_first(command):
    shown = call(command, "--help").stdout
    common = re.split(r"\n(?=[A-Z][a-z ]+:\n)", shown[shown.index("Options:") :])[0]
    assert "--json" in common
    assert len(common.splitlines()) <= 30


def test_options_from_a_file(tmp_path):
    file = tmp_path / "a.toml"
    (tmp_path / "data.npy").touch()
    file.write_bytes(b'\xef\xbb\xbfk-private = 3\nm = "10:20"\nprivate = "data.npy"\nseed = 1\n')
    known = cli.main.commands["audit"].params
    expected = {"k_private": "3", "m": "10:20", "private": str(tmp_path / "data.npy"), "seed": "1"}
    assert read_config(file, known, ("private",)) == expected
    file.write_text('private = "fashion-mnist"\n')
    assert read_config(file, known, ("private",)) == {"private": "fashion-mnist"}
    for text, words in {
        "k_privat = 2": "did you mean k_private",
        "zzz = 2": "choose from alpha",
        "k_private = 1\nk-private = 2": "twice",
        "m = [1, 2]": "one number, word",
        "m = ": "not valid TOML",
        "m = " + "[" * 5000: "not valid TOML",
        "k_private = 2020-01-01": "one number, word",
        "k_private = true": "a number or a word",
        "k_private = 2.5": "--k-private",
        "noise = 'loud'": "--noise",
        "json = 1": "true or false",
    }.items():
        file.write_text(text)
        one_sentence(call("plan", "--config", file), words)
    file.write_text("n-private = 30\nm = 0x1f4\njson = true\n")
    facts = json.loads(call("plan", "--config", file).stdout)
    assert (facts["n_private"], facts["m"]) == (30, 500)
    assert facts_of("plan", "--config", file, "--m", 400)["m"] == 400
    file.write_text("#" * (1 << 21))
    one_sentence(call("plan", "--config", file), "bytes")
    file.write_bytes(b"\xff\xfe")
    one_sentence(call("plan", "--config", file), "UTF-8")


@pytest.mark.parametrize("wanted", [True, False])
def test_progress_lines_without_a_terminal(wanted, capfd):
    """Also with --json: they go to stderr."""
    with terminal.progress_bar("work", wanted, every=0.05) as progress:
        progress("overlaps", 3, 60)
        time.sleep(0.3)
        progress("records; so far: 5 images", 3, 60)
        time.sleep(0.3)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "work: 0 s, overlaps 3 of 60\n" in shown.err
    assert " s, records 3 of 60; so far: 5 images\n" in shown.err


@pytest.mark.parametrize(("patience", "seen"), [(0.0, True), (60.0, False)])
def test_a_bar_appears_only_after_a_while(patience, seen, monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    with terminal.progress_bar("work", True, patience=patience) as progress:
        for done in range(60):
            progress("overlaps", done, 60)
            time.sleep(0.005)
    shown = capfd.readouterr()
    assert ("overlaps" in shown.err) is seen
    assert shown.out == ""
