"""docs/adding_an_attack.md, followed to the letter: one file, and everything knows the attack."""

import inspect
import json
import re
from pathlib import Path

import pytest

import unveil

PAGE = Path(__file__).resolve().parents[3] / "docs" / "adding_an_attack.md"
EVERYWHERE = """
import json
from click.testing import CliRunner
import unveil
from unveil import cli

sim = unveil.simulate(unveil.Scheme(2), 12, m=80, d=600, rng=0)
found = unveil.recover(sim.encodings, attack="mine", rng=0)
scores = unveil.score(found, sim.private)
CliRunner().invoke(cli.main, ["simulate", "run", "--n-private", "12", "--m", "80", "--d", "600"])
done = CliRunner().invoke(cli.main, ["attack", "run", "--attack", "mine", "--json"])
print(json.dumps([found.attack, scores.exact, scores.wrong, done.exit_code, json.loads(done.stdout)["verified"]]))
"""


@pytest.fixture(scope="module")
def example(house, tmp_path_factory):
    text = PAGE.read_text()
    [source] = re.findall(r"```python\n(.*?)```", text, re.S)
    [place] = re.findall(r"This is `(\w+\.py)`.* Put it into `src/unveil/attacks/`", text)
    return house(tmp_path_factory.mktemp("house"), {place: source})


def test_python_and_the_command_line_know_it(example):
    done = example.run(code=EVERYWHERE)
    assert done.returncode == 0, done.stderr
    name, exact, wrong, code, verified = json.loads(done.stdout)
    assert (name, wrong, code) == ("mine", 0, 0)
    assert exact >= 10
    assert verified >= 10


def test_the_comparison_knows_it_and_shows_where_it_refuses(example):
    chosen = [f"--family={name}" for name in ("told-k2", "unequal")]
    done = example.run(
        "compare", "--attack=mine", *chosen, "--out", "out", "--limit", 100, "--json"
    )
    assert done.returncode == 0, done.stderr
    found = {result["family"]: result for result in json.loads(done.stdout)["results"]}
    told, unequal = found["told-k2"], found["unequal"]
    assert (told["outcome"], told["wrong"]) == ("ran", 0)
    assert told["share"] > 0.9
    assert unequal["outcome"] == "refused"
    assert "use attack='full'" in unequal["reason"]


def test_its_signature_is_the_common_one(example):
    space = {}
    exec(compile((example.attacks / "mine.py").read_text(), "mine.py", "exec"), space)
    wanted = [name for name in inspect.signature(unveil.recover).parameters if name != "attack"]
    has = list(inspect.signature(space["ATTACK"]).parameters)
    assert has == [name for name in wanted if name in has]
    assert space["NAME"] not in unveil.attacks.ATTACKS
